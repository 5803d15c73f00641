// SPDX-License-Identifier: GPL-2.0-or-later
//
// The byte stream of save and load: what goes in comes out, and a short or wrong stream yields
// zeros and a failure that stays.
#include <array>

#include "revodrive/stream.h"
#include "runner.h"

#undef fail  // a macro of check.h, and a method here

using namespace revodrive;

namespace {

enum class Colour : uint8_t { kRed = 3, kBlue = 200 };

StreamWriter sample() {
  StreamWriter out;
  out.section("TEST");
  out.put(uint8_t{0xAB});
  out.put(uint16_t{0x1234});
  out.put(uint32_t{0xDEADBEEF});
  out.put(uint64_t{0x0123456789ABCDEF});
  out.put(int64_t{-5});
  out.put(int32_t{-28});
  out.put(true);
  out.put(Colour::kBlue);
  out.put_bytes(std::array<uint8_t, 3>{7, 8, 9});
  return out;
}

}  // namespace

START_TEST(round_trip) {
  StreamWriter out = sample();
  StreamReader in(out.bytes());
  in.section("TEST");
  ck_assert_uint_eq(in.get<uint8_t>(), 0xAB);
  ck_assert_uint_eq(in.get<uint16_t>(), 0x1234);
  ck_assert_uint_eq(in.get<uint32_t>(), 0xDEADBEEF);
  ck_assert_uint_eq(in.get<uint64_t>(), 0x0123456789ABCDEF);
  ck_assert_int_eq(in.get<int64_t>(), -5);
  ck_assert_int_eq(in.get<int32_t>(), -28);
  ck_assert(in.get<bool>());
  ck_assert(in.get<Colour>() == Colour::kBlue);
  std::array<uint8_t, 3> bytes{};
  in.get_bytes(bytes);
  ck_assert((bytes == std::array<uint8_t, 3>{7, 8, 9}));
  ck_assert(in.ok() && in.at_end());
}
END_TEST

START_TEST(layout) {
  StreamWriter out = sample();
  const std::vector<uint8_t> &bytes = out.bytes();
  ck_assert_mem_eq(bytes.data(), "TEST", 4);
  ck_assert_uint_eq(bytes[4], 0xAB);
  ck_assert_uint_eq(bytes[5], 0x34);
  ck_assert_uint_eq(bytes[6], 0x12);
  ck_assert_uint_eq(bytes[7], 0xEF);
  ck_assert_uint_eq(bytes.size(), 4 + 1 + 2 + 4 + 8 + 8 + 4 + 1 + 1 + 3);
}
END_TEST

START_TEST(end_of_stream) {
  const std::array<uint8_t, 3> bytes{1, 2, 3};
  StreamReader in(bytes);
  ck_assert_uint_eq(in.get<uint32_t>(), 0);
  ck_assert(!in.ok());
  ck_assert_uint_eq(in.get<uint8_t>(), 0);  // a failure stays
  std::array<uint8_t, 2> untouched{5, 5};
  in.get_bytes(untouched);
  ck_assert_uint_eq(untouched[0], 5);
  StreamReader empty({});
  ck_assert(empty.ok() && empty.at_end());
  empty.get_bytes({});
  ck_assert(empty.ok());
  empty.get<bool>();
  ck_assert(!empty.ok());
}
END_TEST

START_TEST(wrong_section) {
  StreamWriter out = sample();
  StreamReader in(out.bytes());
  in.section("OTHR");
  ck_assert(!in.ok());
  ck_assert_uint_eq(in.get<uint8_t>(), 0);
}
END_TEST

START_TEST(failing_by_hand) {
  StreamWriter out = sample();
  StreamReader in(out.bytes());
  in.fail();
  ck_assert(!in.ok());
  uint16_t value = 9;
  in.get(value);
  ck_assert_uint_eq(value, 0);
}
END_TEST

int main() {
  return test::run_tests("stream",
                         {round_trip, layout, end_of_stream, wrong_section, failing_by_hand});
}
