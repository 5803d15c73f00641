// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which units were written to a superblock, in order: what garbage collection goes by. Lists of
// unit numbers in chunks of 4 KiB out of one pool, which grows and never shrinks but by clear(). A
// unit that was written again stays in the list of its old place; the owner has those dropped.
#ifndef REVODRIVE_SF2281_UNIT_LOG_H
#define REVODRIVE_SF2281_UNIT_LOG_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace revodrive {

class UnitLog {
 public:
  // One list; empty: all zero.
  struct List {
    uint32_t head = 0;  // chunks, by number from 1 on
    uint32_t tail = 0;
    uint32_t used = 0;  // of the tail
    uint32_t count = 0;
  };
  // A place in a list. Stays good until the list is appended to, filtered or dropped.
  struct Cursor {
    uint32_t chunk = 0;
    uint32_t index = 0;
  };

  void append(List &list, uint32_t unit);
  void drop(List &list);
  static Cursor begin(const List &list) { return {list.head, 0}; }
  // False at the end.
  bool next(const List &list, Cursor &cursor, uint32_t *unit) const;
  // Units that come next, at most so many, and no further than the chunk goes.
  std::span<const uint32_t> following(const List &list, const Cursor &cursor, uint32_t most) const {
    if (cursor.chunk == 0)
      return {};
    uint32_t end = std::min(cursor.chunk == list.tail ? list.used : kEntries, cursor.index + most);
    return {chunk(cursor.chunk).units + cursor.index, end - cursor.index};
  }
  // Keeps what `keep(unit)` says, in order. expect(list, cursor) is called before each.
  template <typename Expect, typename Keep>
  void filter(List &list, Expect expect, Keep keep) {
    List old = list;
    list = {};
    entries_ -= old.count;
    Cursor cursor = begin(old);
    uint32_t chunk = old.head;
    uint32_t unit;
    // The new list is never longer: it takes over the chunks that were read.
    while (expect(old, cursor), next(old, cursor, &unit)) {
      while (chunk != cursor.chunk)
        chunk = recycle(chunk);
      if (keep(unit))
        append(list, unit);
    }
    while (chunk != 0)
      chunk = recycle(chunk);
  }
  void clear();

  uint64_t entries() const { return entries_; }
  uint64_t memory_bytes() const { return blocks_.size() * sizeof(Block); }

 private:
  static constexpr uint32_t kEntries = 1023;
  static constexpr uint32_t kBlockChunks = 64;
  struct Chunk {
    uint32_t next;
    uint32_t units[kEntries];
  };
  using Block = std::array<Chunk, kBlockChunks>;

  Chunk &chunk(uint32_t number) {
    return (*blocks_[(number - 1) / kBlockChunks])[(number - 1) % kBlockChunks];
  }
  const Chunk &chunk(uint32_t number) const {
    return (*blocks_[(number - 1) / kBlockChunks])[(number - 1) % kBlockChunks];
  }
  uint32_t take();
  // Back to the pool; returns the one that followed.
  uint32_t recycle(uint32_t number);

  std::vector<std::unique_ptr<Block>> blocks_;
  uint32_t free_ = 0;   // the first of those that were used before
  uint32_t fresh_ = 0;  // how many were ever used
  uint64_t entries_ = 0;
};

}  // namespace revodrive
#endif
