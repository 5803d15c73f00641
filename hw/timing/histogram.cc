// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/histogram.h"

#include <algorithm>
#include <bit>

namespace revodrive {

size_t Histogram::bucket_of(uint64_t value) {
  value = std::min(value, (uint64_t{1} << kLimitBits) - 1);
  if (value < kSteps)
    return value;
  unsigned octave = static_cast<unsigned>(std::bit_width(value)) - 1;  // kStepBits or more
  size_t step = (value >> (octave - kStepBits)) & (kSteps - 1);
  return (octave - kStepBits + 1) * kSteps + step;
}

uint64_t Histogram::last_of(size_t bucket) {
  if (bucket < kSteps)
    return bucket;
  size_t octave = bucket / kSteps - 1;  // above the first
  return ((kSteps + bucket % kSteps + 1) << octave) - 1;
}

void Histogram::add(int64_t signed_value) {
  auto value = static_cast<uint64_t>(std::max<int64_t>(signed_value, 0));
  buckets_[bucket_of(value)]++;
  count_++;
  sum_ += value;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

void Histogram::merge(const Histogram &other) {
  for (size_t i = 0; i < kBuckets; i++)
    buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

uint64_t Histogram::percentile(uint32_t millionths) const {
  constexpr uint64_t kAll = 1'000'000;
  if (count_ == 0)
    return 0;
  // The smallest rank that holds so many, without an overflow of the product.
  uint64_t share = std::min<uint64_t>(millionths, kAll);
  uint64_t rank = count_ / kAll * share + (count_ % kAll * share + kAll - 1) / kAll;
  rank = std::max<uint64_t>(rank, 1);
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; i++) {
    seen += buckets_[i];
    if (seen >= rank)
      return i == kBuckets - 1 ? max_ : std::clamp(last_of(i), min_, max_);
  }
  return max_;
}

// Most buckets are empty: those that are not, each with its number.
void Histogram::save(StreamWriter &out) const {
  auto used = std::count_if(buckets_.begin(), buckets_.end(), [](uint64_t n) { return n != 0; });
  out.put(sum_);
  out.put(min_);
  out.put(max_);
  out.put(static_cast<uint16_t>(used));
  for (size_t i = 0; i < kBuckets; i++) {
    if (buckets_[i] == 0)
      continue;
    out.put(static_cast<uint16_t>(i));
    out.put(buckets_[i]);
  }
}

void Histogram::load(StreamReader &in) {
  clear();
  in.get(sum_);
  in.get(min_);
  in.get(max_);
  auto used = in.get<uint16_t>();
  size_t next = 0;
  for (unsigned i = 0; i < used && in.ok(); i++) {
    auto bucket = in.get<uint16_t>();
    auto times = in.get<uint64_t>();
    if (bucket < next || bucket >= kBuckets || times == 0 || times > UINT64_MAX - count_) {
      in.fail();
      break;
    }
    next = bucket + size_t{1};
    buckets_[bucket] = times;
    count_ += times;
  }
  if (count_ ? min_ > max_ : sum_ != 0 || max_ != 0)
    in.fail();
  if (!in.ok())
    clear();
}

}  // namespace revodrive
