// SPDX-License-Identifier: GPL-2.0-or-later
//
// Links coming up and going down, their events, and the indirect register spaces.
#include "driver.h"
#include "runner.h"

using namespace revodrive;
using namespace revodrive::test;
using namespace revodrive::regs;

namespace {

constexpr uint32_t kUp = 0x00120000;  // ready, 6 Gb/s
constexpr uint32_t kUpEvents = 0x00010081;
constexpr uint32_t kDownEvents = 0x00001001;

struct Rig {
  ScriptedHost host;
  Driver driver{host};
  Rig() { host.build(); }
  uint32_t serial(unsigned phy) { return driver.reg(kSerialCtl + 4 * phy); }
  uint32_t events(unsigned phy) { return driver.reg(kPortIrq + 8 * phy); }
  uint32_t vsr(unsigned phy, uint32_t addr) {
    driver.set_reg(kPortVsr + 8 * phy, addr);
    return driver.reg(kPortVsr + 8 * phy + 4);
  }
  void set_vsr(unsigned phy, uint32_t addr, uint32_t value) {
    driver.set_reg(kPortVsr + 8 * phy, addr);
    driver.set_reg(kPortVsr + 8 * phy + 4, value);
  }
  uint32_t cfg(unsigned phy, uint32_t addr) {
    driver.set_reg(kPortCfg + 8 * phy, addr);
    return driver.reg(kPortCfg + 8 * phy + 4);
  }
};

START_TEST(link_stays_down_until_the_phy_is_enabled) {
  Rig rig;
  rig.host.attach(0);
  rig.host.advance(1000000000);
  ck_assert_uint_eq(rig.serial(0), 0);
  ck_assert_uint_eq(rig.events(0), 0);
  rig.set_vsr(0, kVsrConfig, 0x0004FFFF);
  ck_assert_uint_eq(rig.vsr(0, kVsrConfig), 0x0004FFFE);  // bit 0 clears itself
  rig.host.advance(400000000);
  ck_assert_uint_eq(rig.serial(0), kUp);
  ck_assert_uint_eq(rig.events(0), kUpEvents);
}
END_TEST

START_TEST(signature_and_type) {
  Rig rig;
  rig.host.attach(0);
  ck_assert_uint_eq(rig.cfg(0, 0x20), 0);
  rig.driver.probe();
  ck_assert_uint_eq(rig.vsr(0, kVsrStatus), kVsrStatusSata);
  ck_assert_uint_eq(rig.cfg(0, 0x20) & 0xFFFF00FF, 0x01500034);
  ck_assert_uint_eq(rig.cfg(0, 0x24), 0x00000001);
  ck_assert_uint_eq(rig.cfg(0, 0x28), 0);
  ck_assert_uint_eq(rig.cfg(0, 0x2C), 0x00000001);
  ck_assert_uint_eq(rig.vsr(1, kVsrStatus), 0);
  ck_assert_uint_eq(rig.serial(1), 0);
}
END_TEST

// At probe the driver clears every event but the signature, and reads that up to seconds later.
START_TEST(signature_event_is_kept) {
  Rig rig;
  rig.host.attach(0);
  rig.set_vsr(0, kVsrConfig, 0x0004FFFF);
  rig.host.advance(3000000000);
  rig.driver.set_reg(kPortIrq, rig.events(0) & ~kPhySignature);
  ck_assert_uint_eq(rig.events(0), kPhySignature);
  rig.driver.set_reg(kPortIrq, kPhySignature);
  ck_assert_uint_eq(rig.events(0), 0);
}
END_TEST

START_TEST(reset_bits_clear_and_the_link_returns) {
  Rig rig;
  rig.host.attach(0);
  rig.driver.probe();
  for (uint32_t bit : {kSerialReset, kSerialHardReset}) {
    for (unsigned phy : {0u, 2u}) {
      rig.driver.set_reg(kPortIrq + 8 * phy, 0xFFFFFFFF);
      rig.driver.set_reg(kSerialCtl + 4 * phy, rig.serial(phy) | bit);
      ck_assert_uint_eq(rig.serial(phy) & 3, 0);
    }
    ck_assert_uint_eq(rig.serial(0) & kSerialReady, 0);
    ck_assert_uint_eq(rig.events(0) & kPhyReadyLost, 0);
    rig.host.advance(50000000);
    ck_assert_uint_eq(rig.serial(0), kUp);
    ck_assert_uint_eq(rig.events(0), kUpEvents);
    ck_assert_uint_eq(rig.serial(2) | rig.events(2), 0);
  }
}
END_TEST

START_TEST(hot_plug_and_unplug) {
  Rig rig;
  rig.driver.probe();
  rig.host.attach(1);
  rig.host.advance(50000000);
  ck_assert_uint_eq(rig.events(1), kUpEvents);
  ck_assert(rig.host.irq);
  rig.driver.interrupt();
  ck_assert(!rig.host.irq);
  rd_card_detach(rig.host.card(), 1);
  ck_assert_uint_eq(rig.serial(1), 0);
  ck_assert_uint_eq(rig.events(1), kDownEvents);
  ck_assert(rig.host.irq);
  ck_assert_uint_eq(rig.vsr(1, kVsrStatus), 0);
  rig.driver.interrupt();
  rig.host.attach(1);
  rig.host.advance(50000000);
  ck_assert_uint_eq(rig.serial(1), kUp);
}
END_TEST

START_TEST(unplug_before_the_link_is_up_tells_nothing) {
  Rig rig;
  rig.driver.probe();
  rig.host.attach(1);
  rd_card_detach(rig.host.card(), 1);
  rig.host.advance(1000000000);
  ck_assert_uint_eq(rig.events(1), 0);
}
END_TEST

START_TEST(disable_takes_the_link_down) {
  Rig rig;
  rig.host.attach(0);
  rig.driver.probe();
  rig.set_vsr(0, kVsrConfig, rig.vsr(0, kVsrConfig) | kVsrConfigDisable);
  ck_assert_uint_eq(rig.serial(0), 0);
  ck_assert_uint_eq(rig.events(0) & kDownEvents, kDownEvents);
  rig.driver.set_reg(kSerialCtl, kSerialReset);
  rig.host.advance(1000000000);
  ck_assert_uint_eq(rig.serial(0), 0);
}
END_TEST

START_TEST(broadcast_reaches_four_phys) {
  Rig rig;
  rig.driver.set_reg(kAllVsr, 0x30);
  rig.driver.set_reg(kAllVsr + 4, 0x3300);
  for (unsigned phy = 0; phy < 4; phy++)
    ck_assert_uint_eq(rig.vsr(phy, 0x30), 0x3300);
  rig.set_vsr(2, 0x30, 0x1111);
  rig.driver.set_reg(kAllVsr, 0x30);
  ck_assert_uint_eq(rig.driver.reg(kAllVsr + 4), 0x3300);
}
END_TEST

// Registers without a meaning read back what was written: most are changed by read-modify-write.
START_TEST(plain_registers_are_storage) {
  Rig rig;
  for (uint32_t base : {kCore0, kCore0 + kCoreStride}) {
    for (uint32_t offset : {0x40u, 0x9Cu, 0x108u, 0x10Cu, 0x118u, 0x11Cu, 0x15Cu, 0x164u, 0x178u}) {
      rig.host.writel(base + offset, 0xA5000000 | offset);
      ck_assert_uint_eq(rig.host.readl(base + offset), 0xA5000000 | offset);
    }
    for (uint32_t port = 4; port < 8; port++) {
      rig.host.writel(base + kPortCfg + 8 * port, 0x1C);
      rig.host.writel(base + kPortCfg + 8 * port + 4, 0x77 + port);
      ck_assert_uint_eq(rig.host.readl(base + kPortCfg + 8 * port + 4), 0x77 + port);
    }
  }
  for (uint32_t offset : {0xC200u, 0xC20Cu, 0xC338u, 0xC804u, 0x10104u, 0x10204u, 0x10218u}) {
    rig.host.writel(offset, 0x5A5A0000 | offset);
    ck_assert_uint_eq(rig.host.readl(offset), 0x5A5A0000 | offset);
  }
  for (uint32_t addr : {0x118u, 0x124u, 0x128u, 0x138u, 0x13Cu, 0x1A4u, 0x1BCu, 0x1E0u, 0x1E4u}) {
    rig.driver.write_cmd_space(addr, 0x1234 + addr);
    ck_assert_uint_eq(rig.driver.read_cmd_space(addr), 0x1234 + addr);
  }
  rig.host.writel(0xC800, 0xFFFFFFFF);
  ck_assert_uint_eq(rig.host.readl(0xC800), 0xFFFFFFFE);
  rig.host.writel(kGlobalStatus, 0xFFFFFFFF);
  ck_assert_uint_eq(rig.host.readl(kGlobalStatus), 0);
}
END_TEST

}  // namespace

int main() {
  return run_tests(
      "phy", {link_stays_down_until_the_phy_is_enabled, signature_and_type, signature_event_is_kept,
              reset_bits_clear_and_the_link_returns, hot_plug_and_unplug,
              unplug_before_the_link_is_up_tells_nothing, disable_takes_the_link_down,
              broadcast_reaches_four_phys, plain_registers_are_storage});
}
