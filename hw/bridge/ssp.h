// SPDX-License-Identifier: GPL-2.0-or-later
//
// Frames of the Serial SCSI Protocol as they lie in a command table and a status buffer (SAS-2
// 9.2.2): guest bytes become checked values here and nowhere else.
#ifndef REVODRIVE_BRIDGE_SSP_H
#define REVODRIVE_BRIDGE_SSP_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace revodrive::ssp {

constexpr size_t kFrameHeaderBytes = 24;
constexpr size_t kUnitBytes = 28;  // of a COMMAND or TASK information unit
constexpr size_t kTableBytes = kFrameHeaderBytes + kUnitBytes;
using Table = std::array<uint8_t, kTableBytes>;

// Frame types, and SSP frame type in the command header.
constexpr uint8_t kCommandFrame = 0x06;
constexpr uint8_t kTaskFrame = 0x16;

inline uint64_t load_lun(const Table &table) {
  uint64_t lun = 0;
  for (size_t i = 0; i < 8; i++)
    lun = lun << 8 | table[kFrameHeaderBytes + i];
  return lun;
}

struct CommandUnit {
  explicit CommandUnit(const Table &table)
      : attribute(table[kFrameHeaderBytes + 9] & 7), more(table[kFrameHeaderBytes + 11] >> 2) {
    std::copy_n(table.begin() + kFrameHeaderBytes + 12, cdb.size(), cdb.begin());
  }
  uint8_t attribute;  // 0: simple
  uint8_t more;       // dwords of CDB behind the 16 bytes
  std::array<uint8_t, 16> cdb{};
};

enum class Function : uint8_t {
  kAbortTask = 0x01,
  kAbortTaskSet = 0x02,
  kClearTaskSet = 0x04,
  kLunReset = 0x08,
  kNexusReset = 0x10,
  kQueryTask = 0x80,
  kQueryTaskSet = 0x81,
};

struct TaskUnit {
  explicit TaskUnit(const Table &table)
      : function(static_cast<Function>(table[kFrameHeaderBytes + 10])),
        tag(static_cast<uint16_t>(table[kFrameHeaderBytes + 12] << 8 |
                                  table[kFrameHeaderBytes + 13])) {}
  Function function;
  uint16_t tag;  // the slot of the command that is meant
};

// Response codes (SAS-2 table 195).
constexpr uint8_t kComplete = 0x00;
constexpr uint8_t kInvalidFrame = 0x02;
constexpr uint8_t kNotSupported = 0x04;
constexpr uint8_t kSucceeded = 0x08;
constexpr uint8_t kWrongLun = 0x09;

// A RESPONSE information unit, behind the 8 bytes of error information in the status buffer.
constexpr size_t kResponseBytes = 24 + 64;
constexpr uint8_t kResponseData = 1, kSenseData = 2;

}  // namespace revodrive::ssp
#endif
