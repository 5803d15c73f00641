// SPDX-License-Identifier: GPL-2.0-or-later
//
// Thousands of random commands against a shadow of the disk: what a read returns, what an error
// leaves alone, and that every command ends exactly once, whatever the backend does and when.
#include <algorithm>
#include <optional>
#include <set>

#include "drive_bench.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint64_t kSectors = 512;
constexpr unsigned kSteps = 60000;

// What a drive gives for a sector that was trimmed and not written since.
constexpr uint8_t kTrimmed = 0xFF;

// The disk as a list of stamps: each written sector is filled with one number, and one that was
// trimmed reads as the pattern while the backend has nothing there. `changes` counts trims and
// writes of a sector: a read that was under way meanwhile may see either state.
class Shadow {
 public:
  struct Sector {
    uint8_t stamp = 0;
    bool trimmed = false;
    unsigned changes = 0;
    uint8_t seen() const { return stamp == 0 && trimmed ? kTrimmed : stamp; }
  };

  void written(uint64_t lba, uint32_t sectors, bool stored, uint8_t stamp) {
    change(lba, sectors, false, stored, stamp);
  }
  void trimmed(uint64_t lba, uint32_t sectors, bool stored) {
    change(lba, sectors, true, stored, 0);
  }
  std::vector<Sector> read(uint64_t lba, uint32_t sectors) const {
    return {sectors_.begin() + static_cast<ptrdiff_t>(lba),
            sectors_.begin() + static_cast<ptrdiff_t>(lba + sectors)};
  }
  const Sector &at(uint64_t lba) const { return sectors_[lba]; }

 private:
  void change(uint64_t lba, uint32_t sectors, bool trim, bool stored, uint8_t stamp) {
    for (uint64_t i = lba; i < lba + sectors; i++) {
      sectors_[i].trimmed = trim;
      sectors_[i].changes++;
      if (stored)
        sectors_[i].stamp = stamp;
    }
  }

  std::vector<Sector> sectors_ = std::vector<Sector>(kSectors);
};

class Session {
 public:
  Session(uint64_t seed, bool timing) : random_(seed), bench_(kSectors, timing) {
    bench_.media.fail = [this](const FakeMedia::Record &) { return next_error_; };
  }

  void run() {
    for (unsigned i = 0; i < kSteps; i++) {
      step();
      if (!bench_.rules_kept())
        ck_abort_msg("a rule of the seam was broken in step %u", i);
    }
    bench_.initiator.run();
    while (bench_.media.held() > 0)
      answer();
    check_ended();
    ck_assert_uint_eq(open_.size(), 0);
    compare_disk();
    ck_assert_uint_gt(verified_, kSteps / 50);  // or else the test would prove little
  }

 private:
  struct Open {
    FakeCommand *command;
    uint64_t lba = 0;
    std::optional<std::vector<Shadow::Sector>> expected;  // of a read that must not fail
  };

  void step() {
    bench_.media.hold = random_.one_in(2);
    next_error_ = random_.one_in(40) ? -EIO : 0;
    switch (random_.below(20)) {
      case 0:
        cancel_one();
        break;
      case 1:
        if (random_.one_in(8))
          reset();
        break;
      case 2:
      case 3:
        simple();
        break;
      case 4:
        trim();
        break;
      case 5:
      case 6:
      case 7:
        bench_.initiator.run();
        break;
      case 8:
      case 9:
      case 10:
        if (bench_.media.held() > 0)
          answer();
        break;
      default:
        read_or_write();
    }
    check_ended();
  }

  void answer() {
    bench_.media.answer(random_.below(bench_.media.held()));
    bench_.initiator.run();
  }

  // The queue and the other commands are not mixed here, but now and then they are.
  bool may_issue(bool is_queued) {
    if (random_.one_in(100))
      return true;
    for (const Open &open : open_) {
      if (is_queued != (open.command->ata.h2d[2] == 0x60 || open.command->ata.h2d[2] == 0x61))
        return false;
    }
    return true;
  }

  void read_or_write() {
    bool write = random_.one_in(2);
    bool is_queued = random_.below(3) > 0;
    uint64_t lba = random_.below(kSectors + 4);
    auto sectors = static_cast<uint16_t>(1 + random_.below(20));
    Command command = is_queued ? queued(write, tag(), lba, sectors, random_.one_in(4))
                                : plain(write, lba, sectors);
    if (!may_issue(is_queued))
      return;
    uint32_t bytes = random_.one_in(50) ? sectors * 512u - 1 : sectors * 512u;
    auto stamp = static_cast<uint8_t>(random_.next() | 1);
    std::vector<uint8_t> out(bytes, stamp);
    size_t before = bench_.media.records.size();
    FakeCommand &issued = bench_.issue(command, bytes, out.data());
    bool reached = bench_.media.records.size() > before;
    bool moves = reached && next_error_ == 0;
    if (reached && lba + sectors > kSectors)
      ck_abort_msg("a command beyond the end reached the backend");
    Open open{&issued, lba, {}};
    if (reached && write)
      shadow_.written(lba, sectors, moves, stamp);
    else if (moves)
      open.expected = shadow_.read(lba, sectors);
    open_.push_back(open);
  }

  uint8_t tag() { return static_cast<uint8_t>(random_.below(32)); }

  Command plain(bool write, uint64_t lba, uint16_t sectors) {
    static constexpr uint8_t kReads[] = {0x20, 0x24, 0x25, 0x29, 0xC4, 0xC8};
    static constexpr uint8_t kWrites[] = {0x30, 0x34, 0x35, 0x39, 0xC5, 0xCA, 0x3D, 0xCE};
    uint8_t opcode = write ? kWrites[random_.below(std::size(kWrites))]
                           : kReads[random_.below(std::size(kReads))];
    return {.opcode = opcode, .lba = lba, .count = sectors};
  }

  void simple() {
    static constexpr uint8_t kOpcodes[] = {0xEC, 0xE7, 0xEA, 0xE5, 0xE1, 0xB0, 0xEF, 0x42, 0x77};
    if (!may_issue(false))
      return;
    FakeCommand &issued = bench_.issue({.opcode = kOpcodes[random_.below(std::size(kOpcodes))],
                                        .lba = 0xC24F00,
                                        .count = 1,
                                        .features = 0xD0},
                                       512);
    open_.push_back({&issued, 0, {}});
  }

  void trim() {
    if (!may_issue(false))
      return;
    std::vector<uint8_t> block(512);
    std::vector<std::pair<uint64_t, uint32_t>> ranges;
    for (uint64_t i = random_.below(6); i > 0; i--) {
      // Now and then one that leaves the disk, so that all of them count for nothing.
      uint64_t lba = random_.below(kSectors);
      auto sectors = static_cast<uint32_t>(random_.below(24));
      if (lba + sectors > kSectors && !random_.one_in(10))
        sectors = static_cast<uint32_t>(kSectors - lba);
      uint64_t entry = lba | uint64_t{sectors} << 48;
      std::memcpy(block.data() + 8 * ranges.size(), &entry, 8);
      ranges.push_back({lba, sectors});
    }
    size_t before = bench_.media.records.size();
    FakeCommand &issued =
        bench_.issue({.opcode = 0x06, .count = 1, .features = 1}, 512, block.data());
    bool reached = bench_.media.records.size() > before;
    for (auto [lba, sectors] : ranges) {
      if (reached)
        shadow_.trimmed(lba, sectors, next_error_ == 0);
    }
    open_.push_back({&issued, 0, {}});
  }

  void cancel_one() {
    if (!open_.empty())
      bench_.initiator.cancel(*open_[random_.below(open_.size())].command);
  }

  void reset() {
    bench_.initiator.cancel_all();
    bench_.drive->reset(random_.one_in(2) ? LinkReset::kPowerOn : LinkReset::kComreset);
  }

  void check_ended() {
    for (const Open &open : open_) {
      FakeCommand &command = *open.command;
      if (!command.done())
        continue;
      // One check for all: each assertion of libcheck costs a system call.
      bool sane = (command.status() & 0xC8) == 0x40 &&
                  command.ata.failed == ((command.status() & 1) != 0) &&
                  command.ata.failed == (command.error() != 0);
      if (!sane || (open.expected && !command.ata.failed && !holds(open)))
        ck_abort_msg("opcode 0x%02x lba %llu: status 0x%02x error 0x%02x, or wrong data",
                     command.ata.h2d[2], static_cast<unsigned long long>(command.ata.lba),
                     command.status(), command.error());
    }
    verified_ +=
        static_cast<unsigned>(std::count_if(open_.begin(), open_.end(), [](const Open &open) {
          return open.expected && open.command->good();
        }));
    std::erase_if(open_,
                  [](const Open &open) { return open.command->state != FakeCommand::kRunning; });
    bench_.initiator.forget();
  }

  bool holds(const Open &open) const {
    for (size_t i = 0; i < open.expected->size(); i++) {
      const Shadow::Sector &was = (*open.expected)[i];
      const uint8_t *data = open.command->window.data() + 512 * i;
      bool uniform = std::all_of(data, data + 512, [&](uint8_t byte) { return byte == data[0]; });
      bool changed = shadow_.at(open.lba + i).changes != was.changes;
      bool either = changed && was.stamp == 0 && (data[0] == 0 || data[0] == kTrimmed);
      if (!uniform || (data[0] != was.seen() && !either))
        return false;
    }
    return true;
  }

  void compare_disk() {
    for (uint64_t lba = 0; lba < kSectors; lba++) {
      FakeMedia::Sector expected;
      expected.fill(shadow_.at(lba).stamp);
      ck_assert_msg(bench_.media.sector(lba) == expected, "sector %u", static_cast<unsigned>(lba));
    }
  }

  Random random_;
  DriveBench bench_;
  Shadow shadow_;
  int next_error_ = 0;
  unsigned verified_ = 0;
  std::vector<Open> open_;
};

}  // namespace

START_TEST(with_timing) {
  uint64_t seed = test::seed();
  for (uint64_t i = 0; i < 4; i++)
    Session(seed + i, true).run();
}
END_TEST

START_TEST(without_timing) {
  Session(test::seed(), false).run();
}
END_TEST

int main() {
  return test::run_tests("ata_random", {with_timing, without_timing});
}
