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

namespace revodrive {

enum class Stage : uint8_t {
  kPcie,         // host link: ring entry, header, data, completion
  kBridge,       // command processor of the bridge
  kSata,         // link between bridge and drive
  kController,   // firmware of the drive
  kCompression,  // in-line compression engine
  kMap,          // mapping table that was not in the controller
  kBuffer,       // room in the write buffer
  kChannel,      // flash bus
  kDie,          // tR, tPROG, tBERS
  kGc,           // room in the flash: garbage collection, throttle
  kHost,         // the backend was later than the model
  kCoalescing,   // from the completion entry to the interrupt
};
constexpr size_t kJourneyStages = 12;

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
  int64_t start_ns() const { return start_ns_; }
  int64_t at_ns() const { return at_ns_; }
  int64_t total_ns() const { return at_ns_ - start_ns_; }
  int64_t stage_ns(Stage stage) const { return ns_[static_cast<size_t>(stage)]; }

 private:
  std::array<int64_t, kJourneyStages> ns_{};
  int64_t start_ns_ = 0;
  int64_t at_ns_ = 0;
};

}  // namespace revodrive
#endif
