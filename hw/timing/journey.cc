// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/journey.h"

#include <algorithm>
#include <iterator>

namespace revodrive {

void Journey::follow(const Journey &part, Stage before) {
  reach(before, part.start_ns_);
  int64_t at_ns = part.start_ns_;
  for (size_t i = 0; i < kJourneyStages; i++) {
    at_ns += part.ns_[i];
    reach(static_cast<Stage>(i), at_ns);
  }
}

void Journey::cut(int64_t at_ns) {
  // From the end of the way to its beginning.
  static constexpr Stage kBackwards[] = {
      Stage::kCoalescing, Stage::kFault,  Stage::kHost,        Stage::kGc,  Stage::kDie,
      Stage::kChannel,    Stage::kBuffer, Stage::kCompression, Stage::kMap, Stage::kController,
      Stage::kSata,       Stage::kBridge, Stage::kPcie,
  };
  static_assert(std::size(kBackwards) == kJourneyStages);
  at_ns = std::max(at_ns, start_ns_);
  int64_t excess_ns = at_ns_ - at_ns;
  if (excess_ns <= 0)
    return;
  at_ns_ = at_ns;
  for (Stage stage : kBackwards) {
    int64_t &spent_ns = ns_[static_cast<size_t>(stage)];
    int64_t taken_ns = std::min(spent_ns, excess_ns);
    spent_ns -= taken_ns;
    excess_ns -= taken_ns;
  }
}

void Journey::save(StreamWriter &out) const {
  out.put(start_ns_);
  for (int64_t spent_ns : ns_)
    out.put(spent_ns);
}

void Journey::load(StreamReader &in) {
  constexpr int64_t kLatestNs = INT64_MAX / 64;  // so that no sum of the stages overflows
  start(in.get<int64_t>());
  if (start_ns_ < 0 || start_ns_ > kLatestNs)
    in.fail();
  for (int64_t &spent_ns : ns_) {
    in.get(spent_ns);
    if (spent_ns < 0 || spent_ns > kLatestNs)
      in.fail();
    at_ns_ += in.ok() ? spent_ns : 0;
  }
  if (!in.ok())
    start(0);
}

}  // namespace revodrive

const char *rd_kind_name(unsigned kind) {
  static constexpr const char *kNames[] = {"read", "write", "flush", "trim", "other"};
  static_assert(std::size(kNames) == RD_COMMAND_KINDS);
  return kind < RD_COMMAND_KINDS ? kNames[kind] : nullptr;
}

const char *rd_stage_name(unsigned stage) {
  static constexpr const char *kNames[] = {
      "pcie",    "bridge", "sata", "controller", "compression", "map",   "buffer",
      "channel", "die",    "gc",   "host",       "coalescing",  "fault",
  };
  static_assert(std::size(kNames) == RD_STAGES);
  return stage < RD_STAGES ? kNames[stage] : nullptr;
}
