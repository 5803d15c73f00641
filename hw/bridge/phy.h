// SPDX-License-Identifier: GPL-2.0-or-later
//
// One phy of the bridge: its event and mask registers, its two indirect register spaces, and the
// state of the link to the drive or the SAS target plugged into it. A link comes up link_up_us
// after it was enabled, reset or plugged; the far end sees a COMRESET then. The owner (the core) is
// told when commands must be cancelled and when the interrupt summary may have changed.
#ifndef REVODRIVE_BRIDGE_PHY_H
#define REVODRIVE_BRIDGE_PHY_H

#include <array>
#include <cstdint>

#include "bridge/registers.h"
#include "revodrive/ata_command.h"
#include "revodrive/event_queue.h"
#include "revodrive/profile.h"
#include "revodrive/scsi_command.h"
#include "revodrive/stream.h"

namespace revodrive {

class Phy;

class PhyOwner {
 public:
  virtual void cancel_commands(const Phy &phy) = 0;
  virtual void interrupt_changed() = 0;
  virtual int64_t now_ns() const = 0;

 protected:
  ~PhyOwner() = default;
};

class Phy {
 public:
  // `timing` false: the link comes up at once.
  Phy(PhyOwner &owner, EventQueue &queue, const SataProfile &profile, bool timing);

  // Hot plug in both directions. The drive is not owned. Unplug cancels the phy's commands first.
  void plug(AtaTarget &target);
  // `number`: of the target's phy, where its port is wide.
  void plug(ScsiTarget &target, uint8_t number);
  void unplug();
  AtaTarget *target() const { return target_; }
  ScsiTarget *scsi() const { return scsi_; }
  // Commands may be sent: a drive is there and the link is up.
  bool up() const { return up_; }

  // Direct registers.
  uint32_t int_stat() const { return int_stat_; }
  uint32_t int_mask() const { return int_mask_; }
  void acknowledge(uint32_t bits);
  void set_int_mask(uint32_t mask);
  bool interrupting() const { return (int_stat_ & int_mask_) != 0; }
  uint32_t serial_ctl() const;
  void write_serial_ctl(uint32_t value);

  // Indirect spaces; any address is accepted, what lies outside reads 0.
  uint32_t read_cfg(uint32_t addr) const;
  void write_cfg(uint32_t addr, uint32_t value);
  uint32_t read_vsr(uint32_t addr) const;
  void write_vsr(uint32_t addr, uint32_t value);

  // A fault: the link is lost for `for_ns`, then comes back by itself; RD_NEVER: when the rule is
  // released. Cancels the phy's commands.
  void lose_link(uint32_t rule, int64_t for_ns);
  // The fault of that rule is over. Of no effect if there is none.
  void mend_link(uint32_t rule);
  // The rule that keeps the link down, 0: none.
  uint32_t lost_by() const { return lost_by_; }

  // Core reset: status and mask 0. The link stays as it is.
  void clear_interrupts();
  // Power-on state; a plugged drive stays plugged, its link is down until the phy is enabled.
  void reset();
  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  using Space = std::array<uint32_t, regs::kPhySpaceBytes / 4>;
  bool disabled() const { return vsr_[regs::kVsrConfig / 4] & regs::kVsrConfigDisable; }
  void start_link();
  void link_up();
  void link_down();
  bool present() const { return target_ || scsi_; }
  uint32_t signature_dword(unsigned index) const;
  uint32_t identify_dword(unsigned index) const;

  PhyOwner &owner_;
  SataProfile profile_;
  bool timing_;
  AtaTarget *target_ = nullptr;
  ScsiTarget *scsi_ = nullptr;
  uint8_t scsi_phy_ = 0;
  Event up_event_;
  Event mend_event_;
  uint32_t lost_by_ = 0;  // fault rule that keeps the link down, 0: none
  bool up_ = false;
  uint32_t int_stat_ = 0;
  uint32_t int_mask_ = 0;
  uint32_t rate_limits_ = 0;
  Space cfg_{};
  Space vsr_{};
};

}  // namespace revodrive
#endif
