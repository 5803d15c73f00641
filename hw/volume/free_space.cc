// SPDX-License-Identifier: GPL-2.0-or-later
#include "volume/free_space.h"

#include <algorithm>
#include <bit>

namespace revodrive {

void FreeSpace::reset(uint64_t places) {
  places_ = free_ = places;
  levels_.clear();
  for (uint64_t bits = places;; bits = (bits + kBits - 1) / kBits) {
    std::vector<uint64_t> words((bits + kBits - 1) / kBits, UINT64_MAX);
    if (bits % kBits != 0)
      words.back() = (uint64_t{1} << bits % kBits) - 1;
    levels_.push_back(std::move(words));
    if (bits <= kBits)
      break;
  }
}

// The first free place at or after `from`, places_ if there is none.
uint64_t FreeSpace::next(uint64_t from) const {
  uint64_t bit = from;
  for (size_t level = 0; level < levels_.size(); level++) {
    const std::vector<uint64_t> &words = levels_[level];
    if (bit / kBits >= words.size())
      return places_;
    uint64_t word = words[bit / kBits] & UINT64_MAX << bit % kBits;
    if (word == 0) {
      bit = bit / kBits + 1;
      continue;
    }
    bit = bit / kBits * kBits + static_cast<unsigned>(std::countr_zero(word));
    while (level-- > 0)
      bit = bit * kBits + static_cast<unsigned>(std::countr_zero(levels_[level][bit]));
    return bit;
  }
  return places_;
}

uint32_t FreeSpace::length(uint64_t first, uint32_t most) const {
  uint64_t at = first;
  while (at < places_ && at - first < most) {
    uint64_t word = ~(levels_[0][at / kBits] >> at % kBits);
    auto ones = static_cast<uint64_t>(std::countr_zero(word));
    ones = std::min<uint64_t>(ones, kBits - at % kBits);
    at += ones;
    if (ones == 0 || at % kBits != 0)
      break;
  }
  return static_cast<uint32_t>(std::min<uint64_t>(at - first, most));
}

FreeSpace::Run FreeSpace::find(uint32_t wanted) const {
  Run best;
  uint64_t at = 0;
  for (unsigned i = 0; i < kRuns; i++) {
    at = next(at);
    if (at >= places_)
      break;
    uint32_t count = length(at, wanted);
    if (count > best.count)
      best = {at, count};
    if (count == wanted)
      break;
    at += count;
  }
  return best;
}

void FreeSpace::take(uint64_t first, uint32_t count) {
  free_ -= count;
  for (uint64_t place = first; place < first + count; place++) {
    uint64_t bit = place;
    for (std::vector<uint64_t> &words : levels_) {
      words[bit / kBits] &= ~(uint64_t{1} << bit % kBits);
      if (words[bit / kBits] != 0)
        break;
      bit /= kBits;
    }
  }
}

void FreeSpace::release(uint64_t first, uint32_t count) {
  free_ += count;
  for (uint64_t place = first; place < first + count; place++) {
    uint64_t bit = place;
    for (std::vector<uint64_t> &words : levels_) {
      words[bit / kBits] |= uint64_t{1} << bit % kBits;
      bit /= kBits;
    }
  }
}

}  // namespace revodrive
