// SPDX-License-Identifier: GPL-2.0-or-later
//
// Save and load of a core. Nothing loaded is used as an index before it was checked.
#include <algorithm>

#include "bridge/core.h"

namespace revodrive {

using namespace regs;

namespace {

// A command whose backend transfer has not ended is stored to be delivered anew.
Slot::State saved_state(const Slot &slot) {
  return slot.command.media_pending > 0 || slot.scsi_target ? Slot::State::kRestarting : slot.state;
}

}  // namespace

void Core::save_slot(const Slot &slot, StreamWriter &out) const {
  Slot::State state = saved_state(slot);
  out.put(slot.index);
  out.put(state);
  out.put(slot.tx_entry);
  out.put(slot.phy);
  out.put(slot.register_set);
  out.put(slot.status_addr);
  out.put(slot.error_info);
  out.put(slot.due_ns);
  out.put(slot.event.order());
  out.put_bytes(slot.command.h2d);
  out.put_bytes(slot.command.d2h);
  out.put(slot.command.failed);
  out.put(slot.command.data_short);
  slot.command.fault.save(out);
  slot.command.journey.save(out);
  out.put(slot.event.at_ns());
  bool resting = state == Slot::State::kResting;
  bool with_target = (state == Slot::State::kRunning || resting) && slot.target;
  out.put(with_target);
  if (with_target)
    slot.target->save_command(slot.command, out);
  save_ssp(slot, out);
}

void Core::load_slot(StreamReader &in) {
  auto index = in.get<uint16_t>();
  auto state = in.get<Slot::State>();
  if (index >= kSlots || slot(index).active() || state == Slot::State::kIdle ||
      state == Slot::State::kWaiting || state > Slot::State::kResting)
    return in.fail();
  bool resting = state == Slot::State::kResting;
  Slot &slot = this->slot(index);
  in.get(slot.tx_entry);
  in.get(slot.phy);
  in.get(slot.register_set);
  in.get(slot.status_addr);
  in.get(slot.error_info);
  in.get(slot.due_ns);
  auto order = in.get<uint64_t>();
  in.get_bytes(slot.command.h2d);
  in.get_bytes(slot.command.d2h);
  in.get(slot.command.failed);
  in.get(slot.command.data_short);
  slot.command.fault.load(in);
  slot.command.journey.load(in);
  auto event_ns = in.get<int64_t>();
  bool with_target = in.get<bool>();
  bool known_phy = slot.phy < kPhysPerCore;
  if (!known_phy && slot.phy != Slot::kNoPhy)
    in.fail();
  if (with_target && state != Slot::State::kRunning && !resting)
    in.fail();
  if ((with_target || resting) &&
      (!known_phy || !phys_[slot.phy]->up() || !phys_[slot.phy]->target()))
    in.fail();
  if (resting && slot.command.fault.stop == FaultAction::kNone)
    in.fail();
  if (!in.ok())
    return;
  slot.state = state;
  slot.command.media_pending = 0;
  slot.target = nullptr;
  slot.window.read_list(0, 0, 0);  // its data has been moved, or is read again
  slot.stale = resting;
  if (with_target) {
    slot.target = phys_[slot.phy]->target();
    slot.target->load_command(slot.command, in);
  }
  load_ssp(slot, in);
  if (state == Slot::State::kRunning)
    slot.event.restore(slot.due_ns, order);
  else if (resting && event_ns != RD_NEVER)
    slot.event.restore(event_ns, order);
}

void Core::save(StreamWriter &out) const {
  out.section("CORE");
  for (uint32_t value : regs_)
    out.put(value);
  for (uint32_t value : cmd_space_)
    out.put(value);
  for (uint32_t value : spare_cfg_)
    out.put(value);
  for (const auto &phy : phys_)
    phy->save(out);
  engine_.save(out);
  out.put(doorbell_pending_);
  out.put(tx_cons_);
  out.put(rx_prod_);
  out.put(posted_);
  out.put(snap_);
  out.put(consumed_);
  out.put(done_);
  out.put(coalesced_);
  out.put(coalesce_event_.at_ns());
  out.put(coalesce_event_.order());

  auto active = std::count_if(slots_.begin(), slots_.end(),
                              [](const auto &slot) { return slot && slot->active(); });
  out.put(static_cast<uint16_t>(active));
  for (const auto &slot : slots_) {
    if (slot && slot->active())
      save_slot(*slot, out);
  }
  out.put(static_cast<uint16_t>(held_.size()));
  for (uint16_t index : held_)
    out.put(index);
  out.put(static_cast<uint32_t>(records_.size()));
  for (const CommandRecord &record : records_)
    record.save(out);
}

void Core::load(StreamReader &in) {
  in.section("CORE");
  for (uint32_t &value : regs_)
    in.get(value);
  for (uint32_t &value : cmd_space_)
    in.get(value);
  for (uint32_t &value : spare_cfg_)
    in.get(value);
  for (auto &phy : phys_)
    phy->load(in);
  engine_.load(in);
  in.get(doorbell_pending_);
  in.get(tx_cons_);
  in.get(rx_prod_);
  in.get(posted_);
  in.get(snap_);
  in.get(consumed_);
  in.get(done_);
  in.get(coalesced_);
  auto at_ns = in.get<int64_t>();
  auto order = in.get<uint64_t>();
  if (tx_cons_ > kRingSizeMask || rx_prod_ > kRingSizeMask || snap_ > posted_ || consumed_ > snap_)
    in.fail();

  auto active = in.get<uint16_t>();
  for (unsigned i = 0; i < active && in.ok(); i++)
    load_slot(in);
  auto held = in.get<uint16_t>();
  for (unsigned i = 0; i < held && in.ok(); i++) {
    auto index = in.get<uint16_t>();
    if (index >= kSlots || !slots_[index] || slots_[index]->state != Slot::State::kHeld ||
        std::find(held_.begin(), held_.end(), index) != held_.end())
      return in.fail();
    held_.push_back(index);
  }
  auto records = in.get<uint32_t>();
  for (uint32_t i = 0; i < records && in.ok(); i++)
    records_.emplace_back().load(in);
  if (in.ok() && at_ns != RD_NEVER)
    coalesce_event_.restore(at_ns, order);
}

void Core::resume() {
  std::vector<Slot *> restart;
  for (auto &slot : slots_) {
    if (slot && slot->state == Slot::State::kRestarting)
      restart.push_back(slot.get());
  }
  std::stable_sort(restart.begin(), restart.end(),
                   [](const Slot *a, const Slot *b) { return a->due_ns < b->due_ns; });
  for (Slot *slot : restart)
    deliver(slot->tx_entry, now_ns(), true);
}

}  // namespace revodrive
