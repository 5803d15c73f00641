// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/deal.h"

#include <algorithm>
#include <bit>

namespace revodrive {

namespace {

// A bijection of [0, count) and its inverse: a Feistel network over the next even number of bits,
// walked until it lands inside (Black and Rogaway 2002).
class Shuffle {
 public:
  Shuffle(uint64_t count, uint64_t seed)
      : count_(count),
        seed_(seed),
        half_(static_cast<unsigned>((std::bit_width(count | 1) + 1) / 2)),
        mask_((uint64_t{1} << half_) - 1) {}

  uint64_t forward(uint64_t index) const {
    do {
      uint64_t left = index >> half_, right = index & mask_;
      for (uint64_t round = 1; round <= kRounds; round++) {
        uint64_t next = left ^ mix(right, round);
        left = right;
        right = next;
      }
      index = left << half_ | right;
    } while (index >= count_);
    return index;
  }
  uint64_t back(uint64_t index) const {
    do {
      uint64_t left = index >> half_, right = index & mask_;
      for (uint64_t round = kRounds; round >= 1; round--) {
        uint64_t before = right ^ mix(left, round);
        right = left;
        left = before;
      }
      index = left << half_ | right;
    } while (index >= count_);
    return index;
  }

 private:
  static constexpr uint64_t kRounds = 3;
  uint64_t mix(uint64_t half, uint64_t round) const {
    uint64_t mixed = (half + seed_ + round * 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ mixed >> 29) * 0x94D049BB133111EB;
    return mixed >> 31 & mask_;
  }

  uint64_t count_;
  uint64_t seed_;
  unsigned half_;
  uint64_t mask_;
};

}  // namespace

Deal Deal::in_order(const FlashGeometry &geometry, uint32_t bytes, uint32_t journal_permille) {
  Deal deal(geometry, bytes);
  deal.journal_permille_ = journal_permille;
  deal.chunk_ends_ = {geometry.units};
  return deal;
}

Deal Deal::in_order(const FlashGeometry &geometry, uint32_t bytes, uint32_t journal_permille,
                    std::span<const UnitRange> ranges) {
  Deal deal = in_order(geometry, bytes, journal_permille);
  if (ranges.size() == 1 && ranges[0].count == geometry.units)
    return deal;
  deal.ranges_.reserve(ranges.size());
  uint32_t rank = 0;
  for (const UnitRange &range : ranges) {
    deal.ranges_.push_back({range.first, rank});
    rank += range.count;
  }
  deal.chunk_ends_ = {rank};
  return deal;
}

Deal Deal::shuffled(const FlashGeometry &geometry, uint32_t bytes, uint64_t seed,
                    const std::vector<uint32_t> &units_of_chunk) {
  Deal deal(geometry, bytes);
  deal.shuffled_ = true;
  deal.seed_ = seed;
  uint64_t end = 0;
  for (uint32_t units : units_of_chunk)
    deal.chunk_ends_.push_back(end += units);
  return deal;
}

uint64_t Deal::units_of_chunk(uint32_t chunk) const {
  if (!shuffled_)
    return position((uint64_t{chunk} + 1) * kChunkUnits).index -
           position(uint64_t{chunk} * kChunkUnits).index;
  if (chunk >= chunk_ends_.size())
    return 0;
  return chunk_ends_[chunk] - chunk_begin(chunk);
}

uint32_t Deal::deal_to(uint32_t superblock, uint64_t most) {
  Share share{dealt_, 0, superblock, debt()};
  uint64_t room = shuffled_ ? geometry_.data_bytes / bytes_ : fitting(share);
  share.units = static_cast<uint32_t>(std::min({room, most, units() - dealt_}));
  if (share.units == 0)
    return 0;
  dealt_ += share.units;
  shares_.push_back(share);
  return share.units;
}

// The journal's pages: one as soon as a whole page is due, before the unit that makes it so.
uint64_t Deal::journal_bytes(const Share &share, uint64_t units) const {
  uint64_t due = share.debt + units * bytes_ * journal_permille_;
  return due / (uint64_t{geometry_.page_bytes} * 1000) * geometry_.page_bytes;
}

uint64_t Deal::debt_after(const Share &share, uint64_t units) const {
  uint64_t due = share.debt + units * bytes_ * journal_permille_;
  return due % (uint64_t{geometry_.page_bytes} * 1000);
}

// As many as a superblock takes if each is written where there is room for any unit.
uint32_t Deal::fitting(const Share &share) const {
  uint64_t low = 0, high = geometry_.data_bytes / bytes_;
  while (low < high) {
    uint64_t middle = (low + high + 1) / 2;
    uint64_t before = (middle - 1) * bytes_ + journal_bytes(share, middle - 1);
    if (before + geometry_.room_bytes <= geometry_.data_bytes)
      low = middle;
    else
      high = middle - 1;
  }
  return static_cast<uint32_t>(low);
}

uint64_t Deal::fill_bytes() const {
  if (shares_.empty())
    return 0;
  const Share &last = shares_.back();
  return uint64_t{last.units} * bytes_ + journal_bytes(last, last.units);
}

uint64_t Deal::debt() const {
  return shares_.empty() ? 0 : debt_after(shares_.back(), shares_.back().units);
}

// In order: how many units below this one are in it, and whether the unit is.
Deal::Position Deal::position(uint64_t unit) const {
  if (ranges_.empty())
    return {std::min(unit, units()), unit < units()};
  auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), unit,
      [](uint64_t value, const RankedRange &range) { return value < range.first; });
  if (after == ranges_.begin())
    return {0, false};
  const RankedRange &range = *(after - 1);
  uint64_t index = range.rank + (unit - range.first);
  uint64_t end = after == ranges_.end() ? units() : after->rank;
  return {std::min(index, end), index < end};
}

uint32_t Deal::unit_at(uint64_t index) const {
  if (!ranges_.empty()) {
    auto after = std::upper_bound(
        ranges_.begin(), ranges_.end(), index,
        [](uint64_t value, const RankedRange &range) { return value < range.rank; });
    return static_cast<uint32_t>((after - 1)->first + (index - (after - 1)->rank));
  }
  if (!shuffled_)
    return static_cast<uint32_t>(index);
  uint64_t at = Shuffle(units(), seed_).forward(index);
  auto chunk = std::upper_bound(chunk_ends_.begin(), chunk_ends_.end(), at);
  auto number = static_cast<size_t>(chunk - chunk_ends_.begin());
  return static_cast<uint32_t>(number * kChunkUnits + (at - chunk_begin(number)));
}

// Shuffled: spread over the superblock, in order; what is between them was overwritten since.
uint64_t Deal::offset(const Share &share, uint64_t index) const {
  if (shuffled_)
    return index * (geometry_.data_bytes / bytes_) / share.units * bytes_;
  return index * bytes_ + journal_bytes(share, index + 1);
}

// Of an index that was dealt.
const Deal::Share &Deal::share_of(uint64_t index) const {
  if (shuffled_) {
    auto after =
        std::upper_bound(shares_.begin(), shares_.end(), index,
                         [](uint64_t value, const Share &share) { return value < share.first; });
    return *(after - 1);
  }
  // In order all have nearly as much as the first: from a good guess it is a step or two.
  const Share *share = &shares_[std::min<uint64_t>(index / shares_[0].units, shares_.size() - 1)];
  while (index < share->first)
    share--;
  while (index >= share->first + share->units)
    share++;
  return *share;
}

Deal::Entry Deal::entry(uint32_t unit) const {
  uint64_t index = unit;
  if (shuffled_) {
    uint32_t chunk = unit / kChunkUnits;
    if (chunk >= chunk_ends_.size())
      return {};
    uint64_t at = chunk_begin(chunk) + unit % kChunkUnits;
    if (at >= chunk_ends_[chunk])
      return {};
    index = Shuffle(units(), seed_).back(at);
  } else if (!ranges_.empty()) {
    Position position = this->position(unit);
    if (!position.in_order)
      return {};
    index = position.index;
  }
  if (index >= dealt_)
    return {};
  const Share &share = share_of(index);
  uint64_t slot = offset(share, index - share.first) / geometry_.slot_bytes;
  return {share.superblock << geometry_.slot_bits | static_cast<uint32_t>(slot),
          bytes_ / geometry_.granule};
}

}  // namespace revodrive
