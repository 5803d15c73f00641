// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a job (or a group of jobs) did: per direction bytes, I/Os, latencies and the bandwidth and
// IOPS of each half second of virtual time, which is fio's default interval of samples.
#ifndef REVODRIVE_SIM_JOB_STATS_H
#define REVODRIVE_SIM_JOB_STATS_H

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "sim/io_request.h"
#include "sim/latency_stats.h"

namespace revodrive::sim {

constexpr int64_t kSampleNs = 500'000'000;
// 1, 2, 4, ... 64 and more.
constexpr size_t kDepthLevels = 7;

// Count, mean, spread of a series of samples.
class Samples {
 public:
  void add(double value) {
    count_++;
    sum_ += value;
    squares_ += value * value;
    min_ = count_ == 1 ? value : std::min(min_, value);
    max_ = count_ == 1 ? value : std::max(max_, value);
  }
  void merge(const Samples &other) {
    if (other.count_ == 0)
      return;
    min_ = count_ ? std::min(min_, other.min_) : other.min_;
    max_ = count_ ? std::max(max_, other.max_) : other.max_;
    count_ += other.count_;
    sum_ += other.sum_;
    squares_ += other.squares_;
  }
  uint64_t count() const { return count_; }
  double min() const { return min_; }
  double max() const { return max_; }
  double mean() const { return count_ ? sum_ / static_cast<double>(count_) : 0; }
  double stddev() const {
    if (count_ < 2)
      return 0;
    auto n = static_cast<double>(count_);
    return std::sqrt(std::max((squares_ - sum_ * sum_ / n) / (n - 1), 0.0));
  }

 private:
  uint64_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
  double min_ = 0;
  double max_ = 0;
};

struct DirectionStats {
  uint64_t bytes = 0;
  LatencyStats completion;  // issue to completion
  LatencyStats total;       // with the host's submission
  LatencyStats submission;
  Samples bandwidth;  // KiB/s
  Samples iops;

  // The running sample.
  int64_t sample_end_ns = 0;
  uint64_t sample_bytes = 0;
  uint64_t sample_ios = 0;

  void add(uint32_t done_bytes, int64_t submit_ns, int64_t complete_ns, int64_t now_ns) {
    if (now_ns >= sample_end_ns)
      close_samples(now_ns);
    bytes += done_bytes;
    sample_bytes += done_bytes;
    sample_ios++;
    completion.add(complete_ns);
    if (submit_ns != 0) {
      submission.add(submit_ns);
      total.add(submit_ns + complete_ns);
    }
  }
  void close_samples(int64_t now_ns);
  void merge(const DirectionStats &other);
  // Without a cost of the host both are the same.
  const LatencyStats &latency() const { return total.count() ? total : completion; }
};

struct JobStats {
  std::array<DirectionStats, kDirections> directions;
  LatencyStats syncs;
  std::array<uint64_t, kDepthLevels> depth_levels{};
  uint64_t submitted = 0;
  uint64_t errors = 0;
  int64_t start_ns = 0;  // counting began
  int64_t end_ns = 0;    // the last completion that counts
  // Replay: how far behind its record a command was issued.
  uint64_t replayed = 0;
  uint64_t wrapped = 0;
  int64_t late_sum_ns = 0;
  int64_t late_max_ns = 0;
  int64_t late_last_ns = 0;

  int64_t runtime_ns() const { return std::max<int64_t>(end_ns - start_ns, 0); }
  void begin(int64_t now_ns);
  void count_depth(unsigned depth) {
    auto level = static_cast<size_t>(std::bit_width(depth)) - 1;
    depth_levels[std::min(level, kDepthLevels - 1)]++;
    submitted++;
  }
  void merge(const JobStats &other);
};

}  // namespace revodrive::sim
#endif
