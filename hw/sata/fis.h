// SPDX-License-Identifier: GPL-2.0-or-later
//
// Register FISes (Serial ATA 3.0, 10.3.4 and 10.3.5) as checked values: the drive never looks at
// bytes of an H2D FIS anywhere else.
#ifndef REVODRIVE_SATA_FIS_H
#define REVODRIVE_SATA_FIS_H

#include <cstdint>

#include "revodrive/ata_command.h"

namespace revodrive {

struct TaskFile {
  bool valid = false;  // an H2D register FIS that carries a command
  uint8_t opcode = 0;
  uint16_t features = 0;
  uint64_t lba = 0;  // 48 bits as sent; see range28() for the short form
  uint16_t count = 0;
  uint8_t device = 0;

  static TaskFile parse(const Fis &h2d);
  static uint8_t tag_of(const Fis &h2d) { return h2d[12] >> 3; }
  uint8_t feature() const { return static_cast<uint8_t>(features); }
  uint8_t count8() const { return static_cast<uint8_t>(count); }
  // NCQ: sector count bits 7:3 (Serial ATA 3.0, 13.6.4).
  uint8_t tag() const { return static_cast<uint8_t>(count >> 3) & 31; }
};

struct SectorRange {
  uint64_t lba = 0;
  uint32_t sectors = 0;

  // `limit`: sectors there are.
  bool inside(uint64_t limit) const { return lba < limit && sectors <= limit - lba; }
  uint64_t end() const { return lba + sectors; }
};

// A count of 0 stands for 256, 65536 and 65536.
SectorRange range28(const TaskFile &task);
SectorRange range48(const TaskFile &task);
SectorRange range_queued(const TaskFile &task);  // count in the features field

// What a D2H FIS says beside status and error.
struct Outputs {
  uint64_t lba = 0;
  uint16_t count = 0;
  uint8_t device = 0;
};

Fis make_d2h(uint8_t status, uint8_t error, const Outputs &outputs = {});

}  // namespace revodrive
#endif
