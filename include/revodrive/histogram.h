// SPDX-License-Identifier: GPL-2.0-or-later
//
// How often each value came: log-linear buckets, 64 to an octave, so a percentile is at most 1/64
// above the true one; count, sum, least and greatest value are exact. Values below 64 have a bucket
// each. Adding costs a few instructions and allocates nothing; histograms add up.
#ifndef REVODRIVE_HISTOGRAM_H
#define REVODRIVE_HISTOGRAM_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "revodrive/stream.h"

namespace revodrive {

class Histogram {
 public:
  // Values from here on (39 hours in ns) share the last bucket.
  static constexpr unsigned kLimitBits = 47;

  // A negative value counts as 0.
  void add(int64_t value);
  void merge(const Histogram &other);
  void clear() { *this = {}; }

  uint64_t count() const { return count_; }
  uint64_t sum() const { return sum_; }
  // 0 while there are no values.
  uint64_t min() const { return count_ ? min_ : 0; }
  uint64_t max() const { return max_; }
  // The value that `millionths` of all values do not exceed (500'000: the median), rounded up by
  // at most 1/64; 0 while there are no values.
  uint64_t percentile(uint32_t millionths) const;

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  static constexpr unsigned kStepBits = 6;
  static constexpr size_t kSteps = size_t{1} << kStepBits;
  static constexpr size_t kBuckets = (kLimitBits - kStepBits + 1) * kSteps;
  static size_t bucket_of(uint64_t value);
  static uint64_t last_of(size_t bucket);

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
};

}  // namespace revodrive
#endif
