// SPDX-License-Identifier: GPL-2.0-or-later
//
// The completion ring and the interrupt: no completion lost, none invented, coalescing in virtual
// time.
#include <cstring>
#include <set>

#include "driver.h"
#include "runner.h"

using namespace revodrive;
using namespace revodrive::test;
using namespace revodrive::regs;

namespace {

struct Rig {
  ScriptedHost host;
  Driver driver{host};
  explicit Rig(bool timing = true) {
    host.build(8, timing);
    for (unsigned port = 0; port < 4; port++)
      host.attach(port);
    driver.probe();
  }
  void queue_reads(uint16_t first_slot, unsigned count, uint8_t phy = 0) {
    for (unsigned i = 0; i < count; i++) {
      uint16_t slot = static_cast<uint16_t>(first_slot + i);
      Request request = driver.read_request(8 * i, 8, driver.data_addr(0x1000 * i));
      request.fis = ncq_fis(0x60, 8 * i, 8, static_cast<uint8_t>(i));
      request.tag = static_cast<uint8_t>(i);
      request.phy = phy;
      request.register_set = phy;
      driver.issue(slot, request);
    }
  }
};

START_TEST(indices_before_the_first_completion) {
  Rig rig;
  ck_assert_uint_eq(rig.driver.reg(kRxCons), 0xFFF);
  ck_assert_uint_eq(rig.host.load32(rig.driver.rx_ring()), 0xFFF);
  rig.driver.run(4, rig.driver.plain(0xEA));
  ck_assert_uint_eq(rig.driver.reg(kRxCons), 0);
  ck_assert_uint_eq(rig.host.load32(rig.driver.rx_ring()), 0);
}
END_TEST

// The driver examines the ring after it read INT_STAT; what is posted after that must keep DONE.
START_TEST(completion_between_status_read_and_acknowledge) {
  Rig rig;
  rig.driver.set_reg(kIntCoal, 0);
  rig.host.defer = true;
  rig.queue_reads(4, 2);
  rig.host.advance(100000000);
  rig.host.answer();
  ck_assert(rig.host.irq);
  rig.driver.set_reg(kIntStat, kIntDone);  // before any read: clears nothing
  ck_assert_uint_eq(rig.driver.reg(kIntStat) & kIntDone, kIntDone);
  rig.driver.take_completions();
  rig.host.answer();
  rig.driver.set_reg(kIntStat, kIntDone);
  ck_assert(rig.host.irq);
  ck_assert(rig.driver.interrupt());
  ck_assert_uint_eq(rig.driver.completions().size(), 2);
  ck_assert(!rig.host.irq);
}
END_TEST

START_TEST(message_again_while_a_cause_is_pending) {
  Rig rig;
  rig.driver.set_reg(kIntCoal, 0);
  rig.host.defer = true;
  rig.queue_reads(4, 2);
  rig.host.advance(100000000);
  rig.host.answer();
  unsigned before = rig.host.msi_messages;
  rig.driver.reg(kIntStat);
  rig.host.answer();
  ck_assert_uint_eq(rig.host.msi_messages, before);
  rig.driver.set_reg(kIntStat, kIntDone);
  ck_assert_uint_eq(rig.host.msi_messages, before + 1);
}
END_TEST

START_TEST(coalescing_timeout) {
  Rig rig;
  for (uint32_t timeout_us : {128u, 1000u}) {
    rig.driver.set_reg(kIntCoal, 0x000101FF);
    rig.driver.set_reg(kIntCoalTimeout, 0x00010000 | timeout_us);
    uint64_t posted = rig.host.counter("completions");
    rig.driver.issue(4, rig.driver.plain(0xEA));
    rig.host.run_until([&] { return rig.host.counter("completions") > posted; });
    int64_t posted_ns = rig.host.now_ns();
    ck_assert(!rig.host.irq);
    rig.host.run_until([&] { return rig.host.irq; });
    ck_assert_int_eq(rig.host.now_ns() - posted_ns, int64_t{timeout_us} * 1000);
    rig.driver.interrupt();
  }
}
END_TEST

START_TEST(coalescing_count) {
  Rig rig;
  rig.driver.set_reg(kIntCoal, 0x00010000 | 4);
  rig.driver.set_reg(kIntCoalTimeout, 0x0001FFFF);
  rig.queue_reads(4, 8);
  ck_assert(rig.host.run_until([&] { return rig.host.irq; }));
  ck_assert_uint_eq(rig.host.counter("completions"), 4);
}
END_TEST

START_TEST(no_coalescing_when_disabled) {
  Rig rig;
  rig.driver.set_reg(kIntCoal, 0);
  rig.driver.set_reg(kIntCoalTimeout, 0x00010000);
  rig.queue_reads(4, 8);
  while (rig.host.run_until([&] { return rig.host.irq; })) {
    ck_assert(rig.driver.interrupt());
  }
  ck_assert_uint_eq(rig.driver.completions().size(), 8);
  ck_assert_uint_ge(rig.host.counter("interrupts"), 2);
}
END_TEST

// Disabling while completions wait for their interrupt must not strand them.
START_TEST(disabling_coalescing_releases_what_waits) {
  Rig rig;
  rig.driver.issue(4, rig.driver.plain(0xEA));
  rig.host.run_until([&] { return rig.host.counter("completions") == 1; });
  ck_assert(!rig.host.irq);
  rig.driver.set_reg(kIntCoal, 0);
  ck_assert(rig.host.irq);
}
END_TEST

// More completions than the ring holds, and a driver that does not look for a long time.
START_TEST(ring_overflow_holds_back) {
  Rig rig(false);
  rig.driver.set_reg(kRxCfg, 0);
  rig.driver.set_reg(kRxCfg, kRingEnable | 1024);
  for (uint16_t i = 0; i < 2000; i++)
    rig.driver.issue(i, rig.driver.plain(0xEA));
  ck_assert_uint_eq(rig.host.counter("completions"), 1023);
  while (rig.driver.interrupt()) {
  }
  ck_assert_uint_eq(rig.driver.completions().size(), 2000);
  std::set<uint32_t> slots;
  for (uint32_t entry : rig.driver.completions())
    slots.insert(entry & 0xFFF);
  ck_assert_uint_eq(slots.size(), 2000);
}
END_TEST

START_TEST(summary_bits_are_levels) {
  Rig rig;
  ck_assert_uint_eq(rig.driver.reg(kIntStat), 0);
  rig.driver.set_reg(kPortIrq + 4, kPhySignature | kPhyReadyChanged);
  rd_card_detach(rig.host.card(), 0);
  ck_assert_uint_eq(rig.driver.reg(kIntStat), 1u << kIntPortShift);
  ck_assert(rig.host.irq);
  rig.driver.set_reg(kIntStat, 0xFFFFFFFF);
  ck_assert_uint_eq(rig.driver.reg(kIntStat), 1u << kIntPortShift);
  rig.driver.set_reg(kPortIrq + 4, 0);
  ck_assert_uint_eq(rig.driver.reg(kIntStat), 0);
  ck_assert(!rig.host.irq);
  rig.driver.set_reg(kPortIrq + 4, kPhyReadyChanged);
  ck_assert(rig.host.irq);
  rig.driver.set_reg(kPortIrq, kPhyReadyChanged);
  ck_assert(!rig.host.irq);
}
END_TEST

START_TEST(global_enable_gates_the_line_only) {
  Rig rig;
  rig.host.writel(kGlobalEnable, 0);
  rig.driver.issue(4, rig.driver.plain(0xEA));
  rig.host.advance(10000000);
  ck_assert(!rig.host.irq);
  ck_assert_uint_eq(rig.host.readl(kGlobalStatus), kGlobalCoreBit);
  rig.host.writel(kGlobalEnable, 0xC0000);
  ck_assert(rig.host.irq);
}
END_TEST

START_TEST(late_backend_is_counted) {
  Rig rig;
  rig.host.defer = true;
  rig.queue_reads(4, 1);
  rig.host.advance(50000000);
  ck_assert_uint_eq(rig.host.counter("completions"), 0);
  rig.host.answer();
  rig.host.advance(1000000);
  rig.driver.interrupt();
  ck_assert_uint_eq(rig.driver.completions().size(), 1);
  ck_assert_uint_eq(rig.host.counter("late_ios"), 1);
  ck_assert_uint_gt(rig.host.counter("max_late_ns"), 49000000);
}
END_TEST

// Nor does it count what its timer was late: the backend had no part in it.
START_TEST(waiting_host_is_never_late) {
  Rig rig;
  rig.host.defer = true;
  rig.host.timer_late_ns = 216;
  rig.host.wait_answers = true;
  rig.queue_reads(4, 8);
  while (rig.host.run_until([&] { return rig.host.irq; }))
    rig.driver.interrupt();
  ck_assert_uint_eq(rig.driver.completions().size(), 8);
  ck_assert_uint_eq(rig.host.counter("late_ios"), 0);
}
END_TEST

START_TEST(timing_off_completes_with_the_backend) {
  Rig rig(false);
  int64_t start_ns = rig.host.now_ns();
  rig.queue_reads(4, 4);
  ck_assert(rig.host.irq);
  rig.driver.interrupt();
  ck_assert_uint_eq(rig.driver.completions().size(), 4);
  ck_assert_int_eq(rig.host.now_ns(), start_ns);
  rig.host.defer = true;
  rig.queue_reads(4, 1);
  ck_assert(!rig.host.irq);
  rig.host.answer();
  ck_assert(rig.host.irq);
  ck_assert_uint_eq(rig.host.counter("late_ios"), 0);
}
END_TEST

START_TEST(same_input_same_times) {
  std::vector<int64_t> first;
  for (unsigned pass = 0; pass < 2; pass++) {
    Rig rig;
    rig.host.defer = true;  // in the second pass the backend answers in another order
    rig.driver.set_reg(kIntCoal, 0);
    for (uint8_t phy = 0; phy < 4; phy++)
      rig.queue_reads(static_cast<uint16_t>(4 + 32 * phy), 32, phy);
    while (!rig.host.pending.empty()) {
      if (pass == 1)
        std::swap(rig.host.pending.front(), rig.host.pending.back());
      rig.host.answer();
    }
    std::vector<int64_t> times;
    uint64_t seen = 0;
    while (rig.host.run_until([&] { return rig.host.counter("completions") > seen; })) {
      seen = rig.host.counter("completions");
      times.push_back(rig.host.now_ns());
    }
    rig.driver.interrupt();
    for (uint32_t entry : rig.driver.completions())
      times.push_back(entry);
    ck_assert_uint_eq(rig.driver.completions().size(), 128);
    if (pass == 0)
      first = times;
    else
      ck_assert(first == times);
  }
}
END_TEST

}  // namespace

int main() {
  return run_tests(
      "completion",
      {indices_before_the_first_completion, completion_between_status_read_and_acknowledge,
       message_again_while_a_cause_is_pending, coalescing_timeout, coalescing_count,
       no_coalescing_when_disabled, disabling_coalescing_releases_what_waits,
       ring_overflow_holds_back, summary_bits_are_levels, global_enable_gates_the_line_only,
       late_backend_is_counted, waiting_host_is_never_late, timing_off_completes_with_the_backend,
       same_input_same_times});
}
