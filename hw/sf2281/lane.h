// SPDX-License-Identifier: GPL-2.0-or-later
//
// A Timeline for what is booked hundreds of thousands of times a second: a die, a channel, an
// engine. Like a Timeline it fills gaps, but it remembers fewer and forgets the oldest for free;
// flash is never planned far ahead (nand.h), so the gaps that matter are the newest.
#ifndef REVODRIVE_SF2281_LANE_H
#define REVODRIVE_SF2281_LANE_H

#include <array>
#include <cstdint>
#include <string>

#include "revodrive/observer.h"
#include "revodrive/stream.h"
#include "revodrive/timeline.h"

namespace revodrive {

// Far beyond any run, and far enough below the end of int64_t for sums with it: for loaded times.
constexpr int64_t kLatestFlashNs = INT64_MAX / 4;

class Lane {
 public:
  // Books `duration_ns` at the first idle place at or after `earliest_ns`; 0 never waits.
  Span reserve(int64_t earliest_ns, int64_t duration_ns, const char *label);
  // Where reserve() would start, as far as the last booking goes.
  int64_t busy_until_ns() const { return busy_until_ns_; }
  // Sum of all bookings.
  int64_t busy_ns() const { return busy_ns_; }
  void clear();
  void watch(Observer *observer, std::string name) { track_.watch(observer, std::move(name)); }

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  static constexpr uint32_t kGaps = 64;  // a power of two
  Span &gap(uint32_t index) { return gaps_[(first_ + index) % kGaps]; }
  const Span &gap(uint32_t index) const { return gaps_[(first_ + index) % kGaps]; }
  void append(Span span);
  void insert(uint32_t index, Span span);
  void remove(uint32_t index);
  void use(uint32_t index, Span used);

  std::array<Span, kGaps> gaps_{};  // a ring, in order of time, all before busy_until_ns_
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  int64_t busy_until_ns_ = 0;
  int64_t busy_ns_ = 0;
  Track track_;
};

}  // namespace revodrive
#endif
