// SPDX-License-Identifier: GPL-2.0-or-later
#include "bridge/bridge.h"

#include <algorithm>

namespace revodrive {

using namespace regs;

Bridge::Bridge(const BridgeParts &parts) : parts_(parts) {
  for (unsigned i = 0; i < kCores; i++)
    cores_[i] = std::make_unique<Core>(parts_, i, *this, bounce_bytes_);
}

constexpr int Bridge::storage_index(uint32_t offset) {
  struct Window {
    uint32_t start, bytes;
  };
  constexpr Window kWindows[] = {
      {kSgpio, kSgpioBytes}, {kSpi, kSpiBytes}, {kChipConfig, 4}, {kGlobal, kGlobalBytes}};
  uint32_t base = 0;
  for (const Window &window : kWindows) {
    if (offset >= window.start && offset - window.start < window.bytes)
      return static_cast<int>((base + offset - window.start) / 4);
    base += window.bytes;
  }
  return -1;
}

uint32_t Bridge::global_status() const {
  uint32_t status = 0;
  for (unsigned i = 0; i < kCores; i++) {
    if (cores_[i]->interrupting())
      status |= kGlobalCoreBit << i;
  }
  return status;
}

uint32_t Bridge::read(uint32_t offset) {
  if (offset >= kCore0) {
    uint32_t core = (offset - kCore0) / kCoreStride;
    uint32_t inside = (offset - kCore0) % kCoreStride;
    if (core < kCores && inside < kCoreBytes)
      return cores_[core]->read(inside);
  }
  if (offset == kGlobalStatus)
    return global_status();
  int index = storage_index(offset);
  if (index >= 0)
    return storage_[static_cast<size_t>(index)];
  parts_.host.log(RD_LOG_UNIMP, "read of undefined register 0x%05x", offset);
  return 0;
}

void Bridge::write(uint32_t offset, uint32_t value) {
  if (offset >= kCore0) {
    uint32_t core = (offset - kCore0) / kCoreStride;
    uint32_t inside = (offset - kCore0) % kCoreStride;
    if (core < kCores && inside < kCoreBytes)
      return cores_[core]->write(inside, value);
  }
  if (offset == kGlobalStatus)
    return;  // the driver writes its enable value here too
  int index = storage_index(offset);
  if (index < 0) {
    parts_.host.log(RD_LOG_UNIMP, "write of 0x%08x to undefined register 0x%05x", value, offset);
    return;
  }
  // SPI control bit 0 is start and busy: a transfer is over at once.
  storage_[static_cast<size_t>(index)] = offset == kSpi ? value & ~1u : value;
  if (offset == kGlobalEnable)
    core_interrupt(false);
}

void Bridge::plug(unsigned port, AtaTarget &target) {
  target.connect(cores_[port / kPhysPerCore].get());
  phy(port).plug(target);
}

void Bridge::plug(unsigned port, ScsiTarget &target) {
  target.connect(cores_[port / kPhysPerCore].get());
  phy(port).plug(target, static_cast<uint8_t>(port % kPhysPerCore));
}

void Bridge::unplug(unsigned port) {
  AtaTarget *target = phy(port).target();
  ScsiTarget *scsi = phy(port).scsi();
  phy(port).unplug();
  if (target)
    target->connect(nullptr);
  if (scsi)
    scsi->connect(nullptr);
}

void Bridge::release(unsigned port, const FaultChoice &choice) {
  phy(port).mend_link(choice.rule);
  cores_[port / kPhysPerCore]->release(phy(port), choice);
}

unsigned Bridge::resting(unsigned port, uint32_t rule) {
  return cores_[port / kPhysPerCore]->resting(phy(port), rule);
}

void Bridge::core_interrupt(bool again) {
  constexpr auto kEnable = static_cast<size_t>(storage_index(kGlobalEnable));
  uint32_t enable = storage_[kEnable];
  bool level = (global_status() & enable) != 0;
  bool rose = level && !irq_level_;
  if (level != irq_level_) {
    irq_level_ = level;
    parts_.host.set_irq(level);
  }
  if (rose || (level && again))
    parts_.host.msi_notify();
}

void Bridge::reset() {
  for (auto &core : cores_)
    core->reset();
  storage_ = {};
  core_interrupt(false);
}

void Bridge::save(StreamWriter &out) const {
  out.section("BRDG");
  for (uint32_t value : storage_)
    out.put(value);
  for (const auto &core : cores_)
    core->save(out);
}

void Bridge::load(StreamReader &in) {
  in.section("BRDG");
  for (uint32_t &value : storage_)
    in.get(value);
  for (auto &core : cores_)
    core->load(in);
  core_interrupt(false);
}

void Bridge::resume() {
  for (auto &core : cores_)
    core->resume();
}

void Bridge::query(const Visitor &visit) const {
  CoreCounters sum;
  for (const auto &core : cores_) {
    const CoreCounters &one = core->counters();
    sum.commands += one.commands;
    sum.completions += one.completions;
    sum.doorbells += one.doorbells;
    sum.interrupts += one.interrupts;
    sum.rejected += one.rejected;
    sum.late_ios += one.late_ios;
    sum.max_late_ns = std::max(sum.max_late_ns, one.max_late_ns);
  }
  visit("commands", sum.commands);
  visit("completions", sum.completions);
  visit("doorbells", sum.doorbells);
  visit("interrupts", sum.interrupts);
  visit("rejected", sum.rejected);
  visit("late_ios", sum.late_ios);
  visit("max_late_ns", static_cast<uint64_t>(sum.max_late_ns));
}

}  // namespace revodrive
