// SPDX-License-Identifier: GPL-2.0-or-later
//
// The drive in virtual time: limits of the link, effect of each part, repeatability.
#include "drive_bench.h"
#include "random.h"
#include "runner.h"
#include "sata/sata_wire.h"

using namespace revodrive;

namespace {

constexpr uint64_t kSectors = uint64_t{1} << 22;

// One command after the other, or `depth` at a time; bytes per microsecond is MB/s.
double mb_s(DriveBench &bench, bool write, unsigned depth, unsigned commands, uint32_t bytes,
            bool sequential) {
  Random random(11);
  auto sectors = static_cast<uint16_t>(bytes / 512);
  auto issue = [&](uint8_t tag, unsigned i) -> FakeCommand & {
    uint64_t lba = sequential ? i * uint64_t{sectors} : random.below(kSectors / 256) * 8;
    return bench.issue(queued(write, tag, lba, sectors), bytes);
  };
  std::vector<FakeCommand *> running;
  int64_t start_ns = bench.initiator.now_ns;
  unsigned issued = 0, ended = 0;
  while (ended < commands) {
    while (issued < commands && running.size() < depth) {
      uint32_t used = 0;
      for (FakeCommand *it : running)
        used |= 1u << (it->ata.h2d[12] >> 3);
      running.push_back(&issue(static_cast<uint8_t>(__builtin_ctz(~used)), issued++));
    }
    bench.initiator.run_one();
    for (FakeCommand *it : running)
      ck_assert(!it->done() || it->good());
    ended += static_cast<unsigned>(std::erase_if(running, [](auto *it) { return it->done(); }));
    bench.initiator.forget();
  }
  int64_t elapsed_ns = bench.initiator.now_ns - start_ns;
  return double(commands) * bytes * 1000 / double(elapsed_ns);
}

int64_t latency_ns(DriveBench &bench, const Command &command, uint32_t bytes) {
  int64_t start_ns = bench.initiator.now_ns;
  FakeCommand &done = bench.run(command, bytes);
  ck_assert(done.good());
  return done.done_ns - start_ns;
}

// Every completion of a mixed run, in order, with its time.
std::vector<std::pair<int64_t, uint8_t>> trace(uint64_t seed) {
  DriveBench bench(kSectors);
  Random random(seed);
  std::vector<std::pair<int64_t, uint8_t>> out;
  for (int i = 0; i < 60; i++) {
    for (uint8_t tag = 0; tag < 32; tag++)
      bench.issue(queued(random.one_in(3), tag, random.below(kSectors - 1024),
                         static_cast<uint16_t>(1 + random.below(64))),
                  64 * 512);
    bench.initiator.run();
    for (const FakeCommand *done : bench.initiator.order)
      out.push_back({done->done_ns, done->ata.h2d[12]});
    bench.initiator.order.clear();
    bench.initiator.forget();
    if (random.one_in(8))
      bench.run({.opcode = 0xEA});
    bench.initiator.order.clear();
    bench.initiator.forget();
  }
  return out;
}

// A drive that has data everywhere: one that has none answers reads at once.
class WrittenBench : public DriveBench {
 public:
  WrittenBench() : DriveBench(kSectors, true, {}, {.preset = FlashPreset::kFull}) {}
};

}  // namespace

START_TEST(same_input_same_times) {
  ck_assert(trace(5) == trace(5));
  ck_assert(trace(5) != trace(6));
}
END_TEST

START_TEST(without_timing_nothing_takes_time) {
  DriveBench bench(kSectors, false);
  bench.initiator.now_ns = 12345;
  for (const Command &command :
       {Command{.opcode = 0xEC}, queued(false, 0, 0, 1024), queued(true, 0, 0, 1024),
        Command{.opcode = 0x25, .count = 8}, Command{.opcode = 0xEA}, Command{.opcode = 0x77}}) {
    FakeCommand &done = bench.issue(command, 1024 * 512);
    ck_assert_int_eq(done.ata.finish_ns, 12345);
    bench.initiator.run();
  }
  ck_assert_int_eq(bench.initiator.host.busy_ns(), 0);
  ck_assert_uint_eq(bench.counter("sata_busy_ns"), 0);
}
END_TEST

START_TEST(link_is_the_limit_of_large_reads) {
  WrittenBench bench;
  double rate = mb_s(bench, false, 32, 400, 128 * 1024, true);
  ck_assert_msg(rate > 550 && rate < 600, "%.1f MB/s", rate);
}
END_TEST

// 16 dies of two planes: two pages of 8 KiB in 1300 us each, and 104 us to move them.
START_TEST(flash_is_the_limit_of_long_writes) {
  DriveBench bench(kSectors);
  double rate = mb_s(bench, true, 32, 1500, 128 * 1024, true);
  ck_assert_msg(rate > 180 && rate < 190, "%.1f MB/s", rate);
}
END_TEST

// Until the write buffer is full, a write costs the way into the drive only.
START_TEST(buffered_write_is_quick) {
  DriveBench bench(kSectors);
  int64_t write_ns = latency_ns(bench, queued(true, 0, 0, 8), 4096);
  int64_t fua_ns = latency_ns(bench, queued(true, 0, 0, 8, true), 4096);
  ck_assert_int_lt(write_ns, 20000);
  ck_assert_int_gt(fua_ns, 650000);
  ck_assert_int_gt(latency_ns(bench, queued(true, 0, 0, 8), 4096), 0);
  ck_assert_int_gt(latency_ns(bench, {.opcode = 0xEA}, 0), 600000);
  ck_assert_int_lt(latency_ns(bench, {.opcode = 0xEA}, 0), 10000);
}
END_TEST

START_TEST(reads_pay_for_flash) {
  WrittenBench bench;
  int64_t read_ns = latency_ns(bench, queued(false, 0, 0, 8), 4096);
  ck_assert_int_gt(read_ns, 75000 + 4320 * 1000 / 166 + 4096 * 1000 / 600);
  ck_assert_int_lt(read_ns, 150000);
  ck_assert_int_gt(latency_ns(bench, {.opcode = 0x42, .count = 8}, 0), 75000);
  ck_assert_int_lt(latency_ns(bench, {.opcode = 0xEC}, 512), 10000);
}
END_TEST

START_TEST(depth_helps_random_reads) {
  double last = 0;
  for (unsigned depth : {1, 4, 32}) {
    WrittenBench bench;
    double rate = mb_s(bench, false, depth, 4000, 4096, false);
    ck_assert_msg(rate > last * 1.5, "depth %u: %.1f MB/s after %.1f", depth, rate, last);
    last = rate;
  }
}
END_TEST

// The way to host memory is shared: a busy one delays the data, and only that.
START_TEST(host_side_counts) {
  DriveBench bench(kSectors), busy(kSectors);
  busy.initiator.host.reserve(0, 5'000'000);
  int64_t quick_ns = latency_ns(bench, queued(false, 0, 0, 8), 4096);
  int64_t slow_ns = latency_ns(busy, queued(false, 0, 0, 8), 4096);
  ck_assert_int_lt(quick_ns, 200'000);
  ck_assert_int_gt(slow_ns, 5'000'000);
  ck_assert_int_lt(slow_ns, 5'200'000);
  ck_assert_int_eq(latency_ns(bench, {.opcode = 0xE5}, 0), latency_ns(busy, {.opcode = 0xE5}, 0));
}
END_TEST

// The initiator holds one FIS: while host memory is out of reach the wire is not full of data that
// nobody could take.
START_TEST(wire_waits_for_the_host) {
  SataWire wire(test_sata(), true);
  Timeline host;
  host.reserve(0, 5'000'000);
  FakeWindow window(128 * 1024, &host);
  Journey journey;
  int64_t done_ns = wire.send(window, Protocol::kDmaIn, 512, {0, 0}, 128 * 1024, journey);
  ck_assert_int_gt(done_ns, 5'000'000);
  int64_t fis_ns = wire.command(10'000'000, journey) - 10'000'000;
  ck_assert_int_eq(wire.command(50'000, journey), 50'000 + fis_ns);
}
END_TEST

START_TEST(larger_takes_longer) {
  for (uint8_t opcode : {0x25, 0x35, 0x20, 0x30, 0xC4, 0x29, 0x3D}) {
    int64_t last_ns = 0;
    for (uint16_t sectors : {1, 8, 32, 128, 255}) {
      DriveBench bench(kSectors);
      int64_t now_ns = latency_ns(bench, {.opcode = opcode, .count = sectors}, sectors * 512u);
      ck_assert_msg(now_ns > last_ns, "opcode 0x%02x, %u sectors", opcode, sectors);
      last_ns = now_ns;
    }
  }
}
END_TEST

// A sector at a time costs more FISes than a block at a time, and that more than DMA.
START_TEST(pio_is_slower_than_dma) {
  auto read_ns = [](uint8_t opcode, uint16_t multiple) {
    DriveBench bench(kSectors);
    ck_assert(bench.run({.opcode = 0xC6, .count = multiple}).good());
    return latency_ns(bench, {.opcode = opcode, .count = 255}, 255 * 512);
  };
  ck_assert_int_gt(read_ns(0x20, 1), read_ns(0xC4, 16));
  ck_assert_int_eq(read_ns(0x20, 1), read_ns(0xC4, 1));
  ck_assert_int_gt(read_ns(0xC4, 4), read_ns(0xC4, 16));
  ck_assert_int_gt(read_ns(0xC4, 16), read_ns(0xC8, 1));
}
END_TEST

START_TEST(each_parameter_acts) {
  auto read_ns = [](const SataProfile &sata, const FlashProfile &flash, const Command &command) {
    FakeMedia media(kSectors);
    auto drive = AtaDrive::create({}, sata, flash, media, true, {.preset = FlashPreset::kFull});
    FakeInitiator initiator(*drive);
    FakeCommand &done = initiator.issue(command.fis(), 65536);
    initiator.run();
    return done.done_ns;
  };
  const Command read = queued(false, 0, 0, 128);
  const Command fua = queued(true, 0, 0, 128, true);
  SataProfile sata = test_sata();
  FlashProfile flash = test_flash();
  int64_t base_ns = read_ns(sata, flash, read);
  int64_t base_fua_ns = read_ns(sata, flash, fua);
  auto more = [&](auto change, const Command &command, int64_t than_ns) {
    SataProfile other_sata = sata;
    FlashProfile other_flash = flash;
    change(other_sata, other_flash);
    return read_ns(other_sata, other_flash, command) > than_ns;
  };
  ck_assert(more([](auto &s, auto &) { s.speed = 2; }, read, base_ns));
  ck_assert(more([](auto &s, auto &) { s.fis_overhead_bytes *= 2; }, read, base_ns));
  ck_assert(more([](auto &, auto &f) { f.command_ns *= 2; }, read, base_ns));
  ck_assert(more([](auto &, auto &f) { f.read_page_us *= 2; }, read, base_ns));
  ck_assert(more([](auto &, auto &f) { f.bus_mb_s /= 2; }, read, base_ns));
  ck_assert(more([](auto &, auto &f) { f.channels = f.dies_per_channel = 1; }, read, base_ns));
  ck_assert(more([](auto &, auto &f) { f.program_page_us *= 2; }, fua, base_fua_ns));
  // With fewer dies than pages: else each die has one page then, which is no slower.
  flash.channels = 2;
  flash.dies_per_channel = 1;
  int64_t two_dies_ns = read_ns(sata, flash, fua);
  ck_assert(more([](auto &, auto &f) { f.planes = 1; }, fua, two_dies_ns));
}
END_TEST

// A command FIS slips in before data that is booked for later, also when much is booked.
START_TEST(commands_slip_in) {
  WrittenBench bench;
  for (uint8_t tag = 0; tag < 31; tag++)
    bench.issue(queued(false, tag, tag * 100'003u, 8), 4096);
  FakeCommand &write = bench.issue(queued(true, 31, 0, 8), 4096);
  ck_assert_int_lt(write.ata.finish_ns, 150'000);
  ck_assert(!write.done());
  bench.initiator.run();
  ck_assert(bench.initiator.order.front() == &write);
}
END_TEST

int main() {
  return test::run_tests(
      "ata_timing",
      {same_input_same_times, without_timing_nothing_takes_time, link_is_the_limit_of_large_reads,
       flash_is_the_limit_of_long_writes, buffered_write_is_quick, reads_pay_for_flash,
       depth_helps_random_reads, host_side_counts, wire_waits_for_the_host, larger_takes_longer,
       pio_is_slower_than_dma, each_parameter_acts, commands_slip_in});
}
