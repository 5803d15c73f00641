// SPDX-License-Identifier: GPL-2.0-or-later
//
// What revosim learns from the card while it works: where the time of its commands goes (StageSums)
// and what each resource is busy with (TimelineTrace).
#ifndef REVODRIVE_SIM_OBSERVERS_H
#define REVODRIVE_SIM_OBSERVERS_H

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "revodrive/host.h"
#include "sim/output_file.h"

namespace revodrive::sim {

// ATA commands by kind, and the sum of each stage of their way.
struct StageSums {
  struct Kind {
    uint64_t count = 0;
    uint64_t total_ns = 0;
    std::array<uint64_t, RD_STAGES> stage_ns{};
  };
  std::array<Kind, RD_COMMAND_KINDS> kinds{};

  void add(const rd_command_record &record) {
    Kind &kind = kinds[record.kind];
    kind.count++;
    kind.total_ns += static_cast<uint64_t>(record.end_ns - record.start_ns);
    for (unsigned i = 0; i < RD_STAGES; i++)
      kind.stage_ns[i] += static_cast<uint64_t>(record.stage_ns[i]);
  }
};

// Spans of the card's resources inside a window of time, for Perfetto or chrome://tracing (Trace
// Event Format). Keeps 24 bytes a span, up to kMostSpans; what comes after them is counted.
class TimelineTrace {
 public:
  static constexpr size_t kMostSpans = 4'000'000;

  // Times of the card's clock; times in the file count from `from_ns`. Spans are cut at both ends.
  TimelineTrace(int64_t from_ns, int64_t to_ns) : from_ns_(from_ns), to_ns_(to_ns) {}
  void add(const char *track, const char *label, int64_t start_ns, int64_t end_ns);
  uint64_t dropped() const { return dropped_; }
  // All of it; closes the file. Throws UserError.
  void write(OutputFile &file) const;

 private:
  struct Span {
    int64_t start_ns;
    uint32_t length_ns;
    uint16_t track;
    uint16_t label;
  };
  // A name is the same pointer each time.
  struct Names {
    std::unordered_map<const char *, uint16_t> numbers;
    std::vector<std::string> texts;
    uint16_t number(const char *name);
  };

  int64_t from_ns_;
  int64_t to_ns_;
  Names tracks_;
  Names labels_;
  std::vector<Span> spans_;
  uint64_t dropped_ = 0;
};

}  // namespace revodrive::sim
#endif
