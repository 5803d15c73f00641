// SPDX-License-Identifier: GPL-2.0-or-later
//
// IDENTIFY DEVICE, word by word, for ordinary, huge and tiny drives.
#include "drive_bench.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint64_t kMemberSectors = 234441648;  // a 120 GB member

const Command kIdentify{.opcode = 0xEC};

uint16_t word(FakeCommand &command, size_t index) {
  return word_at(command.window.data(), index);
}

uint64_t number(FakeCommand &command, size_t first, size_t words) {
  uint64_t value = 0;
  for (size_t i = 0; i < words; i++)
    value |= uint64_t{word(command, first + i)} << (16 * i);
  return value;
}

std::string text(FakeCommand &command, size_t first, size_t words) {
  std::string out;
  for (size_t i = 0; i < words; i++) {
    out += static_cast<char>(word(command, first + i) >> 8);
    out += static_cast<char>(word(command, first + i) & 0xFF);
  }
  return out;
}

std::string padded(std::string value, size_t size) {
  value.resize(size, ' ');
  return value;
}

}  // namespace

START_TEST(words_of_a_member) {
  static constexpr struct {
    size_t index;
    uint16_t value;
  } kExpected[] = {
      {0, 0x0040},   {1, 16383},   {3, 16},       {6, 63},       {47, 0x8010},  {49, 0x2F00},
      {50, 0x4000},  {53, 0x0007}, {54, 16383},   {55, 16},      {56, 63},      {59, 0x0101},
      {63, 0x0007},  {64, 0x0003}, {65, 120},     {66, 120},     {67, 120},     {68, 120},
      {69, 0x4100},  {75, 31},     {76, 0x050E},  {77, 0x0006},  {78, 0x0040},  {79, 0x0040},
      {80, 0x01F0},  {81, 0x0110}, {82, 0x446B},  {83, 0x7509},  {84, 0x4162},  {85, 0x4429},
      {86, 0xB409},  {87, 0x4162}, {88, 0x407F},  {89, 1},       {90, 1},       {91, 254},
      {92, 0xFFFE},  {93, 0},      {105, 1},      {106, 0x4000}, {119, 0x4018}, {120, 0x4018},
      {128, 0x0021}, {169, 1},     {206, 0x0021}, {209, 0x4000}, {217, 1},      {222, 0x103E},
  };
  DriveBench bench(kMemberSectors);
  FakeCommand &done = bench.run(kIdentify, 512);
  ck_assert(done.good());
  for (auto [index, value] : kExpected)
    ck_assert_msg(word(done, index) == value, "word %zu is 0x%04x, not 0x%04x", index,
                  word(done, index), value);
  ck_assert_uint_eq(number(done, 57, 2), 16514064);
  ck_assert_uint_eq(number(done, 60, 2), kMemberSectors);
  ck_assert_uint_eq(number(done, 100, 4), kMemberSectors);
  ck_assert(text(done, 10, 10) == "OCZ-0123456789ABCDEF");
  ck_assert(text(done, 23, 4) == "2.25    ");
  ck_assert(text(done, 27, 20) == padded("OCZ-REVODRIVE3 X2", 40));
  ck_assert_uint_eq(word(done, 108), 0x5E83);
  ck_assert_uint_eq(word(done, 109), 0xA971);
  ck_assert_uint_eq(word(done, 110), 0x2345);
  ck_assert_uint_eq(word(done, 111), 0x6789);
  ck_assert_uint_eq(done.window.data()[510], 0xA5);
  ck_assert(sums_to_zero(done.window.data()));
  ck_assert(bench.rules_kept());
}
END_TEST

// What no listed feature set owns stays zero: nothing is claimed by accident.
START_TEST(other_words_are_zero) {
  DriveBench bench;
  FakeCommand &done = bench.run(kIdentify, 512);
  for (size_t i : {2u,   4u,   5u,   7u,   20u,  22u,  51u,  70u,  94u,  95u,  104u, 107u, 112u,
                   118u, 121u, 127u, 129u, 160u, 168u, 170u, 207u, 214u, 218u, 223u, 230u, 254u})
    ck_assert_msg(word(done, i) == 0, "word %zu is 0x%04x", i, word(done, i));
}
END_TEST

START_TEST(sector_counts) {
  static constexpr struct {
    uint64_t sectors;
    uint32_t words60;
    uint16_t cylinders;
  } kCases[] = {
      {1, 1, 1},
      {2048, 2048, 2},  // 1 MiB
      {16514064, 16514064, 16383},
      {0x0FFFFFFE, 0x0FFFFFFE, 16383},
      {0x0FFFFFFF, 0x0FFFFFFF, 16383},
      {0x10000000, 0x0FFFFFFF, 16383},  // 128 GiB
      {468862128, 0x0FFFFFFF, 16383},
      {uint64_t{1} << 40, 0x0FFFFFFF, 16383},
  };
  for (const auto &it : kCases) {
    DriveBench bench(it.sectors);
    FakeCommand &done = bench.run(kIdentify, 512);
    ck_assert(done.good());
    ck_assert_uint_eq(number(done, 60, 2), it.words60);
    ck_assert_uint_eq(number(done, 100, 4), it.sectors);
    ck_assert_uint_eq(word(done, 1), it.cylinders);
    ck_assert_uint_le(number(done, 57, 2), it.sectors);
  }
}
END_TEST

START_TEST(identity_strings_are_safe) {
  DriveIdentity odd{
      .model = std::string(100, 'M') + "tail", .serial = "bad\n\x01\xFF", .firmware = "", .wwn = 0};
  DriveBench bench(4096, true, odd);
  FakeCommand &done = bench.run(kIdentify, 512);
  ck_assert(text(done, 27, 20) == std::string(40, 'M'));
  ck_assert(text(done, 10, 10) == padded("bad", 20));
  ck_assert(text(done, 23, 4) == "        ");
}
END_TEST

// A larger window is fine, its rest untouched; a smaller one is refused whole.
START_TEST(window_size) {
  DriveBench bench;
  FakeCommand &large = bench.run(kIdentify, 4096);
  ck_assert(large.good());
  ck_assert(std::all_of(large.window.data() + 512, large.window.data() + 4096,
                        [](uint8_t byte) { return byte == 0; }));
  FakeCommand &small = bench.run(kIdentify, 511);
  ck_assert(small.done() && small.ata.failed && small.ata.data_short);
  ck_assert_uint_eq(small.status(), 0x51);
  ck_assert_uint_eq(small.error(), 0x04);
  ck_assert(std::all_of(small.window.data(), small.window.data() + 511,
                        [](uint8_t byte) { return byte == 0; }));
  FakeCommand &none = bench.run(kIdentify, 0);
  ck_assert(none.ata.data_short && none.error() == 0x04);
  ck_assert(bench.rules_kept());
}
END_TEST

START_TEST(settings_show) {
  static constexpr struct {
    uint16_t feature, count;
    size_t word;
    uint16_t mask, value;
  } kCases[] = {
      {0x82, 0, 85, 0x0020, 0},         {0x02, 0, 85, 0x0020, 0x0020},
      {0xAA, 0, 85, 0x0040, 0x0040},    {0x55, 0, 85, 0x0040, 0},
      {0x05, 0x80, 91, 0xFFFF, 0x0080}, {0x05, 0x80, 86, 0x0008, 0x0008},
      {0x85, 0, 86, 0x0008, 0},         {0x03, 0x42, 88, 0xFF00, 0x0400},
      {0x03, 0x21, 63, 0xFF00, 0x0200}, {0x03, 0x21, 88, 0xFF00, 0},
      {0x03, 0x46, 88, 0xFF00, 0x4000}, {0x03, 0x0C, 88, 0xFF00, 0x4000},
      {0x90, 6, 79, 0x0040, 0},         {0x10, 6, 79, 0x0040, 0x0040},
  };
  DriveBench bench;
  for (const auto &it : kCases) {
    ck_assert(bench.run({.opcode = 0xEF, .count = it.count, .features = it.feature}).good());
    FakeCommand &done = bench.run(kIdentify, 512);
    ck_assert_msg((word(done, it.word) & it.mask) == it.value,
                  "after feature 0x%02x count 0x%02x word %zu is 0x%04x", it.feature, it.count,
                  it.word, word(done, it.word));
  }
}
END_TEST

START_TEST(bad_settings_abort) {
  static constexpr struct {
    uint16_t feature, count;
  } kCases[] = {{0x00, 0},    {0x03, 0x02}, {0x03, 0x0D}, {0x03, 0x23}, {0x03, 0x47},
                {0x03, 0xFF}, {0x05, 0x00}, {0x05, 0xFF}, {0x10, 0x02}, {0x90, 0x03},
                {0x42, 0},    {0x06, 0},    {0xFF, 0}};
  DriveBench bench;
  FakeCommand &before = bench.run(kIdentify, 512);
  for (const auto &it : kCases) {
    FakeCommand &done = bench.run({.opcode = 0xEF, .count = it.count, .features = it.feature});
    ck_assert_msg(done.status() == 0x51 && done.error() == 0x04, "feature 0x%02x", it.feature);
  }
  FakeCommand &after = bench.run(kIdentify, 512);
  ck_assert_mem_eq(before.window.data(), after.window.data(), 512);
}
END_TEST

START_TEST(multiple_mode_shows) {
  DriveBench bench;
  for (uint16_t count : {1, 2, 4, 8, 16}) {
    ck_assert(bench.run({.opcode = 0xC6, .count = count}).good());
    ck_assert_uint_eq(word(bench.run(kIdentify, 512), 59), 0x0100 | count);
  }
  for (uint16_t count : {3, 5, 17, 32, 255})
    ck_assert_uint_eq(bench.run({.opcode = 0xC6, .count = count}).error(), 0x04);
  ck_assert_uint_eq(word(bench.run(kIdentify, 512), 59), 0x0110);
  ck_assert(bench.run({.opcode = 0xC6, .count = 0}).good());
  ck_assert_uint_eq(word(bench.run(kIdentify, 512), 59), 0);
}
END_TEST

START_TEST(frozen_until_power_on) {
  DriveBench bench;
  ck_assert(bench.run({.opcode = 0xF5}).good());
  ck_assert_uint_eq(word(bench.run(kIdentify, 512), 128), 0x0029);
  bench.drive->reset(LinkReset::kComreset);
  ck_assert_uint_eq(word(bench.run(kIdentify, 512), 128), 0x0029);
  bench.drive->reset(LinkReset::kPowerOn);
  ck_assert_uint_eq(word(bench.run(kIdentify, 512), 128), 0x0021);
}
END_TEST

START_TEST(resets_and_settings) {
  DriveBench bench;
  const Command cache_off{.opcode = 0xEF, .features = 0x82};
  ck_assert(bench.run(cache_off).good());
  bench.drive->reset(LinkReset::kComreset);
  ck_assert_uint_eq(word(bench.run(kIdentify, 512), 85) & 0x20, 0);  // settings preservation
  ck_assert(bench.run({.opcode = 0xEF, .count = 6, .features = 0x90}).good());
  bench.drive->reset(LinkReset::kComreset);
  ck_assert_uint_eq(word(bench.run(kIdentify, 512), 85) & 0x20, 0x20);
  ck_assert(bench.run(cache_off).good());
  bench.drive->reset(LinkReset::kPowerOn);
  ck_assert_uint_eq(word(bench.run(kIdentify, 512), 85) & 0x20, 0x20);
  ck_assert_uint_eq(bench.counter("link_resets"), 2);
}
END_TEST

int main() {
  return test::run_tests("ata_identify",
                         {words_of_a_member, other_words_are_zero, sector_counts,
                          identity_strings_are_safe, window_size, settings_show, bad_settings_abort,
                          multiple_mode_shows, frozen_until_power_on, resets_and_settings});
}
