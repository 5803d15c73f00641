// SPDX-License-Identifier: GPL-2.0-or-later
//
// The SAS target behind the bridge: how the link shows itself, frames in and out, task management,
// and what a guest can get wrong.
#include <cstring>
#include <set>

#include "driver.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;
using namespace revodrive::test;

namespace {

constexpr uint32_t kGood = 0x00810000;
constexpr uint32_t kResponse = 0x00050000;
constexpr uint32_t kBad = 0x00030000;
constexpr uint64_t kMemberBytes = 8 << 20;
constexpr uint32_t kChunkBytes = 64 << 10;

using Cdb = std::array<uint8_t, 16>;

Cdb transfer(uint8_t opcode, uint32_t lba, uint16_t blocks) {
  Cdb cdb{opcode};
  for (unsigned i = 0; i < 4; i++)
    cdb[2 + i] = static_cast<uint8_t>(lba >> (24 - 8 * i));
  cdb[7] = static_cast<uint8_t>(blocks >> 8);
  cdb[8] = static_cast<uint8_t>(blocks);
  return cdb;
}

struct Rig {
  ScriptedHost host;
  Driver driver{host};
  explicit Rig(bool timing = true) {
    host.build(4, timing, true);
    for (unsigned port = 0; port < 4; port++)
      host.attach(port, kMemberBytes);
    driver.probe();
    ck_assert_uint_eq(driver.run(4, ssp_command(Cdb{})), kResponse | 4);  // power on
  }
  SspRequest read(uint32_t lba, uint16_t blocks, uint64_t addr) {
    return ssp_command(transfer(0x28, lba, blocks), addr, uint32_t{blocks} * 512);
  }
  SspRequest write(uint32_t lba, uint16_t blocks, uint64_t addr) {
    return ssp_command(transfer(0x2A, lba, blocks), addr, uint32_t{blocks} * 512);
  }
  uint32_t cfg(uint32_t addr) {
    driver.set_reg(regs::kPortCfg, addr);
    return driver.reg(regs::kPortCfg + 4);
  }
};

}  // namespace

START_TEST(link_shows_an_ssp_target) {
  Rig rig;
  ck_assert_uint_eq(rig.driver.reg(regs::kSerialCtl), 0x00120000);
  rig.driver.set_reg(regs::kPortVsr, 0x0C);
  ck_assert_uint_eq(rig.driver.reg(regs::kPortVsr + 4), 0x00100000);
  ck_assert_uint_eq(rig.cfg(0x11C), 0x08000010);
  ck_assert_uint_eq(rig.cfg(0x128) & 0xFF, 0x5E);
  ck_assert_uint_ne(rig.cfg(0x12C), 0);
  ck_assert_uint_eq(rig.cfg(0x20), 0);  // no signature
  for (unsigned phy = 1; phy < 4; phy++)
    ck_assert_uint_eq(rig.driver.reg(regs::kSerialCtl + 4 * phy) & 0x100000, 0);
}
END_TEST

START_TEST(sense_comes_in_a_response_frame) {
  ScriptedHost host;
  host.build(4, true, true);
  for (unsigned port = 0; port < 4; port++)
    host.attach(port, kMemberBytes);
  Driver driver(host);
  driver.probe();
  ck_assert_uint_eq(driver.run(4, ssp_command(Cdb{})), kResponse | 4);
  auto frame = driver.response(4);
  ck_assert_uint_eq(frame[10], 2);
  ck_assert_uint_eq(frame[11], 2);
  ck_assert_uint_eq(frame[19], 18);
  ck_assert_uint_eq(frame[24 + 2], 6);
  ck_assert_uint_eq(frame[24 + 12], 0x29);
  ck_assert_uint_eq(driver.run(5, ssp_command(Cdb{})), kGood | 5);
}
END_TEST

START_TEST(data_lies_on_the_members_chunk_by_chunk) {
  for (bool timing : {true, false}) {
    Rig rig(timing);
    uint64_t from = rig.driver.data_addr(), to = rig.driver.data_addr(0x100000);
    constexpr uint32_t kBytes = 600 * 512;
    for (uint32_t i = 0; i < kBytes; i++)
      *rig.host.memory(from + i, 1) = static_cast<uint8_t>(i * 7 + i / 512);
    ck_assert_uint_eq(rig.driver.run(4, rig.write(100, 600, from)), kGood | 4);
    for (uint32_t i = 0; i < kBytes; i += 512) {
      uint64_t at = 100 * 512 + i, chunk = at / kChunkBytes;
      const uint8_t *disk = rig.host.disks[chunk % 4].data();
      ck_assert_mem_eq(disk + chunk / 4 * kChunkBytes + at % kChunkBytes,
                       rig.host.memory(from + i, 512), 512);
    }
    ck_assert_uint_eq(rig.driver.run(5, rig.read(100, 600, to)), kGood | 5);
    ck_assert_mem_eq(rig.host.memory(to, kBytes), rig.host.memory(from, kBytes), kBytes);
    ck_assert_uint_eq(rig.host.mapped, 0);
  }
}
END_TEST

// Pieces of the guest's list that end anywhere, so that slices of it begin anywhere.
START_TEST(scatter_list_over_chunks) {
  Rig rig;
  for (bool mappable : {true, false}) {
    rig.host.mappable = mappable;
    for (unsigned port = 0; port < 4; port++)
      for (size_t i = 0; i < kMemberBytes; i++)
        rig.host.disks[port][i] = static_cast<uint8_t>(i * 13 + port + i / 512);
    SspRequest request = rig.read(120, 20, 0);
    uint64_t base = rig.driver.data_addr();
    request.segments = {{base + 1, 4095}, {base + 0x3003, 1}, {base + 0x5001, 20 * 512 - 4096}};
    ck_assert_uint_eq(rig.driver.run(4, request), kGood | 4);
    std::vector<uint8_t> got, want;
    for (const Segment &segment : request.segments)
      for (uint32_t i = 0; i < segment.len; i++)
        got.push_back(*rig.host.memory(segment.addr + i, 1));
    for (uint64_t at = 120 * 512; at < 140 * 512; at++) {
      uint64_t chunk = at / kChunkBytes;
      want.push_back(rig.host.disks[chunk % 4][chunk / 4 * kChunkBytes + at % kChunkBytes]);
    }
    ck_assert(got == want);
  }
}
END_TEST

START_TEST(more_than_all_tags_of_all_members) {
  Rig rig;
  std::set<uint32_t> left;
  size_t before = rig.driver.completions().size();
  for (uint16_t slot = 4; slot < 64; slot++)
    left.insert(slot);
  rig.host.defer = true;
  for (uint16_t slot = 4; slot < 64; slot++)
    rig.driver.issue(slot, rig.read(slot * 8u, 512, rig.driver.data_addr()));
  ck_assert_uint_eq(rig.host.pending.size(), 4 * 32);  // 60 times more than 4 chunks
  rig.host.defer = false;
  while (!rig.host.pending.empty())
    rig.host.answer();
  while (rig.driver.completions().size() < before + 60) {
    ck_assert(rig.host.run_until([&] { return rig.host.irq; }));
    rig.driver.interrupt();
  }
  for (size_t i = before; i < rig.driver.completions().size(); i++) {
    ck_assert_uint_eq(rig.driver.completions()[i] & ~0xFFFu, kGood);
    ck_assert_uint_eq(left.erase(rig.driver.completions()[i] & 0xFFF), 1);
  }
}
END_TEST

START_TEST(task_management) {
  Rig rig;
  rig.host.defer = true;
  uint64_t data = rig.driver.data_addr();
  // One on each member: to take a command from a drive lets its other transfers end.
  for (uint16_t slot = 10; slot < 14; slot++)
    rig.driver.issue(slot, rig.read(128u * (slot - 10u), 8, data));
  auto ask = [&](uint8_t function, uint16_t tag, uint8_t unit = 0) {
    ck_assert_uint_eq(rig.driver.run(0, ssp_task(function, tag, unit)), kResponse | 0);
    auto frame = rig.driver.response(0);
    ck_assert_uint_eq(frame[10], 1);
    ck_assert_uint_eq(frame[23], 4);
    return frame[27];
  };
  ck_assert_uint_eq(ask(0x80, 10), 0x08);  // there
  ck_assert_uint_eq(ask(0x80, 10, 1), 0x00);
  ck_assert_uint_eq(ask(0x80, 9), 0x00);
  ck_assert_uint_eq(ask(0x80, 4000), 0x00);
  ck_assert_uint_eq(ask(0x01, 10), 0x00);  // abort
  ck_assert_uint_eq(ask(0x80, 10), 0x00);
  ck_assert_uint_eq(ask(0x81, 0), 0x08);
  ck_assert_uint_eq(ask(0x02, 0, 7), 0x09);  // no such unit
  ck_assert_uint_eq(ask(0x40, 0), 0x04);     // CLEAR ACA
  ck_assert_uint_eq(ask(0x04, 0), 0x00);     // clear the set
  ck_assert_uint_eq(ask(0x81, 0), 0x00);
  ck_assert_uint_eq(rig.host.mapped, 0);
  size_t before = rig.driver.completions().size();
  rig.host.defer = false;
  rig.host.advance(1000000000);
  rig.driver.take_completions();
  ck_assert_uint_eq(rig.driver.completions().size(), before);  // none of the four comes
  ck_assert_uint_eq(ask(0x08, 0), 0x00);
  ck_assert_uint_eq(rig.driver.run(4, ssp_command(Cdb{})), kResponse | 4);
  ck_assert_uint_eq(rig.driver.response(4)[24 + 13], 0x03);
}
END_TEST

START_TEST(hard_reset_of_the_link) {
  Rig rig;
  rig.host.defer = true;
  rig.driver.issue(10, rig.read(0, 8, rig.driver.data_addr()));
  rig.driver.set_reg(regs::kSerialCtl, 2);
  ck_assert_uint_eq(rig.host.mapped, 0);
  ck_assert(rig.host.pending.empty());
  rig.host.defer = false;
  rig.host.advance(500000000);
  ck_assert_uint_eq(rig.driver.reg(regs::kPortIrq) & 5, 5);
  rig.driver.interrupt();
  ck_assert_uint_eq(rig.driver.run(4, ssp_command(Cdb{})), kResponse | 4);
  ck_assert_uint_eq(rig.driver.response(4)[24 + 12], 0x29);
  ck_assert_uint_eq(rig.driver.run(4, ssp_command(Cdb{})), kGood | 4);
}
END_TEST

START_TEST(what_has_no_target) {
  Rig rig;
  SspRequest elsewhere = rig.read(0, 8, rig.driver.data_addr());
  elsewhere.phy = 2;
  ck_assert_uint_eq(rig.driver.run(4, elsewhere), kBad | 4);
  ck_assert_uint_eq(rig.driver.error_info(4), 1u << 9);
  // An ATA command for the SAS target.
  ck_assert_uint_eq(rig.driver.run(5, rig.driver.identify(rig.driver.data_addr())), kBad | 5);
  SspRequest ordered = ssp_command(Cdb{});
  ordered.table[24 + 9] = 2;
  ck_assert_uint_eq(rig.driver.run(6, ordered), kResponse | 6);
  ck_assert_uint_eq(rig.driver.response(6)[27], 0x02);
  SspRequest nowhere = rig.read(0, 8, 0x10);  // no memory there
  ck_assert_uint_eq(rig.driver.run(7, nowhere), kBad | 7);
  ck_assert_uint_eq(rig.host.mapped, 0);
}
END_TEST

// Saved with requests in flight whose transfers the host keeps: they run again and end.
START_TEST(requests_in_flight_survive_a_move) {
  Rig rig;
  uint64_t from = rig.driver.data_addr();
  std::memset(rig.host.memory(from, 1 << 18), 0x6B, 1 << 18);
  rig.host.defer = true;
  rig.driver.issue(10, rig.write(0, 512, from));
  rig.driver.issue(11, rig.read(1024, 8, rig.driver.data_addr(0x80000)));
  std::vector<uint8_t> state = rig.host.save();

  ScriptedHost other;
  other.build(4, true, true);
  for (unsigned port = 0; port < 4; port++)
    other.attach(port, kMemberBytes);
  std::memcpy(other.memory(ScriptedHost::kMemoryBase, ScriptedHost::kMemoryBytes),
              rig.host.memory(ScriptedHost::kMemoryBase, ScriptedHost::kMemoryBytes),
              ScriptedHost::kMemoryBytes);
  rd_error error = {};
  ck_assert_msg(rd_card_load(other.card(), state.data(), state.size(), &error) == 0, "%s",
                error.text);
  Driver driver = rig.driver.moved_to(other);
  size_t before = driver.completions().size();
  rd_card_resume(other.card());
  while (driver.completions().size() < before + 2) {
    ck_assert(other.run_until([&] { return other.irq; }));
    driver.interrupt();
  }
  for (size_t i = before; i < before + 2; i++)
    ck_assert_uint_eq(driver.completions()[i] & ~0xFFFu, kGood);
  for (unsigned port = 0; port < 4; port++)
    ck_assert_uint_eq(other.disks[port][kChunkBytes - 1], 0x6B);
  rig.host.defer = false;
  while (!rig.host.pending.empty())
    rig.host.answer();
}
END_TEST

// The members' size, the mode: a state of another card is refused.
START_TEST(state_of_another_mode_is_refused) {
  Rig rig;
  std::vector<uint8_t> state = rig.host.save();
  ScriptedHost other;
  other.build(4);
  for (unsigned port = 0; port < 4; port++)
    other.attach(port, kMemberBytes);
  rd_error error = {};
  ck_assert_int_ne(rd_card_load(other.card(), state.data(), state.size(), &error), 0);
  ck_assert_ptr_nonnull(std::strstr(error.text, "mode=vca"));
}
END_TEST

START_TEST(a_member_comes_and_goes) {
  Rig rig;
  uint64_t data = rig.driver.data_addr();
  ck_assert_uint_eq(rig.host.counter("volume_degraded"), 0);
  rd_card_detach(rig.host.card(), 1);
  ck_assert_uint_eq(rig.host.counter("volume_degraded"), 1);
  ck_assert_uint_eq(rig.driver.run(4, rig.read(128, 8, data)), kResponse | 4);
  ck_assert_uint_eq(rig.driver.response(4)[24 + 2], 4);
  ck_assert_uint_eq(rig.driver.response(4)[24 + 6], 128);
  ck_assert_uint_eq(rig.driver.run(5, rig.read(0, 8, data)), kGood | 5);
  rig.host.attach(1, kMemberBytes);
  ck_assert_uint_eq(rig.host.counter("volume_degraded"), 0);
  ck_assert_uint_eq(rig.driver.run(4, rig.read(128, 8, data)), kGood | 4);
}
END_TEST

// Rules of fault injection act on the member's own commands.
START_TEST(faults_of_a_member) {
  Rig rig;
  rd_error error = {};
  uint64_t data = rig.driver.data_addr();
  auto fault = [&](const char *text) {
    ck_assert_msg(rd_card_fault(rig.host.card(), 2, text, &error) == 0, "%s", error.text);
  };
  fault("name=bad,op=read,lba=7,action=fail,error=unc");
  ck_assert_uint_eq(rig.driver.run(4, rig.read(256, 16, data)), kResponse | 4);
  ck_assert_uint_eq(rig.driver.response(4)[24 + 2], 3);
  ck_assert_uint_eq(rig.driver.response(4)[24 + 5], 1);
  ck_assert_uint_eq(rig.driver.response(4)[24 + 6], 7);
  ck_assert_uint_eq(rig.driver.run(5, rig.read(300, 16, data)), kGood | 5);
  fault("clear");
  fault("name=held,op=read,stage=fetch,action=hold");
  rig.driver.issue(10, rig.read(256, 16, data));
  rig.host.advance(1000000000);
  rig.driver.interrupt();
  ck_assert_uint_ne(rig.driver.completions().back() & 0xFFF, 10);
  size_t before = rig.driver.completions().size();
  fault("release name=held");
  ck_assert(rig.host.run_until([&] { return rig.host.irq; }));
  rig.driver.interrupt();
  ck_assert_uint_eq(rig.driver.completions().size(), before + 1);
  ck_assert_uint_eq(rig.driver.completions().back(), kGood | 10);
}
END_TEST

// A drive that hangs until its link is reset: the unit's reset does that.
START_TEST(unit_reset_frees_a_hung_member) {
  Rig rig;
  rd_error error = {};
  ck_assert_int_eq(rd_card_fault(rig.host.card(), 2, "name=dead,op=now,action=hang", &error), 0);
  uint64_t data = rig.driver.data_addr();
  rig.driver.issue(10, rig.read(256, 8, data));
  ck_assert_uint_eq(rig.driver.run(5, rig.read(0, 8, data)), kGood | 5);
  rig.host.advance(2000000000);
  rig.driver.interrupt();
  ck_assert_uint_ne(rig.driver.completions().back() & 0xFFF, 10);
  ck_assert_uint_eq(rig.driver.run(0, ssp_task(0x08, 0)), kResponse | 0);
  ck_assert_uint_eq(rig.driver.response(0)[27], 0);
  ck_assert_uint_eq(rig.driver.run(4, ssp_command(Cdb{})), kResponse | 4);
  ck_assert_uint_eq(rig.driver.run(10, rig.read(256, 8, data)), kGood | 10);
}
END_TEST

// Whatever the guest writes into frames: answers come, and memory is written where it should be.
START_TEST(random_frames) {
  Random random(test::seed());
  Rig rig;
  for (int round = 0; round < 1500; round++) {
    SspRequest request = rig.read(static_cast<uint32_t>(random.below(20000)),
                                  static_cast<uint16_t>(random.below(64)), rig.driver.data_addr());
    request.task = random.one_in(8);
    for (size_t i = 24; i < 52; i++) {
      if (random.one_in(6))
        request.table[i] = static_cast<uint8_t>(random.next());
    }
    if (random.one_in(3))
      request.table[36] = static_cast<uint8_t>(random.next());
    if (random.one_in(10))
      request.segments.clear();
    auto slot = static_cast<uint16_t>(random.below(64));
    ck_assert_uint_eq(rig.driver.run(slot, request) & 0xFFF, slot);
  }
  ck_assert_uint_eq(rig.host.mapped, 0);
}
END_TEST

// As with a disk of its own: a timer that fires late does not make the backend late.
START_TEST(waiting_host_is_never_late) {
  Rig rig;
  rig.host.defer = true;
  rig.host.wait_answers = true;
  rig.host.timer_late_ns = 216;
  ck_assert_uint_eq(rig.driver.run(4, rig.read(0, 8, rig.driver.data_addr())), kGood | 4);
  ck_assert_uint_eq(rig.host.counter("late_ios"), 0);
}
END_TEST

int main() {
  return run_tests("ssp",
                   {link_shows_an_ssp_target, sense_comes_in_a_response_frame,
                    data_lies_on_the_members_chunk_by_chunk, scatter_list_over_chunks,
                    more_than_all_tags_of_all_members, task_management, hard_reset_of_the_link,
                    what_has_no_target, requests_in_flight_survive_a_move,
                    state_of_another_mode_is_refused, a_member_comes_and_goes, faults_of_a_member,
                    unit_reset_frees_a_hung_member, random_frames, waiting_host_is_never_late});
}
