// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/timeline.h"

#include <algorithm>

namespace revodrive {

Span Timeline::book(int64_t earliest_ns, int64_t duration_ns) {
  if (duration_ns <= 0)
    return {earliest_ns, earliest_ns};
  busy_ns_ += duration_ns;
  for (size_t i = first_gap_after(earliest_ns); i < gap_count_; i++) {
    int64_t start_ns = std::max(earliest_ns, gaps_[i].start_ns);
    if (gaps_[i].end_ns - start_ns < duration_ns)
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

// Gaps of the past stay in the list until it is full; this steps over them.
size_t Timeline::first_gap_after(int64_t at_ns) const {
  auto end = gaps_.begin() + gap_count_;
  auto found = std::upper_bound(gaps_.begin(), end, at_ns,
                                [](int64_t at, const Span &gap) { return at < gap.end_ns; });
  return static_cast<size_t>(found - gaps_.begin());
}

void Timeline::cut_gap(size_t index, Span used) {
  Span gap = gaps_[index];
  Span before{gap.start_ns, used.start_ns};
  Span after{used.end_ns, gap.end_ns};
  bool any_before = before.start_ns < before.end_ns;
  bool any_after = after.start_ns < after.end_ns;
  if (!any_before && !any_after)
    return erase_gap(index);
  gaps_[index] = any_before ? before : after;
  if (any_before && any_after)
    insert_gap(index + 1, after);
}

void Timeline::insert_gap(size_t index, Span gap) {
  if (gap_count_ == kMaxGaps) {
    // The oldest is the one that most likely lies in the past. The new one is never before it.
    erase_gap(0);
    index--;
  }
  std::copy_backward(gaps_.begin() + index, gaps_.begin() + gap_count_,
                     gaps_.begin() + gap_count_ + 1);
  gaps_[index] = gap;
  gap_count_++;
}

void Timeline::erase_gap(size_t index) {
  std::copy(gaps_.begin() + index + 1, gaps_.begin() + gap_count_, gaps_.begin() + index);
  gap_count_--;
}

void Timeline::save(StreamWriter &out) const {
  out.put(busy_until_ns_);
  out.put(busy_ns_);
  out.put(static_cast<uint8_t>(gap_count_));
  for (size_t i = 0; i < gap_count_; i++) {
    out.put(gaps_[i].start_ns);
    out.put(gaps_[i].end_ns);
  }
}

void Timeline::load(StreamReader &in) {
  // Far beyond any run, and far enough below the end of int64_t for sums with it.
  constexpr int64_t kLatestNs = INT64_MAX / 4;
  in.get(busy_until_ns_);
  in.get(busy_ns_);
  gap_count_ = in.get<uint8_t>();
  bool sane = busy_until_ns_ >= 0 && busy_until_ns_ <= kLatestNs && busy_ns_ >= 0 &&
              busy_ns_ <= kLatestNs && gap_count_ <= kMaxGaps;
  if (!sane)
    in.fail();
  int64_t previous_ns = -kLatestNs;
  for (size_t i = 0; in.ok() && i < gap_count_; i++) {
    in.get(gaps_[i].start_ns);
    in.get(gaps_[i].end_ns);
    if (gaps_[i].start_ns < previous_ns || gaps_[i].end_ns <= gaps_[i].start_ns ||
        gaps_[i].end_ns > busy_until_ns_)
      in.fail();
    previous_ns = gaps_[i].end_ns;
  }
  if (!in.ok())
    clear();
}

}  // namespace revodrive
