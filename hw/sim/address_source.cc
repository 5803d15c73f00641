// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/address_source.h"

#include <algorithm>
#include <bit>

#include "sim/steady_math.h"

namespace revodrive::sim {

Permutation::Permutation(uint64_t count, uint64_t seed)
    : count_(count),
      bits_(std::max(static_cast<unsigned>(std::bit_width(count - 1)), 2u)),
      mask_(~uint64_t{0}) {
  mask_ >>= 64 - bits_;
  Rng rng(seed);
  for (uint64_t &key : keys_)
    key = rng.next();
}

// Each step can be undone, so that different numbers stay different: adding, multiplying by an odd
// number and folding the upper bits into the lower ones, modulo a power of two.
uint64_t Permutation::round(uint64_t value) const {
  unsigned half = (bits_ + 1) / 2;
  for (uint64_t key : keys_) {
    value = ((value + key) * (key << 1 | 1)) & mask_;
    value ^= value >> half;
  }
  return value;
}

// Numbers beyond the count are sent round again until they are inside: less than twice on average.
uint64_t Permutation::at(uint64_t index) const {
  uint64_t value = round(index);
  while (value >= count_)
    value = round(value);
  return value;
}

BlockPicker::BlockPicker(const Distribution &distribution, uint64_t blocks, bool map, uint64_t seed)
    : distribution_(distribution), blocks_(blocks), map_(map), rng_(seed), order_(blocks, seed) {
  if (distribution.spread == Spread::kZipf) {
    double theta = distribution.parameter;
    auto n = static_cast<double>(blocks);
    // The sum of i^-theta: its head term by term, its tail as an integral.
    constexpr uint64_t kExact = 100000;
    uint64_t head = std::min(blocks, kExact);
    for (uint64_t i = 1; i <= head; i++)
      zeta_n_ += steady_pow(static_cast<double>(i), -theta);
    if (blocks > head) {
      double from = static_cast<double>(head) + 0.5;
      zeta_n_ += (steady_pow(n + 0.5, 1 - theta) - steady_pow(from, 1 - theta)) / (1 - theta);
    }
    half_power_ = steady_pow(0.5, theta);
    exponent_ = 1 / (1 - theta);
    eta_ = (1 - steady_pow(2 / n, 1 - theta)) / (1 - (1 + half_power_) / zeta_n_);
  } else if (distribution.spread == Spread::kPareto) {
    double h = distribution.parameter;
    exponent_ = steady_log2(h) / steady_log2(1 - h);
  }
}

uint64_t BlockPicker::next() {
  switch (distribution_.spread) {
    case Spread::kZipf:
      return zipf();
    case Spread::kPareto:
      return pareto();
    case Spread::kZoned:
      return zoned();
    case Spread::kUniform:
      break;
  }
  if (!map_)
    return rng_.below(blocks_);
  if (taken_ == blocks_) {
    order_ = Permutation(blocks_, rng_.next());
    taken_ = 0;
  }
  return order_.at(taken_++);
}

// The popular blocks lie anywhere, not side by side.
uint64_t BlockPicker::scattered(uint64_t rank) const {
  return order_.at(std::min(rank, blocks_ - 1));
}

uint64_t BlockPicker::zipf() {
  double uniform = rng_.unit();
  double scaled = uniform * zeta_n_;
  if (scaled < 1 || blocks_ < 3)
    return scattered(0);
  if (scaled < 1 + half_power_)
    return scattered(1);
  double base = std::max(eta_ * uniform - eta_ + 1, 1e-300);
  return scattered(
      static_cast<uint64_t>(static_cast<double>(blocks_) * steady_pow(base, exponent_)));
}

uint64_t BlockPicker::pareto() {
  double uniform = std::max(rng_.unit(), 0x1p-53);
  return scattered(
      static_cast<uint64_t>(static_cast<double>(blocks_ - 1) * steady_pow(uniform, exponent_)));
}

uint64_t BlockPicker::zoned() {
  uint64_t roll = rng_.below(100);
  uint64_t first = 0;
  for (const Zone &zone : distribution_.zones) {
    uint64_t size = std::max<uint64_t>(blocks_ * zone.size / 100, 1);
    if (roll < zone.access)
      return std::min(first + rng_.below(size), blocks_ - 1);
    roll -= zone.access;
    first = std::min(first + size, blocks_ - 1);
  }
  return rng_.below(blocks_);
}

AddressSource::AddressSource(const JobOptions &job, Region region, uint64_t seed)
    : region_(region),
      random_(job.direction.random),
      percentage_random_(job.percentage_random),
      rng_(mix64(seed)) {
  position_.fill(region.first);
  always_random_ = true;
  for (unsigned i = 0; i < kDirections; i++) {
    always_random_ &= percentage_random_[i] == 100;
    unit_[i] = job.align[i] ? job.align[i] : job.block_min[i];
    if (!random_)
      continue;
    uint64_t blocks = std::max<uint64_t>(region.bytes() / unit_[i], 1);
    bool map = !job.no_random_map && job.align[i] == 0 && always_random_;
    pickers_.emplace_back(job.distribution[i], blocks, map, seed + i);
  }
}

bool AddressSource::random_now(unsigned direction) {
  return random_ && (always_random_ || rng_.chance(percentage_random_[direction]));
}

uint64_t AddressSource::next(unsigned direction, uint64_t bytes) {
  uint64_t &position = position_[direction];
  if (random_now(direction)) {
    position = region_.first + pickers_[direction].next() * unit_[direction];
    if (position + bytes > region_.end)
      position = region_.end - bytes;
  } else if (position + bytes > region_.end) {
    position = region_.first;
  }
  uint64_t offset = position;
  position += bytes;
  return offset;
}

}  // namespace revodrive::sim
