// SPDX-License-Identifier: GPL-2.0-or-later
//
// The translation layer in a stream. Units are stored superblock by superblock in the order of
// their logs, as runs: neighbours of the same size that lie one behind the other. Numbers that are
// small as a rule take few bytes. What was overwritten is left out: it changes nothing that
// follows.
#include <algorithm>

#include "sf2281/ftl.h"
#include "sf2281/numbers.h"

namespace revodrive {

namespace {

uint64_t zigzag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}

int64_t unzigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// Units first, first + 1, ... of the same size, one behind the other from an offset on of which is
// known that it lies in [low, high]: addresses are kept in coarser steps than offsets.
struct Run {
  uint32_t first = 0;
  uint32_t count = 0;
  int64_t bytes = 0;
  int64_t low = 0, high = 0;

  // True: the unit, somewhere in [at, at + slot), goes on with this run.
  bool take(uint32_t unit, int64_t size, int64_t at, int64_t slot) {
    if (count == 0 || unit != first + count || size != bytes)
      return false;
    int64_t shift = count * bytes;
    int64_t new_low = std::max(low, at - shift), new_high = std::min(high, at + slot - 1 - shift);
    if (new_low > new_high)
      return false;
    low = new_low;
    high = new_high;
    count++;
    return true;
  }
};

// Where the next run would begin if nothing were between them.
struct Expected {
  int64_t unit = 0;
  int64_t offset = 0;
};

void put_run(StreamWriter &out, const Run &run, Expected *expected) {
  if (run.count == 0)
    return;
  put_number(out, run.count);
  put_number(out, zigzag(int64_t{run.first} - expected->unit));
  put_number(out, zigzag(run.low - expected->offset));
  put_number(out, static_cast<uint64_t>(run.bytes));
  *expected = {int64_t{run.first} + run.count, run.low + run.count * run.bytes};
}

}  // namespace

void Ftl::save_units(StreamWriter &out, uint32_t number) const {
  const Superblock &block = blocks_[number];
  Run run;
  Expected expected;
  uint32_t unit;
  for (Walk walk = this->walk(block); next(block, walk, &unit);) {
    auto [raw, granules] = map_.find(unit);
    if (raw == 0 || raw & UnitMap::kMark || superblock_of(raw) != number)
      continue;
    map_.set_address(unit, raw | UnitMap::kMark);
    uint32_t slot = raw & ((uint32_t{1} << geometry_.slot_bits) - 1);
    int64_t at = int64_t{slot} * geometry_.slot_bytes;
    int64_t size = int64_t{granules} * geometry_.granule;
    if (run.take(unit, size, at, geometry_.slot_bytes))
      continue;
    put_run(out, run, &expected);
    run = {unit, 1, size, at, at + geometry_.slot_bytes - 1};
  }
  put_run(out, run, &expected);
  put_number(out, 0);
  for (Walk walk = this->walk(block); next(block, walk, &unit);) {
    uint32_t raw = map_.address(unit);
    if (raw & UnitMap::kMark && superblock_of(raw & ~UnitMap::kMark) == number)
      map_.set_address(unit, raw & ~UnitMap::kMark);
  }
}

void Ftl::load_units(StreamReader &in, uint32_t number) {
  Superblock &block = blocks_[number];
  Expected expected;
  for (uint64_t count = get_number(in); in.ok() && count > 0; count = get_number(in)) {
    int64_t first = expected.unit + unzigzag(get_number(in));
    int64_t offset = expected.offset + unzigzag(get_number(in));
    uint64_t bytes = get_number(in);
    auto units = static_cast<int64_t>(map_.units());
    auto fill = static_cast<int64_t>(block.fill);
    bool sane = in.ok() && first >= 0 && first < units && count <= map_.units() - first &&
                bytes > 0 && bytes <= geometry_.unit_bytes && bytes % geometry_.granule == 0 &&
                offset >= 0 && offset < fill && count <= (fill - offset) / bytes;
    if (!sane)
      return in.fail();
    for (uint64_t i = 0; i < count; i++) {
      auto unit = static_cast<uint32_t>(first + i);
      if (map_.address(unit) != 0)
        return in.fail();
      map_.set(unit, address(number, offset + i * bytes),
               static_cast<uint32_t>(bytes / geometry_.granule));
      log_.append(block.log, unit);
    }
    valid_[number].units += static_cast<uint32_t>(count);
    valid_[number].bytes += count * bytes;
    mapped_ += count;
    expected = {first + static_cast<int64_t>(count), offset + static_cast<int64_t>(count * bytes)};
  }
}

// What is worn: kept by every way to store the drive.
void Ftl::save_worn(StreamWriter &out) const {
  out.put(geometry_.units);
  out.put(geometry_.superblocks);
  out.put(geometry_.data_bytes);
  out.put(geometry_.unit_bytes);
  out.put(counts_.erases);
  out.put(counts_.program_fails);
  out.put(counts_.erase_fails);
  out.put(counts_.gc_bytes);
  out.put(spares_);
  out.put(retired_);
  for (size_t i = 1; i < blocks_.size(); i++) {
    put_number(out, blocks_[i].erases);
    out.put(static_cast<uint8_t>((blocks_[i].state == State::kRetired) | blocks_[i].failed << 1 |
                                 blocks_[i].clean << 2));
  }
}

// After clear(): leaves free superblocks and those that are retired.
void Ftl::load_worn(StreamReader &in) {
  bool same = in.get<uint64_t>() == geometry_.units;
  same &= in.get<uint32_t>() == geometry_.superblocks;
  same &= in.get<uint64_t>() == geometry_.data_bytes;
  same &= in.get<uint32_t>() == geometry_.unit_bytes;
  if (!same)
    in.fail();
  in.get(counts_.erases);
  in.get(counts_.program_fails);
  in.get(counts_.erase_fails);
  in.get(counts_.gc_bytes);
  in.get(spares_);
  in.get(retired_);
  free_ = 0;
  failed_ = 0;
  for (size_t i = 1; i < blocks_.size(); i++) {
    blocks_[i].erases = static_cast<uint32_t>(get_number(in));
    auto flags = in.get<uint8_t>();
    if (flags > 6 || (flags & 1 && flags & 2))
      in.fail();
    blocks_[i].clean = flags & 4;
    blocks_[i].state = flags & 1 ? State::kRetired : State::kFree;
    blocks_[i].failed = flags & 2;
    failed_ += blocks_[i].failed;
    free_ += blocks_[i].state == State::kFree;
  }
  if (free_ < geometry_.least_superblocks)
    in.fail();
}

bool Ftl::save(StreamWriter &out, size_t most_bytes) const {
  out.section("FTL ");
  save_worn(out);
  out.put(random_state_);
  out.put(closed_);
  out.put(collections_);
  out.put(victim_);
  for (const OpenStream &stream : streams_) {
    out.put(stream.superblock);
    out.put(stream.debt);
  }
  for (uint32_t i = 1; i < blocks_.size(); i++) {
    const Superblock &block = blocks_[i];
    put_number(out, block.fill);
    if (block.fill == 0)
      continue;
    put_number(out, block.closed_at);
    save_units(out, i);
    if (out.bytes().size() > most_bytes)
      return false;
  }
  return true;
}

void Ftl::load_superblock(StreamReader &in, uint32_t number) {
  Superblock &block = blocks_[number];
  block.fill = get_number(in);
  if (block.fill > geometry_.data_bytes || (block.fill > 0 && block.state != State::kFree))
    return in.fail();
  bool open = false;
  for (const OpenStream &stream : streams_)
    open |= stream.superblock == number;
  if (open) {
    block.state = State::kOpen;
    free_--;
  }
  if (block.fill == 0)
    return;
  block.closed_at = get_number(in);
  load_units(in, number);
  if (valid_[number].bytes > block.fill)
    in.fail();
  if (open)
    return;
  if (valid_[number].units == 0)
    return in.fail();
  block.state = State::kClosed;
  free_--;
}

void Ftl::load(StreamReader &in) {
  in.section("FTL ");
  clear();
  load_worn(in);
  in.get(random_state_);
  in.get(closed_);
  in.get(collections_);
  uint32_t victim = in.get<uint32_t>();
  for (OpenStream &stream : streams_) {
    in.get(stream.superblock);
    in.get(stream.debt);
    if (stream.superblock > geometry_.superblocks ||
        stream.debt >= uint64_t{geometry_.page_bytes} * 1000)
      in.fail();
  }
  if (streams_[kHost].superblock != 0 && streams_[kHost].superblock == streams_[kGc].superblock)
    in.fail();
  for (uint32_t i = 1; in.ok() && i < blocks_.size(); i++)
    load_superblock(in, i);
  for (const OpenStream &stream : streams_) {
    if (in.ok() && stream.superblock != 0 && blocks_[stream.superblock].state != State::kOpen)
      in.fail();
  }
  if (victim > geometry_.superblocks ||
      (in.ok() && victim != 0 && blocks_[victim].state != State::kClosed))
    in.fail();
  if (!in.ok())
    return clear();
  victim_ = victim;
  if (victim_ != 0)
    walk_ = walk(blocks_[victim_]);
}

// What any state must obey.
const char *Ftl::check() const {
  uint64_t mapped = 0, in_logs = 0;
  uint32_t free = 0;
  for (uint32_t i = 1; i < blocks_.size(); i++) {
    const Superblock &block = blocks_[i];
    bool open = streams_[kHost].superblock == i || streams_[kGc].superblock == i;
    if (open != (block.state == State::kOpen))
      return "a superblock is open without a stream, or a stream's is not";
    free += block.state == State::kFree;
    in_logs += block.log.count;
    if (block.fill > geometry_.data_bytes || valid_[i].bytes > block.fill)
      return "a superblock holds more than fits";
    if ((block.state == State::kFree || block.state == State::kRetired) && block.fill != 0)
      return "a free superblock is not empty";
    if (block.state == State::kClosed && valid_[i].units == 0)
      return "a closed superblock has nothing valid and is not free";
    Valid valid;
    uint32_t unit;
    for (Walk walk = this->walk(block); next(block, walk, &unit);) {
      uint32_t address = map_.address(unit);
      if (address == 0 || address & UnitMap::kMark || superblock_of(address) != i)
        continue;
      Place place = find(unit);
      if (place.offset + place.bytes > block.fill + geometry_.slot_bytes)
        return "a unit lies beyond what was written";
      map_.set_address(unit, address | UnitMap::kMark);
      valid.bytes += place.bytes;
      valid.units++;
    }
    if (valid.bytes != valid_[i].bytes || valid.units != valid_[i].units)
      return "valid bytes or units of a superblock differ from the map";
    mapped += valid.units;
  }
  uint64_t in_map = 0;
  for (uint64_t unit = 0; unit < map_.units(); unit++) {
    uint32_t address = map_.address(static_cast<uint32_t>(unit));
    if (address == 0)
      continue;
    if (!(address & UnitMap::kMark))
      return "a mapped unit is in no log of its superblock";
    map_.set_address(static_cast<uint32_t>(unit), address & ~UnitMap::kMark);
    in_map++;
  }
  if (mapped != mapped_ || in_map != mapped_)
    return "count of mapped units differs";
  if (free != free_)
    return "count of free superblocks differs";
  if (in_logs != log_.entries())
    return "count of log entries differs";
  if (victim_ != 0 && blocks_[victim_].state != State::kClosed)
    return "the victim is not a closed superblock";
  return nullptr;
}

}  // namespace revodrive
