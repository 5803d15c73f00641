// SPDX-License-Identifier: GPL-2.0-or-later
//
// Histogram: against the sorted values themselves.
#include <algorithm>
#include <numeric>
#include <vector>

#include "random.h"
#include "revodrive/histogram.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint32_t kMillionths[] = {0,       1,       10'000,  500'000,  900'000,
                                    990'000, 999'000, 999'990, 1'000'000};

// The smallest value that so many of the sorted ones do not exceed.
uint64_t exact(const std::vector<uint64_t> &sorted, uint32_t millionths) {
  uint64_t rank = (sorted.size() * uint64_t{millionths} + 999'999) / 1'000'000;
  return sorted[std::max<uint64_t>(rank, 1) - 1];
}

// All sizes alike: as many values in each octave.
uint64_t any_size(Random &random) {
  return random.next() >> (64 - 46 + random.below(46));
}

std::vector<uint8_t> bytes_of(const Histogram &histogram) {
  StreamWriter out;
  histogram.save(out);
  return out.bytes();
}

bool loads(const std::vector<uint8_t> &bytes) {
  Histogram histogram;
  StreamReader in(bytes);
  histogram.load(in);
  ck_assert(in.ok() || histogram.count() == 0);
  return in.ok() && in.at_end();
}

START_TEST(empty) {
  Histogram histogram;
  ck_assert_uint_eq(histogram.count() + histogram.sum() + histogram.min() + histogram.max(), 0);
  ck_assert_uint_eq(histogram.percentile(500'000), 0);
  ck_assert(loads(bytes_of(histogram)));
}
END_TEST

START_TEST(one_value_is_exact) {
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{64}, uint64_t{1'000'003},
                         (uint64_t{1} << 47) - 1, uint64_t{1} << 47, uint64_t{1} << 62}) {
    Histogram histogram;
    histogram.add(static_cast<int64_t>(value));
    for (uint32_t millionths : kMillionths)
      ck_assert_uint_eq(histogram.percentile(millionths), value);
    ck_assert_uint_eq(histogram.min(), value);
    ck_assert_uint_eq(histogram.max(), value);
  }
}
END_TEST

START_TEST(percentiles_are_within_a_64th) {
  Random random(test::seed());
  for (size_t count : {2u, 3u, 10u, 1000u, 100'000u}) {
    for (bool spread : {true, false}) {
      Histogram histogram;
      std::vector<uint64_t> values;
      for (size_t i = 0; i < count; i++) {
        values.push_back(spread ? any_size(random) : 90'000 + random.below(50'000));
        histogram.add(static_cast<int64_t>(values.back()));
      }
      std::sort(values.begin(), values.end());
      for (uint32_t millionths : kMillionths) {
        uint64_t want = exact(values, millionths);
        uint64_t got = histogram.percentile(millionths);
        ck_assert_msg(got >= want && got - want <= want / 64, "%zu values, %u: %lu for %lu", count,
                      millionths, got, want);
      }
      ck_assert_uint_eq(histogram.count(), count);
      ck_assert_uint_eq(histogram.sum(),
                        std::accumulate(values.begin(), values.end(), uint64_t{0}));
      ck_assert_uint_eq(histogram.min(), values.front());
      ck_assert_uint_eq(histogram.max(), values.back());
    }
  }
}
END_TEST

START_TEST(merged_is_as_if_added) {
  Random random(test::seed());
  Histogram one, other, both;
  for (int i = 0; i < 5000; i++) {
    auto value = static_cast<int64_t>(any_size(random));
    (i % 3 ? one : other).add(value);
    both.add(value);
  }
  one.merge(other);
  ck_assert(bytes_of(one) == bytes_of(both));
  one.merge(Histogram());
  ck_assert(bytes_of(one) == bytes_of(both));
  one.clear();
  ck_assert_uint_eq(one.count(), 0);
}
END_TEST

START_TEST(negative_counts_as_nothing) {
  Histogram histogram;
  histogram.add(-5);
  ck_assert_uint_eq(histogram.count(), 1);
  ck_assert_uint_eq(histogram.max() + histogram.sum(), 0);
}
END_TEST

START_TEST(save_and_load) {
  Random random(test::seed());
  Histogram histogram;
  for (int i = 0; i < 3000; i++)
    histogram.add(static_cast<int64_t>(any_size(random)));
  std::vector<uint8_t> bytes = bytes_of(histogram);
  Histogram copy;
  copy.add(77);
  StreamReader in(bytes);
  copy.load(in);
  ck_assert(in.ok() && in.at_end());
  ck_assert(bytes_of(copy) == bytes);
  for (size_t len = 0; len < bytes.size(); len += 7)
    ck_assert(!loads({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(len)}));
}
END_TEST

START_TEST(bad_streams) {
  auto stream = [](uint64_t min, uint64_t max, std::vector<std::pair<uint16_t, uint64_t>> used) {
    StreamWriter out;
    out.put(uint64_t{0});
    out.put(min);
    out.put(max);
    out.put(static_cast<uint16_t>(used.size()));
    for (auto [bucket, times] : used) {
      out.put(bucket);
      out.put(times);
    }
    return out.bytes();
  };
  ck_assert(loads(stream(1, 9, {{1, 1}, {9, 2}})));
  ck_assert(!loads(stream(9, 1, {{1, 1}, {9, 2}})));
  ck_assert(!loads(stream(1, 9, {{9, 1}, {1, 2}})));
  ck_assert(!loads(stream(1, 9, {{1, 1}, {1, 2}})));
  ck_assert(!loads(stream(1, 9, {{1, 0}})));
  ck_assert(!loads(stream(1, 9, {{60000, 1}})));
  ck_assert(!loads(stream(1, 9, {{1, UINT64_MAX}, {9, 2}})));
  ck_assert(!loads(stream(1, 9, {})));
}
END_TEST

}  // namespace

int main() {
  return test::run_tests(
      "histogram", {empty, one_value_is_exact, percentiles_are_within_a_64th, merged_is_as_if_added,
                    negative_counts_as_nothing, save_and_load, bad_streams});
}
