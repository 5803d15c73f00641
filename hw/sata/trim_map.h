// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which sectors were trimmed and not written since, one bit each. Bits are kept in leaves of 16 MiB
// of the drive; a leaf takes memory (4 KiB) only while some but not all of its sectors are trimmed,
// so the map is bounded by 1/4096 of the drive and a wholly trimmed or wholly written drive costs
// next to nothing.
#ifndef REVODRIVE_SATA_TRIM_MAP_H
#define REVODRIVE_SATA_TRIM_MAP_H

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "revodrive/stream.h"

namespace revodrive {

class TrimMap {
 public:
  explicit TrimMap(uint64_t sectors);

  // Ranges lie inside the drive.
  void mark(uint64_t lba, uint64_t sectors) { set(lba, sectors, true); }
  void clear(uint64_t lba, uint64_t sectors) { set(lba, sectors, false); }
  void clear_all();
  bool test(uint64_t lba) const;
  // Some sector of the range is trimmed.
  bool any(uint64_t lba, uint64_t sectors) const;
  uint64_t count() const { return count_; }
  uint64_t memory_bytes() const { return leaves_in_use_ * sizeof(Leaf); }

  void save(StreamWriter &out) const;
  void load(StreamReader &in);
  // For a store of limited size: runs of trimmed sectors from the start of the drive on, as many as
  // fit into `max_bytes`. Returns how many trimmed sectors were left out.
  uint64_t save_runs(StreamWriter &out, size_t max_bytes) const;
  void load_runs(StreamReader &in);

 private:
  static constexpr uint64_t kLeafSectors = 32768;
  static constexpr size_t kWordBits = 64;
  using Leaf = std::array<uint64_t, kLeafSectors / kWordBits>;
  struct Slot {
    std::unique_ptr<Leaf> leaf;  // null: all of its sectors are as `all` says
    bool all = false;
    uint32_t count = 0;  // trimmed sectors
  };

  uint64_t slot_sectors(size_t index) const;
  void set(uint64_t lba, uint64_t sectors, bool value);
  void set_in_slot(size_t index, uint32_t first, uint32_t end, bool value);
  void fill(size_t index, bool value);
  static bool bit(const Leaf &leaf, uint32_t at) {
    return leaf[at / kWordBits] >> (at % kWordBits) & 1;
  }
  // The first sector at or after `lba` that is (not) trimmed, or the end of the drive.
  uint64_t find(uint64_t lba, bool value) const;

  uint64_t sectors_;
  std::vector<Slot> slots_;
  uint64_t count_ = 0;
  uint64_t leaves_in_use_ = 0;
};

}  // namespace revodrive
#endif
