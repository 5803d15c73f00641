// SPDX-License-Identifier: GPL-2.0-or-later
//
// One of the bridge's two cores: four phys, a delivery ring that the guest fills, a completion ring
// that the core fills, and the registers around them. A command goes delivery entry -> slot ->
// drive -> completion entry; core.cc decodes registers, delivery.cc starts commands, completion.cc
// ends them and raises interrupts, record.cc accounts for their time, core_state.cc saves and
// loads.
#ifndef REVODRIVE_BRIDGE_CORE_H
#define REVODRIVE_BRIDGE_CORE_H

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "bridge/phy.h"
#include "bridge/record.h"
#include "bridge/slot.h"
#include "bridge/ssp.h"
#include "revodrive/command_facts.h"
#include "revodrive/event_queue.h"
#include "revodrive/host_port.h"
#include "revodrive/latency_stats.h"
#include "revodrive/pcie_link.h"
#include "revodrive/profile.h"
#include "revodrive/stream.h"

namespace revodrive {

// What both cores share and the bridge provides. Everything outlives the cores.
struct BridgeParts {
  HostPort &host;
  EventQueue &queue;
  PcieLink &link;
  LatencyStats &latency;
  BridgeProfile bridge;
  SataProfile sata;
  bool timing;
};

// Told when a core's contribution to the global interrupt status may have changed; `again` when a
// still pending cause needs a new message although the level did not change.
class InterruptSink {
 public:
  virtual void core_interrupt(bool again) = 0;

 protected:
  ~InterruptSink() = default;
};

struct CoreCounters {
  uint64_t commands = 0;     // delivery entries taken
  uint64_t completions = 0;  // completion entries posted
  uint64_t doorbells = 0;
  uint64_t interrupts = 0;  // rises of DONE
  uint64_t rejected = 0;    // delivery entries that made no sense
  uint64_t late_ios = 0;    // the backend was slower than the model
  int64_t max_late_ns = 0;
};

class Core final : public PhyOwner, public AtaInitiator, public ScsiInitiator {
 public:
  // `number` 0 or 1.
  Core(const BridgeParts &parts, unsigned number, InterruptSink &sink, size_t &bounce_bytes);

  // Register access, offset from the core's base, a multiple of 4 below kCoreBytes.
  uint32_t read(uint32_t offset);
  void write(uint32_t offset, uint32_t value);

  Phy &phy(unsigned number) { return *phys_[number]; }
  // INT_STAT & INT_MASK is not 0.
  bool interrupting() const {
    uint32_t mask = reg(regs::kIntMask);
    return mask != 0 && (int_stat() & mask) != 0;
  }
  const CoreCounters &counters() const { return counters_; }

  // Cancels everything and goes back to the power-on state.
  void reset();
  void save(StreamWriter &out) const;
  void load(StreamReader &in);
  // Delivers loaded commands whose backend transfer has to run again.
  void resume();

  // Fault injection (faulted.cc). Lets commands of the phy go on that rest because of a rule.
  void release(const Phy &phy, const FaultChoice &choice);
  // Commands of the phy that rest because of the rule.
  unsigned resting(const Phy &phy, uint32_t rule) const;

  // AtaInitiator
  void media_ready(AtaCommand &command) override;
  void complete_now(AtaCommand &command) override;
  // ScsiInitiator
  void scsi_done(ScsiCommand &command) override;
  void scsi_late(int64_t late_ns) override;
  // PhyOwner
  void cancel_commands(const Phy &phy) override;
  void interrupt_changed() override { sink_.core_interrupt(false); }
  int64_t now_ns() const override { return parts_.host.now_ns(); }

 private:
  uint32_t &reg(uint32_t offset) { return regs_[offset / 4]; }
  uint32_t reg(uint32_t offset) const { return regs_[offset / 4]; }
  uint64_t reg64(uint32_t offset) const { return reg(offset) | uint64_t{reg(offset + 4)} << 32; }

  // core.cc: registers
  uint32_t int_stat() const;
  uint32_t read_port_window(uint32_t offset) const;
  bool write_port_window(uint32_t offset, uint32_t value);
  uint32_t read_command_space() const;
  void write_command_space(uint32_t value);
  void write_ctl(uint32_t value);
  void write_pcs(uint32_t value);
  void write_tx_cfg(uint32_t value);
  void write_rx_cfg(uint32_t value);
  void write_int_stat(uint32_t value);
  void write_coalescing(uint32_t offset, uint32_t value);
  void core_reset();
  void reset_rings();

  // delivery.cc
  void doorbell(uint32_t value);
  void run_deliveries();
  void deliver(uint32_t raw_entry, int64_t at_ns, bool again = false);
  Slot &slot(uint16_t index);
  void issue(Slot &slot, const CommandHeader &header, int64_t at_ns);
  bool fetch(Slot &slot, const CommandHeader &header);
  void execute(Slot &slot, int64_t at_ns);
  uint8_t route(uint8_t phys) const;
  void fail_delivery(Slot &slot, uint32_t info);
  void plan_completion(Slot &slot);

  // ssp.cc
  void issue_ssp(Slot &slot, const CommandHeader &header, int64_t at_ns);
  void end_scsi(Slot &slot);
  void manage_tasks(Slot &slot, const ssp::TaskUnit &unit);
  bool same_target(const Slot &one, const Slot &other) const;
  bool is_task_of(const Slot &slot, const Slot &manager) const;
  uint32_t post_response(const Slot &slot);
  static CommandFacts ssp_facts(const Slot &slot);
  static void save_ssp(const Slot &slot, StreamWriter &out);
  static void load_ssp(Slot &slot, StreamReader &in);

  // faulted.cc
  bool rests_at_fetch(Slot &slot, FaultSet &faults);
  bool rests_at_completion(Slot &slot);
  void rest(Slot &slot, int64_t delay_ns);
  void go_on(Slot &slot);
  bool fetch_again(Slot &slot);

  // completion.cc
  static void slot_due(void *slot);
  void finish(Slot &slot);
  void count_late(const Slot &slot);
  void retire(Slot &slot);
  void post(Slot &slot);
  bool rx_enabled() const {
    return (reg(regs::kRxCfg) & regs::kRingEnable) && (reg(regs::kRxCfg) & regs::kRingSizeMask);
  }
  bool ring_full() const;
  void post_held();
  void signal_completion();
  void raise_done();
  void cancel(Slot &slot);
  template <typename Match>
  void cancel_if(Match match);

  // record.cc
  void begin_journey(Slot &slot, bool again);
  void keep_record(Slot &slot);
  void report();

  // core_state.cc
  void save_slot(const Slot &slot, StreamWriter &out) const;
  void load_slot(StreamReader &in);

  BridgeParts parts_;
  unsigned number_;
  InterruptSink &sink_;
  size_t &bounce_bytes_;
  std::array<std::unique_ptr<Phy>, regs::kPhysPerCore> phys_;
  std::array<uint32_t, regs::kCoreBytes / 4> regs_{};
  std::array<uint32_t, regs::kCmdSpaceBytes / 4> cmd_space_{};
  // CFG ports 4..7 are written on core 1 (the driver uses the global phy number there): storage.
  std::array<uint32_t, regs::kPhysPerCore> spare_cfg_{};

  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<uint16_t> held_;         // slots complete but not posted, oldest first
  Timeline engine_;                   // command processor
  bool doorbell_pending_ = false;     // the producer index was written and not yet followed
  uint16_t tx_cons_ = 0;              // last entry taken
  uint16_t rx_prod_ = regs::kRxNone;  // last entry written
  uint64_t posted_ = 0;               // completion entries since the ring was enabled
  uint64_t snap_ = 0;                 // posted_ at the last read of INT_STAT
  uint64_t consumed_ = 0;             // entries the driver has certainly taken
  bool done_ = false;                 // INT_STAT bit 0
  uint32_t coalesced_ = 0;            // completions since DONE was last raised
  Event coalesce_event_;
  // Commands that were posted, and of which the guest has not been told yet: no more than can
  // wait for one interrupt.
  std::vector<CommandRecord> records_;
  CoreCounters counters_;
};

template <typename Match>
void Core::cancel_if(Match match) {
  for (auto &slot : slots_) {
    if (slot && slot->active() && match(*slot))
      cancel(*slot);
  }
}

}  // namespace revodrive
#endif
