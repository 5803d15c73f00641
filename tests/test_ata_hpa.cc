// SPDX-License-Identifier: GPL-2.0-or-later
//
// The Host Protected Area: both forms of the commands, the limit, its password.
#include "drive_bench.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint64_t kSectors = 1 << 20;
constexpr uint8_t kReadMax = 0xF8, kReadMaxExt = 0x27, kSetMax = 0xF9, kSetMaxExt = 0x37;

bool failed(const FakeCommand &command, uint8_t error) {
  return command.done() && command.ata.failed && command.error() == error;
}

uint64_t lba_of(const FakeCommand &command, bool ext) {
  const Fis &fis = command.ata.d2h;
  uint64_t lba = fis[4] | fis[5] << 8 | fis[6] << 16;
  if (!ext)
    return lba | uint64_t{fis[7] & 0x0Fu} << 24;
  return lba | uint64_t{fis[8]} << 24 | uint64_t{fis[9]} << 32 | uint64_t{fis[10]} << 40;
}

FakeCommand &set_max(DriveBench &bench, bool ext, uint64_t max_lba, bool keep) {
  ck_assert(bench.run({.opcode = ext ? kReadMaxExt : kReadMax}).good());
  Command command{.opcode = ext ? kSetMaxExt : kSetMax, .lba = max_lba, .count = keep};
  if (!ext) {
    command.lba = max_lba & 0xFFFFFF;
    command.device = static_cast<uint8_t>(0x40 | (max_lba >> 24 & 0x0F));
  }
  return bench.run(command);
}

uint64_t capacity(DriveBench &bench) {
  FakeCommand &done = bench.run({.opcode = 0xEC}, 512);
  const uint8_t *data = done.window.data();
  uint64_t sectors = 0;
  for (size_t i = 0; i < 4; i++)
    sectors |= uint64_t{word_at(data, 100 + i)} << (16 * i);
  ck_assert_uint_eq(word_at(data, 60) | uint32_t{word_at(data, 61)} << 16, sectors);
  ck_assert_uint_ne(word_at(data, 82) & 0x400, 0);
  ck_assert_uint_ne(word_at(data, 85) & 0x400, 0);
  return sectors;
}

FakeCommand &password(DriveBench &bench, uint8_t feature, const char *text) {
  std::array<uint8_t, 512> block{};
  std::memcpy(block.data() + 2, text, std::strlen(text));
  return bench.run({.opcode = kSetMax, .features = feature}, 512, block.data());
}

}  // namespace

START_TEST(native_max) {
  DriveBench bench(kSectors);
  ck_assert_uint_eq(lba_of(bench.run({.opcode = kReadMax}), false), kSectors - 1);
  ck_assert_uint_eq(lba_of(bench.run({.opcode = kReadMaxExt}), true), kSectors - 1);
  DriveBench large(uint64_t{1} << 32);
  ck_assert_uint_eq(lba_of(large.run({.opcode = kReadMax}), false), 0x0FFFFFFF);
  ck_assert_uint_eq(lba_of(large.run({.opcode = kReadMaxExt}), true), 0xFFFFFFFF);
}
END_TEST

START_TEST(limit) {
  for (bool ext : {false, true}) {
    DriveBench bench(kSectors);
    ck_assert(set_max(bench, ext, 999, false).good());
    ck_assert_uint_eq(capacity(bench), 1000);
    ck_assert(bench.run({.opcode = 0x25, .lba = 999, .count = 1}, 512).good());
    ck_assert(failed(bench.run({.opcode = 0x25, .lba = 1000, .count = 1}, 512), 0x10));
    ck_assert(failed(bench.run({.opcode = 0x35, .lba = 999, .count = 2}, 1024), 0x10));
    ck_assert(failed(bench.run({.opcode = 0xC8, .lba = 1000, .count = 1}, 512), 0x10));
    ck_assert(failed(bench.run({.opcode = 0x42, .lba = 1000, .count = 1}), 0x10));
    ck_assert(bench.run(queued(false, 0, 1000, 8), 4096).ata.failed);
    ck_assert(bench.read_log(0x10).good());
    std::array<uint8_t, 512> block{0xE8, 0x03, 0, 0, 0, 0, 1, 0};
    ck_assert(
        failed(bench.run({.opcode = 0x06, .count = 1, .features = 1}, 512, block.data()), 0x10));
    ck_assert_uint_eq(lba_of(bench.run({.opcode = kReadMaxExt}), true), kSectors - 1);
    bench.drive->reset(LinkReset::kComreset);
    ck_assert_uint_eq(capacity(bench), 1000);
    bench.drive->reset(LinkReset::kPowerOn);
    ck_assert_uint_eq(capacity(bench), kSectors);
  }
}
END_TEST

START_TEST(wants_native_max_right_before) {
  DriveBench bench(kSectors);
  ck_assert(failed(bench.run({.opcode = kSetMaxExt, .lba = 99}), 0x04));
  ck_assert(bench.run({.opcode = kReadMaxExt}).good());
  ck_assert(bench.run({.opcode = 0xE5}).good());
  ck_assert(failed(bench.run({.opcode = kSetMaxExt, .lba = 99}), 0x04));
  ck_assert(bench.run({.opcode = kReadMaxExt}).good());  // of the other form
  ck_assert(failed(bench.run({.opcode = kSetMax, .lba = 99}), 0x04));
  ck_assert(failed(set_max(bench, true, kSectors, false), 0x04));  // beyond the end
  ck_assert_uint_eq(capacity(bench), kSectors);
}
END_TEST

START_TEST(kept_over_power_cycles) {
  DriveBench bench(kSectors);
  ck_assert(set_max(bench, true, 4999, true).good());
  ck_assert(failed(set_max(bench, true, 9999, true), 0x10));  // one per power cycle
  ck_assert(set_max(bench, true, 2999, false).good());
  ck_assert_uint_eq(capacity(bench), 3000);
  bench.drive->reset(LinkReset::kPowerOn);
  ck_assert_uint_eq(capacity(bench), 5000);

  StreamWriter stored;
  bench.drive->save_persistent(stored, 0);
  DriveBench later(kSectors);
  StreamReader in(stored.bytes());
  later.drive->load_persistent(in);
  ck_assert_uint_eq(capacity(later), 5000);
  DriveBench smaller(4000);  // the image was replaced
  StreamReader again(stored.bytes());
  smaller.drive->load_persistent(again);
  ck_assert_uint_eq(capacity(smaller), 4000);

  ck_assert(set_max(bench, true, kSectors - 1, true).good());
  bench.drive->reset(LinkReset::kPowerOn);
  ck_assert_uint_eq(capacity(bench), kSectors);
}
END_TEST

START_TEST(short_form_after_long_form) {
  DriveBench bench(kSectors);
  ck_assert(set_max(bench, true, 4999, false).good());
  ck_assert(failed(set_max(bench, false, 999, false), 0x04));
  ck_assert(set_max(bench, true, kSectors - 1, false).good());
  ck_assert(set_max(bench, false, 999, false).good());
}
END_TEST

START_TEST(password_and_lock) {
  DriveBench bench(kSectors);
  ck_assert(failed(bench.run({.opcode = kSetMax, .features = 2}), 0x04));  // no password yet
  ck_assert(password(bench, 1, "max").good());
  ck_assert(bench.run({.opcode = kSetMax, .features = 2}).good());
  ck_assert(failed(set_max(bench, true, 99, false), 0x04));
  ck_assert(failed(password(bench, 3, "min"), 0x04));
  ck_assert(password(bench, 3, "max").good());
  ck_assert(set_max(bench, true, 99, false).good());
  ck_assert(bench.run({.opcode = kSetMax, .features = 2}).good());
  for (int i = 0; i < 5; i++)
    ck_assert(failed(password(bench, 3, "min"), 0x04));
  ck_assert(failed(password(bench, 3, "max"), 0x04));  // out of attempts
  bench.drive->reset(LinkReset::kPowerOn);
  ck_assert(set_max(bench, true, 99, false).good());
}
END_TEST

START_TEST(freeze_lock) {
  DriveBench bench(kSectors);
  ck_assert(password(bench, 1, "max").good());
  ck_assert(bench.run({.opcode = kSetMax, .features = 4}).good());
  ck_assert(failed(set_max(bench, true, 99, false), 0x04));
  ck_assert(failed(password(bench, 1, "new"), 0x04));
  ck_assert(failed(bench.run({.opcode = kSetMax, .features = 2}), 0x04));
  bench.drive->reset(LinkReset::kPowerOn);
  ck_assert(set_max(bench, true, 99, false).good());
}
END_TEST

// Right behind READ NATIVE MAX ADDRESS every SET MAX is SET MAX ADDRESS.
START_TEST(feature_is_ignored_after_native_max) {
  DriveBench bench(kSectors);
  ck_assert(bench.run({.opcode = kReadMax}).good());
  ck_assert(bench.run({.opcode = kSetMax, .lba = 99, .features = 2}).good());
  ck_assert_uint_eq(capacity(bench), 100);
}
END_TEST

START_TEST(saved) {
  DriveBench bench(kSectors);
  ck_assert(set_max(bench, true, 99, false).good());
  ck_assert(bench.run({.opcode = kReadMaxExt}).good());
  StreamWriter out;
  bench.drive->save(out);
  DriveBench other(kSectors);
  StreamReader in(out.bytes());
  other.drive->load(in);
  ck_assert(in.ok() && in.at_end());
  ck_assert(other.run({.opcode = kSetMaxExt, .lba = 199}).good());
  ck_assert_uint_eq(capacity(other), 200);
}
END_TEST

int main() {
  return test::run_tests("ata_hpa",
                         {native_max, limit, wants_native_max_right_before, kept_over_power_cycles,
                          short_form_after_long_form, password_and_lock, freeze_lock,
                          feature_is_ignored_after_native_max, saved});
}
