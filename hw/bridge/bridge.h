// SPDX-License-Identifier: GPL-2.0-or-later
//
// The whole bridge as BAR 2 shows it: two cores, the global interrupt block, and the windows that
// are plain storage (SGPIO, SPI, chip configuration). It drives the interrupt output.
#ifndef REVODRIVE_BRIDGE_BRIDGE_H
#define REVODRIVE_BRIDGE_BRIDGE_H

#include <functional>
#include <string_view>

#include "bridge/core.h"

namespace revodrive {

class Bridge final : public InterruptSink {
 public:
  explicit Bridge(const BridgeParts &parts);

  // `offset` in BAR 2, a multiple of 4. Undefined registers read 0 and ignore writes.
  uint32_t read(uint32_t offset);
  void write(uint32_t offset, uint32_t value);

  // `port` 0..7: four phys of core 0, then core 1.
  void plug(unsigned port, AtaTarget &target);
  void unplug(unsigned port);
  // A SAS target on a port of its own; on several phys of one core it has a wide port.
  void plug(unsigned port, ScsiTarget &target);

  // Fault injection; see Core and Phy.
  void release(unsigned port, const FaultChoice &choice);
  unsigned resting(unsigned port, uint32_t rule);
  uint32_t link_lost_by(unsigned port) { return phy(port).lost_by(); }
  void lose_link(unsigned port, uint32_t rule, int64_t for_ns) {
    phy(port).lose_link(rule, for_ns);
  }

  void reset();
  void save(StreamWriter &out) const;
  // Afterwards the interrupt output has the level of the loaded state.
  void load(StreamReader &in);
  void resume();

  using Visitor = std::function<void(std::string_view name, uint64_t value)>;
  void query(const Visitor &visit) const;

  // InterruptSink
  void core_interrupt(bool again) override;

 private:
  static constexpr unsigned kStorageWords =
      (regs::kSgpioBytes + regs::kSpiBytes + 4 + regs::kGlobalBytes) / 4;
  // Index into storage_ of a chip level register, -1 if there is none.
  static constexpr int storage_index(uint32_t offset);
  uint32_t global_status() const;
  Phy &phy(unsigned port) {
    return cores_[port / regs::kPhysPerCore]->phy(port % regs::kPhysPerCore);
  }

  BridgeParts parts_;
  size_t bounce_bytes_ = 0;
  std::array<std::unique_ptr<Core>, regs::kCores> cores_;
  std::array<uint32_t, kStorageWords> storage_{};
  bool irq_level_ = false;
};

}  // namespace revodrive
#endif
