// SPDX-License-Identifier: GPL-2.0-or-later
//
// The drive and its backend: errors of commands that are not queued, late answers, cancelling,
// TRIM.
#include "drive_bench.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint64_t kSectors = 1 << 20;

struct Range {
  uint64_t lba;
  uint64_t sectors;
};

std::array<uint8_t, 512> trim_block(std::initializer_list<Range> ranges) {
  std::array<uint8_t, 512> block{};
  size_t at = 0;
  for (const Range &range : ranges) {
    for (unsigned i = 0; i < 6; i++)
      block[at + i] = static_cast<uint8_t>(range.lba >> (8 * i));
    block[at + 6] = static_cast<uint8_t>(range.sectors);
    block[at + 7] = static_cast<uint8_t>(range.sectors >> 8);
    at += 8;
  }
  return block;
}

const Command kTrim{.opcode = 0x06, .count = 1, .features = 1};

FakeCommand &trim(DriveBench &bench, std::initializer_list<Range> ranges) {
  return bench.run(kTrim, 512, trim_block(ranges).data());
}

FakeMedia::Record discard(uint64_t lba, uint64_t sectors) {
  return {RD_BLOCK_DISCARD, lba * 512, sectors * 512};
}

}  // namespace

START_TEST(backend_errors) {
  static constexpr struct {
    uint8_t opcode;
    int error;
    uint8_t status, ata_error;
  } kCases[] = {
      {0x25, -EIO, 0x51, 0x40},       {0x20, -EIO, 0x51, 0x40},
      {0xC4, -EINVAL, 0x51, 0x40},    {0x35, -EIO, 0x71, 0x04},
      {0x30, -EIO, 0x71, 0x04},       {0x3D, -EIO, 0x71, 0x04},
      {0x35, -ENOSPC, 0x71, 0x04},    {0xE7, -EIO, 0x71, 0x04},
      {0xEA, -ENOSPC, 0x71, 0x04},    {0x25, -ECANCELED, 0x51, 0x04},
      {0x35, -ECANCELED, 0x51, 0x04}, {0xEA, -ECANCELED, 0x51, 0x04},
      {0xE0, -EIO, 0x71, 0x04},
  };
  for (const auto &it : kCases) {
    DriveBench bench(kSectors);
    bench.media.fail = [&](const FakeMedia::Record &) { return it.error; };
    FakeCommand &done = bench.run({.opcode = it.opcode, .lba = 0x1234, .count = 8}, 4096);
    ck_assert_msg(done.ata.failed && done.status() == it.status && done.error() == it.ata_error,
                  "opcode 0x%02x errno %d: status 0x%02x error 0x%02x", it.opcode, it.error,
                  done.status(), done.error());
    if (it.ata_error == 0x40)
      ck_assert_uint_eq(done.ata.d2h[4] | done.ata.d2h[5] << 8, 0x1234);
    ck_assert(!done.window.moved);
    bool canceled = it.error == -ECANCELED;
    ck_assert_uint_eq(bench.counter("media_errors"), canceled ? 0 : 1);
    ck_assert_uint_eq(bench.counter("aborted"), canceled ? 1 : 0);
    // and the next command is not affected
    bench.media.fail = [](const FakeMedia::Record &) { return 0; };
    ck_assert(bench.run({.opcode = 0x25, .count = 1}, 512).good());
    ck_assert(bench.rules_kept());
  }
}
END_TEST

START_TEST(late_backend) {
  DriveBench bench(kSectors);
  bench.media.hold = true;
  FakeCommand &read = bench.issue({.opcode = 0x25, .count = 8}, 4096);
  bench.initiator.run();
  ck_assert(read.late && !read.done());
  bench.media.answer();
  ck_assert(read.good() && read.window.moved);
}
END_TEST

// Unmapped when the backend is done, not when the model's time has come: a save in between must
// find the data in guest memory.
START_TEST(unmapped_when_the_backend_is_done) {
  DriveBench bench(kSectors);
  bench.media.hold = true;
  FakeCommand &read = bench.issue({.opcode = 0x25, .count = 8}, 4096);
  ck_assert_uint_eq(read.window.unmaps, 0);
  bench.media.answer();
  ck_assert_uint_eq(read.window.unmaps, 1);
  ck_assert(!read.done() && read.window.moved);
  bench.initiator.run();
  ck_assert(read.good());
}
END_TEST

START_TEST(cancel_before_and_after_the_backend) {
  for (uint8_t opcode : {0x25, 0x35, 0xE7, 0x06}) {
    for (bool answered : {false, true}) {
      DriveBench bench(kSectors);
      bench.media.hold = true;
      auto block = trim_block({{0, 8}, {64, 8}, {128, 8}});
      FakeCommand &done =
          bench.issue({.opcode = opcode, .count = 1, .features = 1}, 512, block.data());
      while (answered && bench.media.held() > 0)
        bench.media.answer();
      bench.initiator.cancel(done);
      ck_assert_uint_eq(bench.media.held(), 0);
      ck_assert_int_eq(done.state, FakeCommand::kCanceled);
      ck_assert(bench.initiator.order.empty());
      ck_assert(bench.rules_kept());
    }
  }
}
END_TEST

START_TEST(trim_discards) {
  DriveBench bench(kSectors);
  FakeMedia::Sector pattern;
  pattern.fill(0xEE);
  for (uint64_t lba : {99, 100, 107, 108})
    bench.media.set_sector(lba, pattern);
  ck_assert(trim(bench, {{100, 8}}).good());
  ck_assert_uint_eq(bench.media.records.size(), 1);
  ck_assert(bench.media.records[0] == discard(100, 8));
  ck_assert(bench.media.sector(99) == pattern && bench.media.sector(108) == pattern);
  ck_assert_uint_eq(bench.media.sector(100)[0], 0);
  ck_assert_uint_eq(bench.counter("trims"), 1);
  ck_assert_uint_eq(bench.counter("trim_ranges"), 1);
  ck_assert_uint_eq(bench.counter("trim_sectors"), 8);
}
END_TEST

START_TEST(trim_joins_neighbours) {
  DriveBench bench(kSectors);
  ck_assert(trim(bench, {{0, 10}, {10, 5}, {0, 0}, {15, 1}, {20, 4}, {22, 4}, {8, 2}}).good());
  const std::vector<FakeMedia::Record> expected = {discard(0, 16), discard(20, 4), discard(22, 4),
                                                   discard(8, 2)};
  ck_assert(bench.media.records == expected);
  ck_assert_uint_eq(bench.counter("trim_ranges"), 6);
  ck_assert_uint_eq(bench.counter("trim_sectors"), 26);
}
END_TEST

// What blkdiscard of a whole member becomes: blocks of 64 full ranges (case C028).
START_TEST(trim_whole_blocks) {
  DriveBench bench(uint64_t{1} << 28);
  std::array<uint8_t, 512> block{};
  for (uint64_t i = 0; i < 64; i++) {
    uint64_t entry = i * 65535 | uint64_t{65535} << 48;
    for (unsigned byte = 0; byte < 8; byte++)
      block[8 * i + byte] = static_cast<uint8_t>(entry >> (8 * byte));
  }
  ck_assert(bench.run(kTrim, 512, block.data()).good());
  ck_assert(bench.media.records.size() == 1 && bench.media.records[0] == discard(0, 64 * 65535));
  ck_assert_uint_eq(bench.counter("trim_sectors"), 4194240);
}
END_TEST

// One range that leaves the drive, wherever it stands: nothing at all is discarded.
START_TEST(trim_beyond_the_end) {
  for (int place = 0; place < 3; place++) {
    for (Range bad :
         {Range{kSectors, 1}, Range{kSectors - 1, 2}, Range{0xFFFF'FFFF'FFFF, 0xFFFF}}) {
      DriveBench bench(kSectors);
      Range good{0, 8};
      FakeCommand &done = place == 0   ? trim(bench, {bad, good, good})
                          : place == 1 ? trim(bench, {good, bad, good})
                                       : trim(bench, {good, good, bad});
      ck_assert(done.ata.failed);
      ck_assert_uint_eq(done.error(), 0x10);
      ck_assert(bench.media.records.empty());
      ck_assert_uint_eq(bench.counter("trims"), 0);
    }
  }
  DriveBench bench(kSectors);
  ck_assert(trim(bench, {{kSectors - 1, 1}, {kSectors + 5, 0}}).good());  // an unused entry
}
END_TEST

START_TEST(trim_empty) {
  DriveBench bench(kSectors);
  ck_assert(trim(bench, {}).good());
  ck_assert(bench.media.records.empty());
}
END_TEST

START_TEST(trim_bad_requests) {
  static constexpr struct {
    uint16_t count, features;
    uint32_t window;
    bool is_short;
  } kCases[] = {{0, 1, 512, false},      {2, 1, 1024, false}, {0xFFFF, 1, 512, false},
                {1, 0, 512, false},      {1, 2, 512, false},  {1, 3, 512, false},
                {1, 0x0101, 512, false}, {1, 1, 511, true},   {1, 1, 0, true}};
  for (const auto &it : kCases) {
    DriveBench bench(kSectors);
    auto block = trim_block({{0, 8}});
    std::vector<uint8_t> data(1024);
    std::copy(block.begin(), block.end(), data.begin());
    FakeCommand &done = bench.run({.opcode = 0x06, .count = it.count, .features = it.features},
                                  it.window, data.data());
    ck_assert(done.ata.failed && done.error() == 0x04 && done.ata.data_short == it.is_short);
    ck_assert(bench.media.records.empty());
  }
}
END_TEST

START_TEST(trim_backend) {
  static constexpr struct {
    int error;
    uint8_t status;
  } kCases[] = {{-EIO, 0x71}, {-ENOTSUP, 0x50}, {-ECANCELED, 0x51}};
  for (const auto &it : kCases) {
    DriveBench bench(kSectors);
    int calls = 0;
    bench.media.fail = [&](const FakeMedia::Record &) { return ++calls == 2 ? it.error : 0; };
    FakeCommand &done = trim(bench, {{0, 8}, {64, 8}, {128, 8}});
    ck_assert_uint_eq(done.status(), it.status);
    ck_assert_uint_eq(bench.media.records.size(), 3);
  }
  DriveBench bench(kSectors);
  bench.media.hold = true;
  FakeCommand &done = trim(bench, {{0, 8}, {64, 8}, {128, 8}});
  for (size_t left = 3; left > 0; left--) {
    ck_assert(!done.done());
    bench.media.answer(left - 1);
  }
  ck_assert(done.good());
}
END_TEST

int main() {
  return test::run_tests(
      "ata_media",
      {backend_errors, late_backend, unmapped_when_the_backend_is_done,
       cancel_before_and_after_the_backend, trim_discards, trim_joins_neighbours, trim_whole_blocks,
       trim_beyond_the_end, trim_empty, trim_bad_requests, trim_backend});
}
