// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/lane.h"

#include <algorithm>

namespace revodrive {

Span Lane::reserve(int64_t earliest_ns, int64_t duration_ns, const char *label) {
  if (duration_ns <= 0)
    return {earliest_ns, earliest_ns};
  busy_ns_ += duration_ns;
  // Most bookings go to the end; the few gaps after `earliest_ns` are the last ones.
  uint32_t from = count_;
  while (from > 0 && gap(from - 1).end_ns > earliest_ns)
    from--;
  for (uint32_t i = from; i < count_; i++) {
    int64_t start_ns = std::max(earliest_ns, gap(i).start_ns);
    if (gap(i).end_ns - start_ns < duration_ns)
      continue;
    Span used{start_ns, start_ns + duration_ns};
    use(i, used);
    track_.mark(label, used.start_ns, used.end_ns);
    return used;
  }
  int64_t start_ns = std::max(earliest_ns, busy_until_ns_);
  if (start_ns > busy_until_ns_)
    append({busy_until_ns_, start_ns});
  busy_until_ns_ = start_ns + duration_ns;
  track_.mark(label, start_ns, busy_until_ns_);
  return {start_ns, busy_until_ns_};
}

void Lane::clear() {
  first_ = count_ = 0;
  busy_until_ns_ = 0;
}

void Lane::append(Span span) {
  if (count_ == kGaps) {
    first_++;
    count_--;
  }
  gap(count_++) = span;
}

void Lane::insert(uint32_t index, Span span) {
  if (count_ == kGaps) {
    first_++;
    count_--;
    index--;
  }
  for (uint32_t i = count_; i > index; i--)
    gap(i) = gap(i - 1);
  gap(index) = span;
  count_++;
}

void Lane::remove(uint32_t index) {
  for (uint32_t i = index; i + 1 < count_; i++)
    gap(i) = gap(i + 1);
  count_--;
}

void Lane::use(uint32_t index, Span used) {
  Span whole = gap(index);
  Span before{whole.start_ns, used.start_ns};
  Span after{used.end_ns, whole.end_ns};
  bool any_before = before.start_ns < before.end_ns;
  bool any_after = after.start_ns < after.end_ns;
  if (!any_before && !any_after)
    return remove(index);
  gap(index) = any_before ? before : after;
  if (any_before && any_after)
    insert(index + 1, after);
}

void Lane::save(StreamWriter &out) const {
  out.put(busy_until_ns_);
  out.put(busy_ns_);
  out.put(static_cast<uint8_t>(count_));
  for (uint32_t i = 0; i < count_; i++) {
    out.put(gap(i).start_ns);
    out.put(gap(i).end_ns);
  }
}

void Lane::load(StreamReader &in) {
  clear();
  in.get(busy_until_ns_);
  in.get(busy_ns_);
  uint32_t count = in.get<uint8_t>();
  if (busy_until_ns_ < 0 || busy_until_ns_ > kLatestFlashNs || busy_ns_ < 0 ||
      busy_ns_ > kLatestFlashNs || count > kGaps)
    in.fail();
  int64_t previous_ns = -kLatestFlashNs;
  for (uint32_t i = 0; in.ok() && i < count; i++) {
    Span span;
    in.get(span.start_ns);
    in.get(span.end_ns);
    if (span.start_ns < previous_ns || span.end_ns <= span.start_ns || span.end_ns > busy_until_ns_)
      in.fail();
    previous_ns = span.end_ns;
    append(span);
  }
  if (!in.ok())
    clear();
}

}  // namespace revodrive
