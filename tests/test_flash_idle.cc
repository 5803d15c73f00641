// SPDX-License-Identifier: GPL-2.0-or-later
//
// Background collection while no command comes: what it gains and costs, where it ends, what stops
// it, and that it does not matter who looks at it meanwhile.
#include <map>

#include "drive_bench.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint64_t kSectors = 1 << 20;
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1000 * kMs;
constexpr int64_t kIdleMs = 50;

FlashProfile idle_profile() {
  FlashProfile profile = test_flash();
  profile.write_unit_ns = 1000;
  profile.raw_permille = 1200;
  profile.raise = 1;
  profile.journal_permille = 10;
  profile.read_nj = 6000;
  profile.program_nj = 100'000;
  profile.erase_nj = 300'000;
  profile.idle_gc_ms = kIdleMs;
  profile.idle_gc_free_permille = 40;
  return profile;
}

struct Rig {
  explicit Rig(const FlashProfile &profile = idle_profile(), uint64_t size = kSectors,
               bool timing = true)
      : sectors(size), flash(profile, size, timing) {}
  // A drive that random writes have brought to where it must collect for each one.
  Rig &use(unsigned writes = 20'000) {
    flash.renew(FlashPreset::kSteady, 3);
    for (unsigned i = 0; i < writes; i++)
      write();
    return *this;
  }
  int64_t write() {
    journey.start(now_ns);
    int64_t at_ns = flash.command(now_ns, journey);
    now_ns = flash.write(at_ns, random.below(sectors / 8) * 8, 8, {}, journey);
    return now_ns;
  }
  void look_after(int64_t idle_ns) { flash.idle(now_ns += idle_ns); }
  std::map<std::string, uint64_t> counters() const {
    std::map<std::string, uint64_t> values;
    flash.query([&](std::string_view key, uint64_t value) { values[std::string(key)] = value; });
    values.erase("flash_memory_bytes");
    return values;
  }
  uint64_t operator[](const std::string &name) const { return counters().at(name); }
  std::vector<uint8_t> saved() const {
    StreamWriter out;
    flash.save(out);
    return out.bytes();
  }
  uint64_t target() const { return (*this)["superblocks"] * 40 / 1000; }
  void check() const {
    const char *problem = flash.check_books();
    ck_assert_msg(!problem, "%s", problem);
  }

  uint64_t sectors;
  FlashController flash;
  Journey journey;
  Random random{test::seed()};
  int64_t now_ns = kMs;
};

}  // namespace

START_TEST(collects_until_enough_is_free) {
  Rig rig;
  rig.use();
  ck_assert_uint_lt(rig["free_superblocks"], rig.target());
  uint64_t programs = rig["nand_write_bytes"], erases = rig["erases"], energy = rig["energy_uj"];
  uint64_t busy = rig["die_busy_ns"], channel = rig["channel_busy_ns"],
           mapped = rig["mapped_units"];
  rig.look_after(600 * kSecond);
  rig.check();
  ck_assert_uint_eq(rig["free_superblocks"], rig.target());
  uint64_t units = rig["idle_gc_units"];
  ck_assert_uint_gt(units, 1000);
  ck_assert_uint_ge(rig["nand_write_bytes"] - programs, units * 4096);
  ck_assert_uint_gt(rig["erases"], erases);
  ck_assert_uint_gt(rig["energy_uj"], energy);
  ck_assert_uint_gt(rig["channel_busy_ns"], channel);
  ck_assert_uint_eq(rig["mapped_units"], mapped);
  // Not more than all dies can do in that time, and most of them work.
  double share =
      static_cast<double>(rig["die_busy_ns"] - busy) / 16 / static_cast<double>(rig["idle_gc_ns"]);
  ck_assert_msg(share > 0.5 && share <= 1.05, "dies are busy for %.2f of the time", share);
  // Enough is enough: looking on, or leaving it alone again, moves nothing.
  rig.look_after(600 * kSecond);
  ck_assert_uint_eq(rig["idle_gc_units"], units);
}
END_TEST

START_TEST(a_rested_drive_writes_faster) {
  auto burst_ns = [](int64_t pause_ns) {
    Rig rig;
    rig.use().now_ns += pause_ns;
    int64_t start_ns = rig.now_ns;
    for (int i = 0; i < 2000; i++)
      rig.write();
    return rig.now_ns - start_ns;
  };
  ck_assert_int_lt(2 * burst_ns(60 * kSecond), burst_ns(0));
}
END_TEST

START_TEST(nothing_happens_without_a_reason) {
  FlashProfile never = idle_profile();
  never.idle_gc_ms = 0;
  Rig off(never);
  off.use().look_after(3600 * kSecond);
  ck_assert_uint_eq(off["idle_gc_units"], 0);

  Rig rig;
  rig.flash.renew(FlashPreset::kSteady, 3);
  rig.look_after(3600 * kSecond);  // no command since it has power
  ck_assert_uint_eq(rig["idle_gc_units"], 0);
  rig.use();
  for (int i = 0; i < 100; i++, rig.write())
    rig.look_after((kIdleMs - 1) * kMs);
  ck_assert_uint_eq(rig["idle_gc_units"], 0);
  rig.flash.rest(true);
  rig.look_after(3600 * kSecond);
  rig.write();
  ck_assert_uint_eq(rig["idle_gc_units"], 0);
  rig.flash.rest(false);
  rig.flash.power_cycle();
  rig.now_ns += 3600 * kSecond;
  rig.write();
  ck_assert_uint_eq(rig["idle_gc_units"], 0);
  rig.look_after(3600 * kSecond);
  ck_assert_uint_gt(rig["idle_gc_units"], 0);
}
END_TEST

// A command waits for what the dies have begun, not for what could still be collected.
START_TEST(a_command_ends_it) {
  for (int i = 0; i < 40; i++) {
    Rig rig;
    rig.use(5000);
    rig.flash.flush(rig.now_ns, rig.journey);
    rig.look_after((kIdleMs + 20) * kMs + static_cast<int64_t>(rig.random.below(50 * kMs)));
    uint64_t units = rig["idle_gc_units"];
    ck_assert_uint_gt(units, 0);
    rig.journey.start(rig.now_ns);
    int64_t at_ns = rig.flash.command(rig.now_ns, rig.journey);
    uint64_t lba = rig.random.below(kSectors / 8) * 8;
    int64_t took_ns = rig.flash.read(at_ns, lba, 8, rig.journey).end_ns - rig.now_ns;
    // An erasure and the program behind it, with the reads and the channel that it needs.
    ck_assert_msg(took_ns < 10 * kMs, "a read waits %lld ns", static_cast<long long>(took_ns));
    rig.look_after((kIdleMs - 1) * kMs);
    ck_assert_uint_eq(rig["idle_gc_units"], units);
  }
}
END_TEST

// Queries, and a copy that was made in the midst of it.
START_TEST(looking_changes_nothing) {
  Rig alone, watched;
  alone.use();
  watched.use();
  for (int round = 0; round < 5; round++) {
    int64_t pause_ns = (kIdleMs + 1) * kMs + static_cast<int64_t>(alone.random.below(400 * kMs));
    watched.random = alone.random;
    int64_t end_ns = alone.now_ns + pause_ns;
    for (int i = 0; i < 20; i++) {
      auto left = static_cast<uint64_t>(end_ns - watched.now_ns);
      watched.look_after(static_cast<int64_t>(watched.random.below(left / 4 + 1)));
    }
    Rig copy;
    std::vector<uint8_t> bytes = watched.saved();
    StreamReader in(bytes);
    copy.flash.load(in);
    ck_assert(in.ok() && in.at_end());
    ck_assert(copy.saved() == bytes);
    alone.now_ns = watched.now_ns = copy.now_ns = end_ns;
    copy.random = watched.random = alone.random;
    for (int i = 0; i < 50; i++) {
      int64_t answered_ns = alone.write();
      ck_assert_int_eq(answered_ns, watched.write());
      ck_assert_int_eq(answered_ns, copy.write());
    }
    ck_assert(alone.saved() == watched.saved());
    ck_assert(alone.counters() == copy.counters());
    alone.check();
  }
  ck_assert_uint_gt(alone["idle_gc_units"], 0);
}
END_TEST

START_TEST(a_drive_restored_from_a_summary_goes_on) {
  Rig rig;
  rig.use().look_after((kIdleMs + 30) * kMs);
  StreamWriter out;
  ck_assert(rig.flash.save_persistent(out, 4096));
  Rig later;
  StreamReader in(out.bytes());
  later.flash.load_persistent(in);
  ck_assert(in.ok());
  later.flash.power_cycle();
  later.write();
  later.look_after(600 * kSecond);
  later.check();
  ck_assert_uint_ge(later["free_superblocks"], later.target());
}
END_TEST

// Without timing all is done at once; and drives so small that a superblock gains next to nothing
// come to an end too.
START_TEST(every_drive_comes_to_an_end) {
  for (bool timing : {true, false}) {
    for (uint64_t sectors : {uint64_t{16384}, uint64_t{65536}, kSectors}) {
      Rig rig(idle_profile(), sectors, timing);
      rig.use();
      rig.look_after(3600 * kSecond);
      rig.check();
      uint64_t once = rig["idle_gc_units"];
      ck_assert_uint_gt(once, 0);
      ck_assert_uint_le(once, 20 * rig["mapped_units"]);
      rig.look_after(3600 * kSecond);
      ck_assert_uint_eq(rig["idle_gc_units"], once);
    }
  }
}
END_TEST

int main() {
  return test::run_tests(
      "flash_idle", {collects_until_enough_is_free, a_rested_drive_writes_faster,
                     nothing_happens_without_a_reason, a_command_ends_it, looking_changes_nothing,
                     a_drive_restored_from_a_summary_goes_on, every_drive_comes_to_an_end});
}
