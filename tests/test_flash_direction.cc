// SPDX-License-Identifier: GPL-2.0-or-later
//
// Each number of the profile has the effect that its name promises, and what ought to help helps:
// compressible data, dies, depth, a narrow span, TRIM, a secure erase.
#include <algorithm>
#include <map>
#include <vector>

#include "drive_bench.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint64_t kSectors = 1 << 20;

// Busy in every part, so that each number counts for something.
FlashProfile full_profile() {
  FlashProfile profile = test_flash();
  profile.read_unit_ns = 2000;
  profile.write_unit_ns = 2000;
  profile.compress_mb_s = 500;
  profile.decompress_mb_s = 500;
  profile.store_floor_permille = 130;
  profile.raise = 1;
  profile.raw_permille = 1200;
  profile.journal_permille = 10;
  profile.bus_command_ns = 1000;
  profile.map_cache_units = 16384;
  profile.map_miss_ns = 2000;
  return profile;
}

enum class Job {
  kRandomRead,
  kSequentialRead,
  kWideRead,
  kRandomWrite,
  kSequentialWrite,
  kSync,
  kTrim,
  kErase
};

struct Setting {
  Job job = Job::kRandomRead;
  unsigned depth = 1;
  bool zeros = false;
  FlashPreset preset = FlashPreset::kFull;
  unsigned commands = 3000;
  uint64_t span = kSectors;
};

struct Rig {
  explicit Rig(const FlashProfile &profile, FlashPreset preset) : flash(profile, kSectors, true) {
    flash.renew(preset, 5);
  }
  uint64_t counter(const std::string &name) const {
    std::map<std::string, uint64_t> values;
    flash.query([&](std::string_view key, uint64_t value) { values[std::string(key)] = value; });
    return values.at(name);
  }
  int64_t one(const Setting &setting, int64_t at_ns, unsigned i) {
    journey.start(at_ns);
    at_ns = flash.command(at_ns, journey);
    uint64_t random_lba = random.below(setting.span / 8) * 8;
    uint64_t next_lba = i * 256ull % setting.span;
    rd_iov piece{zeros.data(), setting.zeros ? zeros.size() : 0};
    switch (setting.job) {
      case Job::kRandomRead:
        return flash.read(at_ns, random.below(8192) * 8, 8, journey).end_ns;
      case Job::kWideRead:
        return flash.read(at_ns, random_lba, 8, journey).end_ns;
      case Job::kSequentialRead:
        return flash.read(at_ns, next_lba, 256, journey).end_ns;
      case Job::kRandomWrite:
        return flash.write(at_ns, random_lba, 8, {&piece, 1}, journey);
      case Job::kSequentialWrite:
        return flash.write(at_ns, next_lba, 256, {&piece, 1}, journey);
      case Job::kSync:
        return flash.flush(flash.write(at_ns, random_lba, 8, {&piece, 1}, journey), journey);
      case Job::kTrim:
        return flash.trim(at_ns, random_lba, 8, journey);
      case Job::kErase:
        return flash.erase_all(at_ns, journey);
    }
    return 0;
  }
  // Mean time of a command in ns, `depth` at a time.
  double run(const Setting &setting) {
    std::vector<int64_t> slots(setting.depth, now_ns);
    int64_t start_ns = now_ns;
    for (unsigned i = 0; i < setting.commands; i++) {
      auto slot = std::min_element(slots.begin(), slots.end());
      *slot = one(setting, *slot, i);
    }
    now_ns = *std::max_element(slots.begin(), slots.end());
    const char *problem = flash.check_books();
    ck_assert_msg(!problem, "%s", problem);
    return double(now_ns - start_ns) / setting.commands;
  }

  FlashController flash;
  Journey journey;
  Random random{9};
  std::vector<uint8_t> zeros = std::vector<uint8_t>(131072);
  int64_t now_ns = 0;
};

double run(const FlashProfile &profile, const Setting &setting) {
  return Rig(profile, setting.preset).run(setting);
}

const Setting kRead1{};
const Setting kReadMany{.depth = 64};
const Setting kWide{.job = Job::kWideRead};
const Setting kStream{.job = Job::kSequentialRead, .depth = 4};
const Setting kWrite1{.job = Job::kRandomWrite, .zeros = true, .preset = FlashPreset::kFresh};
const Setting kWriteZeros{.job = Job::kRandomWrite, .depth = 8, .zeros = true};
const Setting kWriteNoise{.job = Job::kSequentialWrite, .depth = 8, .preset = FlashPreset::kFresh};
const Setting kStreamZeros{
    .job = Job::kSequentialWrite, .zeros = true, .preset = FlashPreset::kFresh};
const Setting kSteady{
    .job = Job::kRandomWrite, .depth = 8, .preset = FlashPreset::kSteady, .commands = 60'000};

struct Knob {
  const char *name;
  uint32_t FlashProfile::*value;
  uint32_t other;  // instead of the value of full_profile()
  Setting setting;
  double least, most;  // ratio of the times
};

}  // namespace

// C073: every number that has to do with time.
START_TEST(c073_every_number_counts) {
  using P = FlashProfile;
  const Knob knobs[] = {
      {"command_ns", &P::command_ns, 20'000, kReadMany, 1.1, 10},
      {"read_unit_ns", &P::read_unit_ns, 20'000, kReadMany, 1.1, 10},
      {"write_unit_ns", &P::write_unit_ns, 20'000, kWriteZeros, 1.5, 10},
      {"write_command_ns", &P::write_command_ns, 40'000, kWriteZeros, 1.5, 10},
      {"read_latency_ns", &P::read_latency_ns, 200'000, kRead1, 1.5, 4},
      {"write_latency_ns", &P::write_latency_ns, 200'000, kWrite1, 1.5, 20},
      {"trim_range_ns", &P::trim_range_ns, 10'000, {.job = Job::kTrim}, 2, 10},
      {"compress_mb_s", &P::compress_mb_s, 250, kStreamZeros, 1.8, 2.2},
      {"store_mb_s", &P::store_mb_s, 10, kWriteNoise, 1.5, 100},
      {"decode_mb_s", &P::decode_mb_s, 20, kRead1, 1.2, 4},
      {"decompress_mb_s", &P::decompress_mb_s, 100, kStream, 1.8, 6},
      {"channels", &P::channels, 4, kReadMany, 1.5, 2.5},
      {"dies_per_channel", &P::dies_per_channel, 1, kReadMany, 1.3, 2.5},
      {"planes", &P::planes, 1, kWriteNoise, 1.5, 2.1},
      {"bus_mb_s", &P::bus_mb_s, 40, kStream, 1.5, 5},
      {"bus_command_ns", &P::bus_command_ns, 50'000, kRead1, 1.3, 2},
      {"page_spare_bytes", &P::page_spare_bytes, 4096, kRead1, 1.05, 1.5},
      {"codeword_bytes", &P::codeword_bytes, 8192, kRead1, 1.1, 1.5},
      {"read_page_us", &P::read_page_us, 150, kRead1, 1.5, 2},
      {"program_page_us", &P::program_page_us, 2600, kWriteNoise, 1.7, 2.1},
      {"erase_block_us", &P::erase_block_us, 380'000, kSteady, 1.5, 60},
      {"raise", &P::raise, 0, kWriteNoise, 0.90, 0.96},
      {"journal_permille", &P::journal_permille, 80, kWriteNoise, 1.04, 1.12},
      {"map_unit_bytes",
       &P::map_unit_bytes,
       32768,
       {.job = Job::kRandomWrite, .depth = 8, .preset = FlashPreset::kFull},
       3,
       80},
      {"map_cache_units", &P::map_cache_units, 0, kWide, 0.3, 0.9},
      {"map_page_units", &P::map_page_units, 131072, kWide, 0.3, 0.9},
      {"map_miss_ns", &P::map_miss_ns, 50'000, kWide, 1.1, 1.5},
      {"store_floor_permille",
       &P::store_floor_permille,
       0,
       {.job = Job::kSequentialWrite, .depth = 8, .zeros = true, .preset = FlashPreset::kFresh},
       2,
       20},
      {"raw_permille", &P::raw_permille, 1400, kSteady, 0.2, 0.8},
      {"throttle_iops", &P::throttle_iops, 500, kSteady, 1.2, 20},
      {"throttle_kb_s", &P::throttle_kb_s, 10'000, kWriteNoise, 5, 50},
  };
  for (const Knob &knob : knobs) {
    FlashProfile profile = full_profile();
    profile.throttle_burst_ios = profile.throttle_burst_kb = 1000;
    double before = run(profile, knob.setting);
    profile.*knob.value = knob.other;
    double ratio = run(profile, knob.setting) / before;
    ck_assert_msg(ratio >= knob.least && ratio <= knob.most, "%s: %.3f, not %.2f to %.2f",
                  knob.name, ratio, knob.least, knob.most);
  }
}
END_TEST

START_TEST(larger_buffer_takes_longer_bursts) {
  FlashProfile profile = full_profile();
  Setting burst{.job = Job::kSequentialWrite, .preset = FlashPreset::kFresh, .commands = 3};
  double small = run(profile, burst);
  profile.write_buffer_bytes *= 4;
  ck_assert_double_lt(run(profile, burst), 0.8 * small);
}
END_TEST

// C074 per drive: zeros at least 1.5 times as fast; reads of what compresses not slower.
START_TEST(c074_compressible_data_is_faster) {
  FlashProfile profile = full_profile();
  double last = 0;
  for (uint32_t floor : {130u, 350u, 600u, 1000u}) {
    profile.store_floor_permille = floor;
    Rig rig(profile, FlashPreset::kFresh);
    double write = rig.run({.job = Job::kSequentialWrite, .depth = 8, .zeros = true});
    ck_assert_double_gt(write, last);
    last = write;
  }
  profile.store_floor_permille = 130;
  Rig zeros(profile, FlashPreset::kFresh), noise(profile, FlashPreset::kFresh);
  ck_assert_double_gt(noise.run(kWriteNoise),
                      1.5 * zeros.run({.job = Job::kSequentialWrite, .depth = 8, .zeros = true}));
  ck_assert_double_ge(noise.run(kReadMany), zeros.run(kReadMany));
  ck_assert_double_ge(noise.run(kStream), zeros.run(kStream));
}
END_TEST

START_TEST(depth_helps_until_the_dies_are_busy) {
  double last = 1e12;
  for (unsigned depth : {1u, 2u, 4u, 8u, 16u, 32u}) {
    double now = run(full_profile(), {.depth = depth});
    ck_assert_double_lt(now, last);
    last = now;
  }
}
END_TEST

START_TEST(narrow_span_is_faster) {
  double last = 0;
  for (uint64_t span : {kSectors / 8, kSectors / 2, kSectors}) {
    Setting setting = kWide;
    setting.span = span;
    double now = run(full_profile(), setting);
    ck_assert_double_gt(now, last * 0.999);
    last = now;
  }
}
END_TEST

// A fresh drive, a tortured one, after TRIM of everything, and after an erase.
START_TEST(trim_and_erase_restore) {
  FlashProfile profile = full_profile();
  Setting writes{.job = Job::kRandomWrite, .depth = 8, .commands = 30'000};
  double fresh = Rig(profile, FlashPreset::kFresh).run(writes);
  Rig rig(profile, FlashPreset::kSteady);
  double steady = rig.run(writes);
  ck_assert_double_gt(steady, 1.8 * fresh);
  rig.now_ns = rig.flash.trim(rig.now_ns + 1'000'000'000, 0, kSectors, rig.journey);
  ck_assert_double_lt(rig.run(writes), 1.15 * fresh);
  rig.run(kSteady);
  rig.now_ns = rig.flash.erase_all(rig.now_ns, rig.journey);
  ck_assert_double_lt(rig.run(writes), 1.05 * fresh);
}
END_TEST

// What was written all over must be erased before it is written again: in turn it takes time, all
// blocks at once nearly none. What was erased before, as new flash is, need not be.
START_TEST(erased_flash_is_written_faster) {
  Setting pass{.job = Job::kSequentialWrite, .depth = 8, .commands = kSectors / 256};
  for (uint32_t at_once : {0, 1}) {
    FlashProfile profile = full_profile();
    profile.erase_at_once = at_once;
    profile.blocks_per_plane = 16;  // of real size, so that the write buffer bridges no erasure
    Rig rig(profile, FlashPreset::kFresh);
    double fresh_ns = rig.run(pass);
    ck_assert_uint_eq(rig.counter("erases"), 0);
    rig.run(pass);
    uint64_t erases = rig.counter("erases");
    double used_ns = rig.run(pass);
    erases = rig.counter("erases") - erases;
    ck_assert_uint_gt(erases, 200);
    double erasing_ns = static_cast<double>(erases) * 3'800'000 / pass.commands;
    if (at_once == 0)
      ck_assert_double_lt(used_ns, fresh_ns + 0.2 * erasing_ns);
    else
      ck_assert_double_eq_tol(used_ns, fresh_ns + erasing_ns, 0.15 * erasing_ns);
    rig.now_ns = rig.flash.erase_all(rig.now_ns, rig.journey);
    erases = rig.counter("erases");
    ck_assert_double_eq_tol(rig.run(pass), fresh_ns, 0.03 * fresh_ns);
    ck_assert_uint_eq(rig.counter("erases"), erases);
  }
}
END_TEST

// Waiting for garbage collection is called that.
START_TEST(collection_is_charged) {
  Rig fresh(full_profile(), FlashPreset::kFresh), steady(full_profile(), FlashPreset::kSteady);
  Setting writes{.job = Job::kRandomWrite, .depth = 8, .commands = 30'000};
  fresh.run(writes);
  steady.run(writes);
  ck_assert_uint_eq(fresh.counter("gc_moved_bytes"), 0);
  ck_assert_uint_gt(steady.counter("gc_moved_bytes"), steady.counter("stored_bytes"));
  ck_assert_uint_gt(steady.counter("gc_wait_ns"), 10 * fresh.counter("gc_wait_ns"));
  ck_assert_uint_gt(steady.counter("write_amplification_permille"), 2000);
  ck_assert_uint_lt(fresh.counter("write_amplification_permille"), 1150);
}
END_TEST

// What reaches the flash is what the host stores and what collection moves, once each, with the
// journal on top and one die of 16 as parity.
START_TEST(flash_writes_add_up) {
  Rig rig(full_profile(), FlashPreset::kSteady);
  uint64_t before = rig.counter("nand_write_bytes");
  rig.run({.job = Job::kRandomWrite, .depth = 8, .commands = 200'000});
  auto payload = static_cast<double>(rig.counter("stored_bytes") + rig.counter("gc_moved_bytes"));
  auto written = static_cast<double>(rig.counter("nand_write_bytes") - before);
  ck_assert_double_eq_tol(written / payload, 1.01 * 16 / 15, 0.005);
}
END_TEST

// Nothing waits for what could be done: when the host waits for collection, the dies are at work.
// What they are at work with is programs, but for the pages that collection reads.
START_TEST(collection_keeps_the_dies_busy) {
  FlashProfile profile = full_profile();
  Rig rig(profile, FlashPreset::kSteady);
  Setting writes{.job = Job::kRandomWrite, .depth = 32, .commands = 20'000};
  rig.run(writes);
  int64_t start_ns = rig.now_ns;
  uint64_t busy = rig.counter("die_busy_ns"), bytes = rig.counter("nand_write_bytes");
  rig.run(writes);
  auto all_ns = static_cast<double>(rig.now_ns - start_ns) * 16;
  auto programs = static_cast<double>(rig.counter("nand_write_bytes") - bytes) / 16384;
  double busy_share = static_cast<double>(rig.counter("die_busy_ns") - busy) / all_ns;
  double program_share = programs * profile.program_page_us * 1000 / all_ns;
  ck_assert_msg(busy_share > 0.85 && program_share > 0.6, "busy %.2f, with programs %.2f",
                busy_share, program_share);
}
END_TEST

START_TEST(cost_benefit_moves_less_when_some_data_is_hot) {
  uint64_t moved[2];
  for (uint32_t choice : {0, 1}) {
    FlashProfile profile = full_profile();
    profile.gc_cost_benefit = choice;
    Rig rig(profile, FlashPreset::kSteady);
    for (int i = 0; i < 300'000; i++) {
      uint64_t span = rig.random.one_in(10) ? kSectors : kSectors / 10;
      rig.now_ns = rig.flash.write(rig.now_ns, rig.random.below(span / 8) * 8, 8, {}, rig.journey);
    }
    moved[choice] = rig.counter("gc_moved_bytes");
  }
  ck_assert_msg(moved[1] < moved[0], "%llu, greedy %llu", static_cast<unsigned long long>(moved[1]),
                static_cast<unsigned long long>(moved[0]));
}
END_TEST

int main() {
  return test::run_tests(
      "flash_direction",
      {c073_every_number_counts, larger_buffer_takes_longer_bursts,
       c074_compressible_data_is_faster, depth_helps_until_the_dies_are_busy, narrow_span_is_faster,
       trim_and_erase_restore, erased_flash_is_written_faster, collection_is_charged,
       flash_writes_add_up, collection_keeps_the_dies_busy,
       cost_benefit_moves_less_when_some_data_is_hot});
}
