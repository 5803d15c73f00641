// SPDX-License-Identifier: GPL-2.0-or-later
//
// From doorbell to drive: ring indices, routing, what a guest can get wrong, cancelling.
#include <cstring>

#include "driver.h"
#include "runner.h"

using namespace revodrive;
using namespace revodrive::test;

namespace {

struct Rig {
  ScriptedHost host;
  Driver driver{host};
  Rig() {
    host.build();
    host.attach(0);
    host.attach(1);
    driver.probe();
  }
};

constexpr uint32_t kGood = 0x00010000;
constexpr uint32_t kBad = 0x00030000;

START_TEST(first_doorbell_is_entry_zero) {
  Rig rig;
  ck_assert_uint_eq(rig.driver.run(4, rig.driver.identify(rig.driver.data_addr())), kGood | 4);
  ck_assert_uint_eq(rig.driver.reg(regs::kTxCons), 0);
  ck_assert_uint_eq(rig.driver.status(0), 0x50);
}
END_TEST

START_TEST(data_reaches_disk_and_guest) {
  Rig rig;
  uint64_t from = rig.driver.data_addr();
  uint64_t to = rig.driver.data_addr(0x10000);
  for (unsigned i = 0; i < 4096; i++)
    *rig.host.memory(from + i, 1) = static_cast<uint8_t>(i * 7);
  ck_assert_uint_eq(rig.driver.run(4, rig.driver.write_request(100, 8, from)), kGood | 4);
  ck_assert(memcmp(rig.host.disks[0].data() + 51200, rig.host.memory(from, 4096), 4096) == 0);
  ck_assert_uint_eq(rig.driver.run(5, rig.driver.read_request(100, 8, to)), kGood | 5);
  ck_assert(memcmp(rig.host.memory(to, 4096), rig.host.memory(from, 4096), 4096) == 0);
  ck_assert_uint_eq(rig.host.mapped, 0);
}
END_TEST

// Odd pieces in odd places, among them one byte and an unaligned address.
START_TEST(scatter_list_pieces) {
  Rig rig;
  for (unsigned i = 0; i < 4096; i++)
    rig.host.disks[0][i] = static_cast<uint8_t>(i * 13 + 1);
  Request request = rig.driver.read_request(0, 8, 0);
  uint64_t base = rig.driver.data_addr();
  request.segments = {{base + 1, 1}, {base + 0x1003, 511}, {base + 0x3000, 3584}};
  ck_assert_uint_eq(rig.driver.run(4, request), kGood | 4);
  const uint8_t *disk = rig.host.disks[0].data();
  ck_assert(memcmp(rig.host.memory(base + 1, 1), disk, 1) == 0);
  ck_assert(memcmp(rig.host.memory(base + 0x1003, 511), disk + 1, 511) == 0);
  ck_assert(memcmp(rig.host.memory(base + 0x3000, 3584), disk + 512, 3584) == 0);
  ck_assert_uint_eq(*rig.host.memory(base + 2, 1), 0);
}
END_TEST

// The same through the bounce buffer, and nothing left mapped.
START_TEST(unmappable_memory_is_bounced) {
  Rig rig;
  rig.host.mappable = false;
  uint64_t from = rig.driver.data_addr();
  memset(rig.host.memory(from, 4096), 0x5A, 4096);
  ck_assert_uint_eq(rig.driver.run(4, rig.driver.write_request(8, 8, from)), kGood | 4);
  ck_assert_uint_eq(rig.host.disks[0][4096], 0x5A);
  uint64_t to = rig.driver.data_addr(0x10000);
  ck_assert_uint_eq(rig.driver.run(4, rig.driver.read_request(8, 8, to)), kGood | 4);
  ck_assert_uint_eq(*rig.host.memory(to + 4095, 1), 0x5A);
}
END_TEST

START_TEST(short_scatter_list_fails_cleanly) {
  Rig rig;
  uint64_t to = rig.driver.data_addr();
  memset(rig.host.memory(to, 8192), 0xEE, 8192);
  Request request = rig.driver.read_request(0, 8, to);
  request.segments = {{to, 100}};
  ck_assert_uint_eq(rig.driver.run(4, request), kBad | 4);
  ck_assert_uint_ne(rig.driver.status(0) & 1, 0);
  ck_assert_uint_ne(rig.driver.error_info(4), 0);
  for (unsigned i = 100; i < 8192; i++)
    ck_assert_uint_eq(*rig.host.memory(to + i, 1), 0xEE);
  // An empty list and one that says 0 at once.
  request.segments = {};
  ck_assert_uint_eq(rig.driver.run(4, request), kBad | 4);
  request.segments = {{to, 0}, {to, 4096}};
  ck_assert_uint_eq(rig.driver.run(4, request), kBad | 4);
}
END_TEST

START_TEST(doorbell_takes_each_entry_once) {
  Rig rig;
  Request request = rig.driver.plain(0xEA);
  for (uint16_t slot = 0; slot < 5000; slot++)
    ck_assert_uint_eq(rig.driver.run(slot % 64, request), kGood | slot % 64);
  ck_assert_uint_eq(rig.driver.completions().size(), 5000);
  ck_assert_uint_eq(rig.host.counter("commands"), 5000);
}
END_TEST

START_TEST(doorbell_outside_the_ring) {
  Rig rig;
  for (uint32_t value : {2048u, 4095u, 0xFFFFFFFFu})
    rig.driver.set_reg(regs::kTxProd, value);
  ck_assert_uint_eq(rig.host.counter("commands"), 0);
  ck_assert_uint_eq(rig.host.counter("rejected"), 3);
  rig.driver.set_reg(regs::kTxCfg, 0);
  rig.driver.set_reg(regs::kTxCfg, regs::kRingEnable);  // size 0
  for (uint32_t value : {0u, 1u, 4095u})
    rig.driver.set_reg(regs::kTxProd, value);
  ck_assert_uint_eq(rig.host.counter("commands"), 0);
}
END_TEST

// A ring full of the same entry: one doorbell does at most one ring's worth.
START_TEST(one_doorbell_is_bounded) {
  Rig rig;
  rig.driver.run(4, rig.driver.plain(0xEA));
  for (unsigned i = 0; i < 2048; i++)
    rig.host.store32(rig.driver.tx_ring() + 4 * i, 0x70001004);
  uint64_t before = rig.host.counter("commands");
  rig.driver.set_reg(regs::kTxProd, 0x7FF);
  rig.driver.set_reg(regs::kTxProd, 0);
  ck_assert_uint_le(rig.host.counter("commands") - before, 2048);
}
END_TEST

START_TEST(extreme_entries) {
  Rig rig;
  rig.driver.run(4, rig.driver.identify(rig.driver.data_addr()));
  uint32_t next = 1;
  for (uint32_t kind = 0; kind < 8; kind++) {
    for (uint32_t set : {0u, 16u, 17u, 63u, 127u}) {
      for (uint32_t phys : {0u, 1u, 0x0Fu, 0x10u, 0x80u, 0xFFu}) {
        for (uint32_t slot : {0u, 4u, 2047u, 2048u, 4095u}) {
          rig.host.store32(rig.driver.tx_ring() + 4 * next,
                           kind << 29 | set << 20 | phys << 12 | slot);
          rig.driver.set_reg(regs::kTxProd, next);
          next = (next + 1) % 2048;
          while (rig.host.run_until([&] { return rig.host.irq; }))
            rig.driver.interrupt();
        }
      }
    }
  }
  for (uint32_t entry : rig.driver.completions())
    ck_assert_uint_lt(entry & 0xFFF, 2048);
  // Nothing was written behind the received FIS area of 17 register sets.
  for (unsigned i = 0x1900; i < 0x4000; i++)
    ck_assert_uint_eq(*rig.host.memory(rig.driver.rx_fis() + i, 1), 0);
}
END_TEST

START_TEST(dead_phy_fails_at_once) {
  Rig rig;
  Request request = rig.driver.identify(rig.driver.data_addr());
  request.phy = 3;
  ck_assert_uint_eq(rig.driver.run(4, request), kBad | 4);
  ck_assert_uint_eq(rig.driver.status(0), 0x41);
  ck_assert_uint_eq(rig.driver.error(0), 0x04);
  ck_assert_uint_ne(rig.driver.error_info(4), 0);
}
END_TEST

START_TEST(issue_waits_for_enable) {
  Rig rig;
  rig.driver.set_reg(regs::kPcs, 0x58);
  rig.driver.issue(4, rig.driver.plain(0xEA));
  rig.host.advance(10000000);
  ck_assert_uint_eq(rig.host.counter("commands"), 0);
  rig.driver.set_reg(regs::kPcs, 0x59);
  ck_assert(rig.host.run_until([&] { return rig.host.irq; }));
  ck_assert_uint_eq(rig.host.counter("commands"), 1);
}
END_TEST

START_TEST(command_active_shows_and_cancels) {
  Rig rig;
  rig.host.defer = true;
  rig.driver.issue(0x24, rig.driver.read_request(0, 8, rig.driver.data_addr()));
  // The driver's address arithmetic is in bytes; both low bits are noise.
  ck_assert_uint_eq(rig.driver.read_cmd_space(0x300 + (0x24 >> 3)), 1u << 4);
  ck_assert_uint_eq(rig.driver.read_cmd_space(0x307), 1u << 4);
  rig.driver.write_cmd_space(0x304, 1u << 4);
  ck_assert_uint_eq(rig.driver.read_cmd_space(0x304), 0);
  ck_assert_uint_eq(rig.host.pending.size(), 0);
  ck_assert_uint_eq(rig.host.mapped, 0);
  rig.host.advance(1000000000);
  ck_assert(!rig.host.irq);
  ck_assert_uint_eq(rig.host.counter("completions"), 0);
}
END_TEST

START_TEST(phy_reset_cancels_only_its_commands) {
  Rig rig;
  rig.host.defer = true;
  Request other = rig.driver.read_request(0, 8, rig.driver.data_addr(0x8000));
  other.phy = 1;
  other.register_set = 1;
  rig.driver.issue(4, rig.driver.read_request(0, 8, rig.driver.data_addr()));
  rig.driver.issue(5, other);
  rig.driver.set_reg(regs::kSerialCtl, 1);
  ck_assert_uint_eq(rig.driver.reg(regs::kSerialCtl) & 3, 0);
  ck_assert_uint_eq(rig.host.pending.size(), 1);
  rig.host.answer();
  ck_assert(rig.host.run_until([&] { return rig.host.irq; }));
  rig.driver.interrupt();
  ck_assert_uint_eq(rig.driver.completions().size(), 1);
  ck_assert_uint_eq(rig.driver.completions()[0], kGood | 5);
}
END_TEST

START_TEST(reused_slot_replaces_its_command) {
  Rig rig;
  rig.host.defer = true;
  rig.driver.issue(4, rig.driver.read_request(0, 8, rig.driver.data_addr()));
  rig.host.defer = false;
  ck_assert_uint_eq(rig.driver.run(4, rig.driver.plain(0xEA)), kGood | 4);
  rig.host.advance(1000000000);
  ck_assert_uint_eq(rig.host.counter("completions"), 1);
}
END_TEST

START_TEST(core_reset_silences_everything) {
  Rig rig;
  rig.host.defer = true;
  rig.driver.issue(4, rig.driver.read_request(0, 8, rig.driver.data_addr()));
  rig.driver.set_reg(regs::kCtl, regs::kCtlReset);
  ck_assert_uint_eq(rig.driver.reg(regs::kCtl) & regs::kCtlReset, 0);
  ck_assert_uint_eq(rig.host.pending.size(), 0);
  ck_assert(!rig.host.irq);
  ck_assert_uint_eq(rig.driver.reg(regs::kIntMask), 0);
  rig.host.advance(1000000000);
  ck_assert_uint_eq(rig.host.counter("completions"), 0);
  rig.host.defer = false;
  rig.driver.probe();
  ck_assert_uint_eq(rig.driver.run(4, rig.driver.plain(0xEA)), kGood | 4);
}
END_TEST

// DMA aimed at the card itself, at nothing, or with bus mastering off: the command fails or is
// lost, and the next good one works.
START_TEST(failing_dma) {
  Rig rig;
  rig.host.bus_master = false;
  rig.driver.issue(4, rig.driver.plain(0xEA));
  rig.host.advance(1000000000);
  rig.host.bus_master = true;
  ck_assert_uint_gt(rig.host.counter("dma_errors"), 0);
  rig.driver.set_reg(regs::kCtl, regs::kCtlReset);
  rig.driver.probe();
  Request request = rig.driver.read_request(0, 8, 0xFFFFFFFFFFFFF000);
  ck_assert_uint_eq(rig.driver.run(4, request), kBad | 4);
  request = rig.driver.read_request(0, 8, 0);
  ck_assert_uint_eq(rig.driver.run(4, request), kBad | 4);
  ck_assert_uint_eq(rig.driver.run(4, rig.driver.plain(0xEA)), kGood | 4);
}
END_TEST

START_TEST(dma_into_own_registers_does_nothing) {
  Rig rig;
  rig.host.on_dma = [&](uint64_t, size_t) {
    rig.host.writel(regs::kCore0 + regs::kTxProd, 5);
    ck_assert_uint_eq(rig.host.readl(regs::kCore0 + regs::kTxProd), UINT32_MAX);
  };
  ck_assert_uint_eq(rig.driver.run(4, rig.driver.identify(rig.driver.data_addr())), kGood | 4);
  ck_assert_uint_eq(rig.host.counter("commands"), 1);
}
END_TEST

}  // namespace

int main() {
  return run_tests(
      "delivery",
      {first_doorbell_is_entry_zero, data_reaches_disk_and_guest, scatter_list_pieces,
       unmappable_memory_is_bounced, short_scatter_list_fails_cleanly,
       doorbell_takes_each_entry_once, doorbell_outside_the_ring, one_doorbell_is_bounded,
       extreme_entries, dead_phy_fails_at_once, issue_waits_for_enable,
       command_active_shows_and_cancels, phy_reset_cancels_only_its_commands,
       reused_slot_replaces_its_command, core_reset_silences_everything, failing_dma,
       dma_into_own_registers_does_nothing});
}
