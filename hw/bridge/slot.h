// SPDX-License-Identifier: GPL-2.0-or-later
//
// A command slot of a core: where a command lives from its delivery entry to its completion entry.
// Made on first use and kept, so that later commands in the slot allocate nothing. Owned by the
// core.
#ifndef REVODRIVE_BRIDGE_SLOT_H
#define REVODRIVE_BRIDGE_SLOT_H

#include "bridge/prd_window.h"
#include "revodrive/event_queue.h"
#include "revodrive/scsi_command.h"

namespace revodrive {

class Core;

struct Slot {
  static constexpr uint8_t kNoPhy = 0xFF;
  enum class State : uint8_t {
    kIdle,
    kRunning,     // with the target, or failed at delivery; event armed until its time has come
    kWaiting,     // its time has come, the backend has not answered yet
    kHeld,        // complete, waiting for room in the completion ring
    kRestarting,  // loaded, to be delivered again when the machine runs
    kResting,     // stopped by a fault rule; event armed if it goes on by itself
  };

  Slot(Core &owner, uint16_t number, EventQueue &queue, Event::Action due, HostPort &host,
       PcieLink &link, size_t &bounce_bytes)
      : core(owner), index(number), window(host, link, bounce_bytes), event(queue, due, this) {
    command.data = &window;
  }

  Core &core;
  const uint16_t index;
  State state = State::kIdle;
  bool canceling = false;  // transfers that end now complete nothing
  bool stale = false;      // loaded while it rested: the guest's memory is to be read again
  uint32_t tx_entry = 0;
  uint8_t phy = kNoPhy;         // core-local
  AtaTarget *target = nullptr;  // null: failed at delivery, no target knows the command
  uint8_t register_set = 0;
  uint64_t status_addr = 0;
  uint32_t error_info = 0;  // first dword of the error record, written when not 0
  int64_t due_ns = 0;
  // SSP (ssp.cc): the command of a SAS target, or task management, which has a response code.
  static constexpr uint8_t kNoResponse = 0xFF;
  bool ssp = false;
  uint8_t response = kNoResponse;
  ScsiTarget *scsi_target = nullptr;  // while the command is with it
  ScsiCommand scsi;
  AtaCommand command;
  PrdWindow window;
  Event event;  // fires at due_ns

  bool active() const { return state != State::kIdle; }
};

}  // namespace revodrive
#endif
