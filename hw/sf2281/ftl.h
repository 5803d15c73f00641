// SPDX-License-Identifier: GPL-2.0-or-later
//
// The flash translation layer as bookkeeping, without time: which unit is where and how large it is
// stored, what is still valid in each superblock, which one is collected next, how worn each is and
// what has failed. The controller asks it where things are and tells it what is written; it says
// what that means for the flash.
//
// Superblocks are numbered from 1. Two are open: one takes what the host writes, one what garbage
// collection moves. Data is packed without gaps; a share for the journal is added on top. A closed
// superblock without valid data is free at once. A free one is erased when it is opened, unless
// that was done before: at the factory, or by erase_all().
#ifndef REVODRIVE_SF2281_FTL_H
#define REVODRIVE_SF2281_FTL_H

#include <array>
#include <cstdint>
#include <vector>

#include "revodrive/stream.h"
#include "sf2281/deal.h"
#include "sf2281/geometry.h"
#include "sf2281/unit_log.h"
#include "sf2281/unit_map.h"

namespace revodrive {

class Ftl {
 public:
  enum Stream : uint8_t { kHost, kGc };
  static constexpr size_t kStreams = 2;
  // Superblocks that stay free so that garbage collection can always finish.
  static constexpr uint32_t kReserve = 2;

  // Where a unit is: bytes at an offset of a superblock. bytes 0: not mapped.
  struct Place {
    uint32_t superblock = 0;
    uint32_t bytes = 0;
    uint64_t offset = 0;
  };
  struct Counts {
    uint64_t erases = 0;  // superblocks erased
    uint64_t program_fails = 0;
    uint64_t erase_fails = 0;
    uint64_t gc_bytes = 0;  // moved by garbage collection
  };
  struct Wear {
    uint32_t least = 0, most = 0, mean = 0;
  };
  // How a drive is filled at its start.
  enum class Fill : uint8_t { kSequential, kShuffled };

  // `memory` is told of the map.
  Ftl(const FlashGeometry &geometry, const FlashProfile &profile, const MemoryHint &memory = {});

  const FlashGeometry &geometry() const { return geometry_; }
  Place find(uint32_t unit) const;
  // Stored size of so many bytes, rounded to granules.
  uint32_t rounded(uint64_t bytes) const;

  // The open superblock of a stream has room for a unit of any size.
  bool has_room(Stream stream) const;
  // Closes the open one, if any, and takes and erases a free one. Of garbage collection's kReserve
  // the host's stream takes none: then it fails.
  // `last`: it does, as nothing else is left.
  bool open(Stream stream, bool last = false);
  // The superblock that was opened last did not have to be erased.
  bool opened_clean() const { return opened_clean_; }
  // Appends a unit; the stream has room. Returns where it went.
  Place append(Stream stream, uint32_t unit, uint32_t bytes);
  // Fills up to the next page.
  void pad(Stream stream);
  uint32_t open_superblock(Stream stream) const { return streams_[stream].superblock; }
  uint64_t fill_bytes(Stream stream) const;

  // Forgets the units [first, first + count).
  void trim(uint64_t first, uint64_t count);
  void forget_all() { clear(); }
  // Sums over the drive's life begin anew, but for failures.
  void begin_counts() { counts_.erases = counts_.gc_bytes = 0; }
  // Everything erased, nothing mapped; what is worn stays so.
  void erase_all();

  // Garbage collection. wanted(): fewer superblocks are free than there should be.
  bool wanted() const { return free_ < gc_start_; }
  bool pressed() const { return free_ <= kReserve + 1; }
  bool collecting() const { return victim_ != 0; }
  // The superblock being collected, chosen when there is none; 0: nothing can be gained.
  uint32_t victim();
  // Background collection: fewer superblocks are free than it is to leave, and a victim that is
  // worth it, at most kIdleCost bytes moved for one gained (wear is levelled when the host writes).
  static constexpr uint64_t kIdleCost = 16;
  bool idle_wanted() const { return free_ < idle_free_; }
  uint32_t idle_victim();
  // The next valid unit of the victim; false: it has none left and is free.
  bool next_of_victim(uint32_t *unit);

  uint64_t mapped_units() const { return mapped_; }
  // The unit will be asked for soon.
  void expect(uint64_t unit) const { map_.expect(unit); }
  // Something was written near this unit, so that there is a piece of the map to be read.
  bool touched(uint32_t unit) const { return map_.touched(unit); }
  uint64_t valid_bytes(uint32_t superblock) const { return valid_[superblock].bytes; }
  uint32_t free_superblocks() const { return free_; }
  uint64_t retired_blocks() const { return retired_; }
  // Blocks that were spare when the drive was new.
  uint64_t spare_blocks() const { return factory_spares_; }
  const Counts &counts() const { return counts_; }
  Wear wear() const;
  uint64_t memory_bytes() const;

  // Fills a drive that is fresh with all its units, each as large as `bytes`. Shuffled: as random
  // writes leave it, with superblocks as full as their age says.
  void preset(Fill fill, uint32_t bytes, uint64_t seed);
  // The same with these units (written_units()) alone, in order.
  void preset_written(const std::vector<UnitRange> &written, uint32_t bytes);

  // The whole state, or what is worn and how much is mapped (restored like a shuffled preset).
  // save() gives up with false when it takes more than `most_bytes`.
  bool save(StreamWriter &out, size_t most_bytes) const;
  void load(StreamReader &in);
  void save_summary(StreamWriter &out) const;
  void load_summary(StreamReader &in);
  // Null, or what is wrong: for tests.
  const char *check() const;

 private:
  enum class State : uint8_t { kFree, kOpen, kClosed, kRetired };
  // What is mapped to a superblock. Each write changes that of any: side by side they stay near.
  struct Valid {
    uint64_t bytes = 0;
    uint32_t units = 0;
  };
  struct Superblock {
    uint64_t fill = 0;  // bytes written
    uint64_t closed_at = 0;
    UnitLog::List log;
    uint64_t dealt_first = 0;  // in the order of the map's Deal
    uint32_t dealt = 0;        // units that were dealt here; then there is no log
    uint32_t erases = 0;
    State state = State::kFree;
    bool failed = false;  // a block of it failed, and there was no spare
    bool clean = true;    // erased, and nothing written since
  };
  struct OpenStream {
    uint32_t superblock = 0;  // 0: none is open
    uint64_t debt = 0;        // journal that is due, in thousandths of bytes
  };

  uint32_t address(uint32_t superblock, uint64_t offset) const {
    return superblock << geometry_.slot_bits | static_cast<uint32_t>(offset / geometry_.slot_bytes);
  }
  uint32_t superblock_of(uint32_t address) const { return address >> geometry_.slot_bits; }
  void forget(uint32_t unit, const UnitMap::Entry &entry);
  void release(uint32_t superblock);
  void close(Stream stream);
  uint32_t least_worn_free() const;
  uint32_t pick_victim() const;
  uint32_t collect(uint32_t superblock);
  uint32_t free_share(uint64_t permille) const;
  uint32_t coldest() const;
  double benefit(uint32_t superblock) const;
  void erase(Superblock &block);
  void wear_out(Superblock &block);
  void retire_if_due();
  void compact();
  // Whoever goes over units asks for so many entries of the map ahead.
  static constexpr uint32_t kAhead = 32;
  // Over the units that were written to a superblock, in order.
  struct Walk {
    uint32_t dealt = 0;  // how many have been taken from the deal ...
    UnitLog::Cursor log;
    uint32_t at = 0, end = 0;  // ... and which of those come next
    std::array<uint32_t, kAhead> ahead;
  };
  static Walk walk(const Superblock &block) {
    Walk walk;
    walk.log = UnitLog::begin(block.log);
    return walk;
  }
  bool next(const Superblock &block, Walk &walk, uint32_t *unit) const;
  bool deal_ahead(const Superblock &block, Walk &walk) const;
  void expect_following(const UnitLog::List &list, const UnitLog::Cursor &cursor) const;
  uint32_t deal_to(Deal &deal, uint32_t superblock, uint64_t most);
  void deal_closed(Deal &deal, uint32_t superblock, uint64_t most);
  void preset_in_order(Deal deal);
  void preset_shuffled(uint32_t bytes, uint64_t seed);
  std::vector<uint64_t> steady_shares(uint64_t units, uint64_t most) const;
  uint64_t draw();
  void clear();
  void save_worn(StreamWriter &out) const;
  void load_worn(StreamReader &in);
  void save_units(StreamWriter &out, uint32_t superblock) const;
  void load_units(StreamReader &in, uint32_t superblock);
  void load_superblock(StreamReader &in, uint32_t superblock);
  void load_shares(StreamReader &in);

  FlashGeometry geometry_;
  bool cost_benefit_;
  uint32_t wear_delta_;
  uint32_t endurance_;
  uint32_t block_fail_ppb_;
  uint32_t journal_permille_;
  uint32_t gc_start_;
  uint32_t idle_free_;  // where background collection ends

  UnitMap map_;
  UnitLog log_;
  std::vector<Superblock> blocks_;  // [0] is not used
  std::vector<Valid> valid_;        // of each
  std::array<OpenStream, kStreams> streams_;
  uint32_t free_ = 0;
  uint64_t mapped_ = 0;
  uint64_t closed_ = 0;  // superblocks ever closed: their clock
  uint64_t collections_ = 0;
  bool opened_clean_ = false;
  uint32_t victim_ = 0;
  Walk walk_;  // over the victim
  uint64_t factory_spares_ = 0;
  uint64_t spares_ = 0;  // blocks left to replace failed ones
  uint64_t retired_ = 0;
  uint64_t random_state_ = 0;
  uint32_t failed_ = 0;  // superblocks to be dissolved
  Counts counts_;
};

}  // namespace revodrive
#endif
