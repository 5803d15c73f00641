// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/latency_stats.h"

namespace revodrive {

namespace {

struct Percentile {
  const char *name;
  uint32_t millionths;
};
constexpr Percentile kPercentiles[] = {
    {"p50", 500'000},   {"p90", 900'000},    {"p99", 990'000},
    {"p99_9", 999'000}, {"p99_99", 999'900}, {"p99_999", 999'990},
};

}  // namespace

void LatencyStats::add(rd_command_kind kind, const Journey &journey) {
  Kind &it = kinds_[kind];
  it.latency.add(journey.total_ns());
  for (size_t i = 0; i < kJourneyStages; i++)
    it.stage_ns[i] += static_cast<uint64_t>(journey.stage_ns(static_cast<Stage>(i)));
}

void LatencyStats::query(const Visitor &visit) const {
  for (unsigned kind = 0; kind < RD_COMMAND_KINDS; kind++) {
    const Kind &it = kinds_[kind];
    std::string prefix = std::string(rd_kind_name(kind)) + "_";
    visit(prefix + "latency_count", it.latency.count());
    visit(prefix + "latency_sum_ns", it.latency.sum());
    visit(prefix + "latency_min_ns", it.latency.min());
    visit(prefix + "latency_max_ns", it.latency.max());
    for (const Percentile &percentile : kPercentiles)
      visit(prefix + "latency_" + percentile.name + "_ns",
            it.latency.percentile(percentile.millionths));
    for (unsigned stage = 0; stage < RD_STAGES; stage++)
      visit(prefix + "stage_" + rd_stage_name(stage) + "_ns", it.stage_ns[stage]);
  }
}

void LatencyStats::save(StreamWriter &out) const {
  out.section("LATS");
  for (const Kind &it : kinds_) {
    it.latency.save(out);
    for (uint64_t ns : it.stage_ns)
      out.put(ns);
  }
}

void LatencyStats::load(StreamReader &in) {
  in.section("LATS");
  for (Kind &it : kinds_) {
    it.latency.load(in);
    for (uint64_t &ns : it.stage_ns)
      in.get(ns);
  }
  if (!in.ok())
    clear();
}

}  // namespace revodrive
