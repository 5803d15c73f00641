// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/timeline.h"

#include <algorithm>

namespace revodrive {

Span Timeline::book(int64_t earliest_ns, int64_t duration_ns) {
  if (duration_ns <= 0)
    return {earliest_ns, earliest_ns};
  busy_ns_ += duration_ns;
  if (after_gaps(earliest_ns))
    return append(earliest_ns, duration_ns);
  for (Span *gap = first_gap_after(earliest_ns); gap != end_of_gaps(); gap++) {
    int64_t start_ns = std::max(earliest_ns, gap->start_ns);
    if (gap->end_ns - start_ns < duration_ns)
      continue;
    Span used{start_ns, start_ns + duration_ns};
    cut_gap(gap, used);
    return used;
  }
  return append(earliest_ns, duration_ns);
}

// Most bookings are at the end.
bool Timeline::after_gaps(int64_t at_ns) {
  return at_ns >= busy_until_ns_ || first_ == end_ || end_of_gaps()[-1].end_ns <= at_ns;
}

// The first idle place, as far as it goes.
Span Timeline::book_piece(int64_t earliest_ns, int64_t most_ns) {
  if (after_gaps(earliest_ns)) {
    busy_ns_ += most_ns;
    return append(earliest_ns, most_ns);
  }
  Span *gap = first_gap_after(earliest_ns);
  int64_t start_ns = std::max(earliest_ns, gap->start_ns);
  Span used{start_ns, std::min(start_ns + most_ns, gap->end_ns)};
  busy_ns_ += used.end_ns - used.start_ns;
  cut_gap(gap, used);
  return used;
}

Span Timeline::append(int64_t earliest_ns, int64_t duration_ns) {
  int64_t start_ns = std::max(earliest_ns, busy_until_ns_);
  if (start_ns > busy_until_ns_)
    append_gap({busy_until_ns_, start_ns});
  busy_until_ns_ = start_ns + duration_ns;
  return {start_ns, busy_until_ns_};
}

Span Timeline::reserve_pieces(int64_t earliest_ns, int64_t duration_ns, const char *label) {
  Span whole{earliest_ns, earliest_ns};
  for (int64_t left_ns = duration_ns; left_ns > 0;) {
    Span piece = book_piece(whole.end_ns, left_ns);
    track_.mark(label, piece.start_ns, piece.end_ns);
    if (left_ns == duration_ns)
      whole.start_ns = piece.start_ns;
    whole.end_ns = piece.end_ns;
    left_ns -= piece.end_ns - piece.start_ns;
  }
  return whole;
}

void Timeline::clear() {
  first_ = end_ = 0;
  busy_until_ns_ = 0;
}

// The first gap that ends after at_ns; there is one. Mostly the one of the last time or one of the
// next few.
Span *Timeline::first_gap_after(int64_t at_ns) {
  constexpr uint32_t kSteps = 3;
  uint32_t near = std::clamp(near_, first_, end_ - 1);
  uint32_t last = std::min(near + kSteps, end_ - 1);
  bool none_before = near == first_ || gaps_[near - 1].end_ns <= at_ns;
  while (none_before && near < last && gaps_[near].end_ns <= at_ns)
    near++;
  if (!none_before || gaps_[near].end_ns <= at_ns)
    near = static_cast<uint32_t>(search(at_ns) - gaps_.data());
  near_ = near;
  return &gaps_[near];
}

// The same from any place. Gaps of the past stay in the list until it is full, so this looks near
// the end first, then by halves, without a branch that the processor would have to guess.
Span *Timeline::search(int64_t at_ns) {
  constexpr size_t kNear = 4;
  size_t count = end_ - first_;
  size_t reach = kNear;
  while (reach < count && end_of_gaps()[-static_cast<ptrdiff_t>(reach)].end_ns > at_ns)
    reach *= kNear;
  count = std::min(reach, count);
  Span *low = end_of_gaps() - count;
  while (count > 1) {
    size_t half = count / 2;
    size_t past = low[half - 1].end_ns <= at_ns;
    low += half & (0 - past);
    count -= half;
  }
  return low;
}

void Timeline::cut_gap(Span *gap, Span used) {
  Span after{used.end_ns, gap->end_ns};
  bool any_before = gap->start_ns < used.start_ns;
  bool any_after = after.start_ns < after.end_ns;
  if (!any_before && !any_after)
    return erase_gap(gap);
  if (!any_before) {
    *gap = after;
    return;
  }
  gap->end_ns = used.start_ns;
  if (any_after)
    insert_gap(gap + 1, after);
}

// Room for one more; the gaps are moved by what it returns.
uint32_t Timeline::make_room() {
  if (end_ - first_ == kMaxGaps)
    first_++;  // The oldest most likely lies in the past. The new one is never before it.
  if (end_ < gaps_.size())
    return 0;
  uint32_t moved = first_;
  std::copy(first_gap(), end_of_gaps(), gaps_.data());
  end_ -= moved;
  first_ = 0;
  return moved;
}

void Timeline::append_gap(Span gap) {
  make_room();
  gaps_[end_++] = gap;
}

// Moves whichever side of the place is shorter; mostly a few, for which a call takes longer.
void Timeline::insert_gap(Span *place, Span gap) {
  place -= make_room();
  if (first_ > 0 && place - first_gap() < end_of_gaps() - place) {
    std::copy(first_gap(), place, first_gap() - 1);
    first_--;
    place[-1] = gap;
    return;
  }
  for (Span *to = end_of_gaps(); to > place; to--)
    *to = to[-1];
  end_++;
  *place = gap;
}

void Timeline::erase_gap(Span *gap) {
  if (gap - first_gap() < end_of_gaps() - gap) {
    std::copy_backward(first_gap(), gap, gap + 1);
    first_++;
  } else {
    std::copy(gap + 1, end_of_gaps(), gap);
    end_--;
  }
}

void Timeline::save(StreamWriter &out) const {
  out.put(busy_until_ns_);
  out.put(busy_ns_);
  out.put(static_cast<uint8_t>(end_ - first_));
  for (uint32_t i = first_; i < end_; i++) {
    out.put(gaps_[i].start_ns);
    out.put(gaps_[i].end_ns);
  }
}

void Timeline::load(StreamReader &in) {
  in.get(busy_until_ns_);
  in.get(busy_ns_);
  first_ = 0;
  end_ = in.get<uint8_t>();
  bool sane = busy_until_ns_ >= 0 && busy_until_ns_ <= kLatestNs && busy_ns_ >= 0 &&
              busy_ns_ <= kLatestNs && end_ <= kMaxGaps;
  if (!sane)
    in.fail();
  int64_t previous_ns = -kLatestNs;
  for (uint32_t i = 0; in.ok() && i < end_; i++) {
    Span &span = gaps_[i];
    in.get(span.start_ns);
    in.get(span.end_ns);
    if (span.start_ns < previous_ns || span.end_ns <= span.start_ns || span.end_ns > busy_until_ns_)
      in.fail();
    previous_ns = span.end_ns;
  }
  if (!in.ok())
    clear();
}

}  // namespace revodrive
