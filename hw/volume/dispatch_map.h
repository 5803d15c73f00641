// SPDX-License-Identifier: GPL-2.0-or-later
//
// The map of policy=dispatch in memory: for each block of the volume its place on a member, in
// pages as they are stored. A page takes memory when it is first used. What the map knows of the
// stored copies: which of the two is the good one, by which commit it was written, and whether it
// has to be written again.
#ifndef REVODRIVE_VOLUME_DISPATCH_MAP_H
#define REVODRIVE_VOLUME_DISPATCH_MAP_H

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "revodrive/stream.h"
#include "volume/dispatch_layout.h"

namespace revodrive {

class DispatchMap {
 public:
  // A place is member * places + number on the member, plus one.
  static constexpr uint32_t kNowhere = 0;
  static constexpr uint32_t kPageBytes = DispatchLayout::kPageSectors * 512;

  // Empty, and nothing of it is stored.
  void reset(const DispatchLayout &layout);
  uint32_t place(uint64_t unit) const;
  void set(uint64_t unit, uint32_t place);
  uint64_t mapped() const { return mapped_; }
  // Its place may be another one in the stored map.
  bool is_unsafe(uint64_t unit) const { return pages_[unit / kEntries].dirty; }

  // Pages to be written with the next commit; where the new copy goes; when it is there.
  const std::vector<uint32_t> &dirty() const { return dirty_; }
  unsigned spare_slot(uint32_t page) const { return pages_[page].slot ^ 1u; }
  void encode(uint32_t page, uint64_t commit, std::span<uint8_t, kPageBytes> out) const;
  void all_written(uint64_t commit);
  // Of the commits that wrote the pages as they are stored; tells a set that belongs together.
  uint64_t sum() const { return sum_; }

  // Reading a stored map: commit of a copy, 0 if it is none of that page.
  static uint64_t commit_of(uint32_t page, std::span<const uint8_t, kPageBytes> copy);
  // Takes the copy in `slot` as the good one. False: it holds places that there are not.
  bool adopt(uint32_t page, unsigned slot, std::span<const uint8_t, kPageBytes> copy);
  // What is in its spare slot must go.
  void mark(uint32_t page);

  // visit(unit, place) for each block that is mapped.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (uint32_t page = 0; page < pages_.size(); page++) {
      for (uint32_t i = 0; pages_[page].places && i < kEntries; i++) {
        if (uint32_t place = (*pages_[page].places)[i])
          visit(uint64_t{page} * kEntries + i, place);
      }
    }
  }

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  static constexpr uint32_t kEntries = DispatchLayout::kPageEntries;
  using Places = std::array<uint32_t, kEntries>;
  struct Page {
    std::unique_ptr<Places> places;  // null: all nowhere
    uint64_t commit = 0;             // of the good copy, 0: none
    uint8_t slot = 1;                // of the good copy; the first one goes to 0
    bool dirty = false;
  };

  DispatchLayout layout_;
  std::vector<Page> pages_;
  std::vector<uint32_t> dirty_;
  uint64_t mapped_ = 0;
  uint64_t sum_ = 0;
};

}  // namespace revodrive
#endif
