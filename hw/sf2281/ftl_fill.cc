// SPDX-License-Identifier: GPL-2.0-or-later
//
// A drive that was written before the first command came: presets, and the summary of a drive whose
// map was too large to be stored.
#include <algorithm>
#include <utility>

#include "sf2281/ftl.h"
#include "sf2281/numbers.h"

namespace revodrive {

// Fills a free superblock with the next units; what is left of it counts as overwritten since.
uint32_t Ftl::deal_to(Deal &deal, uint32_t number, uint64_t most) {
  Superblock &block = blocks_[number];
  uint64_t first = deal.dealt();
  uint32_t units = deal.deal_to(number, most);
  if (units == 0)
    return 0;
  block.dealt_first = first;
  block.dealt = units;
  block.clean = false;
  valid_[number] = {uint64_t{units} * deal.bytes(), units};
  mapped_ += units;
  return units;
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
  if (fill == Fill::kSequential)
    preset_in_order(Deal::in_order(geometry_, bytes, journal_permille_));
  else
    preset_shuffled(bytes, seed);
}

void Ftl::preset_written(const std::vector<UnitRange> &written, uint32_t bytes) {
  if (!written.empty())
    preset_in_order(Deal::in_order(geometry_, rounded(bytes), journal_permille_, written));
}

// As writes of all these units leave it, with the last superblock open.
void Ftl::preset_in_order(Deal deal) {
  uint32_t last = 0;
  while (deal.dealt() < deal.units()) {
    open(kHost);
    last = streams_[kHost].superblock;
    deal_to(deal, last, deal.units());
    blocks_[last].fill = deal.fill_bytes();
  }
  streams_[kHost].debt = deal.debt();
  map_.follow(std::move(deal));
  // What is written next goes on here: it needs a log.
  Superblock &block = blocks_[last];
  uint32_t units = std::exchange(block.dealt, 0);
  for (uint32_t i = 0; i < units; i++)
    log_.append(block.log, map_.deal().unit_at(block.dealt_first + i));
  pad(kHost);
}

void Ftl::preset_shuffled(uint32_t bytes, uint64_t seed) {
  std::vector<uint32_t> chunks;
  for (uint64_t unit = 0; unit < map_.units(); unit += UnitMap::kChunkUnits)
    chunks.push_back(
        static_cast<uint32_t>(std::min<uint64_t>(UnitMap::kChunkUnits, map_.units() - unit)));
  Deal whole = Deal::shuffled(geometry_, bytes, seed, chunks);
  uint64_t most = geometry_.data_bytes / bytes * 1000 / (1000 + journal_permille_);
  uint32_t number = 0;
  for (uint64_t share : steady_shares(map_.units(), most)) {
    do
      number++;
    while (blocks_[number].state != State::kFree);
    blocks_[number].erases++;
    deal_closed(whole, number, share);
  }
  // What is free now was not always.
  for (Superblock &block : blocks_)
    block.clean = false;
  map_.follow(std::move(whole));
}

// To a free superblock, which is full then.
void Ftl::deal_closed(Deal &deal, uint32_t number, uint64_t most) {
  if (deal_to(deal, number, most) == 0)
    return;
  Superblock &block = blocks_[number];
  block.fill = geometry_.data_bytes;
  block.state = State::kClosed;
  block.closed_at = ++closed_;
  free_--;
}

void Ftl::save_summary(StreamWriter &out) const {
  out.section("FTLS");
  save_worn(out);
  uint64_t bytes = 0;
  for (const Valid &valid : valid_)
    bytes += valid.bytes;
  out.put(mapped_ == 0 ? geometry_.granule : rounded(bytes / mapped_));
  out.put(random_state_);
  for (const Valid &valid : valid_)
    put_number(out, valid.units);
  for (uint64_t unit = 0; unit < map_.units(); unit += UnitMap::kChunkUnits)
    put_number(out, map_.mapped_in_chunk(unit));
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
  random_state_ = in.get<uint64_t>();
  std::vector<uint32_t> shares(blocks_.size()), chunks;
  uint64_t dealt = 0, end = 0;
  for (uint32_t &share : shares) {
    share = static_cast<uint32_t>(std::min<uint64_t>(get_number(in), UINT32_MAX));
    dealt += share;
  }
  for (uint64_t unit = 0; in.ok() && unit < map_.units(); unit += UnitMap::kChunkUnits) {
    uint64_t count = get_number(in);
    if (count > std::min<uint64_t>(UnitMap::kChunkUnits, map_.units() - unit))
      in.fail();
    chunks.push_back(static_cast<uint32_t>(count));
    end += count;
  }
  if (dealt != end || shares[0] != 0)
    in.fail();
  if (!in.ok())
    return;
  Deal deal = Deal::shuffled(geometry_, bytes, random_state_, chunks);
  for (uint32_t i = 1; in.ok() && i < blocks_.size(); i++) {
    if (shares[i] > 0 && blocks_[i].state != State::kFree)
      in.fail();
    else
      deal_closed(deal, i, shares[i]);
  }
  // Superblocks held more than the mean allows: into the free ones, the least full of all.
  for (uint32_t i = 1; in.ok() && i < blocks_.size() && deal.dealt() < end; i++) {
    if (blocks_[i].state == State::kFree)
      deal_closed(deal, i, end - deal.dealt());
  }
  map_.follow(std::move(deal));
}

}  // namespace revodrive
