// SPDX-License-Identifier: GPL-2.0-or-later
//
// Commands and task management for a SAS target, from the command table to the response frame.
#include "bridge/ssp.h"

#include <algorithm>

#include "bridge/core.h"

namespace revodrive {

using namespace regs;

// A command of the loaded state may be of another kind than its slot had before.
void Core::issue_ssp(Slot &slot, const CommandHeader &header, int64_t at_ns) {
  slot.ssp = true;
  slot.scsi.status = 0;
  slot.scsi.sense_bytes = 0;
  slot.response = Slot::kNoResponse;
  ssp::Table table;
  bool read = parts_.host.dma_read(header.table_addr, table) &&
              slot.window.read_list(header.prd_addr, header.prd_count, header.data_bytes);
  if (!read)
    return fail_delivery(slot, error_info::kDmaTerminated);
  if (parts_.timing) {
    constexpr auto kTableBytes = static_cast<uint32_t>(ssp::kTableBytes);
    at_ns = parts_.link.from_host(at_ns, CommandHeader::kBytes).end_ns;
    at_ns = parts_.link.from_host(at_ns, kTableBytes + slot.window.list_bytes()).end_ns;
    slot.command.journey.reach(Stage::kPcie, at_ns);
    at_ns = engine_.reserve(at_ns, parts_.bridge.command_ns, "command").end_ns;
    slot.command.journey.reach(Stage::kBridge, at_ns);
  }
  slot.due_ns = at_ns;
  slot.scsi.lun = ssp::load_lun(table);
  if (header.ssp_frame != 0)
    return manage_tasks(slot, ssp::TaskUnit(table));
  ssp::CommandUnit unit(table);
  if (unit.attribute != 0 || unit.more != 0) {
    slot.response = ssp::kInvalidFrame;  // simple tasks and 16 bytes of CDB is what there is
    return;
  }
  slot.scsi.cdb = unit.cdb;
  slot.scsi.data = &slot.window;
  slot.scsi.issue_ns = at_ns;
  slot.scsi.owner = &slot;
  slot.scsi.journey = &slot.command.journey;
  slot.scsi_target = phys_[slot.phy]->scsi();
  slot.scsi_target->execute(slot.scsi);
  if (slot.scsi.finish_ns == RD_NEVER)
    return;
  slot.due_ns = slot.scsi.finish_ns;
  end_scsi(slot);
}

// The target has done with the command.
void Core::end_scsi(Slot &slot) {
  slot.scsi_target = nullptr;
  if (slot.window.dma_failed())
    slot.error_info = error_info::kDmaTerminated;
}

void Core::scsi_done(ScsiCommand &command) {
  Slot &slot = *static_cast<Slot *>(command.owner);
  slot.due_ns = std::max(now_ns(), command.finish_ns);
  end_scsi(slot);
  plan_completion(slot);
}

void Core::scsi_late(int64_t late_ns) {
  counters_.late_ios++;
  counters_.max_late_ns = std::max(counters_.max_late_ns, late_ns);
}

// Through whatever phy of its port.
bool Core::same_target(const Slot &one, const Slot &other) const {
  return one.phy != Slot::kNoPhy && phys_[one.phy]->scsi() == phys_[other.phy]->scsi();
}

// Other commands of the unit that the target has, or whose answer has not been posted.
bool Core::is_task_of(const Slot &slot, const Slot &manager) const {
  return &slot != &manager && slot.active() && slot.ssp && same_target(slot, manager) &&
         slot.response == Slot::kNoResponse && slot.scsi.lun == manager.scsi.lun;
}

void Core::manage_tasks(Slot &slot, const ssp::TaskUnit &unit) {
  using enum ssp::Function;
  ScsiTarget &target = *phys_[slot.phy]->scsi();
  auto mine = [&](const Slot &other) { return is_task_of(other, slot); };
  auto nexus = [&](const Slot &other) {
    return &other != &slot && other.ssp && same_target(other, slot);
  };
  Slot *meant = unit.tag < kSlots ? slots_[unit.tag].get() : nullptr;
  bool there = meant && mine(*meant);
  slot.response = ssp::kComplete;
  if (unit.function != kNexusReset && !target.has_lun(slot.scsi.lun)) {
    slot.response = ssp::kWrongLun;
    return;
  }
  switch (unit.function) {
    case kAbortTask:
      if (there)
        cancel(*meant);
      return;
    case kAbortTaskSet:
    case kClearTaskSet:  // there is one initiator
      return cancel_if(mine);
    case kLunReset:
      cancel_if(mine);
      return target.reset(ScsiReset::kLunReset);
    case kNexusReset:
      cancel_if(nexus);
      return target.reset(ScsiReset::kNexusLoss);
    case kQueryTask:
      if (there)
        slot.response = ssp::kSucceeded;
      return;
    case kQueryTaskSet:
      if (std::any_of(slots_.begin(), slots_.end(),
                      [&](const auto &it) { return it && mine(*it); }))
        slot.response = ssp::kSucceeded;
      return;
  }
  slot.response = ssp::kNotSupported;
}

// The response frame, if there has to be one. Returns the bits of the completion entry.
uint32_t Core::post_response(const Slot &slot) {
  if (slot.error_info != 0)
    return kRxDone | kRxError;
  bool is_task = slot.response != Slot::kNoResponse;
  if (!is_task && slot.scsi.status == 0)
    return kRxDone | kRxGood;
  std::array<uint8_t, ssp::kResponseBytes> frame{};
  frame[10] = is_task ? ssp::kResponseData : ssp::kSenseData;
  frame[11] = is_task ? 0 : slot.scsi.status;
  size_t bytes = 24;
  if (is_task) {
    frame[23] = 4;
    frame[27] = slot.response;
    bytes += 4;
  } else if (slot.scsi.sense_bytes > 0) {
    frame[19] = slot.scsi.sense_bytes;
    std::copy_n(slot.scsi.sense.begin(), slot.scsi.sense_bytes, frame.begin() + 24);
    bytes += slot.scsi.sense_bytes;
  } else {
    frame[10] = 0;
  }
  constexpr uint64_t kErrorRecordBytes = 8;
  if (slot.status_addr != 0)
    parts_.host.dma_write(slot.status_addr + kErrorRecordBytes, std::span(frame).first(bytes));
  return kRxDone | kRxResponse;
}

CommandFacts Core::ssp_facts(const Slot &slot) {
  const std::array<uint8_t, 16> &cdb = slot.scsi.cdb;
  CommandFacts facts;
  if (slot.response != Slot::kNoResponse)
    return facts;
  facts.opcode = cdb[0];
  switch (cdb[0]) {
    case 0x08:
    case 0x28:
    case 0x88:
    case 0xA8:
      facts.kind = RD_READ;
      break;
    case 0x0A:
    case 0x2A:
    case 0x8A:
    case 0xAA:
      facts.kind = RD_WRITE;
      break;
    case 0x35:
    case 0x91:
      facts.kind = RD_FLUSH;
      return facts;
    case 0x42:
      facts.kind = RD_TRIM;
      return facts;
    default:
      return facts;
  }
  size_t group = cdb[0] >> 5;
  size_t first = group == 0 ? 1 : 2, last = group == 0 ? 3 : group == 4 ? 9 : 5;
  for (size_t i = first; i <= last; i++)
    facts.lba = facts.lba << 8 | cdb[i];
  facts.bytes = slot.window.size();
  return facts;
}

// What is settled is saved with its answer; anything else is delivered anew.
void Core::save_ssp(const Slot &slot, StreamWriter &out) {
  out.put(slot.ssp);
  if (!slot.ssp)
    return;
  out.put(slot.response);
  out.put(slot.scsi.lun);
  out.put(slot.scsi.status);
  out.put(slot.scsi.sense_bytes);
  out.put_bytes(slot.scsi.sense);
}

void Core::load_ssp(Slot &slot, StreamReader &in) {
  in.get(slot.ssp);
  slot.scsi_target = nullptr;
  slot.response = Slot::kNoResponse;
  if (!slot.ssp)
    return;
  in.get(slot.response);
  in.get(slot.scsi.lun);
  in.get(slot.scsi.status);
  in.get(slot.scsi.sense_bytes);
  in.get_bytes(slot.scsi.sense);
  if (slot.scsi.sense_bytes > slot.scsi.sense.size())
    in.fail();
}

}  // namespace revodrive
