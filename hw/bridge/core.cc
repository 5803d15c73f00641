// SPDX-License-Identifier: GPL-2.0-or-later
#include "bridge/core.h"

namespace revodrive {

using namespace regs;

Core::Core(const BridgeParts &parts, unsigned number, InterruptSink &sink, size_t &bounce_bytes)
    : parts_(parts),
      number_(number),
      sink_(sink),
      bounce_bytes_(bounce_bytes),
      slots_(kSlots),
      coalesce_event_(
          parts.queue, [](void *core) { static_cast<Core *>(core)->raise_done(); }, this) {
  for (auto &phy : phys_)
    phy = std::make_unique<Phy>(*this, parts_.queue, parts_.sata, parts_.timing);
  engine_.watch(parts_.host.observer(), "bridge " + std::to_string(number));
}

uint32_t Core::int_stat() const {
  uint32_t value = done_ ? kIntDone : 0;
  for (unsigned i = 0; i < kPhysPerCore; i++) {
    if (phys_[i]->interrupting())
      value |= 1u << (kIntPortShift + i);
  }
  return value;
}

uint32_t Core::read(uint32_t offset) {
  switch (offset) {
    case kTxCons:
      return tx_cons_;
    case kRxCons:
      return rx_prod_;
    case kIntStat:
      snap_ = posted_;
      return int_stat();
    case kCmdData:
      return read_command_space();
  }
  if (offset >= kPortIrq)
    return read_port_window(offset);
  return reg(offset);
}

void Core::write(uint32_t offset, uint32_t value) {
  switch (offset) {
    case kCtl:
      return write_ctl(value);
    case kPcs:
      return write_pcs(value);
    case kTxCfg:
      return write_tx_cfg(value);
    case kTxProd:
      return doorbell(value);
    case kRxCfg:
      return write_rx_cfg(value);
    case kIntCoal:
    case kIntCoalTimeout:
      return write_coalescing(offset, value);
    case kIntStat:
      return write_int_stat(value);
    case kIntMask:
      reg(offset) = value;
      return interrupt_changed();
    case kTxCons:
    case kRxCons:
      return;
    case kIntStatSrs0:
    case kIntStatSrs1:
    case kNonNcqErr0:
    case kNonNcqErr1:
      return;  // write 1 to clear, never set by this model
    case kCmdData:
      return write_command_space(value);
  }
  if (offset >= kPortIrq && write_port_window(offset, value))
    return;
  reg(offset) = value;
}

// Everything that exists once per phy: status and mask, link control, indirect spaces.
uint32_t Core::read_port_window(uint32_t offset) const {
  if (offset < kPortIrq + 8 * kPhysPerCore) {
    const Phy &phy = *phys_[(offset - kPortIrq) / 8];
    return offset & 4 ? phy.int_mask() : phy.int_stat();
  }
  if (offset >= kSerialCtl && offset < kSerialCtl + 4 * kPhysPerCore)
    return phys_[(offset - kSerialCtl) / 4]->serial_ctl();
  bool is_data = offset & 4;
  if (is_data && offset >= kPortCfg && offset < kPortCfg + 8 * kCfgPorts) {
    unsigned port = (offset - kPortCfg) / 8;
    if (port < kPhysPerCore)
      return phys_[port]->read_cfg(reg(offset - 4));
    return spare_cfg_[port - kPhysPerCore];
  }
  if (is_data && offset >= kPortVsr && offset < kPortVsr + 8 * kPhysPerCore)
    return phys_[(offset - kPortVsr) / 8]->read_vsr(reg(offset - 4));
  if (offset == kAllVsr + 4)
    return phys_[0]->read_vsr(reg(kAllVsr));
  return reg(offset);
}

bool Core::write_port_window(uint32_t offset, uint32_t value) {
  if (offset < kPortIrq + 8 * kPhysPerCore) {
    Phy &phy = *phys_[(offset - kPortIrq) / 8];
    if (offset & 4) {
      phy.set_int_mask(value);
    } else {
      phy.acknowledge(value);
      sink_.core_interrupt(true);
    }
    return true;
  }
  if (offset >= kSerialCtl && offset < kSerialCtl + 4 * kPhysPerCore) {
    phys_[(offset - kSerialCtl) / 4]->write_serial_ctl(value);
    return true;
  }
  if (!(offset & 4))
    return false;
  if (offset >= kPortCfg && offset < kPortCfg + 8 * kCfgPorts) {
    unsigned port = (offset - kPortCfg) / 8;
    if (port < kPhysPerCore)
      phys_[port]->write_cfg(reg(offset - 4), value);
    else
      spare_cfg_[port - kPhysPerCore] = value;
    return true;
  }
  if (offset >= kPortVsr && offset < kPortVsr + 8 * kPhysPerCore) {
    phys_[(offset - kPortVsr) / 8]->write_vsr(reg(offset - 4), value);
    return true;
  }
  if (offset != kAllVsr + 4)
    return false;
  for (auto &phy : phys_)
    phy->write_vsr(reg(kAllVsr), value);
  return true;
}

// COMMAND_ACTIVE holds one bit a slot. The driver computes its address in bytes where dwords were
// meant, so the two low bits of the address say nothing.
uint32_t Core::read_command_space() const {
  uint32_t addr = reg(kCmdAddr) & ~3u;
  if (addr >= kCmdSpaceBytes)
    return 0;
  if (addr < kCommandActive)
    return cmd_space_[addr / 4];
  uint32_t first = (addr - kCommandActive) * 8;
  uint32_t value = 0;
  for (uint32_t i = 0; i < 32; i++) {
    if (slots_[first + i] && slots_[first + i]->active())
      value |= 1u << i;
  }
  return value;
}

void Core::write_command_space(uint32_t value) {
  uint32_t addr = reg(kCmdAddr) & ~3u;
  if (addr >= kCmdSpaceBytes)
    return;
  if (addr < kCommandActive) {
    cmd_space_[addr / 4] = value;
    return;
  }
  uint32_t first = (addr - kCommandActive) * 8;
  for (uint32_t i = 0; i < 32; i++) {
    if ((value >> i & 1) && slots_[first + i])
      cancel(*slots_[first + i]);
  }
}

void Core::write_ctl(uint32_t value) {
  if (value & kCtlReset)
    core_reset();
  reg(kCtl) = value & ~kCtlReset;
}

void Core::write_pcs(uint32_t value) {
  if (value & kPcsReset) {
    cancel_if([](const Slot &) { return true; });
    tx_cons_ = static_cast<uint16_t>((reg(kTxCfg) & kRingSizeMask) - 1) & kRingSizeMask;
    doorbell_pending_ = false;
  }
  reg(kPcs) = value & ~kPcsReset;
  run_deliveries();
}

void Core::write_tx_cfg(uint32_t value) {
  bool enabled_now = (value & kRingEnable) && !(reg(kTxCfg) & kRingEnable);
  reg(kTxCfg) = value;
  if (!enabled_now)
    return;
  tx_cons_ = static_cast<uint16_t>((value & kRingSizeMask) - 1) & kRingSizeMask;
  doorbell_pending_ = false;
}

void Core::write_rx_cfg(uint32_t value) {
  bool enabled_now = (value & kRingEnable) && !(reg(kRxCfg) & kRingEnable);
  reg(kRxCfg) = value;
  if (enabled_now) {
    rx_prod_ = kRxNone;
    posted_ = snap_ = consumed_ = 0;
  }
}

// DONE may only go when every completion posted so far was there at the guest's last read of the
// status: it looks at the ring after that read, so anything later could be missed for ever.
void Core::write_int_stat(uint32_t value) {
  consumed_ = snap_;
  bool all_seen = posted_ == snap_;
  if (all_seen) {
    coalesce_event_.cancel();
    coalesced_ = 0;
    report();
    if (value & kIntDone)
      done_ = false;
  }
  post_held();
  sink_.core_interrupt(true);
}

void Core::write_coalescing(uint32_t offset, uint32_t value) {
  reg(offset) = value;
  if (coalesced_ > 0 && !(reg(kIntCoal) & kCoalEnable))
    raise_done();
}

void Core::cancel_commands(const Phy &phy) {
  cancel_if(
      [&](const Slot &slot) { return slot.phy != Slot::kNoPhy && phys_[slot.phy].get() == &phy; });
}

// What a write of CTL bit 5 does: silent at once, links untouched. The driver does it first thing,
// on a chip that may be in the middle of another kernel's work.
void Core::core_reset() {
  reset_rings();
  reg(kTxCfg) &= ~kRingEnable;
  reg(kRxCfg) &= ~kRingEnable;
  reg(kIntMask) = 0;
  reg(kIntCoal) = 0;
  reg(kIntCoalTimeout) = 0;
  for (auto &phy : phys_)
    phy->clear_interrupts();
  interrupt_changed();
}

void Core::reset_rings() {
  cancel_if([](const Slot &) { return true; });
  coalesce_event_.cancel();
  coalesced_ = 0;
  records_.clear();
  doorbell_pending_ = false;
  done_ = false;
  tx_cons_ = 0;
  rx_prod_ = kRxNone;
  posted_ = snap_ = consumed_ = 0;
}

void Core::reset() {
  reset_rings();
  regs_ = {};
  cmd_space_ = {};
  spare_cfg_ = {};
  engine_.clear();
  for (auto &phy : phys_)
    phy->reset();
}

}  // namespace revodrive
