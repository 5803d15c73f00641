// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where the time of one command went. A Journey is a cursor on virtual time that only moves
// forward: whoever makes the command wait says what it waits for and until when, and the step
// since the last stop is charged to that stage. So the stages always add up to the whole, and work
// that overlaps is charged to what the command met first.
#ifndef REVODRIVE_JOURNEY_H
#define REVODRIVE_JOURNEY_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "revodrive/host.h"
#include "revodrive/stream.h"

namespace revodrive {

enum class Stage : uint8_t {
  kPcie = RD_STAGE_PCIE,
  kBridge = RD_STAGE_BRIDGE,
  kSata = RD_STAGE_SATA,
  kController = RD_STAGE_CONTROLLER,
  kCompression = RD_STAGE_COMPRESSION,
  kMap = RD_STAGE_MAP,
  kBuffer = RD_STAGE_BUFFER,
  kChannel = RD_STAGE_CHANNEL,
  kDie = RD_STAGE_DIE,
  kGc = RD_STAGE_GC,
  kHost = RD_STAGE_HOST,
  kCoalescing = RD_STAGE_COALESCING,
  kFault = RD_STAGE_FAULT,
};
constexpr size_t kJourneyStages = RD_STAGES;

class Journey {
 public:
  void start(int64_t at_ns) {
    ns_ = {};
    start_ns_ = at_ns_ = at_ns;
  }
  // Waited or was served until then; a time that has passed already changes nothing.
  void reach(Stage stage, int64_t until_ns) {
    if (until_ns <= at_ns_)
      return;
    ns_[static_cast<size_t>(stage)] += until_ns - at_ns_;
    at_ns_ = until_ns;
  }
  // Goes the way of `part`; until that begins it waits in `before`.
  void follow(const Journey &part, Stage before);
  // The rest of what was planned does not happen: the journey is at `at_ns`, which may be earlier
  // than at_ns(). What is too much comes off the stages that a command meets last.
  void cut(int64_t at_ns);
  int64_t start_ns() const { return start_ns_; }
  int64_t at_ns() const { return at_ns_; }
  int64_t total_ns() const { return at_ns_ - start_ns_; }
  int64_t stage_ns(Stage stage) const { return ns_[static_cast<size_t>(stage)]; }

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  std::array<int64_t, kJourneyStages> ns_{};
  int64_t start_ns_ = 0;
  int64_t at_ns_ = 0;
};

}  // namespace revodrive
#endif
