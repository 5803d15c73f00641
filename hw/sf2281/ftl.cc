// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/ftl.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace revodrive {

namespace {

// Numbers of units in the logs, for each unit that is mapped; more are dropped.
constexpr uint64_t kLogShareNum = 7, kLogShareDen = 5;
constexpr uint64_t kLogSlack = 65536;
// Each so many collections may level wear.
constexpr uint64_t kLevelEvery = 8;

}  // namespace

Ftl::Ftl(const FlashGeometry &geometry, const FlashProfile &profile, const MemoryHint &memory)
    : geometry_(geometry),
      cost_benefit_(profile.gc_cost_benefit != 0),
      wear_delta_(profile.wear_delta),
      endurance_(profile.endurance_cycles),
      block_fail_ppb_(profile.block_fail_ppb),
      journal_permille_(profile.journal_permille),
      map_(geometry.units, memory),
      blocks_(size_t{geometry.superblocks} + 1),
      valid_(blocks_.size()) {
  gc_start_ = free_share(profile.gc_free_permille);
  idle_free_ = free_share(profile.idle_gc_free_permille);
  factory_spares_ = geometry.block_count() * profile.spare_blocks_permille / 1000;
  spares_ = factory_spares_;
  random_state_ = 0x9E3779B97F4A7C15 ^ geometry.units;
  free_ = geometry.superblocks;
}

// Superblocks; not more than can be free at all when everything is mapped.
uint32_t Ftl::free_share(uint64_t permille) const {
  uint64_t share = geometry_.superblocks * permille / 1000;
  uint64_t most = geometry_.superblocks - geometry_.least_superblocks + FlashGeometry::kSpare - 2;
  return static_cast<uint32_t>(std::clamp<uint64_t>(share, kReserve + 2, most));
}

// SplitMix64 (Steele, Lea, Flood 2014): the drive's own luck, the same in each run.
uint64_t Ftl::draw() {
  uint64_t z = random_state_ += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

Ftl::Place Ftl::find(uint32_t unit) const {
  UnitMap::Entry entry = map_.find(unit);
  if (entry.address == 0)
    return {};
  uint32_t slot = entry.address & ((uint32_t{1} << geometry_.slot_bits) - 1);
  return {superblock_of(entry.address), entry.granules * geometry_.granule,
          uint64_t{slot} * geometry_.slot_bytes};
}

uint32_t Ftl::rounded(uint64_t bytes) const {
  uint64_t granules = (bytes + geometry_.granule - 1) / geometry_.granule;
  return static_cast<uint32_t>(std::clamp<uint64_t>(granules, 1, 256)) * geometry_.granule;
}

bool Ftl::has_room(Stream stream) const {
  uint32_t number = streams_[stream].superblock;
  return number != 0 && blocks_[number].fill + geometry_.room_bytes <= geometry_.data_bytes;
}

uint64_t Ftl::fill_bytes(Stream stream) const {
  return blocks_[streams_[stream].superblock].fill;
}

void Ftl::close(Stream stream) {
  OpenStream &open = streams_[stream];
  if (open.superblock == 0)
    return;
  uint32_t number = open.superblock;
  open.superblock = 0;
  blocks_[number].state = State::kClosed;
  blocks_[number].closed_at = ++closed_;
  if (valid_[number].units == 0)
    release(number);
}

// Dynamic wear levelling: the least worn of those that are free, when it will have been opened.
uint32_t Ftl::least_worn_free() const {
  uint32_t best = 0, least = UINT32_MAX;
  for (uint32_t i = 1; i < blocks_.size(); i++) {
    const Superblock &block = blocks_[i];
    uint32_t erases = block.erases + !block.clean;
    if (block.state != State::kFree || erases >= least)
      continue;
    best = i;
    least = erases;
    if (least == 0)
      break;
  }
  return best;
}

bool Ftl::open(Stream stream, bool last) {
  close(stream);
  retire_if_due();
  if (free_ <= (stream == kHost && !last ? kReserve : 0))
    return false;
  uint32_t number = least_worn_free();
  Superblock &block = blocks_[number];
  block.state = State::kOpen;
  free_--;
  opened_clean_ = std::exchange(block.clean, false);
  if (!opened_clean_)
    erase(block);
  streams_[stream].superblock = number;
  return true;
}

Ftl::Place Ftl::append(Stream stream, uint32_t unit, uint32_t bytes) {
  assert(has_room(stream));
  OpenStream &open = streams_[stream];
  open.debt += uint64_t{bytes} * journal_permille_;
  if (open.debt >= uint64_t{geometry_.page_bytes} * 1000) {
    open.debt -= uint64_t{geometry_.page_bytes} * 1000;
    blocks_[open.superblock].fill += geometry_.page_bytes;
  }
  UnitMap::Entry old = map_.find(unit);
  if (old.address != 0)
    forget(unit, old);
  Superblock &block = blocks_[open.superblock];
  uint64_t offset = block.fill;
  map_.set(unit, address(open.superblock, offset), bytes / geometry_.granule);
  log_.append(block.log, unit);
  block.fill += bytes;
  Valid &valid = valid_[open.superblock];
  valid.bytes += bytes;
  valid.units++;
  mapped_++;
  if (stream == kGc)
    counts_.gc_bytes += bytes;
  if (log_.entries() * kLogShareDen > mapped_ * kLogShareNum + kLogSlack)
    compact();
  return {open.superblock, bytes, offset};
}

// The unit stays in the log of its superblock.
void Ftl::forget(uint32_t unit, const UnitMap::Entry &entry) {
  uint32_t number = superblock_of(entry.address);
  Valid &valid = valid_[number];
  valid.bytes -= entry.granules * geometry_.granule;
  valid.units--;
  mapped_--;
  map_.forget(unit);
  if (valid.units == 0 && blocks_[number].state == State::kClosed)
    release(number);
}

void Ftl::release(uint32_t number) {
  Superblock &block = blocks_[number];
  log_.drop(block.log);
  block.dealt = 0;
  block.fill = 0;
  block.state = State::kFree;
  free_++;
  if (victim_ == number)
    victim_ = 0;
}

void Ftl::pad(Stream stream) {
  uint32_t number = streams_[stream].superblock;
  if (number == 0)
    return;
  uint64_t page = geometry_.page_bytes;
  Superblock &block = blocks_[number];
  block.fill = std::min((block.fill + page - 1) / page * page, geometry_.data_bytes);
}

void Ftl::trim(uint64_t first, uint64_t count) {
  uint64_t end = std::min(first + count, map_.units());
  for (uint64_t unit = first; unit < end; unit++) {
    if (unit == first || unit % UnitMap::kChunkUnits == 0) {
      unit = map_.next_touched(unit);
      if (unit >= end)
        return;
    }
    UnitMap::Entry entry = map_.find(static_cast<uint32_t>(unit));
    if (entry.address != 0)
      forget(static_cast<uint32_t>(unit), entry);
  }
}

void Ftl::clear() {
  map_.clear();
  log_.clear();
  streams_ = {};
  mapped_ = 0;
  victim_ = 0;
  free_ = 0;
  for (uint32_t i = 1; i < blocks_.size(); i++) {
    Superblock &block = blocks_[i];
    block.log = {};
    block.dealt = 0;
    block.fill = 0;
    valid_[i] = {};
    if (block.state == State::kRetired)
      continue;
    block.state = State::kFree;
    free_++;
  }
}

void Ftl::erase_all() {
  clear();
  for (uint32_t i = 1; i < blocks_.size(); i++) {
    if (blocks_[i].state == State::kRetired)
      continue;
    erase(blocks_[i]);
    blocks_[i].clean = true;
  }
  retire_if_due();
}

// ------------------------------------------------------------------------------------- collection

uint32_t Ftl::victim() {
  if (victim_ != 0)
    return victim_;
  collections_++;
  uint32_t number = 0;
  if (wear_delta_ > 0 && collections_ % kLevelEvery == 0)
    number = coldest();
  if (number == 0)
    number = pick_victim();
  return number == 0 ? 0 : collect(number);
}

uint32_t Ftl::idle_victim() {
  if (victim_ != 0)
    return victim_;
  uint32_t number = pick_victim();
  if (number == 0 || valid_[number].bytes * (kIdleCost + 1) > geometry_.data_bytes * kIdleCost)
    return 0;
  return collect(number);
}

uint32_t Ftl::collect(uint32_t number) {
  victim_ = number;
  walk_ = walk(blocks_[number]);
  return number;
}

// Rosenblum and Ousterhout 1992: what is gained, times how long it stays gained, over the cost.
double Ftl::benefit(uint32_t number) const {
  auto valid = static_cast<double>(valid_[number].bytes);
  double used = valid / static_cast<double>(geometry_.data_bytes);
  double age = static_cast<double>(closed_ - blocks_[number].closed_at + 1);
  return (1 - used) * age / (2 * used);
}

uint32_t Ftl::pick_victim() const {
  uint32_t best = 0;
  double best_benefit = 0;
  for (uint32_t i = 1; i < blocks_.size(); i++) {
    // What is full gains nothing.
    uint64_t valid = valid_[i].bytes;
    uint64_t moved = valid + valid * journal_permille_ / 1000;
    if (blocks_[i].state != State::kClosed || moved + geometry_.unit_bytes > geometry_.data_bytes)
      continue;
    if (cost_benefit_) {
      double value = benefit(i);
      if (best == 0 || value > best_benefit) {
        best = i;
        best_benefit = value;
      }
    } else if (best == 0 || valid < valid_[best].bytes) {
      best = i;
    }
  }
  return best;
}

// Static wear levelling: the least worn superblock with data, if it lags behind too far. 0: none.
uint32_t Ftl::coldest() const {
  uint32_t best = 0;
  uint32_t most = 0;
  for (uint32_t i = 1; i < blocks_.size(); i++) {
    const Superblock &block = blocks_[i];
    if (block.state == State::kRetired)
      continue;
    most = std::max(most, block.erases);
    if (block.state == State::kClosed && (best == 0 || block.erases < blocks_[best].erases))
      best = i;
  }
  return best != 0 && most - blocks_[best].erases > wear_delta_ ? best : 0;
}

// The map has what comes next in a log anywhere: it is asked for ahead, so that the answers come
// while there is something to do.
void Ftl::expect_following(const UnitLog::List &list, const UnitLog::Cursor &cursor) const {
  if (cursor.index % kAhead != 0)
    return;
  for (uint32_t unit : log_.following(list, cursor, kAhead))
    map_.expect(unit);
}

// The same for what was dealt.
bool Ftl::deal_ahead(const Superblock &block, Walk &walk) const {
  walk.at = 0;
  walk.end = std::min(kAhead, block.dealt - walk.dealt);
  for (uint32_t i = 0; i < walk.end; i++)
    walk.ahead[i] = map_.deal().unit_at(block.dealt_first + walk.dealt++);
  // Only with nothing else between them do the ways to memory overlap.
  for (uint32_t i = 0; i < walk.end; i++)
    map_.expect(walk.ahead[i]);
  return walk.end > 0;
}

bool Ftl::next(const Superblock &block, Walk &walk, uint32_t *unit) const {
  if (block.dealt == 0) {
    expect_following(block.log, walk.log);
    return log_.next(block.log, walk.log, unit);
  }
  if (walk.at == walk.end && !deal_ahead(block, walk))
    return false;
  *unit = walk.ahead[walk.at++];
  return true;
}

bool Ftl::next_of_victim(uint32_t *unit) {
  if (victim_ == 0)
    return false;
  while (next(blocks_[victim_], walk_, unit)) {
    uint32_t address = map_.address(*unit);
    if (address != 0 && superblock_of(address) == victim_)
      return true;
  }
  // It was released with its last unit; one that has units is a bug, but must not be lost.
  victim_ = 0;
  return false;
}

// The superblock with the most units in its log that have gone elsewhere loses those.
void Ftl::compact() {
  uint32_t best = 0;
  uint32_t most = 0;
  for (uint32_t i = 1; i < blocks_.size(); i++) {
    if (blocks_[i].dealt > 0)
      continue;
    uint32_t stale = blocks_[i].log.count - valid_[i].units;
    if (stale > most) {
      most = stale;
      best = i;
    }
  }
  if (best == 0)
    return;
  Superblock &block = blocks_[best];
  auto unseen = [&](uint32_t unit) {
    uint32_t address = map_.address(unit);
    if (address == 0 || address & UnitMap::kMark || superblock_of(address) != best)
      return false;
    map_.set_address(unit, address | UnitMap::kMark);
    return true;
  };
  auto expect = [&](const UnitLog::List &list, const UnitLog::Cursor &cursor) {
    expect_following(list, cursor);
  };
  log_.filter(block.log, expect, unseen);
  uint32_t unit;
  for (Walk walk = this->walk(block); next(block, walk, &unit);)
    map_.set_address(unit, map_.address(unit) & ~UnitMap::kMark);
  if (victim_ == best)
    walk_ = walk(block);
}

// ------------------------------------------------------------------------------------------- wear

void Ftl::erase(Superblock &block) {
  counts_.erases++;
  block.erases++;
  wear_out(block);
}

// Within the rating the chance to fail is constant; beyond, it doubles with each tenth of it.
void Ftl::wear_out(Superblock &block) {
  constexpr uint64_t kBillion = 1'000'000'000;
  if (block_fail_ppb_ == 0)
    return;
  uint64_t doublings = 0;
  if (block.erases > endurance_)
    doublings = std::min<uint64_t>(uint64_t{block.erases - endurance_} * 10 / endurance_, 30);
  uint64_t chance = std::min<uint64_t>(uint64_t{block_fail_ppb_} << doublings, kBillion);
  chance = std::min<uint64_t>(chance * geometry_.dies * geometry_.planes, kBillion);
  uint64_t luck = draw();
  if (luck % kBillion >= chance)
    return;
  if (spares_ == 0 && block.failed)
    return;  // given up already; it works on as long as the drive cannot do without it
  (luck >> 32 & 1 ? counts_.program_fails : counts_.erase_fails)++;
  retired_++;
  if (spares_ > 0)
    spares_--;
  else if (!block.failed)
    failed_ += block.failed = true;
}

// Without a spare block to take its place the superblock of a failed one is dissolved: its other
// blocks are spare now. A drive that needs it goes on with what it has.
void Ftl::retire_if_due() {
  if (failed_ == 0)
    return;
  uint32_t usable = 0;
  for (uint32_t i = 1; i < blocks_.size(); i++)
    usable += blocks_[i].state != State::kRetired;
  for (uint32_t i = 1; i < blocks_.size(); i++) {
    Superblock &block = blocks_[i];
    if (!block.failed || block.state != State::kFree)
      continue;
    if (usable <= geometry_.least_superblocks || free_ <= kReserve + 1)
      return;
    block.state = State::kRetired;
    block.failed = false;
    failed_--;
    spares_ += uint64_t{geometry_.dies} * geometry_.planes - 1;
    free_--;
    usable--;
  }
}

Ftl::Wear Ftl::wear() const {
  Wear wear{UINT32_MAX, 0, 0};
  uint64_t sum = 0, count = 0;
  for (uint32_t i = 1; i < blocks_.size(); i++) {
    if (blocks_[i].state == State::kRetired)
      continue;
    wear.least = std::min(wear.least, blocks_[i].erases);
    wear.most = std::max(wear.most, blocks_[i].erases);
    sum += blocks_[i].erases;
    count++;
  }
  wear.mean = static_cast<uint32_t>(sum / count);
  return wear;
}

uint64_t Ftl::memory_bytes() const {
  return map_.memory_bytes() + log_.memory_bytes() +
         blocks_.size() * (sizeof(Superblock) + sizeof(Valid));
}

}  // namespace revodrive
