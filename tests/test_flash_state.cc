// SPDX-License-Identifier: GPL-2.0-or-later
//
// The flash model in streams: a copy made in mid-work goes on alike to the nanosecond, a stored
// drive comes back with its wear and its data, damaged streams leave a sound drive.
#include <map>

#include "drive_bench.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint64_t kSectors = 1 << 18;

FlashProfile busy_profile() {
  FlashProfile profile = test_flash();
  profile.read_unit_ns = profile.write_unit_ns = 1000;
  profile.compress_mb_s = profile.decompress_mb_s = 500;
  profile.raise = 1;
  profile.raw_permille = 1200;
  profile.journal_permille = 10;
  profile.map_cache_units = 8192;
  profile.map_page_units = 256;
  profile.read_ahead_bytes = 65536;
  profile.throttle_iops = 30'000;
  profile.throttle_burst_ios = 5000;
  profile.block_fail_ppb = 50'000;
  profile.wear_delta = 4;
  profile.idle_mw = 600;
  return profile;
}

// One step of a mixed load; all that it answers.
int64_t step(FlashController &flash, Random &random, int64_t *now_ns) {
  Journey journey;
  *now_ns += static_cast<int64_t>(random.below(60'000));
  journey.start(*now_ns);
  int64_t at_ns = flash.command(*now_ns, journey);
  auto sectors = static_cast<uint32_t>(1 + random.below(64));
  uint64_t lba = random.below(kSectors - 64);
  switch (random.below(20)) {
    case 0:
      return flash.flush(at_ns, journey);
    case 1:
      return flash.trim(at_ns, lba, sectors, journey);
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
      return flash.read(at_ns, lba, sectors, journey).end_ns;
    default:
      return flash.write(at_ns, lba, sectors, {}, journey);
  }
}

std::vector<uint8_t> saved(const FlashController &flash) {
  StreamWriter out;
  flash.save(out);
  return out.bytes();
}

std::map<std::string, uint64_t> counters(const FlashController &flash) {
  std::map<std::string, uint64_t> values;
  flash.query([&](std::string_view key, uint64_t value) { values[std::string(key)] = value; });
  values.erase("flash_memory_bytes");
  return values;
}

void check(const FlashController &flash, const char *when) {
  const char *problem = flash.check_books();
  ck_assert_msg(!problem, "%s: %s", when, problem);
}

}  // namespace

START_TEST(copy_goes_on_alike) {
  Random random(test::seed());
  for (auto preset : {FlashPreset::kFresh, FlashPreset::kSteady}) {
    FlashController flash(busy_profile(), kSectors, true), copy(busy_profile(), kSectors, true);
    flash.renew(preset, 1);
    int64_t now_ns = 0;
    for (int i = 0; i < 8000; i++)
      step(flash, random, &now_ns);
    std::vector<uint8_t> bytes = saved(flash);
    StreamReader in(bytes);
    copy.load(in);
    ck_assert(in.ok() && in.at_end());
    check(copy, "loaded");
    ck_assert(saved(copy) == bytes);
    ck_assert(counters(copy) == counters(flash));
    Random twin = random;
    int64_t twin_ns = now_ns;
    for (int i = 0; i < 8000; i++)
      ck_assert_int_eq(step(flash, random, &now_ns), step(copy, twin, &twin_ns));
    ck_assert(saved(copy) == saved(flash));
    ck_assert(counters(copy) == counters(flash));
  }
}
END_TEST

START_TEST(same_input_same_books) {
  std::vector<uint8_t> streams[2];
  for (auto &stream : streams) {
    FlashController flash(busy_profile(), kSectors, true);
    flash.renew(FlashPreset::kSteady, 4);
    Random random(4);
    int64_t now_ns = 0;
    for (int i = 0; i < 20000; i++)
      step(flash, random, &now_ns);
    stream = saved(flash);
  }
  ck_assert(streams[0] == streams[1]);
}
END_TEST

// The books do not depend on time, nor on whether there is any.
START_TEST(untimed_drive_keeps_the_same_books) {
  FlashController timed(busy_profile(), kSectors, true), untimed(busy_profile(), kSectors, false);
  Random random(6), twin(6);
  int64_t now_ns = 0, twin_ns = 0;
  for (int i = 0; i < 20000; i++) {
    step(timed, random, &now_ns);
    step(untimed, twin, &twin_ns);
  }
  for (const char *name : {"nand_write_bytes", "gc_moved_bytes", "erases", "mapped_units",
                           "free_superblocks", "retired_blocks", "wear_max"})
    ck_assert_uint_eq(counters(timed)[name], counters(untimed)[name]);
}
END_TEST

START_TEST(stored_drive_comes_back) {
  Random random(test::seed());
  FlashController flash(busy_profile(), kSectors, true);
  flash.renew(FlashPreset::kSteady, 1);
  int64_t now_ns = 0;
  for (int i = 0; i < 20000; i++)
    step(flash, random, &now_ns);
  FlashHealth health = flash.health();
  ck_assert_uint_gt(health.wear_range_percent + health.retired_blocks, 0);
  for (size_t most : {size_t{1} << 20, size_t{4096}}) {
    StreamWriter out;
    ck_assert(flash.save_persistent(out, most) == (most == 4096));
    FlashController later(busy_profile(), kSectors, true);
    StreamReader in(out.bytes());
    later.load_persistent(in);
    ck_assert(in.ok() && in.at_end());
    later.power_cycle();
    check(later, "stored");
    for (const char *name : {"mapped_units", "retired_blocks", "program_fails", "erase_fails",
                             "wear_min", "wear_max", "wear_avg"})
      ck_assert_uint_eq(counters(later)[name], counters(flash)[name]);
    // What was open is filled up when the power comes.
    ck_assert_uint_le(counters(later)["nand_write_bytes"], 2 * 16384);
    ck_assert_uint_eq(counters(later)["gc_moved_bytes"], 0);
    int64_t later_ns = 0;
    for (int i = 0; i < 5000; i++)
      step(later, random, &later_ns);
    check(later, "after more work");
  }
}
END_TEST

START_TEST(damaged_streams_leave_a_sound_drive) {
  Random random(test::seed());
  FlashController flash(busy_profile(), kSectors, true);
  int64_t now_ns = 0;
  for (int i = 0; i < 3000; i++)
    step(flash, random, &now_ns);
  std::vector<uint8_t> good = saved(flash);
  StreamWriter out;
  flash.save_persistent(out, SIZE_MAX);
  for (int i = 0; i < 600; i++) {
    bool snapshot = random.one_in(2);
    std::vector<uint8_t> bad = snapshot ? good : out.bytes();
    if (random.one_in(4))
      bad.resize(random.below(bad.size()));
    else
      bad[random.below(bad.size())] ^= static_cast<uint8_t>(1 << random.below(8));
    FlashController copy(busy_profile(), kSectors, true);
    StreamReader in(bad);
    if (snapshot)
      copy.load(in);
    else
      copy.load_persistent(in);
    copy.power_cycle();
    check(copy, "damaged");
    int64_t copy_ns = 0;
    for (int j = 0; j < 20; j++)
      step(copy, random, &copy_ns);
  }
}
END_TEST

START_TEST(other_shapes_are_refused) {
  FlashController flash(busy_profile(), kSectors, true);
  std::vector<uint8_t> bytes = saved(flash);
  FlashProfile other = busy_profile();
  other.channels = 4;
  other.dies_per_channel = 4;
  FlashController different(other, kSectors, true), larger(busy_profile(), 2 * kSectors, true);
  for (FlashController *it : {&different, &larger}) {
    StreamReader in(bytes);
    it->load(in);
    ck_assert(!in.ok());
  }
}
END_TEST

int main() {
  return test::run_tests(
      "flash_state",
      {copy_goes_on_alike, same_input_same_books, untimed_drive_keeps_the_same_books,
       stored_drive_comes_back, damaged_streams_leave_a_sound_drive, other_shapes_are_refused});
}
