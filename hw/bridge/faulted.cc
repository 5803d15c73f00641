// SPDX-License-Identifier: GPL-2.0-or-later
//
// Commands that fault rules stop: at fetch, before the drive sees them, and at completion, before
// the guest hears of them; and how all that rest, here or in the drive, go on.
#include <algorithm>

#include "bridge/core.h"

namespace revodrive {

using namespace regs;

namespace {

int64_t link_loss_ns(const FaultHit &hit) {
  return hit.delay_ns == 0 ? RD_NEVER : hit.delay_ns;
}

}  // namespace

// True: nothing more is to be done with the command now.
bool Core::rests_at_fetch(Slot &slot, FaultSet &faults) {
  FaultState &fault = slot.command.fault;
  FaultHit hit = faults.ask(FaultStage::kFetch, slot.command);
  switch (hit.action) {
    case FaultAction::kHold:
    case FaultAction::kDrop:
      rest(slot, RD_NEVER);
      return true;
    case FaultAction::kDelay:
      rest(slot, hit.delay_ns);
      return true;
    case FaultAction::kLinkDown:
      phys_[slot.phy]->lose_link(hit.rule, link_loss_ns(hit));  // cancels this command, too
      return true;
    case FaultAction::kFail:
      fail_delivery(slot, error_info::kTaskFile);
      slot.command.d2h[2] = static_cast<uint8_t>(0x41 | fault.error.status);
      slot.command.d2h[3] = fault.error.error;
      return true;
    default:
      return false;
  }
}

// The drive is done with the command, and a rule has stopped it there.
bool Core::rests_at_completion(Slot &slot) {
  FaultState &fault = slot.command.fault;
  slot.target = nullptr;
  if (fault.stop != FaultAction::kLinkDown) {
    rest(slot, fault.stop == FaultAction::kDelay ? fault.delay_ns : RD_NEVER);
    return true;
  }
  phys_[slot.phy]->lose_link(fault.rule, fault.delay_ns == 0 ? RD_NEVER : fault.delay_ns);
  return slot.state == Slot::State::kIdle;
}

void Core::rest(Slot &slot, int64_t delay_ns) {
  slot.state = Slot::State::kResting;
  slot.event.cancel();
  if (delay_ns != RD_NEVER)
    slot.event.arm(now_ns() + delay_ns);
}

// From where the rule has stopped it.
void Core::go_on(Slot &slot) {
  AtaCommand &command = slot.command;
  slot.event.cancel();
  slot.state = Slot::State::kRunning;
  if (command.fault.stage == FaultStage::kCompletion) {
    command.fault.stop = FaultAction::kNone;
    command.finish_ns = now_ns();
    command.journey.reach(Stage::kFault, command.finish_ns);
    return slot.target ? finish(slot) : retire(slot);
  }
  slot.due_ns = now_ns();
  command.journey.cut(slot.due_ns);
  command.journey.reach(Stage::kFault, slot.due_ns);
  if (slot.stale && !fetch_again(slot)) {
    if (slot.target)
      slot.target->cancel(command);
    slot.target = nullptr;
    fail_delivery(slot, error_info::kDmaTerminated);
  } else {
    execute(slot, now_ns());
  }
  plan_completion(slot);
}

// After a load the window is empty.
bool Core::fetch_again(Slot &slot) {
  slot.stale = false;
  CommandHeader::Raw raw;
  uint64_t addr = reg64(kCmdListLo) + CommandHeader::kBytes * uint64_t{slot.index};
  if (!parts_.host.dma_read(addr, raw))
    return false;
  CommandHeader header(raw);
  return slot.window.read_list(header.prd_addr, header.prd_count, header.data_bytes);
}

void Core::release(const Phy &phy, const FaultChoice &choice) {
  std::vector<Slot *> chosen;
  auto fits = [&](const Slot &slot) {
    return slot.state == Slot::State::kResting && phys_[slot.phy].get() == &phy &&
           choice.fits(slot.command);
  };
  for (auto &slot : slots_) {
    if (slot && fits(*slot))
      chosen.push_back(slot.get());
  }
  std::sort(chosen.begin(), chosen.end(), [](const Slot *a, const Slot *b) {
    return a->command.fault.order < b->command.fault.order;
  });
  if (chosen.size() > choice.count)
    chosen.resize(choice.count);
  for (Slot *slot : chosen) {
    if (fits(*slot))  // one that went on may have ended others
      go_on(*slot);
  }
}

unsigned Core::resting(const Phy &phy, uint32_t rule) const {
  return static_cast<unsigned>(std::count_if(slots_.begin(), slots_.end(), [&](const auto &slot) {
    return slot && slot->state == Slot::State::kResting && phys_[slot->phy].get() == &phy &&
           slot->command.fault.rule == rule;
  }));
}

}  // namespace revodrive
