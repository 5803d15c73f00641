// SPDX-License-Identifier: GPL-2.0-or-later
//
// Timeline: bookings never overlap, gaps are used, forgetting is safe.
#include <algorithm>
#include <vector>

#include "revodrive/timeline.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

bool operator==(const Span &a, const Span &b) {
  return a.start_ns == b.start_ns && a.end_ns == b.end_ns;
}

}  // namespace

START_TEST(in_order) {
  Timeline line;
  ck_assert((line.reserve(100, 10) == Span{100, 110}));
  ck_assert((line.reserve(105, 10) == Span{110, 120}));
  ck_assert((line.reserve(300, 10) == Span{300, 310}));
  ck_assert_int_eq(line.busy_until_ns(), 310);
  ck_assert_int_eq(line.busy_ns(), 30);
}
END_TEST

START_TEST(nothing_books_nothing) {
  Timeline line;
  line.reserve(0, 100);
  ck_assert((line.reserve(50, 0) == Span{50, 50}));
  ck_assert((line.reserve(50, -1) == Span{50, 50}));
  ck_assert_int_eq(line.busy_ns(), 100);
}
END_TEST

START_TEST(gaps_are_used) {
  Timeline line;
  line.reserve(100, 100);                               // gap [0, 100)
  line.reserve(400, 100);                               // gap [200, 400)
  ck_assert((line.reserve(0, 101) == Span{200, 301}));  // too long for the first
  ck_assert((line.reserve(0, 100) == Span{0, 100}));    // fills it whole
  ck_assert((line.reserve(0, 99) == Span{301, 400}));   // fills the rest of the second
  ck_assert((line.reserve(0, 1) == Span{500, 501}));
  Timeline middle;
  middle.reserve(1000, 1);
  ck_assert((middle.reserve(400, 100) == Span{400, 500}));  // splits a gap
  ck_assert((middle.reserve(0, 400) == Span{0, 400}));
  ck_assert((middle.reserve(0, 500) == Span{500, 1000}));
}
END_TEST

START_TEST(pieces_leave_nothing_idle) {
  Timeline line;
  line.reserve(100, 100);  // gap [0, 100)
  line.reserve(250, 50);   // gap [200, 250)
  ck_assert((line.reserve_pieces(40, 20) == Span{40, 60}));
  ck_assert((line.reserve_pieces(0, 200) == Span{0, 370}));  // 40 + 40 + 50, and 70 at the end
  ck_assert_int_eq(line.busy_ns(), 370);
  ck_assert((line.reserve_pieces(0, 10) == Span{370, 380}));
  ck_assert((line.reserve_pieces(7, 0) == Span{7, 7}));
  ck_assert((line.reserve_pieces(400, 10) == Span{400, 410}));
  ck_assert((line.reserve_pieces(0, 30) == Span{380, 420}));
}
END_TEST

START_TEST(clear_forgets) {
  Timeline line;
  line.reserve(1000, 10);
  line.clear();
  ck_assert((line.reserve(5, 10) == Span{5, 15}));
  ck_assert_int_eq(line.busy_ns(), 20);
}
END_TEST

// Against a plain list of bookings, with so many gaps that some are forgotten: never an overlap,
// never before the wanted time, and with few gaps always the first place there is.
START_TEST(random_bookings) {
  Random random(test::seed());
  for (int round = 0; round < 40; round++) {
    Timeline line;
    std::vector<Span> booked;
    unsigned count = round % 2 ? 100 : 2000;
    bool overlap = false, early = false, late = false;
    int64_t sum_ns = 0;
    for (unsigned i = 0; i < count; i++) {
      auto at_ns = static_cast<int64_t>(random.below(count * 30));
      auto length_ns = static_cast<int64_t>(1 + random.below(20));
      Span got = line.reserve(at_ns, length_ns);
      early |= got.start_ns < at_ns || got.end_ns - got.start_ns != length_ns;
      int64_t first_ns = at_ns;
      for (const Span &it : booked) {
        overlap |= got.start_ns < it.end_ns && it.start_ns < got.end_ns;
        if (first_ns < it.end_ns && it.start_ns < first_ns + length_ns)
          first_ns = it.end_ns;
      }
      late |= got.start_ns != first_ns;
      booked.insert(std::upper_bound(booked.begin(), booked.end(), got,
                                     [](auto &a, auto &b) { return a.start_ns < b.start_ns; }),
                    got);
      sum_ns += length_ns;
    }
    ck_assert(!overlap && !early);
    ck_assert(!late || count > 128);
    ck_assert_int_eq(line.busy_ns(), sum_ns);
  }
}
END_TEST

// The same rules written down plainly: the first gap that fits, 128 gaps remembered, the oldest
// forgotten. Any workload must be booked alike.
class PlainTimeline {
 public:
  Span reserve(int64_t earliest_ns, int64_t duration_ns) {
    for (size_t i = 0; i < gaps_.size(); i++) {
      Span gap = gaps_[i];
      int64_t start_ns = std::max(earliest_ns, gap.start_ns);
      if (gap.end_ns - start_ns < duration_ns)
        continue;
      Span used{start_ns, start_ns + duration_ns};
      gaps_.erase(gaps_.begin() + static_cast<std::ptrdiff_t>(i));
      insert(i, {used.end_ns, gap.end_ns});
      insert(i, {gap.start_ns, used.start_ns});
      return used;
    }
    int64_t start_ns = std::max(earliest_ns, until_ns_);
    insert(gaps_.size(), {until_ns_, start_ns});
    until_ns_ = start_ns + duration_ns;
    return {start_ns, until_ns_};
  }

 private:
  void insert(size_t index, Span gap) {
    if (gap.start_ns >= gap.end_ns)
      return;
    gaps_.insert(gaps_.begin() + static_cast<std::ptrdiff_t>(index), gap);
    if (gaps_.size() > 128)
      gaps_.erase(gaps_.begin());
  }
  std::vector<Span> gaps_;
  int64_t until_ns_ = 0;
};

START_TEST(as_written_down_plainly) {
  Random random(test::seed());
  for (int round = 0; round < 20; round++) {
    Timeline line;
    PlainTimeline plain;
    int64_t now_ns = 0;
    auto ahead = 100 + static_cast<uint64_t>(round) * 1000;
    for (int i = 0; i < 5000; i++) {
      now_ns += static_cast<int64_t>(random.below(30));
      int64_t at_ns = now_ns + static_cast<int64_t>(random.below(ahead));
      auto length_ns = static_cast<int64_t>(1 + random.below(random.one_in(10) ? 500 : 20));
      ck_assert(line.reserve(at_ns, length_ns) == plain.reserve(at_ns, length_ns));
    }
  }
}
END_TEST

START_TEST(save_and_load) {
  Random random(test::seed());
  Timeline line;
  for (int i = 0; i < 300; i++)
    line.reserve(static_cast<int64_t>(random.below(100000)), 7);
  StreamWriter out;
  line.save(out);
  Timeline copy;
  StreamReader in(out.bytes());
  copy.load(in);
  ck_assert(in.ok() && in.at_end());
  for (int i = 0; i < 300; i++) {
    auto at_ns = static_cast<int64_t>(random.below(100000));
    ck_assert(line.reserve(at_ns, 5) == copy.reserve(at_ns, 5));
  }
  for (size_t len = 0; len < out.bytes().size(); len++) {
    StreamReader cut({out.bytes().data(), len});
    copy.load(cut);
    if (cut.ok())
      ck_abort_msg("%zu bytes were enough", len);
  }
}
END_TEST

START_TEST(bad_streams) {
  auto loads = [](int64_t until_ns, int64_t busy_ns, uint8_t gaps, std::vector<Span> spans) {
    StreamWriter out;
    out.put(until_ns);
    out.put(busy_ns);
    out.put(gaps);
    for (const Span &span : spans) {
      out.put(span.start_ns);
      out.put(span.end_ns);
    }
    Timeline line;
    StreamReader in(out.bytes());
    line.load(in);
    bool ok = in.ok();
    line.reserve(INT64_MAX / 8, 1000);  // whatever came in, no sum overflows
    return ok;
  };
  ck_assert(loads(100, 5, 2, {{0, 10}, {20, 30}}));
  ck_assert(!loads(100, 5, 2, {{20, 30}, {0, 10}}));
  ck_assert(!loads(100, 5, 2, {{0, 25}, {20, 30}}));
  ck_assert(!loads(100, 5, 1, {{10, 10}}));
  ck_assert(!loads(100, 5, 1, {{10, 101}}));
  ck_assert(!loads(100, 5, 129, std::vector<Span>(129)));
  ck_assert(!loads(INT64_MAX, 5, 0, {}));
  ck_assert(!loads(-1, 5, 0, {}));
  ck_assert(!loads(100, -5, 0, {}));
}
END_TEST

int main() {
  return test::run_tests("timeline", {in_order, nothing_books_nothing, gaps_are_used,
                                      pieces_leave_nothing_idle, clear_forgets, random_bookings,
                                      as_written_down_plainly, save_and_load, bad_streams});
}
