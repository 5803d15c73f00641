// SPDX-License-Identifier: GPL-2.0-or-later
//
// What SMART shows of the flash: failures, retired blocks, wear, and that it outlives the power.
#include <map>
#include <memory>

#include "smart_bench.h"

using namespace revodrive;

// 8 MiB of flash that lasts ten cycles and fails often.
static SmartBench *worn_bench() {
  FlashProfile flash = test_flash();
  flash.raw_permille = 1600;
  flash.endurance_cycles = 100;
  flash.block_fail_ppb = 300'000;
  flash.spare_blocks_permille = 50;
  return new SmartBench(16384, false, {.model = "M", .serial = "WORN", .firmware = "1"}, {}, flash);
}

// What the flash counts is what SMART shows; it never falls, and it comes back from the store.
START_TEST(flash_attributes) {
  std::unique_ptr<SmartBench> bench(worn_bench());
  std::vector<uint8_t> noise(1 << 20);
  std::map<uint8_t, uint64_t> before;
  for (int life = 0; life < 3; life++) {
    for (unsigned i = 0; i < 8 * 30; i++)
      ck_assert(bench->run(queued(true, 0, i % 8 * 2048, 2048), 1 << 20, noise.data()).good());
    ck_assert_uint_eq(bench->attribute(5).raw, bench->counter("retired_blocks"));
    ck_assert_uint_eq(bench->attribute(196).raw, bench->attribute(5).raw);
    ck_assert_uint_eq(bench->attribute(171).raw, bench->counter("program_fails"));
    ck_assert_uint_eq(bench->attribute(181).raw, bench->counter("program_fails"));
    ck_assert_uint_eq(bench->attribute(172).raw, bench->counter("erase_fails"));
    ck_assert_uint_eq(bench->attribute(182).raw, bench->counter("erase_fails"));
    ck_assert_uint_eq(bench->attribute(177).raw,
                      bench->counter("wear_max") - bench->counter("wear_min"));
    ck_assert_uint_eq(bench->attribute(231).value, 100 - bench->counter("wear_avg"));
    for (uint8_t id : {5, 171, 172, 181, 182, 196}) {
      ck_assert_uint_ge(bench->attribute(id).raw, before[id]);
      before[id] = bench->attribute(id).raw;
    }
    std::vector<uint8_t> bytes = bench->stored();
    bench.reset(worn_bench());
    StreamReader in(bytes);
    bench->drive->load_persistent(in);
    ck_assert(in.ok());
    for (auto [id, raw] : before)
      ck_assert_uint_eq(bench->attribute(id).raw, raw);
  }
  ck_assert_uint_gt(before[5], 0);
  ck_assert_uint_lt(bench->attribute(5).value, 100);
  ck_assert_uint_lt(bench->attribute(231).value, 60);
}
END_TEST

// A drive whose image or profile has changed since is a new one, not a broken one.
START_TEST(stored_flash_of_another_shape) {
  std::unique_ptr<SmartBench> bench(worn_bench());
  ck_assert(bench->run(queued(true, 0, 0, 2048), 1 << 20).good());
  std::vector<uint8_t> bytes = bench->stored();
  FlashProfile flash = test_flash();
  flash.channels = 4;
  SmartBench other(16384, false, {.model = "M", .serial = "WORN", .firmware = "1"}, {}, flash);
  StreamReader in(bytes);
  other.drive->load_persistent(in);
  ck_assert(in.ok());
  ck_assert_uint_eq(other.counter("mapped_units"), 0);
}
END_TEST

int main() {
  return test::run_tests("smart_flash", {flash_attributes, stored_flash_of_another_shape});
}
