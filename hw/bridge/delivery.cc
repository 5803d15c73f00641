// SPDX-License-Identifier: GPL-2.0-or-later
//
// The way in: from the doorbell over the delivery ring to the drive.
#include <algorithm>
#include <bit>

#include "bridge/core.h"

namespace revodrive {

using namespace regs;

void Core::doorbell(uint32_t value) {
  counters_.doorbells++;
  reg(kTxProd) = value;
  uint32_t size = reg(kTxCfg) & kRingSizeMask;
  if (!(reg(kTxCfg) & kRingEnable))
    return;
  if (value >= size) {
    counters_.rejected++;
    parts_.host.log(RD_LOG_GUEST_ERROR, "core %u: TX_PROD_IDX %u outside the ring of %u entries",
                    number_, value, size);
    return;
  }
  doorbell_pending_ = true;
  run_deliveries();
}

// Takes entries up to the producer index, at most one ring's worth however the guest plays with it.
void Core::run_deliveries() {
  uint32_t size = reg(kTxCfg) & kRingSizeMask;
  bool enabled = (reg(kTxCfg) & kRingEnable) && (reg(kPcs) & kPcsIssueEnable);
  if (!enabled || !doorbell_pending_ || size == 0)
    return;
  doorbell_pending_ = false;
  uint32_t last = reg(kTxProd);
  for (uint32_t taken = 0; taken < size && tx_cons_ != last; taken++) {
    tx_cons_ = static_cast<uint16_t>((tx_cons_ + 1) % size);
    std::array<uint8_t, 4> raw;
    if (!parts_.host.dma_read(reg64(kTxLo) + 4 * uint64_t{tx_cons_}, raw)) {
      counters_.rejected++;
      continue;
    }
    deliver(load_le32(raw, 0), parts_.link.from_host(now_ns(), sizeof(raw)).end_ns);
  }
}

Slot &Core::slot(uint16_t index) {
  auto &slot = slots_[index];
  if (!slot) {
    slot = std::make_unique<Slot>(*this, index, parts_.queue, slot_due, parts_.host, parts_.link,
                                  bounce_bytes_);
    slot->command.owner = slot.get();
  }
  return *slot;
}

// A wide port has several bits: any phy of it will do that is up.
uint8_t Core::route(uint8_t phys) const {
  auto first = static_cast<uint8_t>(std::countr_zero(phys));
  for (uint8_t phy = first; phy < kPhysPerCore; phy++) {
    if ((phys >> phy & 1) && phys_[phy]->up())
      return phy;
  }
  return first < kPhysPerCore ? first : Slot::kNoPhy;
}

// `again`: a loaded command, whose faults go on where they were.
void Core::deliver(uint32_t raw_entry, int64_t at_ns, bool again) {
  TxEntry entry(raw_entry);
  bool known =
      entry.kind == TxEntry::kSsp || entry.kind == TxEntry::kSmp || entry.kind == TxEntry::kStp;
  if (entry.slot >= kSlots || !known) {
    counters_.rejected++;
    parts_.host.log(RD_LOG_GUEST_ERROR, "core %u: delivery entry 0x%08x: %s", number_, raw_entry,
                    known ? "slot above 2047" : "unknown command");
    return;
  }
  counters_.commands++;
  Slot &slot = this->slot(entry.slot);
  cancel(slot);  // the driver reuses a slot whose command it has forgotten
  slot.tx_entry = raw_entry;
  slot.state = Slot::State::kRunning;
  slot.stale = false;
  if (!again && slot.command.fault.touched())
    slot.command.fault.clear();
  slot.phy = route(entry.phys);
  slot.target = nullptr;
  slot.ssp = entry.kind == TxEntry::kSsp;
  slot.scsi_target = nullptr;
  slot.register_set = entry.register_set;
  slot.status_addr = 0;
  slot.error_info = 0;
  slot.due_ns = at_ns;
  begin_journey(slot, again);
  slot.command.journey.reach(Stage::kPcie, at_ns);

  CommandHeader::Raw raw;
  if (!parts_.host.dma_read(reg64(kCmdListLo) + CommandHeader::kBytes * uint64_t{entry.slot},
                            raw)) {
    fail_delivery(slot, error_info::kDmaTerminated);
    return plan_completion(slot);
  }
  CommandHeader header(raw);
  slot.status_addr = header.status_addr;
  bool reachable = slot.phy != Slot::kNoPhy && phys_[slot.phy]->up();
  if (slot.ssp && reachable && phys_[slot.phy]->scsi())
    issue_ssp(slot, header, at_ns);
  else if (entry.kind != TxEntry::kStp || slot.register_set >= kRegisterSets)
    fail_delivery(slot, error_info::kNoDestination);
  else if (!reachable || !phys_[slot.phy]->target())
    fail_delivery(slot, error_info::kOpenTimeout);
  else
    issue(slot, header, at_ns);
  plan_completion(slot);
}

void Core::issue(Slot &slot, const CommandHeader &header, int64_t at_ns) {
  if (!fetch(slot, header))
    return fail_delivery(slot, error_info::kDmaTerminated);
  constexpr uint32_t kTableBytes = kFisBytes;
  int64_t header_ns = parts_.link.from_host(at_ns, CommandHeader::kBytes).end_ns;
  int64_t table_ns =
      parts_.link.from_host(header_ns, kTableBytes + slot.window.list_bytes()).end_ns;
  slot.command.journey.reach(Stage::kPcie, table_ns);
  FaultSet *faults = phys_[slot.phy]->target()->faults();
  if (faults && rests_at_fetch(slot, *faults))
    return;
  execute(slot, parts_.timing ? table_ns : at_ns);
}

// The command processor takes up a command that was fetched, and hands it to the drive.
void Core::execute(Slot &slot, int64_t at_ns) {
  AtaCommand &command = slot.command;
  command.issue_ns =
      parts_.timing ? engine_.reserve(at_ns, parts_.bridge.command_ns, "command").end_ns : at_ns;
  command.journey.reach(Stage::kBridge, command.issue_ns);
  slot.target = phys_[slot.phy]->target();
  slot.target->execute(command);
  slot.due_ns = command.finish_ns;
  if (slot.due_ns == RD_NEVER)
    slot.state = Slot::State::kResting;
}

bool Core::fetch(Slot &slot, const CommandHeader &header) {
  AtaCommand &command = slot.command;
  if (!parts_.host.dma_read(header.table_addr, command.h2d))
    return false;
  phys_[slot.phy]->target()->expect(command.h2d);
  command.cdb = {};
  if (header.atapi && !parts_.host.dma_read(header.table_addr + kTableCdbOffset, command.cdb))
    return false;
  return slot.window.read_list(header.prd_addr, header.prd_count, header.data_bytes);
}

// The command never reaches a drive. The driver takes the outcome of an ATA command from the D2H
// FIS alone, so there must be one that says aborted.
void Core::fail_delivery(Slot &slot, uint32_t info) {
  slot.error_info = info;
  slot.command.failed = true;
  slot.command.media_pending = 0;
  slot.command.d2h = {0x34, 0x40, 0x41, 0x04};
}

void Core::plan_completion(Slot &slot) {
  if (slot.state != Slot::State::kRunning)
    return;  // a fault rule has stopped it
  if (slot.scsi_target)
    return;
  if (parts_.timing) {
    constexpr uint32_t kPostedBytes = kFisBytes + 2 * sizeof(uint32_t);  // FIS, entry, mirror
    slot.due_ns = std::max(slot.due_ns, now_ns());
    slot.due_ns = parts_.link.to_host(slot.due_ns, kPostedBytes).end_ns;
    slot.command.journey.reach(Stage::kPcie, slot.due_ns);
    slot.due_ns += parts_.bridge.completion_ns;
    slot.command.journey.reach(Stage::kBridge, slot.due_ns);
  }
  slot.event.arm(slot.due_ns);
}

}  // namespace revodrive
