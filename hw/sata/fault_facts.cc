// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/fault_facts.h"

#include <algorithm>
#include <span>

#include "revodrive/ata.h"
#include "sata/fis.h"

namespace revodrive {

namespace {

constexpr uint8_t kReads[] = {0x20, 0x21, 0x24, 0x25, 0x29, 0xC4, 0xC8, 0xC9, 0x60};
constexpr uint8_t kWrites[] = {0x30, 0x31, 0x34, 0x35, 0x39, 0x3D, 0xCE, 0xC5, 0xCA, 0xCB, 0x61};
constexpr uint8_t kVerifies[] = {0x40, 0x41, 0x42};
constexpr uint8_t kQueued[] = {0x60, 0x61};
constexpr uint8_t kFlushes[] = {0xE7, 0xEA};
constexpr uint8_t kTrims[] = {0x06};
constexpr uint8_t kIdentifies[] = {0xEC};
constexpr uint8_t kSmarts[] = {0xB0};
constexpr uint8_t kLogs[] = {0x2F, 0x47, 0x3F, 0x57};
constexpr uint8_t kPower[] = {0xE0, 0xE1, 0xE2, 0xE3, 0xE5, 0xE6};
constexpr uint8_t kFeatures[] = {0xEF};
constexpr uint8_t kSecurity[] = {0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6};

// Beside reads, writes and SMART (ATA8-ACS table of commands): who moves data, and which way.
constexpr uint8_t kOtherIn[] = {0x2F, 0x47, 0xEC};
constexpr uint8_t kOtherOut[] = {0x06, 0x3F, 0x57, 0x92, 0x93, 0xF1, 0xF2, 0xF4, 0xF6};

struct Group {
  std::string_view name;
  std::span<const uint8_t> opcodes;
};
constexpr Group kGroups[] = {
    {"read", kReads},    {"write", kWrites}, {"verify", kVerifies},     {"ncq", kQueued},
    {"flush", kFlushes}, {"trim", kTrims},   {"identify", kIdentifies}, {"smart", kSmarts},
    {"log", kLogs},      {"power", kPower},  {"features", kFeatures},   {"security", kSecurity},
};

bool any_of(std::span<const uint8_t> opcodes, uint8_t opcode) {
  return std::find(opcodes.begin(), opcodes.end(), opcode) != opcodes.end();
}

FaultDirection smart_direction(uint8_t feature) {
  switch (feature) {
    case 0xD0:  // READ DATA
    case 0xD1:  // READ THRESHOLDS
    case 0xD5:  // READ LOG
      return FaultDirection::kIn;
    case 0xD6:  // WRITE LOG
      return FaultDirection::kOut;
    default:
      return FaultDirection::kNone;
  }
}

FaultDirection direction_of(const TaskFile &task) {
  if (task.opcode == ata::kSmart)
    return smart_direction(task.feature());
  if (any_of(kReads, task.opcode) || any_of(kOtherIn, task.opcode))
    return FaultDirection::kIn;
  if (any_of(kWrites, task.opcode) || any_of(kOtherOut, task.opcode))
    return FaultDirection::kOut;
  return FaultDirection::kNone;
}

// Opcodes with the EXT form of address and count.
bool is_ext(uint8_t opcode) {
  constexpr uint8_t kExt[] = {0x24, 0x25, 0x29, 0x34, 0x35, 0x39, 0x3D, 0xCE, 0x42};
  return any_of(kExt, opcode);
}

}  // namespace

FaultFacts fault_facts(const Fis &h2d) {
  TaskFile task = TaskFile::parse(h2d);
  FaultFacts facts;
  facts.opcode = task.opcode;
  facts.queued = any_of(kQueued, task.opcode);
  facts.tag = facts.queued ? task.tag() : 0;
  facts.direction = direction_of(task);
  facts.lba = task.lba;
  facts.medium =
      any_of(kReads, task.opcode) || any_of(kWrites, task.opcode) || any_of(kVerifies, task.opcode);
  if (!facts.medium)
    return facts;
  SectorRange range = facts.queued          ? range_queued(task)
                      : is_ext(task.opcode) ? range48(task)
                                            : range28(task);
  facts.lba = range.lba;
  facts.sectors = range.sectors;
  return facts;
}

bool add_opcodes(std::string_view group, std::bitset<256> *ops) {
  auto found = std::find_if(std::begin(kGroups), std::end(kGroups),
                            [&](const Group &it) { return it.name == group; });
  if (found == std::end(kGroups))
    return false;
  for (uint8_t opcode : found->opcodes)
    ops->set(opcode);
  return true;
}

}  // namespace revodrive
