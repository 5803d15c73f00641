// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where each mapping unit of the drive is and how much it takes there: 5 bytes a unit. An address
// has 31 bits, 0 is "not mapped"; the top bit is a mark for whoever goes over all units for a
// moment. Of a drive that was dealt (deal.h) an entry is worked out when it is asked for; a memory
// in which nothing was stored yet is not touched for that.
#ifndef REVODRIVE_SF2281_UNIT_MAP_H
#define REVODRIVE_SF2281_UNIT_MAP_H

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "sf2281/deal.h"
#include "sf2281/zero_memory.h"

namespace revodrive {

class UnitMap {
 public:
  // What is known of the neighbourhood of a unit is known of so many.
  static constexpr uint32_t kChunkUnits = Deal::kChunkUnits;
  static constexpr uint32_t kMark = uint32_t{1} << 31;

  UnitMap(uint64_t units, const MemoryHint &hint)
      : units_(units),
        memory_(units * kEntry, hint),
        chunks_((units + kChunkUnits - 1) / kChunkUnits),
        pieces_(memory_.bytes() / kPiece + 1) {}

  // The address with the mark, if it is set; the stored size in granules, 1..256, if there is one.
  using Entry = Deal::Entry;

  uint64_t units() const { return units_; }
  Entry find(uint32_t unit) const {
    uint32_t value = used(unit) ? load(unit) : 0;
    if (value != 0)
      return {value, *size(unit) + 1u};
    return deal_ ? work_out(unit) : Entry{};
  }
  uint32_t address(uint32_t unit) const { return find(unit).address; }
  // Of a unit that is not mapped.
  void set(uint32_t unit, uint32_t address, uint32_t granules) {
    chunks_[unit / kChunkUnits].touched = true;
    chunks_[unit / kChunkUnits].mapped++;
    store(unit, address, static_cast<uint8_t>(granules - 1));
  }
  // Of a mapped unit.
  void set_address(uint32_t unit, uint32_t address) const {
    store(unit, address, static_cast<uint8_t>(find(unit).granules - 1));
  }
  // Not mapped any more.
  void forget(uint32_t unit) {
    chunks_[unit / kChunkUnits].mapped--;
    store(unit, 0, kForgotten);
  }

  // Everything is as it was dealt. Before anything else.
  void follow(Deal deal);
  const Deal &deal() const { return *deal_; }

  // The first unit from `unit` on near which something was written; units() if there is none.
  uint64_t next_touched(uint64_t unit) const;
  bool touched(uint64_t unit) const { return chunks_[unit / kChunkUnits].touched; }
  // How many units of the chunk that begins with this one are mapped.
  uint32_t mapped_in_chunk(uint64_t unit) const { return chunks_[unit / kChunkUnits].mapped; }
  void clear();
  // Brings the entry near. The empty statement is for GCC, which takes what does no more than
  // prefetch for a function without effect, and leaves out the calls of it.
  void expect(uint64_t unit) const {
    if (unit < units_ && used(static_cast<uint32_t>(unit)))
      __builtin_prefetch(entry(static_cast<uint32_t>(unit)));
    __asm__ volatile("");
  }
  uint64_t memory_bytes() const;

 private:
  // Both numbers of a unit side by side: one miss of the processor's cache, not two.
  static constexpr size_t kEntry = 5;
  // In which memory is counted.
  static constexpr size_t kPiece = 65536;
  // In place of a size, where there is no address: do not ask what was dealt.
  static constexpr uint8_t kForgotten = 1;

  struct Chunk {
    uint32_t mapped = 0;
    bool touched = false;
  };
  static size_t piece_of(uint32_t unit) { return size_t{unit} * kEntry / kPiece; }
  bool used(uint32_t unit) const { return pieces_[piece_of(unit)] != 0; }
  uint8_t *entry(uint32_t unit) const { return memory_.data() + size_t{unit} * kEntry; }
  uint8_t *size(uint32_t unit) const { return entry(unit) + sizeof(uint32_t); }
  uint32_t load(uint32_t unit) const {
    uint32_t value;
    std::memcpy(&value, entry(unit), sizeof(value));
    return value;
  }
  void store(uint32_t unit, uint32_t address, uint8_t size) const {
    pieces_[piece_of(unit)] = 1;
    std::memcpy(entry(unit), &address, sizeof(address));
    *this->size(unit) = size;
  }
  Entry work_out(uint32_t unit) const;

  uint64_t units_;
  ZeroMemory memory_;
  std::vector<Chunk> chunks_;
  mutable std::vector<uint8_t> pieces_;  // of memory_, that were written
  std::optional<Deal> deal_;
};

}  // namespace revodrive
#endif
