// SPDX-License-Identifier: GPL-2.0-or-later
//
// What fault rules can know of a command from its H2D FIS alone, before any drive has looked at it.
#ifndef REVODRIVE_SATA_FAULT_FACTS_H
#define REVODRIVE_SATA_FAULT_FACTS_H

#include <bitset>
#include <cstdint>
#include <string_view>

#include "revodrive/ata_command.h"
#include "revodrive/fault_rule.h"

namespace revodrive {

struct FaultFacts {
  uint8_t opcode = 0;
  bool queued = false;  // `tag` counts
  uint8_t tag = 0;
  FaultDirection direction = FaultDirection::kNone;
  bool medium = false;  // reads, writes or verifies lba .. lba + sectors - 1
  uint64_t lba = 0;     // of other commands: the field as sent
  uint32_t sectors = 1;
};

FaultFacts fault_facts(const Fis &h2d);

// Adds the opcodes of a group ("read", "flush", ...). False: there is no such group.
bool add_opcodes(std::string_view group, std::bitset<256> *ops);

}  // namespace revodrive
#endif
