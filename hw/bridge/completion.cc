// SPDX-License-Identifier: GPL-2.0-or-later
//
// The way out: from the end of a command over the completion ring to the interrupt.
#include <algorithm>

#include "bridge/core.h"

namespace revodrive {

using namespace regs;

void Core::slot_due(void *opaque) {
  Slot &slot = *static_cast<Slot *>(opaque);
  Core &core = slot.core;
  if (slot.state == Slot::State::kResting)
    return core.go_on(slot);
  if (slot.command.media_pending == 0)
    return core.finish(slot);
  slot.state = Slot::State::kWaiting;
  // A timer that fired late is not the backend.
  slot.due_ns = std::max(slot.due_ns, core.now_ns());
  // A host that can wait for its backend ends the command from inside this call.
  core.parts_.host.block_wait(core.number_ * kPhysPerCore + slot.phy);
}

void Core::media_ready(AtaCommand &command) {
  Slot &slot = *static_cast<Slot *>(command.owner);
  if (slot.canceling || slot.state != Slot::State::kWaiting)
    return;
  count_late(slot);
  finish(slot);
}

void Core::count_late(const Slot &slot) {
  int64_t late_ns = now_ns() - slot.due_ns;
  if (!parts_.timing || late_ns <= 0)
    return;
  counters_.late_ios++;
  counters_.max_late_ns = std::max(counters_.max_late_ns, late_ns);
}

void Core::finish(Slot &slot) {
  if (slot.target) {
    AtaCommand &command = slot.command;
    slot.target->finish(command);
    if (command.finish_ns == RD_NEVER) {
      slot.state = Slot::State::kResting;
      return;
    }
    if (slot.window.dma_failed()) {
      fail_delivery(slot, error_info::kDmaTerminated);
    } else if (command.data_short) {
      slot.error_info = error_info::kDataOverUnder;
    }
    if (command.fault.stop != FaultAction::kNone && rests_at_completion(slot))
      return;
  }
  retire(slot);
}

void Core::complete_now(AtaCommand &command) {
  retire(*static_cast<Slot *>(command.owner));
}

// The outcome is settled: publish it, or keep it until the ring has room.
void Core::retire(Slot &slot) {
  slot.event.cancel();
  slot.target = nullptr;
  if (!slot.ssp && slot.command.failed && slot.error_info == 0)
    slot.error_info = error_info::kTaskFile;
  if (ring_full() || !held_.empty()) {
    slot.state = Slot::State::kHeld;
    held_.push_back(slot.index);
    raise_done();
    return;
  }
  post(slot);
  signal_completion();
}

// The driver publishes no consumer index: what it has certainly taken is what was there at a read
// of INT_STAT that a write of INT_STAT followed. One entry stays free, so that full is not empty.
bool Core::ring_full() const {
  uint32_t size = reg(kRxCfg) & kRingSizeMask;
  return rx_enabled() && posted_ - consumed_ + 1 >= size;
}

void Core::post_held() {
  bool any = false;
  while (!held_.empty() && !ring_full()) {
    Slot &slot = *slots_[held_.front()];
    held_.pop_front();
    post(slot);
    any = true;
  }
  if (any)
    raise_done();
}

// Stores in the order the driver relies on: FIS, error record, entry, index.
void Core::post(Slot &slot) {
  slot.state = Slot::State::kIdle;
  if (!rx_enabled()) {
    parts_.host.log(RD_LOG_GUEST_ERROR, "core %u: slot %u completed with the RX ring disabled",
                    number_, slot.index);
    return;
  }
  HostPort &host = parts_.host;
  if (!slot.ssp && slot.register_set < kRegisterSets)
    host.dma_write(reg64(kRxFisLo) + kRxFisSets + kRxFisSetBytes * slot.register_set + kRxFisD2h,
                   slot.command.d2h);
  if (slot.error_info != 0 && slot.status_addr != 0) {
    std::array<uint8_t, 8> record{};
    for (unsigned i = 0; i < 4; i++)
      record[i] = static_cast<uint8_t>(slot.error_info >> (8 * i));
    host.dma_write(slot.status_addr, record);
  }
  uint32_t outcome =
      slot.ssp ? post_response(slot) : kRxDone | (slot.error_info != 0 ? kRxError : 0);
  uint32_t entry = slot.index | outcome;
  uint32_t size = reg(kRxCfg) & kRingSizeMask;
  rx_prod_ = rx_prod_ == kRxNone ? 0 : static_cast<uint16_t>((rx_prod_ + 1) % size);
  host.dma_write_u32(reg64(kRxLo) + 4 + 4 * uint64_t{rx_prod_}, entry);
  host.dma_write_u32(reg64(kRxLo), rx_prod_);
  posted_++;
  counters_.completions++;
  keep_record(slot);
}

void Core::signal_completion() {
  uint32_t coalescing = reg(kIntCoal);
  coalesced_++;
  if (done_)
    return report();  // the guest is looking already
  bool immediate =
      !parts_.timing || !(coalescing & kCoalEnable) || coalesced_ >= (coalescing & kCoalCountMask);
  if (immediate)
    return raise_done();
  if (!coalesce_event_.armed())
    coalesce_event_.arm(now_ns() + (reg(kIntCoalTimeout) & kCoalTimeMask) * int64_t{1000});
}

void Core::raise_done() {
  coalesce_event_.cancel();
  coalesced_ = 0;
  report();
  if (done_)
    return;
  done_ = true;
  counters_.interrupts++;
  interrupt_changed();
}

void Core::cancel(Slot &slot) {
  if (!slot.active())
    return;
  slot.event.cancel();
  if (slot.state == Slot::State::kHeld)
    std::erase(held_, slot.index);
  if (slot.target) {
    // The target drains the backend; other commands may complete from inside, this one must not.
    slot.canceling = true;
    slot.target->cancel(slot.command);
    slot.canceling = false;
    slot.target = nullptr;
  }
  if (slot.scsi_target) {
    slot.scsi_target->cancel(slot.scsi);
    slot.scsi_target = nullptr;
  }
  slot.state = Slot::State::kIdle;
}

}  // namespace revodrive
