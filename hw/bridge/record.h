// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is known of a command whose completion was posted, until the guest is told of it. It lives
// longer than the slot, which the guest may use again as soon as it sees the entry in the ring.
#ifndef REVODRIVE_BRIDGE_RECORD_H
#define REVODRIVE_BRIDGE_RECORD_H

#include <cstdint>

#include "revodrive/host.h"
#include "revodrive/journey.h"
#include "revodrive/stream.h"

namespace revodrive {

struct CommandRecord {
  Journey journey;  // until the entry was posted
  uint8_t port = 0;
  rd_command_kind kind = RD_OTHER;
  uint8_t opcode = 0;
  uint8_t tag = 0;
  bool error = false;
  uint16_t slot = 0;
  uint64_t lba = 0;
  uint32_t bytes = 0;

  // With the journey as it is now.
  rd_command_record as_told() const;
  void save(StreamWriter &out) const;
  void load(StreamReader &in);
};

}  // namespace revodrive
#endif
