// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/timeline.h"

#include <algorithm>

namespace revodrive {

Span Timeline::book(int64_t earliest_ns, int64_t duration_ns) {
  if (duration_ns <= 0)
    return {earliest_ns, earliest_ns};
  busy_ns_ += duration_ns;
  for (size_t i = first_gap_after(earliest_ns); i < gap_count_; i++) {
    int64_t start_ns = std::max(earliest_ns, gap(i).start_ns);
    if (gap(i).end_ns - start_ns < duration_ns)
      continue;
    Span used{start_ns, start_ns + duration_ns};
    cut_gap(i, used);
    return used;
  }
  int64_t start_ns = std::max(earliest_ns, busy_until_ns_);
  if (start_ns > busy_until_ns_)
    insert_gap(gap_count_, {busy_until_ns_, start_ns});
  busy_until_ns_ = start_ns + duration_ns;
  return {start_ns, busy_until_ns_};
}

void Timeline::clear() {
  gap_count_ = 0;
  busy_until_ns_ = 0;
}

// Gaps of the past stay in the list until it is full; this steps over them. Most bookings are near
// the end, so the search begins there, with steps that double.
size_t Timeline::first_gap_after(int64_t at_ns) const {
  size_t high = gap_count_;  // ends after at_ns, or is the end
  size_t step = 1;
  while (step <= high && gap(high - step).end_ns > at_ns) {
    high -= step;
    step *= 2;
  }
  size_t low = step <= high ? high - step + 1 : 0;  // all before it end at or before at_ns
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (gap(middle).end_ns > at_ns)
      high = middle;
    else
      low = middle + 1;
  }
  return high;
}

void Timeline::cut_gap(size_t index, Span used) {
  Span whole = gap(index);
  Span before{whole.start_ns, used.start_ns};
  Span after{used.end_ns, whole.end_ns};
  bool any_before = before.start_ns < before.end_ns;
  bool any_after = after.start_ns < after.end_ns;
  if (!any_before && !any_after)
    return erase_gap(index);
  gap(index) = any_before ? before : after;
  if (any_before && any_after)
    insert_gap(index + 1, after);
}

void Timeline::insert_gap(size_t index, Span span) {
  if (gap_count_ == kMaxGaps) {
    // The oldest is the one that most likely lies in the past. The new one is never before it.
    erase_gap(0);
    index--;
  }
  gap_count_++;
  if (index < gap_count_ / 2) {
    first_gap_ = (first_gap_ + kMaxGaps - 1) % kMaxGaps;
    for (size_t i = 0; i < index; i++)
      gap(i) = gap(i + 1);
  } else {
    for (size_t i = gap_count_ - 1; i > index; i--)
      gap(i) = gap(i - 1);
  }
  gap(index) = span;
}

void Timeline::erase_gap(size_t index) {
  gap_count_--;
  if (index < gap_count_ / 2 || index == 0) {
    for (size_t i = index; i > 0; i--)
      gap(i) = gap(i - 1);
    first_gap_ = (first_gap_ + 1) % kMaxGaps;
  } else {
    for (size_t i = index; i < gap_count_; i++)
      gap(i) = gap(i + 1);
  }
}

void Timeline::save(StreamWriter &out) const {
  out.put(busy_until_ns_);
  out.put(busy_ns_);
  out.put(static_cast<uint8_t>(gap_count_));
  for (size_t i = 0; i < gap_count_; i++) {
    out.put(gap(i).start_ns);
    out.put(gap(i).end_ns);
  }
}

void Timeline::load(StreamReader &in) {
  in.get(busy_until_ns_);
  in.get(busy_ns_);
  first_gap_ = 0;
  gap_count_ = in.get<uint8_t>();
  bool sane = busy_until_ns_ >= 0 && busy_until_ns_ <= kLatestNs && busy_ns_ >= 0 &&
              busy_ns_ <= kLatestNs && gap_count_ <= kMaxGaps;
  if (!sane)
    in.fail();
  int64_t previous_ns = -kLatestNs;
  for (size_t i = 0; in.ok() && i < gap_count_; i++) {
    Span &span = gap(i);
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
