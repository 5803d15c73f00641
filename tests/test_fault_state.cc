// SPDX-License-Identifier: GPL-2.0-or-later
//
// What becomes of commands that rest because of a fault rule: errors of the queue, cancel, unplug,
// resets, save and load, and random rules under random load.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "fault_rig.h"
#include "runner.h"

using namespace revodrive;
using namespace revodrive::test;

namespace {

// Moves everything to `target`, as a migration does.
void migrate(Rig &source, Rig &target) {
  auto bytes = source.host.save();
  target.host.disks = source.host.disks;
  memcpy(target.host.memory(ScriptedHost::kMemoryBase, ScriptedHost::kMemoryBytes),
         source.host.memory(ScriptedHost::kMemoryBase, ScriptedHost::kMemoryBytes),
         ScriptedHost::kMemoryBytes);
  target.host.advance(source.host.now_ns() - target.host.now_ns());
  target.driver = source.driver.moved_to(target.host);
  rd_error error = {};
  ck_assert_msg(rd_card_load(target.host.card(), bytes.data(), bytes.size(), &error) == 0, "%s",
                error.text);
  ck_assert(target.host.save() == bytes);
  rd_card_resume(target.host.card());
}

// An error of the queue ends what is held in the drive, and not what the bridge holds.
START_TEST(queue_error_ends_what_the_drive_holds) {
  for (const char *stage : kStageNames) {
    Rig rig;
    rig.fault(std::string("name=h,action=hold,lba=64,stage=") + stage);
    rig.fault("action=fail,error=unc,lba=200");
    rig.driver.issue(7, rig.ncq(false, 1, 64));
    rig.wait();
    rig.driver.issue(8, rig.ncq(false, 2, 200));
    rig.wait();
    ck_assert(rig.failed(8));
    bool in_drive = strcmp(stage, "fetch") != 0 && strcmp(stage, "completion") != 0;
    ck_assert_msg(rig.failed(7) == in_drive, "%s", stage);
    ck_assert_uint_eq(rig.driver.run(50, rig.log10()), 0x00010032);
    rig.fault("release");
    rig.wait();
    ck_assert(in_drive ? rig.failed(7) : rig.good(7));
    rig.driver.issue(9, rig.ncq(false, 1, 8));
    rig.wait();
    ck_assert(rig.good(9));
  }
}
END_TEST

// Whatever takes commands back takes back those that rest: nothing completes later, nothing leaks.
START_TEST(resting_commands_are_cancelled) {
  enum Way { kActive, kPhyReset, kReuse, kPcs, kChipReset, kUnplug, kBusReset, kDestroy, kWays };
  for (const char *stage : kStageNames) {
    for (int way = 0; way < kWays; way++) {
      Rig rig;
      rig.fault(std::string("name=h,action=hold,op=read,count=2,stage=") + stage);
      rig.driver.issue(7, rig.ncq(false, 1, 64));
      rig.driver.issue(8, rig.ncq(false, 2, 64));
      rig.wait();
      switch (way) {
        case kActive:
          rig.driver.write_cmd_space(0x300, 1u << 7 | 1u << 8);
          break;
        case kPhyReset:
          rig.driver.set_reg(regs::kSerialCtl, regs::kSerialHardReset);
          break;
        case kReuse:
          rig.driver.issue(7, rig.driver.plain(0xE5));
          rig.driver.issue(8, rig.driver.plain(0xE5));
          break;
        case kPcs:
          rig.driver.set_reg(regs::kPcs, rig.driver.reg(regs::kPcs) | regs::kPcsReset);
          break;
        case kChipReset:
          rig.driver.set_reg(regs::kCtl, regs::kCtlReset);
          break;
        case kUnplug:
          rd_card_detach(rig.host.card(), 0);
          break;
        case kBusReset:
          rd_card_reset(rig.host.card(), RD_RESET_BUS);
          break;
        case kDestroy:
          continue;
      }
      rig.wait();
      ck_assert_uint_eq(rig.driver.completions().size(), way == kReuse ? 2 : 0);
      if (way != kUnplug) {
        ck_assert(has(rig.list().at(0), "resting=0"));
        rig.fault("release name=h");
      }
      rig.wait();
      ck_assert_uint_eq(rig.driver.completions().size(), way == kReuse ? 2 : 0);
      ck_assert_uint_eq(rig.host.mapped, 0);
    }
  }
}
END_TEST

START_TEST(resting_commands_move) {
  for (const char *action : {"hold", "drop", "delay,delay_us=2000000"}) {
    for (const char *stage : kStageNames) {
      Rig source, target;
      source.fault(std::string("name=r,op=read,stage=") + stage + ",action=" + action);
      source.driver.issue(7, source.ncq(false, 1, 64));
      source.driver.issue(8, source.ncq(false, 2, 96));
      source.wait();
      migrate(source, target);
      ck_assert_uint_eq(target.list().size(), 1);
      target.wait();
      ck_assert(!target.done(7) || strcmp(stage, "fetch") == 0 || action[1] == 'e');
      target.fault("release name=r");
      target.wait(4'000'000'000);
      bool dropped = strcmp(action, "drop") == 0;
      ck_assert_msg(target.good(7) == !dropped, "%s %s: 0x%x", action, stage, target.entry(7));
      if (!dropped)
        ck_assert_uint_eq(target.data(1)[512], 65);
    }
  }
}
END_TEST

// Loaded rules go on counting where they were; a transfer that has to run again keeps its fault.
START_TEST(rules_move) {
  Rig source, target;
  source.fault("name=n,action=fail,error=abrt,op=0x25,nth=3");
  source.fault("name=p,action=fail,error=abrt,op=0x24,probability=0.5,seed=9");
  source.fault("name=c,action=corrupt,op=0x60,bits=3,count=1");
  source.fault("name=b,action=fail,error=unc,lba=300-309,heal=write");
  source.driver.run(4, source.driver.write_request(303, 2, source.driver.data_addr()));
  for (uint16_t i = 0; i < 2; i++)
    source.driver.run(5, source.driver.read_request(i, 1, source.driver.data_addr()));
  source.host.defer = true;
  source.driver.issue(9, source.ncq(false, 1, 64));
  source.wait();
  auto lines = source.list();
  migrate(source, target);
  ck_assert(target.list() == lines);
  target.wait();
  ck_assert(target.good(9));
  unsigned bits = 0;
  for (size_t i = 0; i < 4096; i++)
    bits += static_cast<unsigned>(__builtin_popcount(target.data(1)[i] ^ (64 + i / 512)));
  ck_assert_uint_eq(bits, 3);
  Driver &driver = target.driver;
  ck_assert_uint_eq(driver.run(6, driver.read_request(0, 1, driver.data_addr())) >> 16, 3);
  ck_assert_uint_eq(driver.run(10, driver.read_request(303, 2, driver.data_addr())) >> 16, 1);
  ck_assert_uint_eq(driver.run(11, driver.read_request(302, 2, driver.data_addr())) >> 16, 3);
}
END_TEST

START_TEST(hang_and_lost_link_move) {
  {
    Rig source, target;
    source.fault("name=h,action=hang,op=now");
    source.driver.issue(7, source.ncq(false, 1, 64));
    source.wait();
    migrate(source, target);
    target.wait();
    ck_assert(!target.done(7));
    target.fault("release name=h");
    target.wait();
    ck_assert(target.good(7));
  }
  Rig source, target;
  source.fault("action=link-down,op=now,delay_us=3000000");
  source.wait();
  migrate(source, target);
  target.wait();
  ck_assert_uint_eq(target.driver.reg(regs::kSerialCtl) & regs::kSerialReady, 0);
  target.wait(2'000'000'000);
  ck_assert_uint_ne(target.driver.reg(regs::kSerialCtl) & regs::kSerialReady, 0);
}
END_TEST

START_TEST(damaged_rules_never_break_the_card) {
  uint64_t state = seed();
  Rig source, target;
  source.fault(
      "name=h,action=hold,op=read,stage=decode;name=i,action=hang,op=trim;"
      "name=c,action=corrupt,op=write;name=b,action=fail,error=unc,lba=300-309,heal=write");
  for (uint8_t tag = 0; tag < 8; tag++)
    source.driver.issue(7 + tag, source.ncq(tag & 1, tag, 64u * tag));
  source.wait();
  auto bytes = source.host.save();
  size_t rules = std::search(bytes.begin(), bytes.end(), "FLTS", "FLTS" + 4) - bytes.begin();
  size_t slots = std::search(bytes.begin(), bytes.end(), "FLTC", "FLTC" + 4) - bytes.begin();
  ck_assert_uint_lt(slots, bytes.size());
  for (unsigned round = 0; round < 1000; round++) {
    auto bad = bytes;
    state = state * 6364136223846793005 + 1442695040888963407;
    size_t at = (round & 1 ? rules : slots - 80) + (state >> 33) % 400;
    bad[std::min(at, bad.size() - 1)] ^= static_cast<uint8_t>(1u << (state >> 61));
    rd_error error = {};
    if (rd_card_load(target.host.card(), bad.data(), bad.size(), &error) == 0) {
      rd_card_resume(target.host.card());
      target.fault("release");
    }
    target.host.advance(1000000);
  }
  rd_card_reset(target.host.card(), RD_RESET_BUS);
  target.fault("clear");
  target.driver = Driver(target.host);
  target.driver.probe();
  ck_assert_uint_eq(target.driver.run(4, target.driver.plain(0xEA)), 0x00010004);
}
END_TEST

// Random rules under random load, with resets and releases in between: no crash, no completion of
// what was cancelled, and in the end the card works.
START_TEST(random_rules) {
  uint64_t state = seed();
  auto random = [&](uint64_t below) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % below;
  };
  Rig rig;
  const char *actions[] = {
      "hold",    "drop",          "delay,delay_us=300",      "fail,error=unc,op=any", "hang",
      "corrupt", "fail,error=df", "link-down,delay_us=5000", "fail,error=abrt"};
  for (unsigned step = 0; step < 10000; step++) {
    rd_error error = {};
    switch (random(12)) {
      case 0: {
        std::string text = std::string("action=") + actions[random(std::size(actions))];
        text += ",probability=0.2,seed=" + std::to_string(random(1000));
        if (random(2))
          text += std::string(",stage=") + kStageNames[random(5)];
        rig.try_fault(text, &error);
        break;
      }
      case 1:
        rig.fault(random(8) ? "release count=3" : "clear");
        break;
      case 2:
        if (random(4) == 0)
          rig.driver.set_reg(regs::kSerialCtl, regs::kSerialHardReset);
        break;
      case 3:
        rig.host.defer = random(2);
        break;
      case 4:
        while (!rig.host.pending.empty())
          rig.host.answer();
        break;
      case 5:
        if (random(8) == 0)
          rig.driver.issue(static_cast<uint16_t>(random(64)), rig.driver.plain(0xEA));
        break;
      case 6:
      case 7:
        rig.host.advance(static_cast<int64_t>(random(400000)));
        break;
      default:
        rig.driver.issue(static_cast<uint16_t>(random(64)),
                         rig.ncq(random(2), static_cast<uint8_t>(random(31)), random(1000)));
    }
  }
  rig.host.defer = false;
  rd_card_reset(rig.host.card(), RD_RESET_BUS);
  rig.fault("clear");
  ck_assert_uint_eq(rig.host.mapped, 0);
  rig.driver = Driver(rig.host);
  rig.driver.probe();
  ck_assert_uint_eq(rig.driver.run(4, rig.driver.plain(0xEA)), 0x00010004);
}
END_TEST

}  // namespace

int main() {
  return run_tests(
      "fault_state",
      {queue_error_ends_what_the_drive_holds, resting_commands_are_cancelled, resting_commands_move,
       rules_move, hang_and_lost_link_move, damaged_rules_never_break_the_card, random_rules});
}
