// SPDX-License-Identifier: GPL-2.0-or-later
//
// Save and load of a drive: idle, busy, in the error state, and from streams that are not what they
// should be.
#include "drive_bench.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint64_t kSectors = 1 << 16;

std::vector<uint8_t> saved(const AtaDrive &drive) {
  StreamWriter out;
  drive.save(out);
  return out.bytes();
}

bool load(AtaDrive &drive, std::span<const uint8_t> bytes) {
  StreamReader in(bytes);
  drive.load(in);
  return in.ok() && in.at_end();
}

// A drive with something in every part of its state.
void live(DriveBench &bench) {
  std::vector<uint8_t> data(8192, 0x3C);
  ck_assert(bench.run({.opcode = 0xEF, .features = 0x82}).good());
  ck_assert(bench.run({.opcode = 0xEF, .count = 0x40, .features = 0x05}).good());
  ck_assert(bench.run({.opcode = 0xC6, .count = 8}).good());
  ck_assert(bench.run({.opcode = 0xF5}).good());
  ck_assert(bench.run({.opcode = 0x3F, .lba = 0x0391, .count = 2}, 1024, data.data()).good());
  ck_assert(bench.run({.opcode = 0xB0, .lba = 0xC24F00, .features = 0xD9}).good());
  ck_assert(bench.run(queued(true, 4, 10, 16), 8192, data.data()).good());
  bench.drive->reset(LinkReset::kComreset);
  for (uint8_t tag = 0; tag < 20; tag++)
    bench.issue(queued(false, tag, tag * 997u, 16), 8192);
  bench.initiator.run();
  ck_assert(bench.run({.opcode = 0xE0}).good());
}

std::map<std::string, uint64_t> counters(const AtaDrive &drive) {
  std::map<std::string, uint64_t> values;
  drive.query([&](std::string_view key, uint64_t value) { values[std::string(key)] = value; });
  return values;
}

}  // namespace

START_TEST(round_trip) {
  DriveBench from(kSectors), to(kSectors);
  live(from);
  std::vector<uint8_t> state = saved(*from.drive);
  ck_assert(load(*to.drive, state));
  ck_assert(saved(*to.drive) == state);
  ck_assert(counters(*to.drive) == counters(*from.drive));
  to.initiator.now_ns = from.initiator.now_ns;
  to.initiator.host = from.initiator.host;
  // Both go on alike, to the nanosecond.
  for (const Command &command :
       {Command{.opcode = 0xE5}, Command{.opcode = 0xEC}, queued(false, 1, 5000, 16),
        Command{.opcode = 0xB0, .lba = 0xC24F00, .features = 0xD8},
        Command{.opcode = 0x2F, .lba = 0x91, .count = 16}, Command{.opcode = 0xEA}}) {
    FakeCommand &a = from.run(command, 8192);
    FakeCommand &b = to.run(command, 8192);
    ck_assert(a.ata.d2h == b.ata.d2h);
    ck_assert_int_eq(a.done_ns, b.done_ns);
    ck_assert_mem_eq(a.window.data(), b.window.data(), 8192);
  }
}
END_TEST

START_TEST(error_state_survives) {
  DriveBench from(kSectors), to(kSectors);
  ck_assert(from.run(queued(false, 21, kSectors, 1), 512).ata.failed);
  ck_assert(load(*to.drive, saved(*from.drive)));
  ck_assert(to.run(queued(false, 3, 0, 1), 512).ata.failed);
  FakeCommand &log = to.read_log(0x10);
  ck_assert_uint_eq(log.window.data()[0], 21);
  ck_assert_uint_eq(log.window.data()[3], 0x10);
  ck_assert(to.run(queued(false, 3, 0, 1), 512).good());
}
END_TEST

START_TEST(commands_in_flight) {
  DriveBench from(kSectors), to(kSectors);
  from.media.fail = [](const FakeMedia::Record &record) {
    return record.offset == 512 * 64 ? -EIO : 0;
  };
  from.issue(queued(false, 7, 64, 8), 4096);  // will fail
  from.issue(queued(true, 8, 128, 8), 4096);
  from.issue(queued(false, 9, 192, 8), 4096);
  StreamWriter out;
  from.drive->save(out);
  for (auto &it : from.initiator.commands())
    from.drive->save_command(it->ata, out);

  StreamReader in(out.bytes());
  to.drive->load(in);
  std::vector<std::unique_ptr<FakeCommand>> loaded;
  for (auto &it : from.initiator.commands()) {
    loaded.push_back(std::make_unique<FakeCommand>(0, &to.initiator.host));
    loaded.back()->ata.h2d = it->ata.h2d;
    loaded.back()->ata.d2h = it->ata.d2h;
    loaded.back()->ata.owner = loaded.back().get();
    to.drive->load_command(loaded.back()->ata, in);
    ck_assert(in.ok());
    ck_assert_int_eq(loaded.back()->ata.finish_ns, it->ata.finish_ns);
  }
  ck_assert(in.at_end());
  // A tag that is taken stays taken.
  to.drive->finish(loaded[0]->ata);
  ck_assert(loaded[0]->ata.failed);
  ck_assert_uint_eq(loaded[0]->ata.d2h[2], 0x41);
  for (size_t i : {1u, 2u})
    ck_assert(loaded[i]->done() && loaded[i]->early && loaded[i]->ata.failed);
  ck_assert_uint_eq(to.read_log(0x10).window.data()[0], 7);
  from.initiator.run();
}
END_TEST

START_TEST(bad_command_streams) {
  DriveBench bench(kSectors);
  FakeCommand &running = bench.issue(queued(false, 7, 64, 8), 4096);
  StreamWriter out;
  bench.drive->save_command(running.ata, out);
  Timeline host;
  auto refused = [&](std::span<const uint8_t> bytes, const Fis &h2d) {
    FakeCommand other(0, &host);
    other.ata.h2d = h2d;
    StreamReader in(bytes);
    bench.drive->load_command(other.ata, in);
    return !in.ok();
  };
  ck_assert(refused(out.bytes(), queued(false, 7, 64, 8).fis()));  // the tag is busy
  ck_assert(refused(out.bytes(), Command{.opcode = 0x25}.fis()));  // not a queued command
  for (size_t len = 0; len < out.bytes().size(); len++)
    ck_assert(refused({out.bytes().data(), len}, queued(false, 1, 64, 8).fis()));
  std::vector<uint8_t> bytes = out.bytes();
  bytes[11] = 0x7F;  // the top of finish_ns
  ck_assert(refused(bytes, queued(false, 1, 64, 8).fis()));
  bench.initiator.run();
}
END_TEST

START_TEST(other_drives_are_refused) {
  DriveBench from(kSectors), smaller(kSectors - 1);
  ck_assert(!load(*smaller.drive, saved(*from.drive)));
}
END_TEST

// Cut anywhere, or with any bytes changed: never a crash, and after the reset that follows a
// refused load the drive works.
START_TEST(damaged_streams) {
  Random random(test::seed());
  DriveBench from(kSectors);
  live(from);
  const std::vector<uint8_t> state = saved(*from.drive);
  for (int round = 0; round < 600; round++) {
    std::vector<uint8_t> bytes = state;
    bool cut = round % 3 == 0;
    if (cut)
      bytes.resize(random.below(bytes.size()));
    for (uint64_t i = cut ? 0 : 1 + random.below(8); i > 0; i--)
      bytes[random.below(bytes.size())] ^= static_cast<uint8_t>(1 + random.below(255));
    DriveBench to(kSectors);
    bool ok = load(*to.drive, bytes);
    ck_assert(!cut || !ok);
    if (!ok)
      to.drive->reset(LinkReset::kPowerOn);
    to.run({.opcode = 0xE5});
    FakeCommand &identity = to.run({.opcode = 0xEC}, 512);
    ck_assert(identity.good());
    bool locked = (word_at(identity.window.data(), 128) & 4) != 0;
    uint32_t end = word_at(identity.window.data(), 100) | word_at(identity.window.data(), 101)
                                                              << 16;
    if (locked || end < 164)
      continue;  // the damage has set a password or a limit
    ck_assert(to.run(queued(true, 3, 100, 64), 32768).good());
    ck_assert(to.run(queued(false, 3, 100, 64), 32768).good());
    ck_assert(to.run({.opcode = 0xEA}).good());
    ck_assert(to.rules_kept());
  }
}
END_TEST

int main() {
  return test::run_tests("ata_state",
                         {round_trip, error_state_survives, commands_in_flight, bad_command_streams,
                          other_drives_are_refused, damaged_streams});
}
