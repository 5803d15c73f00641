// SPDX-License-Identifier: GPL-2.0-or-later
//
// A Timeline is a resource that serves one user at a time: a PCIe direction, a SATA wire, a flash
// channel, a die. Users reserve spans of virtual time as they are planned, not as time passes, so a
// later plan may still fit into an idle gap before an earlier one (a command FIS slips in while a
// data transfer further ahead is already booked). The gaps remembered are bounded: when there are
// too many, the oldest is forgotten and counts as busy.
#ifndef REVODRIVE_TIMELINE_H
#define REVODRIVE_TIMELINE_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "revodrive/observer.h"
#include "revodrive/stream.h"

namespace revodrive {

// The latest time that a loaded state may hold: far beyond any run, and far enough below the end of
// int64_t for sums with it.
constexpr int64_t kLatestNs = INT64_MAX / 4;

// [start, end) in nanoseconds of virtual time.
struct Span {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

class Timeline {
 public:
  // Books `duration_ns` (>= 0) at the first idle place at or after `earliest_ns`. A zero duration
  // never waits and books nothing. `label` is what an observer hears of it.
  Span reserve(int64_t earliest_ns, int64_t duration_ns, const char *label = "busy") {
    Span span = book(earliest_ns, duration_ns);
    if (duration_ns > 0)
      track_.mark(label, span.start_ns, span.end_ns);
    return span;
  }
  // The same in pieces: what does not fit into an idle place goes on in the next, so that nothing
  // stays idle between bookings of different length. From the start of the first to the end of the
  // last piece.
  Span reserve_pieces(int64_t earliest_ns, int64_t duration_ns, const char *label = "busy");
  // Each booking from now on is told to `observer` (null: to nobody) under that name.
  void watch(Observer *observer, std::string name) { track_.watch(observer, std::move(name)); }
  // End of the last booking.
  int64_t busy_until_ns() const { return busy_until_ns_; }
  // Sum of all bookings: utilisation over any period is the difference.
  int64_t busy_ns() const { return busy_ns_; }
  // Forgets all bookings (power cycle); keeps busy_ns().
  void clear();

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  // As many as four drives have tags. With fewer, bookings far ahead push out the gap that the next
  // command's first FIS needs.
  static constexpr size_t kMaxGaps = 128;

  Span book(int64_t earliest_ns, int64_t duration_ns);
  bool after_gaps(int64_t at_ns);
  Span book_piece(int64_t earliest_ns, int64_t most_ns);
  Span append(int64_t earliest_ns, int64_t duration_ns);
  Span *first_gap_after(int64_t at_ns);
  Span *search(int64_t at_ns);
  void cut_gap(Span *gap, Span used);
  uint32_t make_room();
  void append_gap(Span gap);
  void insert_gap(Span *place, Span gap);
  void erase_gap(Span *gap);
  Span *first_gap() { return gaps_.data() + first_; }
  Span *end_of_gaps() { return gaps_.data() + end_; }

  // gaps_[first_] to gaps_[end_ - 1], in order of time, before busy_until_ns_. They move through
  // the array as the oldest are forgotten, and back to its beginning when they have come to its
  // end: what lies side by side is quick to search.
  std::array<Span, 2 * kMaxGaps> gaps_{};
  uint32_t first_ = 0;
  uint32_t end_ = 0;
  uint32_t near_ = 0;  // where to look first; any number is right
  int64_t busy_until_ns_ = 0;
  int64_t busy_ns_ = 0;
  Track track_;
};

}  // namespace revodrive
#endif
