// SPDX-License-Identifier: GPL-2.0-or-later
//
// Power modes with their timers and their cost, soft reset, diagnostics, READ VERIFY.
#include "drive_bench.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr uint8_t kStandbyNow = 0xE0, kIdleNow = 0xE1, kStandby = 0xE2, kIdle = 0xE3, kCheck = 0xE5,
                  kSleep = 0xE6;
constexpr uint16_t kModeStandby = 0x00, kModeIdle = 0x80, kModeActive = 0xFF;

uint16_t mode(DriveBench &bench) {
  FakeCommand &done = bench.run({.opcode = kCheck});
  ck_assert(done.good());
  return done.ata.d2h[12];
}

int64_t read_ns(DriveBench &bench) {
  int64_t start_ns = bench.initiator.now_ns;
  ck_assert(bench.run({.opcode = 0x25, .count = 8}, 4096).good());
  return bench.initiator.now_ns - start_ns;
}

Fis control_fis(uint8_t control) {
  Fis fis{0x27, 0x00};
  fis[15] = control;
  return fis;
}

}  // namespace

START_TEST(modes) {
  DriveBench bench;
  ck_assert_uint_eq(mode(bench), kModeActive);
  for (auto [opcode, expected] : {std::pair{kIdleNow, kModeIdle},
                                  {kStandbyNow, kModeStandby},
                                  {kIdle, kModeIdle},
                                  {kStandby, kModeStandby}}) {
    ck_assert(bench.run({.opcode = opcode}).good());
    ck_assert_uint_eq(mode(bench), expected);
    read_ns(bench);
    ck_assert_uint_eq(mode(bench), kModeActive);
  }
}
END_TEST

// Of what a drive does by itself: in standby and asleep nothing.
START_TEST(idle_collection_sleeps_too) {
  constexpr int64_t kHour = 3600 * kSecond;
  FlashProfile flash = test_flash();
  flash.idle_gc_ms = 1000;
  flash.idle_gc_free_permille = 100;
  for (auto [opcode, expected] :
       {std::pair{kIdleNow, true}, {kStandbyNow, false}, {kSleep, false}}) {
    DriveBench bench(1 << 20, true, {}, {.preset = FlashPreset::kSteady}, flash);
    auto collected = [&] {
      bench.drive->idle(bench.initiator.now_ns += kHour);
      return bench.counter("idle_gc_units") > 0;
    };
    ck_assert(bench.run({.opcode = opcode}).good());
    ck_assert(collected() == expected);
    mode(bench);  // which wakes neither
    ck_assert(collected() == expected);
    bench.run({.opcode = 0x25, .count = 8}, 4096);
    ck_assert(collected());
  }
}
END_TEST

START_TEST(waking_takes_time) {
  DriveBench bench;
  read_ns(bench);
  int64_t awake_ns = read_ns(bench);
  ck_assert(bench.run({.opcode = kIdleNow}).good());
  int64_t idle_ns = read_ns(bench);
  ck_assert(bench.run({.opcode = kStandbyNow}).good());
  int64_t standby_ns = read_ns(bench);
  ck_assert_int_ge(idle_ns, awake_ns + 100'000);
  ck_assert_int_ge(standby_ns, awake_ns + 10'000'000);
  ck_assert_int_lt(read_ns(bench), awake_ns + 100'000);
}
END_TEST

// ATA8-ACS, standby timer periods.
START_TEST(standby_timer) {
  struct Case {
    uint16_t count;
    int64_t seconds;
  };
  for (Case it : {Case{1, 5},
                  {12, 60},
                  {240, 1200},
                  {241, 1800},
                  {251, 11 * 1800},
                  {252, 21 * 60},
                  {253, 8 * 3600},
                  {255, 21 * 60 + 15}}) {
    DriveBench bench;
    ck_assert(bench.run({.opcode = kIdle, .count = it.count}).good());
    read_ns(bench);
    int64_t from_ns = bench.initiator.now_ns;
    bench.initiator.now_ns = from_ns + it.seconds * kSecond - kSecond;
    ck_assert_uint_eq(mode(bench), kModeActive);  // looking is no activity
    bench.initiator.now_ns = from_ns + it.seconds * kSecond + kSecond;
    ck_assert_uint_eq(mode(bench), kModeStandby);
    read_ns(bench);
    ck_assert_uint_eq(mode(bench), kModeActive);
  }
}
END_TEST

START_TEST(standby_timer_off) {
  DriveBench bench;
  ck_assert(bench.run({.opcode = kIdle, .count = 1}).good());
  ck_assert(bench.run({.opcode = kIdle, .count = 0}).good());
  read_ns(bench);
  bench.initiator.now_ns += 100'000 * kSecond;
  ck_assert_uint_eq(mode(bench), kModeActive);
  ck_assert(bench.run({.opcode = kStandby, .count = 1}).good());
  bench.drive->reset(LinkReset::kPowerOn);
  read_ns(bench);
  bench.initiator.now_ns += 100'000 * kSecond;
  ck_assert_uint_eq(mode(bench), kModeActive);
}
END_TEST

START_TEST(advanced_power_management) {
  struct Case {
    uint16_t level;
    uint16_t after_2s, after_400s;
  };
  for (Case it : {Case{254, kModeActive, kModeActive},
                  {200, kModeIdle, kModeIdle},
                  {128, kModeIdle, kModeIdle},
                  {127, kModeIdle, kModeStandby},
                  {1, kModeIdle, kModeStandby}}) {
    DriveBench bench;
    ck_assert(bench.run({.opcode = 0xEF, .count = it.level, .features = 0x05}).good());
    read_ns(bench);
    bench.initiator.now_ns += 2 * kSecond;
    ck_assert_uint_eq(mode(bench), it.after_2s);
    bench.initiator.now_ns += 398 * kSecond;
    ck_assert_uint_eq(mode(bench), it.after_400s);
    ck_assert(bench.run({.opcode = 0xEF, .features = 0x85}).good());
    read_ns(bench);
    bench.initiator.now_ns += 400 * kSecond;
    ck_assert_uint_eq(mode(bench), kModeActive);
  }
}
END_TEST

START_TEST(sleep_ends_with_a_reset) {
  DriveBench bench;
  ck_assert(bench.run({.opcode = kSleep}).good());
  bench.drive->reset(LinkReset::kComreset);
  ck_assert_uint_eq(mode(bench), kModeActive);
}
END_TEST

START_TEST(power_state_is_saved) {
  DriveBench bench;
  ck_assert(bench.run({.opcode = kIdle, .count = 12}).good());
  read_ns(bench);
  StreamWriter out;
  bench.drive->save(out);
  DriveBench other;
  StreamReader in(out.bytes());
  other.drive->load(in);
  ck_assert(in.ok() && in.at_end());
  other.initiator.now_ns = bench.initiator.now_ns + 59 * kSecond;
  ck_assert_uint_eq(mode(other), kModeActive);
  other.initiator.now_ns += 2 * kSecond;
  ck_assert_uint_eq(mode(other), kModeStandby);
}
END_TEST

START_TEST(soft_reset) {
  DriveBench bench;
  ck_assert(bench.run({.opcode = 0xEF, .features = 0x82}).good());
  ck_assert(bench.run({.opcode = kSleep}).good());
  FakeCommand &begin = bench.initiator.issue(control_fis(0x04), 0);
  bench.initiator.run();
  ck_assert(begin.done() && !begin.ata.failed);
  ck_assert(bench.run({.opcode = 0xEC}, 512).ata.failed);  // held in reset
  FakeCommand &end = bench.initiator.issue(control_fis(0x00), 0);
  bench.initiator.run();
  ck_assert(end.done() && !end.ata.failed);
  ck_assert(end.ata.d2h == bench.drive->signature());
  ck_assert_uint_eq(end.error(), 0x01);
  ck_assert_uint_eq(mode(bench), kModeActive);
  FakeCommand &identify = bench.run({.opcode = 0xEC}, 512);
  ck_assert(identify.good());
  ck_assert_uint_eq(word_at(identify.window.data(), 85) & 0x20, 0);  // settings stay
}
END_TEST

START_TEST(soft_reset_ends_the_queue) {
  DriveBench bench;
  bench.media.hold = true;
  FakeCommand &first = bench.issue(queued(false, 3, 0, 8), 4096);
  FakeCommand &second = bench.issue(queued(false, 9, 64, 8), 4096);
  bench.initiator.issue(control_fis(0x04), 0);
  bench.initiator.issue(control_fis(0x00), 0);
  bench.initiator.run();
  while (bench.media.held() > 0)
    bench.media.answer();
  bench.initiator.run();
  ck_assert(first.done() && first.ata.failed);
  ck_assert(second.done() && second.ata.failed);
  bench.media.hold = false;
  ck_assert(!bench.run(queued(false, 3, 0, 8), 4096).ata.failed);
  ck_assert(bench.rules_kept());
}
END_TEST

START_TEST(device_reset_is_for_packet_devices) {
  DriveBench bench;
  FakeCommand &done = bench.run({.opcode = 0x08});
  ck_assert(done.ata.failed);
  ck_assert_uint_eq(done.error(), 0x04);
}
END_TEST

// READ VERIFY reads the medium, through a small buffer, and says where it is bad.
START_TEST(verify_reads) {
  DriveBench bench(1 << 20);
  bench.media.records.clear();
  ck_assert(bench.run({.opcode = 0x42, .lba = 100, .count = 0}).good());  // 65536 sectors
  uint64_t at = 100 * 512;
  for (const FakeMedia::Record &record : bench.media.records) {
    ck_assert_uint_eq(record.op, RD_BLOCK_READ);
    ck_assert_uint_eq(record.offset, at);
    ck_assert_uint_le(record.bytes, 256u << 10);
    at += record.bytes;
  }
  ck_assert_uint_eq(at, (100 + 65536) * 512);
}
END_TEST

START_TEST(verify_finds_errors) {
  for (uint8_t opcode : {0x40, 0x41, 0x42}) {
    DriveBench bench(1 << 20);
    bench.media.fail = [](const FakeMedia::Record &record) {
      return record.offset <= 1000 * 512 && record.offset + record.bytes > 1000 * 512 ? -EIO : 0;
    };
    ck_assert(bench.run({.opcode = opcode, .lba = 0, .count = 200}).good());
    FakeCommand &done = bench.run({.opcode = opcode, .lba = 995, .count = 200});
    ck_assert(done.ata.failed);
    ck_assert_uint_eq(done.error(), 0x40);
    ck_assert_uint_eq(done.status() & 0x21, 0x01);
    ck_assert(bench.rules_kept());
  }
}
END_TEST

START_TEST(verify_can_be_taken_back) {
  DriveBench bench(1 << 20);
  bench.media.hold = true;
  FakeCommand &done = bench.issue({.opcode = 0x42, .lba = 0, .count = 4000});
  bench.initiator.run();
  bench.media.answer();
  ck_assert_uint_eq(bench.media.held(), 1);
  bench.initiator.cancel(done);
  ck_assert_uint_eq(bench.media.held(), 0);
  ck_assert(bench.rules_kept());
}
END_TEST

START_TEST(write_cache_off_writes_through) {
  DriveBench bench;
  std::array<uint8_t, 512> data{};
  ck_assert(bench.run({.opcode = 0xCA, .count = 1}, 512, data.data()).good());
  ck_assert_uint_eq(bench.media.records.back().op, RD_BLOCK_WRITE);
  ck_assert(bench.run({.opcode = 0xEF, .features = 0x82}).good());
  ck_assert_uint_eq(bench.media.records.back().op, RD_BLOCK_FLUSH);
  ck_assert(bench.run({.opcode = 0xCA, .count = 1}, 512, data.data()).good());
  ck_assert_uint_eq(bench.media.records.back().op, RD_BLOCK_WRITE_FUA);
  ck_assert(bench.run({.opcode = 0xEF, .features = 0x02}).good());
  ck_assert(bench.run({.opcode = 0xCA, .count = 1}, 512, data.data()).good());
  ck_assert_uint_eq(bench.media.records.back().op, RD_BLOCK_WRITE);
}
END_TEST

int main() {
  return test::run_tests(
      "ata_power",
      {modes, idle_collection_sleeps_too, waking_takes_time, standby_timer, standby_timer_off,
       advanced_power_management, sleep_ends_with_a_reset, power_state_is_saved, soft_reset,
       soft_reset_ends_the_queue, device_reset_is_for_packet_devices, verify_reads,
       verify_finds_errors, verify_can_be_taken_back, write_cache_off_writes_through});
}
