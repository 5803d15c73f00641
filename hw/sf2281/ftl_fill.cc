// SPDX-License-Identifier: GPL-2.0-or-later
//
// A drive that was written before the first command came: presets, and the summary of a drive whose
// map was too large to be stored.
#include <algorithm>
#include <bit>

#include "sf2281/ftl.h"
#include "sf2281/numbers.h"

namespace revodrive {

namespace {

// A bijection of [0, count): a Feistel network over the next even number of bits, walked until it
// lands inside (Black and Rogaway 2002).
uint64_t shuffled(uint64_t index, uint64_t count, uint64_t seed) {
  auto half = static_cast<unsigned>((std::bit_width(count | 1) + 1) / 2);
  uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint64_t round = 1; round <= 3; round++) {
      uint64_t mixed = (right + seed + round * 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9;
      mixed = (mixed ^ mixed >> 29) * 0x94D049BB133111EB;
      uint64_t next = left ^ (mixed >> 31 & mask);
      left = right;
      right = next;
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

}  // namespace

uint32_t Ftl::unit_at(const Deal &deal, uint64_t index) const {
  uint64_t at = shuffled(index, deal.chunk_ends.back(), deal.seed);
  auto chunk = std::upper_bound(deal.chunk_ends.begin(), deal.chunk_ends.end(), at);
  uint64_t before = chunk == deal.chunk_ends.begin() ? 0 : *(chunk - 1);
  auto number = static_cast<uint64_t>(chunk - deal.chunk_ends.begin());
  return static_cast<uint32_t>(number * UnitMap::kChunkUnits + (at - before));
}

// Fills a free superblock with the next units; what is left of it counts as overwritten since.
void Ftl::deal(Deal &deal, uint32_t number, uint64_t units, uint32_t bytes) {
  Superblock &block = blocks_[number];
  uint64_t room = geometry_.data_bytes / bytes;
  units = std::min({units, room, deal.chunk_ends.back() - deal.dealt});
  if (units == 0)
    return;
  for (uint64_t i = 0; i < units; i++) {
    uint32_t unit = unit_at(deal, deal.dealt++);
    // Spread over the superblock, in order.
    uint64_t offset = i * room / units * bytes;
    map_.set(unit, address(number, offset), bytes / geometry_.granule);
    log_.append(block.log, unit);
  }
  block.fill = geometry_.data_bytes;
  block.valid = units * bytes;
  block.live = static_cast<uint32_t>(units);
  block.state = State::kClosed;
  block.closed_at = ++closed_;
  mapped_ += units;
  free_--;
}

// Random writes leave of a superblock a share that shrinks by the same factor with each one that is
// filled after it (collected in order, as greedy choice nearly does for such writes). The factor is
// the one with which all shares add up to the data. Multiplication only: the same on each machine.
std::vector<uint64_t> Ftl::steady_shares(uint64_t units, uint64_t most) const {
  uint64_t count = free_ - gc_start_;
  auto sum = [&](double factor) {
    double share = static_cast<double>(most), total = 0;
    for (uint64_t i = 0; i < count; i++, share *= factor)
      total += share;
    return total;
  };
  double low = 0, high = 1;
  for (int i = 0; i < 50; i++) {
    double middle = (low + high) / 2;
    (sum(middle) < static_cast<double>(units) ? low : high) = middle;
  }
  std::vector<uint64_t> shares(count);  // oldest first
  double share = static_cast<double>(most);
  uint64_t left = units;
  for (uint64_t i = count; i-- > 0; share *= high) {
    shares[i] = std::min(static_cast<uint64_t>(share), left);
    left -= shares[i];
  }
  left = std::min(left, count * most - (units - left));
  for (uint64_t i = 0; left > 0; i = (i + 1) % count) {
    if (shares[i] >= most)
      continue;
    shares[i]++;
    left--;
  }
  return shares;
}

void Ftl::preset(Fill fill, uint32_t bytes, uint64_t seed) {
  bytes = rounded(bytes);
  if (fill == Fill::kSequential) {
    for (uint64_t unit = 0; unit < map_.units(); unit++) {
      if (!has_room(kHost))
        open(kHost);
      append(kHost, static_cast<uint32_t>(unit), bytes);
    }
    pad(kHost);
    return;
  }
  Deal whole{{}, 0, seed};
  for (uint64_t end = 0; end < map_.units();) {
    end = std::min(end + UnitMap::kChunkUnits, map_.units());
    whole.chunk_ends.push_back(end);
  }
  uint64_t most = geometry_.data_bytes / bytes * 1000 / (1000 + journal_permille_);
  uint32_t number = 0;
  for (uint64_t share : steady_shares(map_.units(), most)) {
    do
      number++;
    while (blocks_[number].state != State::kFree);
    blocks_[number].erases++;
    deal(whole, number, share, bytes);
  }
}

void Ftl::save_summary(StreamWriter &out) const {
  out.section("FTLS");
  save_worn(out);
  uint64_t bytes = 0;
  for (const Superblock &block : blocks_)
    bytes += block.valid;
  out.put(mapped_ == 0 ? geometry_.granule : rounded(bytes / mapped_));
  out.put(random_state_);
  for (const Superblock &block : blocks_)
    put_number(out, block.live);
  // Units of each chunk of the map.
  for (uint64_t unit = 0; unit < map_.units();) {
    uint64_t end = std::min(unit + UnitMap::kChunkUnits, map_.units());
    uint32_t count = 0;
    if (map_.next_touched(unit) == unit) {
      for (uint64_t i = unit; i < end; i++)
        count += map_.address(static_cast<uint32_t>(i)) != 0;
    }
    put_number(out, count);
    unit = end;
  }
}

void Ftl::load_summary(StreamReader &in) {
  in.section("FTLS");
  clear();
  load_worn(in);
  load_shares(in);
  if (!in.ok())
    clear();
}

void Ftl::load_shares(StreamReader &in) {
  auto bytes = in.get<uint32_t>();
  if (bytes == 0 || bytes > geometry_.unit_bytes || bytes % geometry_.granule != 0)
    in.fail();
  Deal deal{{}, 0, in.get<uint64_t>()};
  random_state_ = deal.seed;
  std::vector<uint32_t> shares(blocks_.size());
  uint64_t dealt = 0, end = 0;
  for (uint32_t &share : shares) {
    share = static_cast<uint32_t>(std::min<uint64_t>(get_number(in), UINT32_MAX));
    dealt += share;
  }
  for (uint64_t unit = 0; in.ok() && unit < map_.units(); unit += UnitMap::kChunkUnits) {
    uint64_t count = get_number(in);
    if (count > std::min<uint64_t>(UnitMap::kChunkUnits, map_.units() - unit))
      in.fail();
    deal.chunk_ends.push_back(end += count);
  }
  if (dealt != end || shares[0] != 0)
    in.fail();
  for (uint32_t i = 1; in.ok() && i < blocks_.size(); i++) {
    if (shares[i] > 0 && blocks_[i].state != State::kFree)
      in.fail();
    else
      this->deal(deal, i, shares[i], bytes);
  }
  // Superblocks held more than the mean allows: into the free ones, the least full of all.
  for (uint32_t i = 1; in.ok() && i < blocks_.size() && deal.dealt < end; i++) {
    if (blocks_[i].state == State::kFree)
      this->deal(deal, i, end - deal.dealt, bytes);
  }
}

}  // namespace revodrive
