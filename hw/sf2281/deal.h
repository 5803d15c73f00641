// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which unit is where on a drive that was filled in no time (presets, the summary of a stored
// drive): a function, not a table, so that such a drive is there at once and takes memory only for
// what is used of it. Units have an order, in which they are dealt to superblocks: as they are
// numbered (all of them, or ranges), or shuffled. A Deal says of each unit where it was put, and of
// each place in the order which unit is there.
#ifndef REVODRIVE_SF2281_DEAL_H
#define REVODRIVE_SF2281_DEAL_H

#include <cstdint>
#include <span>
#include <vector>

#include "sf2281/geometry.h"
#include "sf2281/written.h"

namespace revodrive {

class Deal {
 public:
  // Units are counted in chunks of the map.
  static constexpr uint32_t kChunkUnits = 65536;

  struct Entry {
    uint32_t address = 0;  // superblock and slot, as the map has it; 0: nowhere
    uint32_t granules = 0;
  };

  // All of stored size `bytes`. In order; a page of journal for each 1000 pages / journal_permille.
  static Deal in_order(const FlashGeometry &geometry, uint32_t bytes, uint32_t journal_permille);
  // Only the units of these ranges (written_units()).
  static Deal in_order(const FlashGeometry &geometry, uint32_t bytes, uint32_t journal_permille,
                       std::span<const UnitRange> ranges);
  // Shuffled: so many units of each chunk, the first ones of it.
  static Deal shuffled(const FlashGeometry &geometry, uint32_t bytes, uint64_t seed,
                       const std::vector<uint32_t> &units_of_chunk);

  // Units in the order; how many of them were dealt.
  uint64_t units() const { return chunk_ends_.empty() ? 0 : chunk_ends_.back(); }
  uint64_t dealt() const { return dealt_; }
  uint64_t units_of_chunk(uint32_t chunk) const;
  // Deals the next units to a superblock: as many as fit, at most `most`. Returns how many.
  uint32_t deal_to(uint32_t superblock, uint64_t most);
  // In order: what the last superblock holds, and what it owes to the journal.
  uint64_t fill_bytes() const;
  uint64_t debt() const;

  uint32_t bytes() const { return bytes_; }
  bool shuffled() const { return shuffled_; }
  uint32_t unit_at(uint64_t index) const;
  Entry entry(uint32_t unit) const;
  uint64_t memory_bytes() const { return ranges_.capacity() * sizeof(RankedRange); }

 private:
  // What a superblock got.
  struct Share {
    uint64_t first = 0;  // in the order
    uint32_t units = 0;
    uint32_t superblock = 0;
    uint64_t debt = 0;  // of the journal, at its beginning: in thousandths of bytes
  };

  struct RankedRange {
    uint32_t first = 0;
    uint32_t rank = 0;  // of its first unit, in the order
  };
  struct Position {
    uint64_t index = 0;
    bool in_order = false;
  };

  Deal(const FlashGeometry &geometry, uint32_t bytes) : geometry_(geometry), bytes_(bytes) {}
  uint64_t chunk_begin(size_t chunk) const { return chunk == 0 ? 0 : chunk_ends_[chunk - 1]; }
  uint64_t debt_after(const Share &share, uint64_t units) const;
  uint64_t journal_bytes(const Share &share, uint64_t units) const;
  uint64_t offset(const Share &share, uint64_t index) const;
  uint32_t fitting(const Share &share) const;
  const Share &share_of(uint64_t index) const;
  Position position(uint64_t unit) const;

  FlashGeometry geometry_;
  uint32_t bytes_;
  uint32_t journal_permille_ = 0;
  bool shuffled_ = false;
  uint64_t seed_ = 0;
  std::vector<uint64_t> chunk_ends_;  // sums of the units of the chunks so far
  std::vector<RankedRange> ranges_;   // in order, if it is not over all units
  std::vector<Share> shares_;
  uint64_t dealt_ = 0;
};

}  // namespace revodrive
#endif
