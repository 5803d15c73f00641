// SPDX-License-Identifier: GPL-2.0-or-later
//
// What statistics want to know of an ATA command, from its H2D FIS alone: whether or not a drive
// has seen it or taken it.
#ifndef REVODRIVE_COMMAND_FACTS_H
#define REVODRIVE_COMMAND_FACTS_H

#include <cstdint>

#include "revodrive/ata_command.h"

namespace revodrive {

struct CommandFacts {
  rd_command_kind kind = RD_OTHER;
  uint8_t opcode = 0;
  uint8_t tag = 0;     // of a queued command
  uint64_t lba = 0;    // reads and writes only
  uint32_t bytes = 0;  // reads and writes only
};

CommandFacts command_facts(const Fis &h2d);

}  // namespace revodrive
#endif
