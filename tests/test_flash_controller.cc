// SPDX-License-Identifier: GPL-2.0-or-later
//
// The controller and its flash as time: pages over channels and dies, the write buffer, flush,
// state.
#include "drive_bench.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

Journey journey;

constexpr uint32_t kPageSectors = 16;
constexpr int64_t kSenseNs = 75'000;
constexpr int64_t kMoveNs = 52'049;  // 8640 bytes at 166 MB/s, rounded up
constexpr int64_t kProgramNs = 650'000;

}  // namespace

START_TEST(without_timing) {
  FlashController flash(test_flash(), false);
  ck_assert_int_eq(flash.command(5, journey), 5);
  ck_assert_int_eq(flash.read(5, 0, 100, journey).end_ns, 5);
  for (int i = 0; i < 100; i++)
    ck_assert_int_eq(flash.write(5, 0, 1000, {}, journey), 5);
  ck_assert_int_eq(flash.flush(5, journey), 5);
  ck_assert_int_eq(flash.trim(5, 0, 1, journey), 5);
}
END_TEST

START_TEST(commands_queue_at_the_core) {
  FlashController flash(test_flash(), true);
  ck_assert_int_eq(flash.command(100, journey), 2100);
  ck_assert_int_eq(flash.command(100, journey), 4100);
  ck_assert_int_eq(flash.trim(4100, 0, 8, journey), 5100);
}
END_TEST

START_TEST(one_page) {
  for (uint32_t sectors : {1u, 8u, 16u}) {
    FlashController flash(test_flash(), true);
    Span ready = flash.read(1000, 32, sectors, journey);
    ck_assert_int_eq(ready.start_ns, 1000 + kSenseNs + kMoveNs);
    ck_assert_int_eq(ready.end_ns, ready.start_ns);
  }
}
END_TEST

START_TEST(page_borders) {
  FlashController flash(test_flash(), true);
  Span ready = flash.read(0, 15, 2, journey);  // two pages on two channels: at the same time
  ck_assert_int_eq(ready.start_ns, kSenseNs + kMoveNs);
  ck_assert_int_eq(ready.end_ns, kSenseNs + kMoveNs);
  FlashController same(test_flash(), true);
  same.read(0, 0, kPageSectors, journey);
  // Page 8 is on the same channel and another die; page 16 on the same die, where the channel is
  // what it waits for longest.
  ck_assert_int_eq(same.read(0, 8 * kPageSectors, 1, journey).end_ns, kSenseNs + 2 * kMoveNs);
  ck_assert_int_eq(same.read(0, 16 * kPageSectors, 1, journey).end_ns, kSenseNs + 3 * kMoveNs);
  FlashController twice(test_flash(), true);
  twice.read(0, 0, 1, journey);
  ck_assert_int_eq(twice.read(0, 0, 1, journey).end_ns, 2 * kSenseNs + kMoveNs);
}
END_TEST

START_TEST(last_sector_of_a_huge_drive) {
  FlashController flash(test_flash(), true);
  uint64_t sectors = uint64_t{1} << 40;
  ck_assert_int_eq(flash.read(0, sectors - 1, 1, journey).end_ns, kSenseNs + kMoveNs);
}
END_TEST

START_TEST(buffer_takes_then_waits) {
  FlashController flash(test_flash(), true);
  for (unsigned page = 0; page < 32; page++)
    ck_assert_int_eq(flash.write(0, page * kPageSectors, kPageSectors, {}, journey), 0);
  // The page 32 places ago has to be in flash first.
  ck_assert_int_eq(flash.write(0, 0, kPageSectors, {}, journey), kMoveNs + kProgramNs);
}
END_TEST

START_TEST(small_writes_share_a_page) {
  FlashController flash(test_flash(), true);
  for (int i = 0; i < 15; i++)
    flash.write(0, 0, 1, {}, journey);
  FlashController whole(test_flash(), true);
  whole.write(0, 0, kPageSectors, {}, journey);
  flash.write(0, 0, 1, {}, journey);
  ck_assert_int_eq(flash.flush(0, journey), whole.flush(0, journey));
  ck_assert_int_eq(flash.flush(0, journey), kMoveNs + kProgramNs);
  // A part of a page is programmed by the flush, once.
  flash.write(0, 0, 3, {}, journey);
  int64_t partial_ns = flash.flush(1'000'000, journey);
  ck_assert_int_eq(partial_ns, 1'000'000 + kMoveNs + kProgramNs);
  ck_assert_int_eq(flash.flush(5'000'000, journey), 5'000'000);
}
END_TEST

START_TEST(power_cycle_frees_everything) {
  FlashController flash(test_flash(), true);
  for (int i = 0; i < 200; i++)
    flash.write(0, 0, kPageSectors, {}, journey);
  flash.write(0, 0, 1, {}, journey);
  flash.power_cycle();
  ck_assert_int_eq(flash.write(10, 0, kPageSectors, {}, journey), 10);
  flash.power_cycle();
  ck_assert_int_eq(flash.flush(20, journey), 20);
}
END_TEST

START_TEST(times_never_go_back) {
  Random random(test::seed());
  FlashController flash(test_flash(), true);
  int64_t now_ns = 0;
  for (int i = 0; i < 20000; i++) {
    now_ns += static_cast<int64_t>(random.below(100'000));
    uint64_t lba = random.below(1 << 24);
    auto sectors = static_cast<uint32_t>(1 + random.below(256));
    Span ready = flash.read(now_ns, lba, sectors, journey);
    int64_t accepted_ns = flash.write(now_ns, lba, sectors, {}, journey);
    if (ready.start_ns < now_ns + kSenseNs || ready.end_ns < ready.start_ns || accepted_ns < now_ns)
      ck_abort_msg("step %d", i);
    if (random.one_in(100) && flash.flush(now_ns, journey) < accepted_ns)
      ck_abort_msg("flush before accept, step %d", i);
  }
}
END_TEST

START_TEST(save_and_load) {
  Random random(test::seed());
  FlashController flash(test_flash(), true), copy(test_flash(), true);
  for (int i = 0; i < 500; i++) {
    flash.read(i * 1000, random.below(1 << 24), 16, journey);
    flash.write(i * 1000, 0, static_cast<uint32_t>(random.below(40)), {}, journey);
  }
  StreamWriter out;
  flash.save(out);
  StreamReader in(out.bytes());
  copy.load(in);
  ck_assert(in.ok() && in.at_end());
  for (int i = 500; i < 600; i++) {
    ck_assert_int_eq(flash.read(i * 1000, i * 64, 64, journey).end_ns,
                     copy.read(i * 1000, i * 64, 64, journey).end_ns);
    ck_assert_int_eq(flash.write(i * 1000, 0, 21, {}, journey),
                     copy.write(i * 1000, 0, 21, {}, journey));
    ck_assert_int_eq(flash.flush(i * 1000, journey), copy.flush(i * 1000, journey));
  }
  FlashProfile other = test_flash();
  other.channels = 4;
  other.dies_per_channel = 4;
  FlashController different(other, true);
  StreamReader again(out.bytes());
  different.load(again);
  ck_assert(!again.ok());
}
END_TEST

int main() {
  return test::run_tests(
      "flash_controller",
      {without_timing, commands_queue_at_the_core, one_page, page_borders,
       last_sector_of_a_huge_drive, buffer_takes_then_waits, small_writes_share_a_page,
       power_cycle_frees_everything, times_never_go_back, save_and_load});
}
