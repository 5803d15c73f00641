// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/latency_stats.h"

#include <algorithm>
#include <cmath>

namespace revodrive::sim {

void LatencyStats::merge(const LatencyStats &other) {
  count_ += other.count_;
  sum_ += other.sum_;
  squares_ += other.squares_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  for (size_t i = 0; i < kBuckets; i++)
    buckets_[i] += other.buckets_[i];
}

double LatencyStats::mean_ns() const {
  return count_ ? static_cast<double>(sum_) / static_cast<double>(count_) : 0;
}

// Of a sample, as fio computes it.
double LatencyStats::stddev_ns() const {
  if (count_ < 2)
    return 0;
  auto n = static_cast<double>(count_);
  auto sum = static_cast<double>(sum_);
  double variance = (static_cast<double>(squares_) - sum / n * sum) / (n - 1);
  return std::sqrt(std::max(variance, 0.0));
}

uint64_t LatencyStats::percentile_ns(double percent) const {
  double wanted = percent / 100 * static_cast<double>(count_);
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; i++) {
    seen += buckets_[i];
    if (buckets_[i] != 0 && static_cast<double>(seen) >= wanted)
      return std::clamp((lowest(i) + lowest(i + 1)) / 2, min_ns(), max_);
  }
  return max_;
}

}  // namespace revodrive::sim
