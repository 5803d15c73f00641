// SPDX-License-Identifier: GPL-2.0-or-later
#include "bridge/phy.h"

namespace revodrive {

using namespace regs;

Phy::Phy(PhyOwner &owner, EventQueue &queue, const SataProfile &profile, bool timing)
    : owner_(owner),
      profile_(profile),
      timing_(timing),
      up_event_(
          queue, [](void *phy) { static_cast<Phy *>(phy)->link_up(); }, this),
      mend_event_(
          queue,
          [](void *opaque) {
            auto *phy = static_cast<Phy *>(opaque);
            phy->mend_link(phy->lost_by_);
          },
          this) {
  reset();
}

void Phy::plug(AtaTarget &target) {
  target_ = &target;
  if (!disabled())
    start_link();
}

void Phy::plug(ScsiTarget &target, uint8_t number) {
  scsi_ = &target;
  scsi_phy_ = number;
  if (!disabled())
    start_link();
}

void Phy::unplug() {
  if (!present())
    return;
  link_down();
  mend_event_.cancel();
  lost_by_ = 0;
  target_ = nullptr;
  scsi_ = nullptr;
}

void Phy::lose_link(uint32_t rule, int64_t for_ns) {
  if (!target_ || lost_by_ != 0)
    return;
  lost_by_ = rule;
  link_down();
  if (for_ns != RD_NEVER)
    mend_event_.arm(owner_.now_ns() + for_ns);
}

void Phy::mend_link(uint32_t rule) {
  if (lost_by_ == 0 || lost_by_ != rule)
    return;
  mend_event_.cancel();
  lost_by_ = 0;
  if (target_ && !disabled())
    start_link();
}

void Phy::acknowledge(uint32_t bits) {
  int_stat_ &= ~bits;
  owner_.interrupt_changed();
}

void Phy::set_int_mask(uint32_t mask) {
  int_mask_ = mask;
  owner_.interrupt_changed();
}

uint32_t Phy::serial_ctl() const {
  uint32_t rate = profile_.speed - 1;
  return rate_limits_ | (up_ ? kSerialReady | rate << kSerialRateShift : 0);
}

void Phy::write_serial_ctl(uint32_t value) {
  rate_limits_ = value & kSerialRateLimits;
  if (!(value & (kSerialReset | kSerialHardReset)) || disabled())
    return;
  owner_.cancel_commands(*this);
  // The driver asked for this itself: no ready-lost event, which would make it detach the drive.
  up_ = false;
  if (scsi_ && (value & kSerialHardReset))
    scsi_->reset(ScsiReset::kHardReset);
  if (present())
    start_link();
}

uint32_t Phy::signature_dword(unsigned index) const {
  if (!up_ || !target_)
    return 0;
  Fis fis = target_->signature();
  uint32_t value = 0;
  for (unsigned i = 0; i < 4; i++)
    value |= uint32_t{fis[4 * index + i]} << (8 * i);
  return value;
}

// The IDENTIFY address frame of an end device that is an SSP target (SAS-2 7.2.2).
uint32_t Phy::identify_dword(unsigned index) const {
  constexpr uint8_t kEndDevice = 0x10, kSspTarget = 0x08;
  constexpr size_t kAddress = 12, kPhyId = 20;
  if (!up_ || !scsi_)
    return 0;  // a SATA drive sends none
  std::array<uint8_t, 28> frame{};
  frame[0] = kEndDevice;
  frame[3] = kSspTarget;
  for (size_t i = 0; i < 8; i++)
    frame[kAddress + i] = static_cast<uint8_t>(scsi_->sas_address() >> (8 * (7 - i)));
  frame[kPhyId] = scsi_phy_;
  uint32_t value = 0;
  for (unsigned i = 0; i < 4; i++)
    value |= uint32_t{frame[4 * index + i]} << (8 * i);
  return value;
}

uint32_t Phy::read_cfg(uint32_t addr) const {
  if (addr >= kPhySpaceBytes)
    return 0;
  if (addr >= kCfgSignature && addr < kCfgSignature + 16)
    return signature_dword((addr - kCfgSignature) / 4);
  if (addr >= kCfgAttached && addr < kCfgAttachedEnd)
    return identify_dword((addr - kCfgAttached) / 4);
  return cfg_[addr / 4];
}

void Phy::write_cfg(uint32_t addr, uint32_t value) {
  if (addr < kPhySpaceBytes)
    cfg_[addr / 4] = value;
}

uint32_t Phy::read_vsr(uint32_t addr) const {
  if (addr >= kPhySpaceBytes)
    return 0;
  if (addr / 4 == kVsrStatus / 4)
    return up_ ? scsi_ ? kVsrStatusSas : kVsrStatusSata : 0;
  return vsr_[addr / 4];
}

void Phy::write_vsr(uint32_t addr, uint32_t value) {
  if (addr >= kPhySpaceBytes)
    return;
  bool was_disabled = disabled();
  vsr_[addr / 4] = value;
  if (addr / 4 != kVsrConfig / 4)
    return;
  vsr_[kVsrConfig / 4] &= ~kVsrConfigReset;
  if (!was_disabled && disabled())
    link_down();
  else if (was_disabled && !disabled() && present())
    start_link();
}

void Phy::start_link() {
  if (lost_by_ != 0)
    return;
  if (target_)
    target_->reset(LinkReset::kComreset);
  if (!timing_) {
    up_event_.cancel();
    link_up();
    return;
  }
  up_event_.arm(owner_.now_ns() + int64_t{profile_.link_up_us} * 1000);
}

void Phy::link_up() {
  up_ = true;
  // In one step: the driver then handles a plug in a single interrupt.
  int_stat_ |= kPhyReadyChanged | (scsi_ ? kPhyIdDone : kPhyComwake | kPhySignature);
  owner_.interrupt_changed();
}

void Phy::link_down() {
  up_event_.cancel();
  owner_.cancel_commands(*this);
  if (!up_)
    return;
  up_ = false;
  int_stat_ |= kPhyReadyChanged | kPhyReadyLost;
  owner_.interrupt_changed();
}

void Phy::clear_interrupts() {
  int_stat_ = 0;
  int_mask_ = 0;
}

void Phy::reset() {
  up_event_.cancel();
  up_ = false;
  clear_interrupts();
  rate_limits_ = 0;
  cfg_ = {};
  vsr_ = {};
  vsr_[kVsrConfig / 4] = kVsrConfigDisable;
}

void Phy::save(StreamWriter &out) const {
  out.section("PHY ");
  out.put(present());
  out.put(up_);
  out.put(up_event_.at_ns());
  out.put(up_event_.order());
  out.put(lost_by_);
  out.put(mend_event_.at_ns());
  out.put(mend_event_.order());
  out.put(int_stat_);
  out.put(int_mask_);
  out.put(rate_limits_);
  for (uint32_t value : cfg_)
    out.put(value);
  for (uint32_t value : vsr_)
    out.put(value);
}

void Phy::load(StreamReader &in) {
  in.section("PHY ");
  if (in.get<bool>() != present())
    in.fail();
  in.get(up_);
  auto at_ns = in.get<int64_t>();
  auto order = in.get<uint64_t>();
  in.get(lost_by_);
  auto mend_ns = in.get<int64_t>();
  auto mend_order = in.get<uint64_t>();
  in.get(int_stat_);
  in.get(int_mask_);
  in.get(rate_limits_);
  for (uint32_t &value : cfg_)
    in.get(value);
  for (uint32_t &value : vsr_)
    in.get(value);
  bool linked = up_ || at_ns != RD_NEVER;
  if (linked && (!present() || disabled()))
    in.fail();
  if (lost_by_ != 0 ? linked || !target_ : mend_ns != RD_NEVER)
    in.fail();
  mend_event_.cancel();
  if (!in.ok()) {
    lost_by_ = 0;
    return;
  }
  if (mend_ns != RD_NEVER)
    mend_event_.restore(mend_ns, mend_order);
  up_event_.cancel();
  if (at_ns != RD_NEVER)
    up_event_.restore(at_ns, order);
}

}  // namespace revodrive
