// SPDX-License-Identifier: GPL-2.0-or-later
//
// TRIM: the ranges of a payload, what trimmed sectors read as, and the map behind that.
#include <set>

#include "drive_bench.h"
#include "random.h"
#include "runner.h"
#include "sata/trim_map.h"

using namespace revodrive;

namespace {

constexpr uint64_t kSectors = 1 << 20;
constexpr uint8_t kTrimmed = 0xFF;

struct Range {
  uint64_t lba;
  uint32_t sectors;
};

FakeCommand &trim(DriveBench &bench, const std::vector<Range> &ranges) {
  std::array<uint8_t, 512> block{};
  for (size_t i = 0; i < ranges.size(); i++) {
    uint64_t raw = ranges[i].lba | uint64_t{ranges[i].sectors} << 48;
    std::memcpy(block.data() + 8 * i, &raw, 8);
  }
  return bench.run({.opcode = 0x06, .count = 1, .features = 1}, 512, block.data());
}

void write(DriveBench &bench, uint64_t lba, uint16_t sectors, uint8_t fill) {
  std::vector<uint8_t> data(sectors * 512u, fill);
  ck_assert(bench.run({.opcode = 0x35, .lba = lba, .count = sectors}, sectors * 512u, data.data())
                .good());
}

// The byte that fills the sector, or -1 if it is not one byte all over.
int fill_of(DriveBench &bench, uint64_t lba) {
  FakeCommand &done = bench.run({.opcode = 0x25, .lba = lba, .count = 1}, 512);
  ck_assert(done.good());
  const uint8_t *data = done.window.data();
  bool even = std::all_of(data, data + 512, [&](uint8_t byte) { return byte == data[0]; });
  return even ? data[0] : -1;
}

DriveBench plain() {
  return DriveBench(kSectors, true, {.model = "M", .serial = "S", .firmware = "F", .wwn = 5},
                    {.trim_pattern = false});
}

}  // namespace

// C027: the same data each time, and not zero.
START_TEST(c027_deterministic) {
  DriveBench bench(kSectors);
  write(bench, 100, 64, 0x5A);
  ck_assert(trim(bench, {{110, 20}}).good());
  for (int round = 0; round < 2; round++) {
    ck_assert_int_eq(fill_of(bench, 109), 0x5A);
    ck_assert_int_eq(fill_of(bench, 110), kTrimmed);
    ck_assert_int_eq(fill_of(bench, 129), kTrimmed);
    ck_assert_int_eq(fill_of(bench, 130), 0x5A);
    bench.drive->reset(round ? LinkReset::kComreset : LinkReset::kPowerOn);
  }
  ck_assert_uint_eq(bench.counter("trimmed_reads"), 4);
  ck_assert_uint_eq(bench.counter("trim_map_sectors"), 20);
}
END_TEST

START_TEST(backend_decides_without_pattern) {
  DriveBench bench = plain();
  write(bench, 100, 64, 0x5A);
  ck_assert(trim(bench, {{110, 20}}).good());
  ck_assert_int_eq(fill_of(bench, 115), 0x00);
  ck_assert_uint_eq(bench.counter("trim_map_sectors"), 0);
}
END_TEST

// A write ends it, also one of zeroes, also if it is queued.
START_TEST(written_again) {
  DriveBench bench(kSectors);
  ck_assert(trim(bench, {{0, 1000}}).good());
  write(bench, 10, 3, 0x00);
  std::vector<uint8_t> zeroes(8 * 512, 0);
  ck_assert(!bench.run(queued(true, 1, 40, 8), 8 * 512, zeroes.data()).ata.failed);
  for (uint64_t lba = 0; lba < 60; lba++) {
    bool written = (lba >= 10 && lba < 13) || (lba >= 40 && lba < 48);
    ck_assert_int_eq(fill_of(bench, lba), written ? 0x00 : kTrimmed);
  }
}
END_TEST

// A backend that does not discard keeps the data: it is shown, not hidden.
START_TEST(data_is_never_hidden) {
  DriveBench bench(kSectors);
  write(bench, 5, 1, 0x77);
  bench.media.fail = [](const FakeMedia::Record &record) {
    return record.op == RD_BLOCK_DISCARD ? -ENOTSUP : 0;
  };
  ck_assert(trim(bench, {{4, 3}}).good());
  ck_assert_int_eq(fill_of(bench, 4), kTrimmed);
  ck_assert_int_eq(fill_of(bench, 5), 0x77);
}
END_TEST

// A sector may lie in several pieces of guest memory.
START_TEST(mixed_read) {
  DriveBench bench(kSectors);
  write(bench, 0, 16, 0x33);
  ck_assert(trim(bench, {{3, 2}, {9, 1}}).good());
  FakeCommand &done = bench.run(queued(false, 0, 0, 16), 16 * 512);
  ck_assert(!done.ata.failed);
  for (size_t i = 0; i < 16 * 512; i++) {
    size_t sector = i / 512;
    bool trimmed = sector == 3 || sector == 4 || sector == 9;
    ck_assert_uint_eq(done.window.data()[i], trimmed ? kTrimmed : 0x33);
  }
  ck_assert(bench.rules_kept());
}
END_TEST

// C029: 64 ranges a block, overlapping, of length zero, at both ends, and none beyond the end.
START_TEST(c029_ranges) {
  DriveBench bench(kSectors);
  std::vector<Range> ranges;
  for (uint64_t i = 0; i < 64; i++)
    ranges.push_back({i * 100, static_cast<uint32_t>(i % 2 ? 0 : 150)});
  ck_assert(trim(bench, ranges).good());
  ck_assert_uint_eq(bench.counter("trim_ranges"), 32);
  ck_assert_uint_eq(bench.counter("trim_sectors"), 32 * 150);
  ck_assert(trim(bench, {{0, 10}, {5, 10}, {kSectors - 1, 1}}).good());
  for (Range bad : {Range{kSectors, 1}, Range{kSectors - 1, 2}, Range{0xFFFF'FFFF'FFFF, 1}}) {
    bench.media.records.clear();
    FakeCommand &done = trim(bench, {{500000, 8}, bad});
    ck_assert(done.ata.failed);
    ck_assert_uint_eq(done.error(), 0x10);
    ck_assert(bench.media.records.empty());
  }
  ck_assert(trim(bench, {}).good());
  ck_assert(bench.rules_kept());
}
END_TEST

// C028: a whole drive as a guest trims it; each command is one discard.
START_TEST(c028_whole_drive) {
  constexpr uint64_t kDrive = 234441648;  // 120 GB
  DriveBench bench(kDrive);
  unsigned commands = 0;
  for (uint64_t lba = 0; lba < kDrive; commands++) {
    std::vector<Range> ranges;
    for (int i = 0; i < 64 && lba < kDrive; i++) {
      uint32_t sectors = static_cast<uint32_t>(std::min<uint64_t>(65535, kDrive - lba));
      ranges.push_back({lba, sectors});
      lba += sectors;
    }
    ck_assert(trim(bench, ranges).good());
  }
  ck_assert_uint_eq(bench.counter("trim_sectors"), kDrive);
  ck_assert_uint_eq(bench.counter("trim_map_sectors"), kDrive);
  ck_assert_uint_eq(bench.counter("trim_map_bytes"), 0);
  ck_assert_uint_eq(bench.media.records.size(), commands);
  ck_assert(bench.rules_kept());
}
END_TEST

START_TEST(survives_save_and_load) {
  DriveBench bench(kSectors);
  ck_assert(trim(bench, {{7, 9}, {70000, 40000}}).good());
  StreamWriter saved;
  bench.drive->save(saved);
  DriveBench other(kSectors);
  StreamReader in(saved.bytes());
  other.drive->load(in);
  ck_assert(in.ok() && in.at_end());
  ck_assert_uint_eq(other.counter("trim_map_sectors"), 40009);
  ck_assert_int_eq(fill_of(other, 7), kTrimmed);
  ck_assert_int_eq(fill_of(other, 6), 0x00);
}
END_TEST

namespace {

// A store that keeps the bytes, as a card does.
class Store final : public DriveStore {
 public:
  explicit Store(DriveBench &bench) : bench_(bench) { bench.drive->connect_store(this); }
  ~Store() { bench_.drive->connect_store(nullptr); }
  void changed(int64_t) override {}
  void store(MediaTransfer *waiter, int64_t now_ns) override {
    StreamWriter out;
    bench_.drive->save_persistent(out, now_ns);
    bytes = out.bytes();
    stores++;
    if (waiter)
      waiter->media_done(0);
  }
  uint64_t stored_sectors() {
    DriveBench later(kSectors);
    StreamReader in(bytes);
    later.drive->load_persistent(in);
    ck_assert(in.ok());
    return later.counter("trim_map_sectors");
  }
  std::vector<uint8_t> bytes;
  unsigned stores = 0;

 private:
  DriveBench &bench_;
};

}  // namespace

// The map is stored when the drive rests, and is out of the store before a write that it would
// hide has ended: a crash then loses the map, never data.
START_TEST(stored_at_rest_only) {
  DriveBench bench(kSectors);
  Store store(bench);
  ck_assert(trim(bench, {{0, 100}}).good());
  store.store(nullptr, 0);
  ck_assert_uint_eq(store.stored_sectors(), 0);
  bench.drive->rest();
  store.store(nullptr, 0);
  ck_assert_uint_eq(store.stored_sectors(), 100);
  unsigned stores = store.stores;
  write(bench, 500, 1, 0x11);  // elsewhere
  ck_assert_uint_eq(store.stored_sectors(), 100);
  write(bench, 50, 1, 0x00);
  ck_assert_uint_eq(store.stored_sectors(), 0);
  ck_assert_uint_gt(store.stores, stores);
  stores = store.stores;
  write(bench, 51, 1, 0x00);
  ck_assert_uint_eq(store.stores, stores);  // once is enough
  ck_assert_int_eq(fill_of(bench, 50), 0x00);
  ck_assert_int_eq(fill_of(bench, 52), kTrimmed);
  bench.drive->rest();
  store.store(nullptr, 0);
  ck_assert_uint_eq(store.stored_sectors(), 98);
}
END_TEST

START_TEST(erase_forgets_it) {
  DriveBench bench(kSectors);
  ck_assert(trim(bench, {{0, 100}}).good());
  std::array<uint8_t, 512> block{};
  ck_assert(bench.run({.opcode = 0xF1}, 512, block.data()).good());
  ck_assert(bench.run({.opcode = 0xF3}).good());
  ck_assert(bench.run({.opcode = 0xF4}, 512, block.data()).good());
  ck_assert_uint_eq(bench.counter("trim_map_sectors"), 0);
  ck_assert_int_eq(fill_of(bench, 50), 0x00);
}
END_TEST

// Against a plain set of sectors, with both forms of saving.
START_TEST(map_random) {
  Random random(test::seed());
  constexpr uint64_t kSize = 100'123;
  TrimMap map(kSize);
  std::set<uint64_t> model;
  for (int round = 0; round < 400; round++) {
    uint64_t lba = random.below(kSize);
    uint64_t sectors =
        1 + random.below(std::min<uint64_t>(kSize - lba, random.one_in(4) ? kSize : 300));
    bool mark = !random.one_in(3);
    if (mark)
      map.mark(lba, sectors);
    else
      map.clear(lba, sectors);
    for (uint64_t i = lba; i < lba + sectors; i++) {
      if (mark)
        model.insert(i);
      else
        model.erase(i);
    }
    ck_assert_uint_eq(map.count(), model.size());
    uint64_t at = random.below(kSize - 100);
    auto next = model.lower_bound(at);
    ck_assert_int_eq(map.any(at, 100), next != model.end() && *next < at + 100);
  }
  StreamWriter whole, runs;
  map.save(whole);
  ck_assert_uint_eq(map.save_runs(runs, 1 << 20), 0);
  TrimMap first(kSize), second(kSize);
  StreamReader in(whole.bytes()), from(runs.bytes());
  first.load(in);
  second.load_runs(from);
  ck_assert(in.ok() && in.at_end() && from.ok() && from.at_end());
  for (uint64_t i = 0; i < kSize; i++) {
    ck_assert_int_eq(first.test(i), model.contains(i));
    ck_assert_int_eq(second.test(i), model.contains(i));
  }
}
END_TEST

// What does not fit is left out, never added.
START_TEST(map_bounded_store) {
  TrimMap map(kSectors);
  for (uint64_t i = 0; i < 5000; i++)
    map.mark(i * 10, 3);
  StreamWriter out;
  uint64_t left = map.save_runs(out, 1000);
  ck_assert_uint_le(out.bytes().size(), 1000);
  TrimMap loaded(kSectors);
  StreamReader in(out.bytes());
  loaded.load_runs(in);
  ck_assert(in.ok() && in.at_end());
  ck_assert_uint_gt(loaded.count(), 1000);
  ck_assert_uint_eq(loaded.count() + left, map.count());
  for (uint64_t i = 0; i < 50000; i++)
    ck_assert(!loaded.test(i) || map.test(i));
}
END_TEST

START_TEST(map_refuses_nonsense) {
  for (std::vector<uint8_t> bytes : {std::vector<uint8_t>{},
                                     {0x05},
                                     {0x05, 0x00},
                                     {0xFF, 0xFF, 0xFF, 0x7F, 0x00, 0x00},
                                     std::vector<uint8_t>(20, 0xFF)}) {
    TrimMap map(1000);
    StreamReader in(bytes);
    map.load_runs(in);
    ck_assert(!in.ok());
    ck_assert_uint_eq(map.count(), 0);
  }
}
END_TEST

int main() {
  return test::run_tests(
      "ata_trim",
      {c027_deterministic, backend_decides_without_pattern, written_again, data_is_never_hidden,
       mixed_read, c029_ranges, c028_whole_drive, survives_save_and_load, stored_at_rest_only,
       erase_forgets_it, map_random, map_bounded_store, map_refuses_nonsense});
}
