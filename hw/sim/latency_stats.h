// SPDX-License-Identifier: GPL-2.0-or-later
//
// Latencies of one kind of I/O: exact count, sum, least and most; a log-linear histogram (64 steps
// in each power of two, as fio's: an error below 1.6 %) for percentiles. Values in ns, 0 to 2^62.
// All sums are integers, so results merge in any order to the same bits.
#ifndef REVODRIVE_SIM_LATENCY_STATS_H
#define REVODRIVE_SIM_LATENCY_STATS_H

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace revodrive::sim {

class LatencyStats {
 public:
  void add(int64_t ns) {
    auto value = static_cast<uint64_t>(ns);
    count_++;
    sum_ += value;
    squares_ += static_cast<unsigned __int128>(value) * value;
    min_ = value < min_ ? value : min_;
    max_ = value > max_ ? value : max_;
    buckets_[index_of(value)]++;
  }
  void merge(const LatencyStats &other);

  uint64_t count() const { return count_; }
  uint64_t min_ns() const { return count_ ? min_ : 0; }
  uint64_t max_ns() const { return max_; }
  double mean_ns() const;
  double stddev_ns() const;
  // The value that `percent` of all do not exceed: the middle of its bucket.
  uint64_t percentile_ns(double percent) const;

  // visit(lowest value, highest value, count) for each bucket that is not empty.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (size_t i = 0; i < kBuckets; i++) {
      if (buckets_[i] != 0)
        visit(lowest(i), lowest(i + 1) - 1, buckets_[i]);
    }
  }

 private:
  static constexpr unsigned kStepBits = 6;
  static constexpr size_t kSteps = 1 << kStepBits;
  static constexpr size_t kBuckets = (62 - kStepBits) * kSteps;

  static size_t index_of(uint64_t value) {
    if (value < 2 * kSteps)
      return value;
    auto shift = static_cast<unsigned>(std::bit_width(value)) - kStepBits - 1;
    size_t index = shift * kSteps + (value >> shift);
    return index < kBuckets ? index : kBuckets - 1;
  }
  static uint64_t lowest(size_t index) {
    if (index < 2 * kSteps)
      return index;
    size_t shift = index / kSteps - 1;
    return (kSteps + index % kSteps) << shift;
  }

  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  unsigned __int128 squares_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
  std::array<uint64_t, kBuckets> buckets_{};
};

}  // namespace revodrive::sim
#endif
