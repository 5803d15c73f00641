// SPDX-License-Identifier: GPL-2.0-or-later
//
// The card's account of the time of its commands, by kind: a histogram of latencies from doorbell
// to interrupt, and how much of the sum each stage of the journeys bears. All times in ns.
#ifndef REVODRIVE_LATENCY_STATS_H
#define REVODRIVE_LATENCY_STATS_H

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "revodrive/histogram.h"
#include "revodrive/host.h"
#include "revodrive/journey.h"
#include "revodrive/stream.h"

namespace revodrive {

class LatencyStats {
 public:
  // A command whose journey has ended.
  void add(rd_command_kind kind, const Journey &journey);
  void clear() { kinds_ = {}; }
  const Histogram &histogram(rd_command_kind kind) const { return kinds_[kind].latency; }
  uint64_t stage_ns(rd_command_kind kind, Stage stage) const {
    return kinds_[kind].stage_ns[static_cast<size_t>(stage)];
  }

  // "read_latency_count", "read_latency_p99_ns", "read_stage_die_ns", ...: see docs/counters.md.
  using Visitor = std::function<void(const std::string &name, uint64_t value)>;
  void query(const Visitor &visit) const;

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  struct Kind {
    Histogram latency;
    std::array<uint64_t, kJourneyStages> stage_ns{};
  };
  std::array<Kind, RD_COMMAND_KINDS> kinds_{};
};

}  // namespace revodrive
#endif
