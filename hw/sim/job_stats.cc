// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/job_stats.h"

namespace revodrive::sim {

void DirectionStats::close_samples(int64_t now_ns) {
  constexpr double kSeconds = static_cast<double>(kSampleNs) / 1e9;
  while (now_ns >= sample_end_ns) {
    // Before its first I/O a direction has nothing to say.
    if (bytes > 0) {
      bandwidth.add(static_cast<double>(sample_bytes) / 1024 / kSeconds);
      iops.add(static_cast<double>(sample_ios) / kSeconds);
      sample_end_ns += kSampleNs;
    } else {
      sample_end_ns += (now_ns - sample_end_ns) / kSampleNs * kSampleNs + kSampleNs;
    }
    sample_bytes = 0;
    sample_ios = 0;
  }
}

void DirectionStats::merge(const DirectionStats &other) {
  bytes += other.bytes;
  bandwidth.merge(other.bandwidth);
  iops.merge(other.iops);
  // One job may have a host's cost and another none: `total` must then count for both.
  if (total.count() || other.total.count()) {
    if (total.count() == 0)
      total = completion;
    total.merge(other.latency());
  }
  completion.merge(other.completion);
  submission.merge(other.submission);
}

void JobStats::begin(int64_t now_ns) {
  *this = {};
  start_ns = end_ns = now_ns;
  for (DirectionStats &direction : directions)
    direction.sample_end_ns = now_ns + kSampleNs;
}

void JobStats::merge(const JobStats &other) {
  bool first = submitted == 0 && end_ns == 0;
  for (size_t i = 0; i < directions.size(); i++)
    directions[i].merge(other.directions[i]);
  syncs.merge(other.syncs);
  for (size_t i = 0; i < depth_levels.size(); i++)
    depth_levels[i] += other.depth_levels[i];
  submitted += other.submitted;
  errors += other.errors;
  start_ns = first ? other.start_ns : std::min(start_ns, other.start_ns);
  end_ns = std::max(end_ns, other.end_ns);
  replayed += other.replayed;
  wrapped += other.wrapped;
  late_sum_ns += other.late_sum_ns;
  late_max_ns = std::max(late_max_ns, other.late_max_ns);
  late_last_ns = std::max(late_last_ns, other.late_last_ns);
}

}  // namespace revodrive::sim
