// SPDX-License-Identifier: GPL-2.0-or-later
//
// The controller and its flash as time: what one command costs, what waits for what, and that every
// step of the way is charged to a stage.
#include <map>

#include "drive_bench.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint32_t kPageSectors = 16;
constexpr uint32_t kGroupSectors = 32;  // a page of each plane of a die
constexpr int64_t kSenseNs = 75'000;
constexpr int64_t kMoveNs = 52'049;  // 8640 bytes at 166 MB/s, rounded up
constexpr int64_t kTwoNs = 104'097;  // both planes
constexpr int64_t kProgramNs = 1'300'000;
constexpr uint64_t kSectors = 1 << 21;

// A drive, and a journey for each of its commands.
struct Bench {
  explicit Bench(const FlashProfile &profile = test_flash(), bool timing = true,
                 uint64_t sectors = kSectors)
      : flash(profile, sectors, timing) {}

  Span read(int64_t at_ns, uint64_t lba, uint32_t sectors) {
    journey.start(at_ns);
    Span ready = flash.read(at_ns, lba, sectors, journey);
    ck_assert_int_eq(journey.at_ns(), ready.start_ns);
    return ready;
  }
  int64_t write(int64_t at_ns, uint64_t lba, uint32_t sectors, std::span<const rd_iov> data = {}) {
    journey.start(at_ns);
    int64_t accepted_ns = flash.write(at_ns, lba, sectors, data, journey);
    ck_assert_int_eq(journey.at_ns(), accepted_ns);
    return accepted_ns;
  }
  int64_t flush(int64_t at_ns) {
    journey.start(at_ns);
    int64_t end_ns = flash.flush(at_ns, journey);
    ck_assert_int_eq(journey.at_ns(), end_ns);
    return end_ns;
  }
  // Long after everything has ended.
  int64_t settle(int64_t at_ns = 0) { return flush(at_ns) + 1'000'000'000; }
  uint64_t counter(const std::string &name) const {
    std::map<std::string, uint64_t> values;
    flash.query([&](std::string_view key, uint64_t value) { values[std::string(key)] = value; });
    return values.at(name);
  }
  void check() const {
    const char *problem = flash.check_books();
    ck_assert_msg(!problem, "%s", problem);
  }

  FlashController flash;
  Journey journey;
};

// Any that the check accepts, of a drive that is small for its pages.
FlashProfile random_shape(Random &random) {
  FlashProfile profile = test_flash();
  profile.page_bytes = 2048u << random.below(6);
  profile.planes = 1u << random.below(3);
  profile.channels = static_cast<uint32_t>(1 + random.below(8));
  profile.dies_per_channel = static_cast<uint32_t>(1 + random.below(4));
  profile.raise = static_cast<uint32_t>(random.below(2));
  profile.journal_permille = static_cast<uint32_t>(random.below(3) * random.below(50));
  profile.raw_permille = static_cast<uint32_t>(1030 + random.below(400));
  profile.block_pages = 1u << random.below(9);
  profile.blocks_per_plane = static_cast<uint32_t>(random.one_in(2) ? 0 : 7 + random.below(100));
  profile.block_fail_ppb = static_cast<uint32_t>(random.one_in(4) * random.below(1'000'000'000));
  return profile;
}

}  // namespace

START_TEST(without_timing) {
  Bench bench(test_flash(), false);
  ck_assert_int_eq(bench.flash.command(5, bench.journey), 5);
  ck_assert_int_eq(bench.read(5, 0, 100).end_ns, 5);
  for (int i = 0; i < 100; i++)
    ck_assert_int_eq(bench.write(5, 0, 1000), 5);
  ck_assert_int_eq(bench.flush(5), 5);
  ck_assert_int_eq(bench.flash.trim(5, 0, 1, bench.journey), 5);
  ck_assert_int_eq(bench.flash.erase_all(5, bench.journey), 5);
  bench.check();
}
END_TEST

START_TEST(commands_queue_at_the_core) {
  Bench bench;
  ck_assert_int_eq(bench.flash.command(100, bench.journey), 2100);
  ck_assert_int_eq(bench.flash.command(100, bench.journey), 4100);
  ck_assert_int_eq(bench.flash.trim(4100, 0, 8, bench.journey), 5100);
}
END_TEST

// C071: what was never written, or was trimmed, does not touch flash, and is counted.
START_TEST(c071_unmapped_reads) {
  Bench bench;
  ck_assert_int_eq(bench.read(7, 4096, 8).end_ns, 7);
  ck_assert_uint_eq(bench.counter("unmapped_reads"), 1);
  bench.write(0, 4096, 8);
  int64_t at_ns = bench.settle();
  ck_assert_int_gt(bench.read(at_ns, 4096, 8).end_ns, at_ns + kSenseNs);
  ck_assert_int_gt(bench.read(at_ns, 4088, 16).end_ns, at_ns + kSenseNs);
  ck_assert_uint_eq(bench.counter("unmapped_reads"), 1);
  bench.flash.trim(at_ns, 4096, 8, bench.journey);
  ck_assert_int_eq(bench.read(at_ns, 4096, 8).end_ns, at_ns);
  ck_assert_uint_eq(bench.counter("unmapped_reads"), 2);
  ck_assert_uint_eq(bench.counter("mapped_units"), 0);
}
END_TEST

// Of what is stored as it is, the code words that hold it are moved; the first 4 KiB go on while
// the rest follows.
START_TEST(read_moves_what_is_stored) {
  for (uint32_t sectors : {1u, 8u, 16u, 32u}) {
    Bench bench;
    bench.write(0, 0, 64);
    int64_t at_ns = bench.settle();
    Span ready = bench.read(at_ns, 0, sectors);
    auto moves_ns = [](uint32_t moved) -> int64_t {
      return (moved * 512 * 8640 / 8192 * 1000 + 165) / 166;
    };
    uint32_t moved = std::max(sectors, 2u);
    uint32_t first = std::min(moved, 8u);
    ck_assert_int_eq(ready.start_ns - at_ns, kSenseNs + moves_ns(first));
    ck_assert_int_eq(ready.end_ns - at_ns, kSenseNs + moves_ns(moved));
    ck_assert_int_eq(bench.journey.stage_ns(Stage::kDie), kSenseNs);
    ck_assert_int_eq(bench.journey.stage_ns(Stage::kChannel), moves_ns(first));
  }
}
END_TEST

// Compressed data moves in code words of 1 KiB, many units to a page.
START_TEST(compressed_data_is_read_quicker) {
  FlashProfile profile = test_flash();
  profile.store_floor_permille = 130;
  Bench bench(profile);
  std::vector<uint8_t> zeros(65536);
  rd_iov piece{zeros.data(), zeros.size()};
  bench.write(0, 0, 128, {&piece, 1});
  int64_t at_ns = bench.settle();
  // 544 bytes each: the first in one code word, the second across a border.
  ck_assert_int_eq(bench.read(at_ns, 0, 8).end_ns - at_ns - kSenseNs, (1080 * 1000 + 165) / 166);
  at_ns += 1'000'000;
  ck_assert_int_eq(bench.read(at_ns, 8, 8).end_ns - at_ns - kSenseNs, (2160 * 1000 + 165) / 166);
  at_ns += 1'000'000;
  // All sixteen are in one page and the next one of the same die.
  uint64_t before = bench.counter("nand_read_bytes");
  bench.read(at_ns, 0, 128);
  ck_assert_uint_eq(bench.counter("nand_read_bytes") - before, 9 * 1024);
}
END_TEST

// Two groups of pages are on two channels; what shares a die waits.
START_TEST(dies_and_channels) {
  Bench bench;
  bench.write(0, 0, 64 * kGroupSectors);
  int64_t at_ns = bench.settle();
  Span both = bench.read(at_ns, 0, 2 * kGroupSectors);
  ck_assert_int_eq(both.end_ns - at_ns, kSenseNs + kTwoNs);
  at_ns += 10'000'000;
  bench.read(at_ns, 0, kPageSectors);
  // Another die of the channel: only the bus is shared.
  Span bus = bench.read(at_ns, 8 * kGroupSectors, kPageSectors);
  ck_assert_int_eq(bus.end_ns - at_ns, kSenseNs + 2 * kMoveNs);
  // The same die, one row on.
  Span die = bench.read(at_ns, 16 * kGroupSectors, kPageSectors);
  ck_assert_int_eq(die.end_ns - at_ns, 2 * (kSenseNs + kMoveNs));
}
END_TEST

START_TEST(buffer_takes_then_waits) {
  Bench bench;
  for (unsigned page = 0; page < 32; page++)
    ck_assert_int_eq(bench.write(0, page * kPageSectors, kPageSectors), 0);
  // The oldest pages have to be in flash first. A new drive is erased already.
  int64_t accepted_ns = bench.write(0, 32 * kPageSectors, kPageSectors);
  ck_assert_int_eq(accepted_ns, kTwoNs + kProgramNs);
  ck_assert_int_eq(bench.journey.stage_ns(Stage::kBuffer), accepted_ns);
  bench.check();
}
END_TEST

START_TEST(small_writes_share_a_page) {
  Bench bench, whole;
  for (int i = 0; i < 4; i++)
    bench.write(0, i * 8, 8);
  whole.write(0, 0, kGroupSectors);
  ck_assert_int_eq(bench.flush(0), whole.flush(0));
  ck_assert_uint_eq(bench.counter("nand_write_bytes"), 16384);
  // A part of a page is programmed by the flush, once.
  int64_t at_ns = 100'000'000;
  bench.write(at_ns, 64, 3);
  ck_assert_int_eq(bench.flush(at_ns), at_ns + kMoveNs + kProgramNs);
  ck_assert_uint_eq(bench.counter("nand_write_bytes"), 16384 + 8192);
  at_ns += 100'000'000;
  ck_assert_int_eq(bench.flush(at_ns), at_ns);
}
END_TEST

// What is still in the controller is not read from flash.
START_TEST(buffer_hits) {
  Bench bench;
  bench.write(0, 0, 8);
  ck_assert_int_eq(bench.read(10, 0, 8).end_ns, 10);
  bench.write(10, 8, 56);
  ck_assert_int_eq(bench.read(1000, 0, 64).end_ns, 1000);  // its program runs
  ck_assert_uint_eq(bench.counter("buffer_hits"), 1 + 8);
  int64_t at_ns = bench.settle();
  ck_assert_int_gt(bench.read(at_ns, 0, 8).end_ns, at_ns);
  ck_assert_uint_eq(bench.counter("buffer_hits"), 9);
}
END_TEST

// A read waits for the program that runs, not for those that wait, which then wait longer.
START_TEST(reads_go_first) {
  Bench bench;
  bench.write(0, 0, 64 * kGroupSectors);
  int64_t at_ns = bench.settle();
  // A program for each die runs, and one waits.
  for (unsigned i = 0; i < 16; i++)
    bench.write(at_ns, 4096 + i * kGroupSectors, kGroupSectors);
  uint64_t waiting = 4096 + 16 * kGroupSectors;
  for (unsigned i = 0; i < 16; i++)
    bench.write(at_ns + 200'000, waiting + i * kGroupSectors, kGroupSectors);
  Span ready = bench.read(at_ns + 300'000, 0, 8);
  ck_assert_int_le(ready.end_ns, at_ns + kTwoNs + kProgramNs + kSenseNs + kTwoNs);
  ck_assert_int_gt(ready.end_ns, at_ns + kProgramNs);
  bench.check();
}
END_TEST

START_TEST(part_of_a_unit_is_read_and_written_again) {
  Bench bench;
  bench.write(0, 0, 8);
  bench.settle();
  uint64_t before = bench.counter("nand_read_bytes");
  bench.write(5'000'000'000, 1, 1);
  ck_assert_uint_eq(bench.counter("nand_read_bytes") - before, 4096);
  // Of what was never written there is nothing to be read.
  bench.write(5'000'000'000, 801, 1);
  ck_assert_uint_eq(bench.counter("nand_read_bytes") - before, 4096);
  FlashProfile coarse = test_flash();
  coarse.map_unit_bytes = 32768;
  Bench large(coarse);
  large.write(0, 0, 64);
  large.settle();
  large.write(5'000'000'000, 0, 8);
  ck_assert_uint_eq(large.counter("stored_bytes"), 2 * 32768);
}
END_TEST

START_TEST(power_cycle_frees_everything) {
  Bench bench;
  for (int i = 0; i < 200; i++)
    bench.write(0, 0, kPageSectors);
  bench.write(0, 0, 1);
  bench.flash.power_cycle();
  bench.check();
  ck_assert_int_eq(bench.write(10, 0, kPageSectors), 10);
  bench.flash.power_cycle();
  ck_assert_int_eq(bench.flush(20), 20);
}
END_TEST

START_TEST(erase_takes_its_time_and_leaves_nothing) {
  Bench bench;
  bench.write(0, 0, 4096);
  int64_t start_ns = bench.settle();
  bench.journey.start(start_ns);
  int64_t took_ns = bench.flash.erase_all(start_ns, bench.journey) - start_ns;
  // 2 x 2048 blocks of each die in 128 GiB; here as many bytes in smaller blocks.
  int64_t expected_ns = 3'800'000 / 32 * static_cast<int64_t>(bench.counter("superblocks"));
  ck_assert_int_eq(took_ns, expected_ns);
  ck_assert_uint_eq(bench.counter("mapped_units"), 0);
  ck_assert_uint_eq(bench.counter("free_superblocks"), bench.counter("superblocks"));
  ck_assert_int_eq(bench.read(start_ns + took_ns, 0, 64).end_ns, start_ns + took_ns);
  bench.check();
}
END_TEST

// With parity 15 of 16 dies carry data, and each row has one page group more.
START_TEST(parity_is_written_too) {
  FlashProfile profile = test_flash();
  profile.raise = 1;
  profile.raw_permille = 1300;
  Bench bench(profile);
  bench.write(0, 0, 15 * 8 * kGroupSectors);
  bench.flush(0);
  ck_assert_uint_eq(bench.counter("nand_write_bytes"), 16 * 8 * 16384);
}
END_TEST

START_TEST(map_cache_covers_a_span) {
  FlashProfile profile = test_flash();
  profile.map_cache_units = 16384;  // 64 MiB
  Bench bench(profile);
  for (uint64_t lba = 0; lba < kSectors; lba += 2048)
    bench.write(0, lba, 2048);
  int64_t at_ns = bench.settle();
  Random random(test::seed());
  for (uint64_t span : {uint64_t{1} << 17, kSectors}) {
    for (int i = 0; i < 500; i++)  // fills the cache
      bench.read(at_ns += 10'000'000, random.below(span / 8) * 8, 8);
    uint64_t before = bench.counter("map_misses");
    int64_t waited_ns = 0;
    for (int i = 0; i < 500; i++) {
      bench.read(at_ns += 10'000'000, random.below(span / 8) * 8, 8);
      waited_ns += bench.journey.stage_ns(Stage::kMap);
    }
    uint64_t misses = bench.counter("map_misses") - before;
    if (span == kSectors)
      ck_assert_uint_gt(misses, 400);
    else
      ck_assert_uint_eq(misses, 0);
    ck_assert_int_eq(waited_ns, static_cast<int64_t>(misses) * (kSenseNs + kMoveNs));
  }
}
END_TEST

START_TEST(read_ahead_of_sequential_reads) {
  int64_t took_ns[2];
  for (uint32_t ahead : {0u, 262144u}) {
    FlashProfile profile = test_flash();
    profile.read_ahead_bytes = ahead;
    Bench bench(profile);
    bench.write(0, 0, 8192);
    int64_t start_ns = bench.settle(), at_ns = start_ns;
    for (uint64_t lba = 0; lba < 8192; lba += 64)
      at_ns = bench.read(at_ns, lba, 64).end_ns + 20'000;
    took_ns[ahead > 0] = at_ns - start_ns;
    // What is overwritten meanwhile is not taken from there.
    bench.write(at_ns, 0, 64);
    at_ns = bench.read(at_ns, 0, 8).end_ns;
    bench.check();
  }
  ck_assert_int_lt(2 * took_ns[1], took_ns[0]);
}
END_TEST

START_TEST(sustained_writes_are_throttled) {
  FlashProfile profile = test_flash();
  profile.throttle_iops = 20'000;
  profile.throttle_burst_ios = 1000;
  Bench bench(profile);
  int64_t at_ns = 0;
  for (unsigned i = 0; i < 21'000; i++) {
    at_ns = bench.write(at_ns, i * 8 % 4096, 8);
    if (i == 900)
      ck_assert_int_eq(bench.journey.stage_ns(Stage::kGc), 0);
  }
  ck_assert_int_ge(at_ns, 995'000'000);
  ck_assert_uint_gt(bench.counter("throttled_ns"), 0);
}
END_TEST

START_TEST(energy_adds_up) {
  FlashProfile profile = test_flash();
  profile.idle_mw = 500;
  profile.read_nj = 6000;
  Bench bench(profile);
  bench.flash.command(0, bench.journey);
  bench.write(0, 0, 8);
  bench.settle();
  bench.flash.command(2'000'000'000, bench.journey);
  ck_assert_uint_eq(bench.counter("energy_uj"), 1'000'000);
  bench.read(2'000'000'000, 0, 8);
  ck_assert_uint_eq(bench.counter("energy_uj"), 1'000'006);
}
END_TEST

// A drive without compression reads of a large unit what is asked for.
START_TEST(part_of_a_large_unit) {
  FlashProfile profile = test_flash();
  profile.map_unit_bytes = 32768;
  Bench bench(profile);
  bench.write(0, 0, 64);
  int64_t at_ns = bench.settle();
  int64_t sector_ns = bench.read(at_ns, 3, 1).end_ns - at_ns;
  int64_t whole_ns = bench.read(at_ns + 1'000'000, 0, 64).end_ns - at_ns - 1'000'000;
  ck_assert_int_lt(sector_ns, kSenseNs + kMoveNs / 7);
  ck_assert_int_ge(whole_ns, kSenseNs + kTwoNs);
}
END_TEST

// What holds nothing up comes on top of what does, once per command, however many there are.
START_TEST(latency_occupies_nothing) {
  FlashProfile profile = test_flash();
  Bench quick(profile);
  profile.read_latency_ns = 20'000;
  profile.write_latency_ns = 30'000;
  Bench slow(profile);
  for (uint64_t lba : {0u, 8u, 16u}) {
    ck_assert_int_eq(slow.read(0, lba, 8).end_ns, quick.read(0, lba, 8).end_ns + 20'000);
    ck_assert_int_eq(slow.write(0, lba, 8), quick.write(0, lba, 8) + 30'000);
  }
}
END_TEST

// What the firmware does once the data is taken in holds up the next command, not the answer.
START_TEST(write_is_answered_before_all_is_done) {
  FlashProfile profile = test_flash();
  Bench quick(profile);
  profile.write_command_ns = 5000;
  Bench slow(profile);
  ck_assert_int_eq(slow.write(0, 0, 8), quick.write(0, 0, 8));
  int64_t free_ns = quick.flash.command(0, quick.journey);
  ck_assert_int_eq(slow.flash.command(0, slow.journey), free_ns + 5000);
}
END_TEST

// The engine works on what is there while the rest comes, and ends one segment after the last byte.
START_TEST(engine_waits_for_a_segment) {
  constexpr int64_t kAtNs = 10'000'000;
  FlashProfile profile = test_flash();
  profile.write_unit_ns = 0;
  profile.compress_mb_s = 512;
  for (uint32_t segment : {4096u, 32768u, 1048576u}) {
    profile.compress_segment_bytes = segment;
    int64_t tail_ns = int64_t{std::min(segment, 131072u)} * 1000 / 512;
    ck_assert_int_eq(Bench(profile).write(kAtNs, 0, 256), kAtNs + tail_ns);
    ck_assert_int_eq(Bench(profile).write(kAtNs, 0, 8), kAtNs + 8000);
  }
}
END_TEST

START_TEST(stored_data_has_its_own_limit) {
  FlashProfile profile = test_flash();
  profile.store_mb_s = 16;  // a group of two pages each 1.024 ms
  Bench bench(profile);
  constexpr unsigned kGroups = 64;
  bench.write(0, 0, kGroups * 32);
  int64_t end_ns = bench.flush(0);
  ck_assert_int_ge(end_ns, kGroups * int64_t{1'024'000} + kProgramNs);
  ck_assert_int_lt(end_ns, kGroups * int64_t{1'024'000} + 2 * kProgramNs);
}
END_TEST

START_TEST(slow_error_correction_holds_the_channel) {
  FlashProfile profile = test_flash();
  profile.decode_mb_s = 64;
  Bench bench(profile);
  bench.write(0, 0, 8);
  int64_t at_ns = bench.settle();
  ck_assert_int_eq(bench.read(at_ns, 0, 8).end_ns - at_ns, kSenseNs + 64'000);
}
END_TEST

START_TEST(times_never_go_back) {
  Random random(test::seed());
  FlashProfile profile = test_flash();
  profile.read_unit_ns = profile.write_unit_ns = 500;
  profile.compress_mb_s = profile.decompress_mb_s = 500;
  profile.journal_permille = 10;
  profile.map_cache_units = 16384;
  profile.read_ahead_bytes = 65536;
  profile.throttle_iops = 100'000;
  profile.throttle_burst_ios = 10'000;
  Bench bench(profile, true, 1 << 19);
  int64_t now_ns = 0;
  for (int i = 0; i < 30000; i++) {
    now_ns += static_cast<int64_t>(random.below(100'000));
    auto sectors = static_cast<uint32_t>(1 + random.below(256));
    uint64_t lba = random.below((1 << 19) - sectors);
    Span ready = bench.read(now_ns, lba, sectors);
    int64_t accepted_ns = bench.write(now_ns, lba, sectors);
    if (ready.start_ns < now_ns || ready.end_ns < ready.start_ns || accepted_ns < now_ns)
      ck_abort_msg("step %d", i);
    if (random.one_in(100) && bench.flush(now_ns) < now_ns)
      ck_abort_msg("flush, step %d", i);
    if (random.one_in(50))
      bench.flash.trim(now_ns, lba, sectors, bench.journey);
    if (i % 5000 == 0)
      bench.check();
  }
  bench.check();
}
END_TEST

// Garbage collection of a drive that was accepted always gets further: written over and over, it
// neither hangs (the runner ends it then) nor loses a unit.
START_TEST(accepted_shapes_go_on) {
  Random random(test::seed());
  unsigned accepted = 0;
  for (int i = 0; i < 400; i++) {
    FlashProfile profile = random_shape(random);
    uint64_t units = 1 + random.below(6000);
    rd_error error;
    if (!FlashController::check(profile, units * 8, &error))
      continue;
    accepted++;
    Bench bench(profile, false, units * 8);
    const FlashPreset kPresets[] = {FlashPreset::kFresh, FlashPreset::kFull, FlashPreset::kSteady};
    bench.flash.renew(kPresets[random.below(3)], random.next());
    for (uint64_t done = 0; done < 3 * units; done++) {
      bench.write(0, random.below(units) * 8, 8);
      if (random.one_in(50))
        bench.flash.trim(0, random.below(units) * 8, 8, bench.journey);
    }
    bench.check();
  }
  ck_assert_uint_ge(accepted, 80);
}
END_TEST

int main() {
  return test::run_tests("flash_controller", {without_timing,
                                              commands_queue_at_the_core,
                                              c071_unmapped_reads,
                                              read_moves_what_is_stored,
                                              compressed_data_is_read_quicker,
                                              dies_and_channels,
                                              buffer_takes_then_waits,
                                              small_writes_share_a_page,
                                              buffer_hits,
                                              reads_go_first,
                                              part_of_a_unit_is_read_and_written_again,
                                              power_cycle_frees_everything,
                                              erase_takes_its_time_and_leaves_nothing,
                                              parity_is_written_too,
                                              map_cache_covers_a_span,
                                              read_ahead_of_sequential_reads,
                                              sustained_writes_are_throttled,
                                              energy_adds_up,
                                              part_of_a_large_unit,
                                              latency_occupies_nothing,
                                              write_is_answered_before_all_is_done,
                                              engine_waits_for_a_segment,
                                              stored_data_has_its_own_limit,
                                              slow_error_correction_holds_the_channel,
                                              times_never_go_back,
                                              accepted_shapes_go_on});
}
