// SPDX-License-Identifier: GPL-2.0-or-later
//
// SMART of one drive: attributes, health, self-tests in virtual time, SCT, logs, phy counters.
#include <cerrno>
#include <cstring>

#include "random.h"
#include "sata/phy_counters.h"
#include "smart_bench.h"

using namespace revodrive;

namespace {

constexpr int64_t kMinute = 60'000'000'000;
constexpr int64_t kHour = 60 * kMinute;

bool aborted(const FakeCommand &command) {
  return command.done() && command.status() == 0x51 && command.error() == 0x04;
}

void seal(uint8_t *page) {
  uint8_t sum = 0;
  for (size_t i = 0; i < 511; i++)
    sum = static_cast<uint8_t>(sum + page[i]);
  page[511] = static_cast<uint8_t>(-sum);
}

// A selective log with one span.
std::vector<uint8_t> selective(uint64_t first, uint64_t last) {
  std::vector<uint8_t> page(512);
  page[0] = 1;
  std::memcpy(&page[2], &first, 8);
  std::memcpy(&page[10], &last, 8);
  seal(page.data());
  return page;
}

// C033: ids, flags and thresholds of the drive database and of real drives' reports.
START_TEST(attribute_table) {
  struct Row {
    uint8_t id;
    uint16_t flags;
    uint8_t threshold, value;
  };
  static constexpr Row kRows[] = {
      {1, 0x000F, 50, 120},  {5, 0x0033, 3, 100},    {9, 0x0032, 0, 100},   {12, 0x0032, 0, 100},
      {171, 0x0032, 0, 0},   {172, 0x0032, 0, 0},    {174, 0x0030, 0, 0},   {177, 0x0000, 0, 0},
      {181, 0x0032, 0, 0},   {182, 0x0032, 0, 0},    {187, 0x0032, 0, 100}, {194, 0x0022, 0, 30},
      {195, 0x001C, 0, 100}, {196, 0x0033, 3, 100},  {201, 0x001C, 0, 100}, {204, 0x001C, 0, 100},
      {230, 0x0013, 0, 100}, {231, 0x0013, 10, 100}, {233, 0x0000, 0, 0},   {234, 0x0032, 0, 0},
      {241, 0x0032, 0, 0},   {242, 0x0032, 0, 0}};
  SmartBench bench;
  FakeCommand &thresholds = bench.smart(0xD1);
  ck_assert(thresholds.good());
  ck_assert(sums_to_zero(thresholds.window.data()));
  const uint8_t *data = bench.data_page();
  const uint8_t *limits = thresholds.window.data();
  ck_assert_uint_eq(word_at(data, 0), 10);
  ck_assert_uint_eq(word_at(limits, 0), 10);
  size_t at = 2;
  for (const Row &row : kRows) {
    ck_assert_uint_eq(data[at], row.id);
    ck_assert_uint_eq(limits[at], row.id);
    ck_assert_uint_eq(limits[at + 1], row.threshold);
    Attribute found = bench.attribute(row.id);
    ck_assert_uint_eq(found.flags, row.flags);
    ck_assert_uint_eq(found.value, row.value);
    ck_assert_uint_eq(found.worst, row.value);
    at += 12;
  }
  ck_assert_uint_eq(data[at], 0);
  ck_assert_uint_eq(bench.attribute(194).raw, 0x001E001E001E);
  ck_assert_uint_eq(bench.attribute(230).raw, 100);
  ck_assert_uint_eq(data[367], 0x7B);
  ck_assert_uint_eq(data[368], 3);
  ck_assert_uint_eq(data[370], 0);  // no error log
  ck_assert_uint_eq(data[372], 1);
  ck_assert_uint_eq(data[373], 48);
  ck_assert_uint_eq(data[374], 2);
}
END_TEST

START_TEST(power_on_time) {
  SmartBench bench;
  bench.pass(kHour + 1'500'000'000);
  uint64_t raw = bench.attribute(9).raw;
  ck_assert_uint_eq(raw & UINT32_MAX, 1);
  ck_assert_uint_ge(raw >> 32, 1500);
  ck_assert_uint_lt(raw >> 32, 1600);
  bench.pass(874 * kHour);
  ck_assert_uint_eq(bench.attribute(9).value, 100);
  bench.pass(kHour);
  ck_assert_uint_eq(bench.attribute(9).value, 99);
  bench.pass(876 * kHour);
  ck_assert_uint_eq(bench.attribute(9).value, 98);
  // The clock of a later life starts anywhere.
  std::vector<uint8_t> stored = bench.stored();
  SmartBench next;
  StreamReader in(stored);
  next.drive->load_persistent(in);
  ck_assert(in.ok());
  next.initiator.now_ns = 5 * kHour;
  next.drive->power_on(next.initiator.now_ns);
  ck_assert_uint_eq(next.attribute(9).raw & UINT32_MAX, 1752);
}
END_TEST

START_TEST(uncorrectable_reads) {
  SmartBench bench;
  bench.media.fail = [](const FakeMedia::Record &record) {
    return record.offset == 512 * 64 ? -EIO : 0;
  };
  ck_assert(bench.run({.opcode = 0x25, .lba = 0, .count = 8}, 4096).good());
  ck_assert_uint_eq(bench.attribute(1).raw, 0);  // as in all reports: nothing before an error
  ck_assert(!bench.run({.opcode = 0x25, .lba = 64, .count = 8}, 4096).good());
  Attribute rate = bench.attribute(1);
  ck_assert_uint_eq(rate.raw, uint64_t{1} << 32 | 16);
  ck_assert_uint_eq(rate.value, 48);  // 10 log10(16 * 4096)
  ck_assert_uint_eq(bench.attribute(195).raw, rate.raw);
  ck_assert_uint_eq(bench.attribute(204).value, 48);
  ck_assert_uint_eq(bench.attribute(187).raw, 1);
  ck_assert_uint_eq(bench.attribute(187).value, 99);
  ck_assert_uint_eq(bench.verdict(), 0x2CF4);  // 48 is below the threshold of 1
  // The rate is of one power cycle, the count is for life; and what was worst stays.
  bench.drive->reset(LinkReset::kPowerOn);
  ck_assert_uint_eq(bench.attribute(1).raw, 0);
  ck_assert_uint_eq(bench.attribute(1).value, 120);
  ck_assert_uint_eq(bench.attribute(1).worst, 48);
  ck_assert_uint_eq(bench.attribute(187).raw, 1);
  ck_assert_uint_eq(bench.attribute(12).raw, 2);
  ck_assert_uint_eq(bench.attribute(174).raw, 1);
}
END_TEST

// C034
START_TEST(health_by_life_left) {
  SmartBench bench;
  rd_error error = {};
  ck_assert_uint_eq(bench.verdict(), 0xC24F);
  ck_assert(bench.drive->set("smart_life_left", 11, &error));
  ck_assert_uint_eq(bench.verdict(), 0xC24F);
  ck_assert(bench.drive->set("smart_life_left", 10, &error));
  ck_assert_uint_eq(bench.verdict(), 0x2CF4);
  ck_assert_uint_eq(bench.attribute(231).value, 10);
  ck_assert(bench.drive->set("smart_life_left", 100, &error));
  ck_assert_uint_eq(bench.verdict(), 0xC24F);
  ck_assert_uint_eq(bench.attribute(231).worst, 100);
  ck_assert(!bench.drive->set("smart_life_left", 101, &error));
  ck_assert_ptr_nonnull(strstr(error.text, "smart_life_left=101"));
  ck_assert(!bench.drive->set("mood", 1, &error));
  ck_assert_ptr_nonnull(strstr(error.text, "mood"));
}
END_TEST

START_TEST(short_test_in_virtual_time) {
  SmartBench bench;
  bench.pass(2 * kHour);
  ck_assert(bench.smart(0xD4, 1).good());
  ck_assert_uint_eq(bench.test_status(), 0xF9);
  bench.pass(kMinute / 2);
  ck_assert_uint_eq(bench.test_status(), 0xF4);
  ck_assert_uint_eq(bench.log(0x06)[508], 0);
  bench.pass(kMinute / 2);
  ck_assert_uint_eq(bench.test_status(), 0x00);
  const uint8_t *log = bench.log(0x06);
  ck_assert(sums_to_zero(log));
  ck_assert_uint_eq(log[508], 1);
  ck_assert_uint_eq(log[2], 1);
  ck_assert_uint_eq(log[3], 0x00);
  ck_assert_uint_eq(log[4], 2);  // hours
  const uint8_t *extended = bench.read_log(0x07).window.data();
  ck_assert(sums_to_zero(extended));
  ck_assert_uint_eq(extended[0], 1);
  ck_assert_uint_eq(extended[2], 1);
  ck_assert_uint_eq(extended[4], 1);
  ck_assert_uint_eq(extended[6], 2);
}
END_TEST

START_TEST(durations) {
  for (auto [subcommand, minutes] : {std::pair{1, 1}, std::pair{2, 48}, std::pair{3, 2}}) {
    SmartBench bench;
    ck_assert(bench.smart(0xD4, static_cast<uint8_t>(subcommand)).good());
    bench.pass(minutes * kMinute - 1'000'000'000);
    ck_assert_uint_eq(bench.test_status(), 0xF0);
    bench.pass(1'000'000'000);
    ck_assert_uint_eq(bench.test_status(), 0x00);
  }
}
END_TEST

START_TEST(tests_that_are_stopped) {
  SmartBench bench;
  ck_assert(bench.smart(0xD4, 2).good());
  ck_assert(bench.smart(0xD4, 1).good());  // takes the place of the other
  ck_assert_uint_eq(bench.test_status(), 0xF9);
  ck_assert_uint_eq(bench.log(0x06)[3], 0x19);
  ck_assert(bench.smart(0xD4, 0x7F).good());
  ck_assert_uint_eq(bench.test_status(), 0x19);
  ck_assert(bench.smart(0xD4, 0x7F).good());  // nothing to stop
  ck_assert_uint_eq(bench.log(0x06)[508], 2);
  ck_assert(bench.smart(0xD4, 3).good());
  bench.drive->reset(LinkReset::kPowerOn);
  ck_assert_uint_eq(bench.test_status(), 0x29);
  ck_assert(bench.smart(0xD4, 1).good());
  ck_assert(bench.smart(0xD9).good());
  ck_assert(aborted(bench.smart(0xD0)));
  ck_assert(bench.smart(0xD8).good());
  ck_assert_uint_eq(bench.test_status(), 0x19);
  ck_assert_uint_eq(bench.log(0x06)[508], 4);
  for (uint8_t subcommand : {0x05, 0x40, 0x80, 0x85, 0xFF})
    ck_assert(aborted(bench.smart(0xD4, subcommand)));
}
END_TEST

START_TEST(captive_test_keeps_the_drive_busy) {
  SmartBench bench;
  int64_t start_ns = bench.initiator.now_ns;
  FakeCommand &done = bench.smart(0xD4, 0x81);
  ck_assert(done.good());
  ck_assert_int_ge(done.done_ns - start_ns, kMinute);
  ck_assert_uint_eq(done.ata.d2h[5] | done.ata.d2h[6] << 8, 0xC24F);
  ck_assert_uint_eq(bench.test_status(), 0x00);
  ck_assert_uint_eq(bench.log(0x06)[2], 0x81);
  // A reset is the only way out.
  FakeCommand &running = bench.issue({.opcode = 0xB0, .lba = kSmartKey | 0x82, .features = 0xD4});
  bench.initiator.cancel(running);
  bench.drive->reset(LinkReset::kComreset);
  ck_assert_uint_eq(bench.test_status() >> 4, 2);
}
END_TEST

START_TEST(log_keeps_the_newest) {
  SmartBench bench;
  for (unsigned i = 0; i < 50; i++) {
    ck_assert(bench.smart(0xD4, 1).good());
    bench.pass(kHour);
  }
  const uint8_t *log = bench.log(0x06);
  ck_assert_uint_eq(log[508], (50 - 1) % 21 + 1);
  size_t newest = 2 + 24 * (log[508] - 1u);
  ck_assert_uint_eq(log[newest + 2], 49);
  ck_assert_uint_eq(log[2 + 24 * (log[508] % 21u) + 2], 29);  // the oldest follows
  const uint8_t *extended = bench.read_log(0x07).window.data();
  ck_assert_uint_eq(extended[2], (50 - 1) % 19 + 1);
  ck_assert_uint_eq(extended[4 + 26 * (extended[2] - 1u) + 2], 49);
}
END_TEST

START_TEST(selective_test) {
  SmartBench bench;
  constexpr uint64_t kSectors = 1 << 20;
  ck_assert(aborted(bench.smart(0xD4, 4)));  // no span yet
  std::vector<uint8_t> half = selective(0, kSectors / 2 - 1);
  ck_assert(bench.smart(0xD6, 0x09, 1, half.data()).good());
  ck_assert_mem_eq(bench.log(0x09), half.data(), 512);
  ck_assert(bench.smart(0xD4, 4).good());
  bench.pass(12 * kMinute);
  const uint8_t *log = bench.log(0x09);
  uint64_t current = 0;
  std::memcpy(&current, log + 492, 8);
  ck_assert_uint_ge(current, kSectors / 4);
  ck_assert_uint_lt(current, kSectors / 4 + 1000);
  ck_assert_uint_eq(log[500], 1);
  ck_assert_uint_eq(bench.test_status(), 0xF4);
  ck_assert(aborted(bench.smart(0xD6, 0x09, 1, half.data())));  // while it runs
  bench.pass(12 * kMinute);
  ck_assert_uint_eq(bench.test_status(), 0x00);
  half[511]++;
  ck_assert(aborted(bench.smart(0xD6, 0x09, 1, half.data())));
  for (auto [first, last] : {std::pair<uint64_t, uint64_t>{5, 4}, {0, kSectors}, {7, UINT64_MAX}}) {
    std::vector<uint8_t> bad = selective(first, last);
    ck_assert(bench.smart(0xD6, 0x09, 1, bad.data()).good());
    ck_assert(aborted(bench.smart(0xD4, 4)));
  }
}
END_TEST

START_TEST(offline_collection) {
  SmartBench bench;
  ck_assert_uint_eq(bench.data_page()[362], 0x00);
  ck_assert(bench.smart(0xD4, 0).good());
  ck_assert_uint_eq(bench.data_page()[362], 0x02);
  ck_assert(bench.run({.opcode = 0xB0, .lba = kSmartKey, .count = 0xF8, .features = 0xDB}).good());
  ck_assert_uint_eq(bench.data_page()[362], 0x82);
  ck_assert(bench.run({.opcode = 0xB0, .lba = kSmartKey, .count = 0, .features = 0xDB}).good());
  ck_assert_uint_eq(bench.data_page()[362], 0x02);
  ck_assert(aborted(bench.run({.opcode = 0xB0, .lba = kSmartKey, .count = 1, .features = 0xDB})));
}
END_TEST

std::vector<uint8_t> sct_command(uint16_t action, uint16_t function, uint16_t table) {
  std::vector<uint8_t> page(512);
  for (size_t i = 0; uint16_t word : {action, function, table}) {
    page[i++] = static_cast<uint8_t>(word);
    page[i++] = static_cast<uint8_t>(word >> 8);
  }
  return page;
}

START_TEST(sct_temperature_history) {
  SmartBench bench;
  bench.pass(10 * kMinute);
  ck_assert(aborted(bench.smart(0xD5, 0xE1, 1)));
  ck_assert_uint_eq(bench.log(0xE0)[14], 0x0B);
  std::vector<uint8_t> ask = sct_command(5, 1, 2);
  ck_assert(bench.smart(0xD6, 0xE0, 1, ask.data()).good());
  const uint8_t *status = bench.log(0xE0);
  ck_assert_uint_eq(word_at(status, 0), 2);
  ck_assert_uint_eq(word_at(status, 7), 0);
  ck_assert_uint_eq(word_at(status, 8), 5);
  ck_assert_uint_eq(status[200], 30);
  const uint8_t *table = bench.log(0xE1);
  ck_assert_uint_eq(word_at(table, 0), 2);
  ck_assert_uint_eq(word_at(table, 1), 1);
  ck_assert_uint_eq(word_at(table, 2), 1);
  ck_assert_uint_eq(word_at(table, 15), 478);
  uint16_t newest = word_at(table, 16);
  for (unsigned back = 0; back < 478; back++)
    ck_assert_uint_eq(table[34 + (newest + 478u - back) % 478], back < 11 ? 30 : 0x80);
  ck_assert(aborted(bench.smart(0xD5, 0xE1, 1)));  // each read wants its command

  // A gap where the power was off; the general log space has it too.
  bench.drive->reset(LinkReset::kPowerOn);
  bench.pass(3 * kMinute);
  ck_assert(bench.run({.opcode = 0x3F, .lba = 0xE0, .count = 1}, 512, ask.data()).good());
  table = bench.read_log(0xE1).window.data();
  newest = word_at(table, 16);
  ck_assert_uint_eq(table[34 + (newest + 478u - 3) % 478], 0x80);
  ck_assert_uint_eq(table[34 + (newest + 478u - 2) % 478], 30);
  // Weeks later the ring has gone round.
  bench.pass(1000 * kHour);
  ck_assert(bench.smart(0xD6, 0xE0, 1, ask.data()).good());
  table = bench.log(0xE1);
  for (unsigned i = 0; i < 478; i++)
    ck_assert_uint_eq(table[34 + i], 30);
}
END_TEST

START_TEST(sct_refusals) {
  SmartBench bench;
  for (auto [command, status] :
       {std::pair{sct_command(3, 1, 0), 0x10}, std::pair{sct_command(5, 2, 2), 0x01},
        std::pair{sct_command(5, 1, 3), 0x11}, std::pair{sct_command(0, 0, 0), 0x10}}) {
    ck_assert(aborted(bench.smart(0xD6, 0xE0, 1, command.data())));
    ck_assert_uint_eq(bench.log(0xE0)[14], status);
    ck_assert(aborted(bench.smart(0xD5, 0xE1, 1)));
  }
}
END_TEST

// The directories list what can be read, and nothing else.
START_TEST(log_lists) {
  SmartBench bench;
  std::vector<uint8_t> general = {0x07, 0x10, 0x11, 0xB7, 0xE0, 0xE1};
  std::vector<uint8_t> smart = {0x06, 0x09, 0xB7, 0xE0, 0xE1};
  for (unsigned address = 0x80; address < 0xA0; address++) {
    general.push_back(static_cast<uint8_t>(address));
    smart.push_back(static_cast<uint8_t>(address));
  }
  const uint8_t *lists[] = {bench.read_log(0).window.data(), bench.log(0)};
  const std::vector<uint8_t> *wanted[] = {&general, &smart};
  for (size_t space = 0; space < 2; space++) {
    for (unsigned address = 1; address < 256; address++) {
      bool there = std::count(wanted[space]->begin(), wanted[space]->end(), address) > 0;
      ck_assert_msg((word_at(lists[space], address) != 0) == there, "log 0x%02x", address);
      if (!there && space == 1)
        ck_assert(aborted(bench.smart(0xD5, static_cast<uint8_t>(address), 1)));
    }
  }
  ck_assert_uint_eq(word_at(lists[0], 0xB7), 16);
}
END_TEST

uint16_t phy_counter(const uint8_t *page, uint16_t id) {
  for (size_t at = 4; at < 508; at += 4) {
    if ((page[at] | (page[at + 1] & 0x0F) << 8) == id)
      return static_cast<uint16_t>(page[at + 2] | page[at + 3] << 8);
  }
  ck_abort_msg("phy counter %03x is missing", id);
}

START_TEST(phy_counters) {
  SmartBench bench;
  bench.drive->reset(LinkReset::kComreset);
  bench.drive->reset(LinkReset::kComreset);
  const uint8_t *page = bench.read_log(0x11).window.data();
  ck_assert(sums_to_zero(page));
  ck_assert_uint_eq(phy_counter(page, 0x00A), 2);
  ck_assert_uint_eq(phy_counter(page, 0x009), 1);  // there was no link before the first
  FakeCommand &reading = bench.run({.opcode = 0x2F, .lba = 0x11, .count = 1, .features = 1}, 512);
  ck_assert_uint_eq(phy_counter(reading.window.data(), 0x00A), 2);
  ck_assert_uint_eq(phy_counter(bench.read_log(0x11).window.data(), 0x00A), 0);

  PhyCounters counters;
  counters.count_data_crc(PhyCounters::Direction::kToDevice);
  counters.count_data_crc(PhyCounters::Direction::kToHost);
  counters.count(PhyCounters::kRetries, 70000);
  Page shown = counters.page();
  const uint8_t *bytes = shown.bytes().data();
  ck_assert_uint_eq(phy_counter(bytes, 0x002), 2);
  ck_assert_uint_eq(phy_counter(bytes, 0x003), 1);
  ck_assert_uint_eq(phy_counter(bytes, 0x004), 1);
  ck_assert_uint_eq(phy_counter(bytes, 0x00B), 1);
  ck_assert_uint_eq(phy_counter(bytes, 0x00F), 1);
  ck_assert_uint_eq(phy_counter(bytes, 0x008), 0xFFFF);
}
END_TEST

// C037 with the flash model there is: what is written to flash is whole pages of what the host
// writes, so never less than that.
START_TEST(flash_writes_are_counted) {
  for (bool timing : {true, false}) {
    DriveBench bench(1 << 20, timing);
    std::vector<uint8_t> data(65536);
    uint64_t before = 0;
    for (unsigned i = 0; i < 20; i++) {
      uint16_t sectors = static_cast<uint16_t>(1 + i * 6);
      ck_assert(bench
                    .run({.opcode = 0x35, .lba = i * 1000u, .count = sectors}, sectors * 512u,
                         data.data())
                    .good());
      ck_assert_uint_ge(bench.counter("nand_write_bytes"), before);
      before = bench.counter("nand_write_bytes");
    }
    ck_assert(bench.run({.opcode = 0xEA}).good());
    uint64_t written = bench.counter("write_sectors") * 512;
    ck_assert_uint_ge(bench.counter("nand_write_bytes"), written);
    ck_assert_uint_le(bench.counter("nand_write_bytes"), written + 8192);
  }
}
END_TEST

START_TEST(state_round_trip) {
  SmartBench from, to;
  ck_assert(from.smart(0xD4, 2).good());
  rd_error error = {};
  ck_assert(from.drive->set("smart_life_left", 42, &error));
  from.drive->reset(LinkReset::kComreset);
  from.pass(20 * kMinute);
  StreamWriter out;
  from.drive->save(out);
  StreamReader in(out.bytes());
  to.drive->load(in);
  ck_assert(in.ok() && in.at_end());
  to.initiator.now_ns = from.initiator.now_ns;
  ck_assert_mem_eq(to.data_page(), from.data_page(), 512);
  ck_assert_uint_eq(to.test_status() & 0xF0, 0xF0);
  ck_assert_uint_eq(to.attribute(231).value, 42);
  ck_assert_mem_eq(to.read_log(0x11).window.data(), from.read_log(0x11).window.data(), 512);
  from.pass(30 * kMinute);
  to.pass(30 * kMinute);
  ck_assert_mem_eq(to.log(0x06), from.log(0x06), 512);
}
END_TEST

START_TEST(stored_bytes_from_anywhere) {
  Random random(test::seed());
  SmartBench from;
  ck_assert(from.smart(0xD4, 2).good());
  std::vector<uint8_t> half = selective(0, 100);
  ck_assert(from.smart(0xD6, 0x09, 1, half.data()).good());
  ck_assert(from.smart(0xD6, 0x85, 1, half.data()).good());
  std::vector<uint8_t> good = from.stored();
  for (unsigned round = 0; round < 3000; round++) {
    std::vector<uint8_t> bytes = good;
    for (unsigned i = 0; i < 1 + random.below(3); i++)
      bytes[random.below(bytes.size())] = static_cast<uint8_t>(random.next());
    if (random.one_in(8))
      bytes.resize(random.below(bytes.size()));
    SmartBench bench;
    StreamReader in(bytes);
    bench.drive->load_persistent(in);
    bench.drive->power_on(0);
    bench.pass(static_cast<int64_t>(random.below(1000)) * kMinute);
    // Refused or not, it must not break.
    bench.smart(0xD8);
    bench.smart(0xD0);
    bench.smart(0xD5, 0x06, 1);
    bench.smart(0xD5, 0x09, 1);
    bench.read_log(0x07);
    ck_assert(bench.rules_kept());
  }
}
END_TEST

}  // namespace

int main() {
  return test::run_tests(
      "smart", {attribute_table, power_on_time, uncorrectable_reads, health_by_life_left,
                short_test_in_virtual_time, durations, tests_that_are_stopped,
                captive_test_keeps_the_drive_busy, log_keeps_the_newest, selective_test,
                offline_collection, sct_temperature_history, sct_refusals, log_lists, phy_counters,
                flash_writes_are_counted, state_round_trip, stored_bytes_from_anywhere});
}
