// SPDX-License-Identifier: GPL-2.0-or-later
//
// The command set: every opcode ends, the limits of every read and write form, logs, SMART, power.
#include "drive_bench.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint64_t kSectors = 1 << 20;

bool aborted(const FakeCommand &command) {
  return command.done() && command.ata.failed && command.status() == 0x51 &&
         command.error() == 0x04;
}

bool id_not_found(const FakeCommand &command) {
  return command.done() && command.ata.failed && command.error() == 0x10;
}

// The 28-bit forms keep LBA 27:24 in the device register.
Command addressed(uint8_t opcode, bool ext, uint64_t lba, uint16_t count) {
  if (ext)
    return {.opcode = opcode, .lba = lba, .count = count};
  return {.opcode = opcode,
          .lba = lba & 0xFFFFFF,
          .count = count,
          .device = static_cast<uint8_t>(0x40 | (lba >> 24 & 0x0F))};
}

struct Form {
  uint8_t opcode;
  bool ext;
  bool write;
};
constexpr Form kForms[] = {
    {0x20, false, false}, {0x21, false, false}, {0x24, true, false},  {0x25, true, false},
    {0x29, true, false},  {0xC4, false, false}, {0xC8, false, false}, {0xC9, false, false},
    {0x30, false, true},  {0x31, false, true},  {0x34, true, true},   {0x35, true, true},
    {0x39, true, true},   {0x3D, true, true},   {0xC5, false, true},  {0xCA, false, true},
    {0xCB, false, true},  {0xCE, true, true},
};

}  // namespace

// Windows of every kind and random register contents: each opcode ends with DRDY and without BSY or
// DRQ, and never touches a byte outside the window (the initiator checks the guards).
START_TEST(every_opcode_ends) {
  Random random(test::seed());
  for (int round = 0; round < 20; round++) {
    for (unsigned opcode = 0; opcode < 256; opcode++) {
      DriveBench bench(kSectors, round % 2 == 0);
      Command command{.opcode = static_cast<uint8_t>(opcode),
                      .lba = random.next() & 0xFFFF'FFFF'FFFF,
                      .count = static_cast<uint16_t>(random.next()),
                      .features = static_cast<uint16_t>(random.next()),
                      .device = static_cast<uint8_t>(random.next())};
      if (round % 4 == 1)
        command.lba = random.below(kSectors);
      if (round % 4 == 3)
        command = {.opcode = command.opcode, .lba = 0xC24F00, .count = 1, .features = 0xD0};
      uint32_t window = static_cast<uint32_t>(random.one_in(3) ? 0 : random.below(70000));
      FakeCommand &done = bench.run(command, window);
      ck_assert_msg(done.done(), "opcode 0x%02x", opcode);
      ck_assert_uint_eq(done.ata.d2h[0], 0x34);
      ck_assert_uint_eq(done.status() & 0xC8, 0x40);
      ck_assert_int_eq(done.ata.failed, done.status() & 0x01);
      ck_assert(bench.rules_kept());
    }
  }
}
END_TEST

START_TEST(unknown_opcodes_abort) {
  DriveBench bench;
  for (uint8_t opcode :
       {0x00, 0x08, 0x10, 0x22, 0x23, 0x26, 0x32, 0x33, 0x36, 0x45, 0x63, 0x64, 0x65,
        0x70, 0x91, 0xA0, 0xA1, 0xA2, 0xB1, 0xB4, 0xE4, 0xE8, 0xF0, 0xF7, 0xFA, 0xFF})
    ck_assert_msg(aborted(bench.run({.opcode = opcode}, 512)), "opcode 0x%02x", opcode);
  ck_assert(bench.media.records.empty());
}
END_TEST

START_TEST(not_a_command_fis) {
  DriveBench bench;
  Fis control = Command{.opcode = 0xEC}.fis();
  control[1] = 0;
  FakeCommand &first = bench.initiator.issue(control, 512);
  bench.initiator.run();
  ck_assert(aborted(first));
  Fis data = Command{.opcode = 0x60}.fis();
  data[0] = 0x46;
  FakeCommand &second = bench.initiator.issue(data, 512);
  bench.initiator.run();
  ck_assert(aborted(second));
}
END_TEST

START_TEST(forms_move_data) {
  for (const Form &form : kForms) {
    DriveBench bench(kSectors);
    std::vector<uint8_t> data(3 * 512);
    for (size_t i = 0; i < data.size(); i++)
      data[i] = static_cast<uint8_t>(i * 7 + i / 512);
    const Command write =
        addressed(form.write ? form.opcode : 0x35, form.write ? form.ext : true, 1234, 3);
    ck_assert(bench.run(write, 3 * 512, data.data()).good());
    const Command read =
        addressed(form.write ? 0x25 : form.opcode, form.write ? true : form.ext, 1234, 3);
    FakeCommand &done = bench.run(read, 3 * 512);
    ck_assert_msg(done.good(), "opcode 0x%02x", form.opcode);
    ck_assert_mem_eq(done.window.data(), data.data(), data.size());
    ck_assert(done.window.moved);
    ck_assert(bench.rules_kept());
  }
}
END_TEST

START_TEST(limits) {
  static constexpr struct {
    uint64_t lba_from_end;  // of the drive
    uint16_t count;
    bool good;
  } kCases[] = {{1, 1, true}, {2, 2, true},  {1, 2, false},  {0, 1, false},
                {8, 8, true}, {8, 9, false}, {255, 0, false}};
  for (const Form &form : kForms) {
    DriveBench bench(kSectors);
    for (const auto &it : kCases) {
      FakeCommand &done =
          bench.run(addressed(form.opcode, form.ext, kSectors - it.lba_from_end, it.count), 65536);
      ck_assert_msg(it.good ? done.good() : id_not_found(done),
                    "opcode 0x%02x, %u sectors %u from the end: status 0x%02x error 0x%02x",
                    form.opcode, it.count, static_cast<unsigned>(it.lba_from_end), done.status(),
                    done.error());
      uint64_t lba = done.ata.d2h[4] | done.ata.d2h[5] << 8 | done.ata.d2h[6] << 16;
      if (!it.good)
        ck_assert_uint_eq(lba, kSectors - it.lba_from_end);
    }
    ck_assert(bench.rules_kept());
  }
}
END_TEST

START_TEST(count_zero_is_the_largest) {
  DriveBench bench(kSectors);
  ck_assert(bench.run(addressed(0xC8, false, 0, 0), 256 * 512).good());
  ck_assert(bench.run(addressed(0x25, true, 0, 0), 65536 * 512).good());
  ck_assert(bench.run(queued(false, 3, 0, 0), 65536 * 512).good());
  ck_assert_uint_eq(bench.media.records[0].bytes, 256 * 512);
  ck_assert_uint_eq(bench.media.records[1].bytes, 65536 * 512);
  ck_assert_uint_eq(bench.media.records[2].bytes, 65536 * 512);
  ck_assert(bench.run(addressed(0x25, true, 0, 0), 65536 * 512 - 1).ata.data_short);
}
END_TEST

// The short forms end where IDENTIFY words 60-61 end, however large the drive is.
START_TEST(short_forms_on_a_large_drive) {
  DriveBench bench(uint64_t{1} << 32);
  ck_assert(bench.run(addressed(0xC8, false, 0x0FFFFFFE, 1), 512).good());
  ck_assert(id_not_found(bench.run(addressed(0xC8, false, 0x0FFFFFFE, 2), 1024)));
  ck_assert(id_not_found(bench.run(addressed(0xC8, false, 0x0FFFFFFF, 1), 512)));
  ck_assert(bench.run(addressed(0x25, true, 0x0FFFFFFF, 2), 1024).good());
  ck_assert(bench.run(addressed(0x25, true, 0xFFFFFFFF, 1), 512).good());
  ck_assert(id_not_found(bench.run(addressed(0x25, true, 0xFFFF'FFFF'FFFF, 1), 512)));
  ck_assert(aborted(bench.run({.opcode = 0xC8, .count = 1, .device = 0}, 512)));  // CHS
}
END_TEST

START_TEST(short_windows_move_nothing) {
  for (const Form &form : kForms) {
    DriveBench bench(kSectors);
    FakeCommand &done = bench.run(addressed(form.opcode, form.ext, 0, 2), 1023);
    ck_assert(aborted(done) && done.ata.data_short);
    FakeCommand &larger = bench.run(addressed(form.opcode, form.ext, 0, 2), 4096);
    ck_assert(larger.good());
    FakeCommand &broken = bench.issue(addressed(form.opcode, form.ext, 0, 2), 0);
    bench.initiator.run();
    ck_assert(aborted(broken) && broken.ata.data_short);
    ck_assert_uint_eq(bench.media.records.size(), 1);
    ck_assert(bench.rules_kept());
  }
}
END_TEST

START_TEST(multiple_needs_a_block_size) {
  DriveBench bench(kSectors);
  ck_assert(bench.run({.opcode = 0xC6, .count = 0}).good());
  for (uint8_t opcode : {0x29, 0x39, 0xC4, 0xC5, 0xCE})
    ck_assert(aborted(bench.run({.opcode = opcode, .count = 1}, 512)));
  ck_assert(bench.media.records.empty());
}
END_TEST

START_TEST(verify_checks_the_range) {
  DriveBench bench(kSectors);
  for (uint8_t opcode : {0x40, 0x41, 0x42}) {
    bool ext = opcode == 0x42;
    ck_assert(bench.run(addressed(opcode, ext, kSectors - 4, 4)).good());
    ck_assert(id_not_found(bench.run(addressed(opcode, ext, kSectors - 4, 5))));
  }
}
END_TEST

START_TEST(flush_reaches_the_backend) {
  DriveBench bench(kSectors);
  for (uint8_t opcode : {0xE7, 0xEA, 0xE0, 0xE2, 0xE6})
    ck_assert(bench.run({.opcode = opcode}).good());
  ck_assert(bench.run({.opcode = 0xEF, .features = 0x82}).good());
  ck_assert_uint_eq(bench.media.records.size(), 6);
  for (const FakeMedia::Record &record : bench.media.records)
    ck_assert_int_eq(record.op, RD_BLOCK_FLUSH);
  ck_assert_uint_eq(bench.counter("flushes"), 2);
}
END_TEST

START_TEST(stable_writes) {
  static constexpr struct {
    uint8_t opcode;
    bool fua;
  } kCases[] = {{0x35, false}, {0x3D, true},  {0xCE, true},  {0x34, false},
                {0x39, false}, {0xCA, false}, {0xC5, false}, {0x30, false}};
  for (bool cache : {true, false}) {
    DriveBench bench(kSectors);
    if (!cache)
      ck_assert(bench.run({.opcode = 0xEF, .features = 0x82}).good());
    for (const auto &it : kCases) {
      ck_assert(bench.run({.opcode = it.opcode, .count = 1}, 512).good());
      ck_assert_int_eq(bench.media.records.back().op,
                       it.fua || !cache ? RD_BLOCK_WRITE_FUA : RD_BLOCK_WRITE);
    }
    for (bool fua : {false, true}) {
      ck_assert(bench.run(queued(true, 0, 0, 1, fua), 512).good());
      ck_assert_int_eq(bench.media.records.back().op,
                       fua || !cache ? RD_BLOCK_WRITE_FUA : RD_BLOCK_WRITE);
      ck_assert(bench.run(queued(false, 0, 0, 1, fua), 512).good());
      ck_assert_int_eq(bench.media.records.back().op, RD_BLOCK_READ);
    }
  }
}
END_TEST

START_TEST(power_modes) {
  DriveBench bench(kSectors);
  auto mode = [&] { return bench.run({.opcode = 0xE5}).ata.d2h[12]; };
  ck_assert_uint_eq(mode(), 0xFF);
  ck_assert(bench.run({.opcode = 0xE1}).good());
  ck_assert_uint_eq(mode(), 0x80);
  ck_assert(bench.run({.opcode = 0xE0}).good());
  ck_assert_uint_eq(mode(), 0x00);
  ck_assert(bench.run({.opcode = 0x25, .count = 1}, 512).good());
  ck_assert_uint_eq(mode(), 0xFF);
  ck_assert(bench.run({.opcode = 0xE3, .count = 12}).good());
  ck_assert_uint_eq(mode(), 0x80);
  ck_assert(bench.run({.opcode = 0xE6}).good());
  ck_assert(bench.run({.opcode = 0xEC}, 512).good());  // any command wakes it
  ck_assert_uint_eq(mode(), 0x00);
  bench.drive->reset(LinkReset::kComreset);
  ck_assert_uint_eq(mode(), 0xFF);
}
END_TEST

START_TEST(signature_and_diagnostics) {
  DriveBench bench(kSectors);
  const Fis signature{0x34, 0x40, 0x50, 0x01, 0x01, 0, 0, 0, 0, 0, 0, 0, 0x01};
  ck_assert(bench.drive->signature() == signature);
  FakeCommand &done = bench.run({.opcode = 0x90});
  ck_assert(done.ata.d2h == signature && !done.ata.failed);
}
END_TEST

START_TEST(log_directory) {
  DriveBench bench;
  for (uint8_t opcode : {0x2F, 0x47}) {
    FakeCommand &done = bench.read_log(0x00, 1, opcode);
    ck_assert(done.good());
    const uint8_t *page = done.window.data();
    ck_assert_uint_eq(word_at(page, 0), 1);
    for (unsigned log = 1; log < 256; log++) {
      bool one = log == 0x07 || log == 0x10 || log == 0x11 || log == 0xE0 || log == 0xE1;
      bool many = (log >= 0x80 && log <= 0x9F) || log == 0xB7;
      unsigned pages = one ? 1 : many ? 16 : 0;
      ck_assert_msg(word_at(page, log) == pages, "log 0x%02x has %u pages", log,
                    word_at(page, log));
    }
  }
}
END_TEST

// What the directory says is what can be read, and no page more.
START_TEST(log_sizes) {
  DriveBench bench;
  const uint8_t *directory = bench.read_log(0).window.data();
  for (unsigned log = 1; log < 256; log++) {
    uint16_t pages = word_at(directory, log);
    auto address = static_cast<uint8_t>(log);
    ck_assert(aborted(bench.read_log(address, static_cast<uint16_t>(pages + 1))));
    if (pages > 0 && log != 0xE1)  // that wants a command first
      ck_assert(bench.read_log(address, pages).good());
  }
  ck_assert(aborted(bench.read_log(0x80, 0)));
  // Page 16 of log 80h, asked for as bits 7:0 and 15:8 of the page number.
  ck_assert(aborted(bench.run({.opcode = 0x2F, .lba = 0x1080, .count = 1}, 512)));
  ck_assert(aborted(bench.run({.opcode = 0x2F, .lba = 0x01'0000'0080, .count = 1}, 512)));
  ck_assert(bench.run({.opcode = 0x2F, .lba = 0x0F80, .count = 1}, 512).good());
  ck_assert(bench.run({.opcode = 0x2F, .lba = 0x80, .count = 2}, 1023).ata.data_short);
}
END_TEST

START_TEST(host_logs_keep) {
  DriveBench bench;
  std::vector<uint8_t> data(2 * 512);
  for (size_t i = 0; i < data.size(); i++)
    data[i] = static_cast<uint8_t>(i ^ 0x5A);
  ck_assert(bench.run({.opcode = 0x3F, .lba = 0x0E9F, .count = 2}, 1024, data.data()).good());
  bench.drive->reset(LinkReset::kPowerOn);
  FakeCommand &general = bench.run({.opcode = 0x47, .lba = 0x0E9F, .count = 2}, 1024);
  ck_assert(general.good());
  ck_assert_mem_eq(general.window.data(), data.data(), data.size());
  FakeCommand &smart =
      bench.run({.opcode = 0xB0, .lba = 0xC24F9F, .count = 16, .features = 0xD5}, 8192);
  ck_assert(smart.good());
  ck_assert_mem_eq(smart.window.data() + 14 * 512, data.data(), data.size());
  ck_assert_uint_eq(bench.read_log(0x80).window.data()[0], 0);
  for (uint8_t address : {0x00, 0x10, 0x11, 0x7F, 0xA0})
    ck_assert(aborted(bench.run({.opcode = 0x57, .lba = address, .count = 1}, 512, data.data())));
}
END_TEST

START_TEST(phy_counters) {
  static constexpr uint16_t kIds[] = {1, 3, 4, 6, 7, 8, 9, 10, 15, 16, 18, 19, 2, 5, 11, 13};
  DriveBench bench;
  bench.drive->reset(LinkReset::kComreset);
  bench.drive->reset(LinkReset::kComreset);
  FakeCommand &done = bench.run({.opcode = 0x2F, .lba = 0x11, .count = 1, .features = 1}, 512);
  ck_assert(done.good() && sums_to_zero(done.window.data()));
  for (size_t i = 0; i < std::size(kIds); i++) {
    ck_assert_uint_eq(word_at(done.window.data(), 2 + 2 * i), 0x1000 | kIds[i]);
    unsigned events = kIds[i] == 10 ? 2 : kIds[i] == 9 ? 1 : 0;
    ck_assert_uint_eq(word_at(done.window.data(), 3 + 2 * i), events);
  }
  ck_assert_uint_eq(word_at(done.window.data(), 2 + 2 * std::size(kIds)), 0);
  ck_assert_uint_eq(word_at(bench.read_log(0x11).window.data(), 2 + 2 * 7 + 1), 0);  // were reset
}
END_TEST

namespace {

Command smart(uint8_t feature, uint8_t log = 0, uint16_t count = 0) {
  return {.opcode = 0xB0, .lba = 0xC24F00u | log, .count = count, .features = feature};
}

}  // namespace

START_TEST(smart_status) {
  DriveBench bench;
  FakeCommand &done = bench.run(smart(0xDA));
  ck_assert(done.good());
  ck_assert_uint_eq(done.ata.d2h[5], 0x4F);
  ck_assert_uint_eq(done.ata.d2h[6], 0xC2);
  ck_assert(aborted(bench.run({.opcode = 0xB0, .lba = 0, .features = 0xDA})));
  ck_assert(bench.run(smart(0xD9)).good());
  for (uint8_t feature : {0xD0, 0xD1, 0xD2, 0xD3, 0xD5, 0xD9, 0xDA})
    ck_assert(aborted(bench.run(smart(feature, 0, 1), 512)));
  ck_assert_uint_eq(word_at(bench.run({.opcode = 0xEC}, 512).window.data(), 85) & 1, 0);
  ck_assert(bench.run(smart(0xD8)).good());
  ck_assert(bench.run(smart(0xDA)).good());
  ck_assert(bench.run(smart(0xD2, 0, 0xF1)).good());
  ck_assert(aborted(bench.run(smart(0xD2, 0, 0x10))));
  ck_assert(aborted(bench.run(smart(0xD4, 0x05))));
}
END_TEST

START_TEST(smart_tables) {
  static constexpr uint8_t kIds[] = {1,   5,   9,   12,  171, 172, 174, 177, 181, 182, 187,
                                     194, 195, 196, 201, 204, 230, 231, 233, 234, 241, 242};
  DriveBench bench(uint64_t{1} << 30);
  for (int i = 0; i < 32; i++) {
    ck_assert(bench.run(queued(false, 0, 0, 0), 65536 * 512).good());
    bench.initiator.forget();
  }
  FakeCommand &data = bench.run(smart(0xD0), 512);
  FakeCommand &limits = bench.run(smart(0xD1), 512);
  ck_assert(data.good() && limits.good());
  const uint8_t *page = data.window.data();
  ck_assert(sums_to_zero(page) && sums_to_zero(limits.window.data()));
  ck_assert_uint_eq(word_at(page, 0), 10);
  for (size_t i = 0; i < 30; i++) {
    const uint8_t *entry = page + 2 + 12 * i;
    const uint8_t *limit = limits.window.data() + 2 + 12 * i;
    ck_assert_uint_eq(entry[0], i < std::size(kIds) ? kIds[i] : 0);
    ck_assert_uint_eq(limit[0], entry[0]);
    bool prefail = entry[1] & 1;
    ck_assert(!prefail || entry[3] > limit[1]);
  }
  auto raw = [&](uint8_t id) {
    for (size_t i = 0; i < 30; i++) {
      if (page[2 + 12 * i] == id)
        return page[2 + 12 * i + 5] | page[2 + 12 * i + 6] << 8 | page[2 + 12 * i + 7] << 16;
    }
    return -1;
  };
  ck_assert_int_eq(raw(242), 1);  // GiB
  ck_assert_int_eq(raw(241), 0);
  ck_assert_int_eq(raw(12), 1);
  ck_assert_int_eq(raw(194) & 0xFFFF, 30);
  bench.drive->reset(LinkReset::kPowerOn);
  page = bench.run(smart(0xD0), 512).window.data();
  ck_assert_int_eq(raw(12), 2);
}
END_TEST

START_TEST(smart_logs) {
  DriveBench bench;
  FakeCommand &done = bench.run(smart(0xD5, 0x00, 1), 512);
  ck_assert(done.good());
  ck_assert_uint_eq(word_at(done.window.data(), 0), 1);
  ck_assert_uint_eq(word_at(done.window.data(), 0x80), 16);
  ck_assert_uint_eq(word_at(done.window.data(), 0x10), 0);
  ck_assert(aborted(bench.run(smart(0xD5, 0x10, 1), 512)));
  ck_assert(aborted(bench.run(smart(0xD5, 0x01, 1), 512)));
  ck_assert(aborted(bench.run(smart(0xD6, 0x00, 1), 512)));
  ck_assert(bench.run(smart(0xD6, 0x85, 1), 512).good());
}
END_TEST

int main() {
  return test::run_tests("ata_commands", {every_opcode_ends,
                                          unknown_opcodes_abort,
                                          not_a_command_fis,
                                          forms_move_data,
                                          limits,
                                          count_zero_is_the_largest,
                                          short_forms_on_a_large_drive,
                                          short_windows_move_nothing,
                                          multiple_needs_a_block_size,
                                          verify_checks_the_range,
                                          flush_reaches_the_backend,
                                          stable_writes,
                                          power_modes,
                                          signature_and_diagnostics,
                                          log_directory,
                                          log_sizes,
                                          host_logs_keep,
                                          phy_counters,
                                          smart_status,
                                          smart_tables,
                                          smart_logs});
}
