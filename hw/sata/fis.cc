// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/fis.h"

namespace revodrive {

namespace {

constexpr uint8_t kH2dRegister = 0x27;
constexpr uint8_t kD2hRegister = 0x34;
constexpr uint8_t kH2dIsCommand = 0x80;
constexpr uint8_t kD2hInterrupt = 0x40;

uint64_t bytes24(const Fis &fis, size_t at) {
  return fis[at] | uint64_t{fis[at + 1]} << 8 | uint64_t{fis[at + 2]} << 16;
}

}  // namespace

TaskFile TaskFile::parse(const Fis &h2d) {
  TaskFile task;
  task.valid = h2d[0] == kH2dRegister && (h2d[1] & kH2dIsCommand);
  task.opcode = h2d[2];
  task.features = static_cast<uint16_t>(h2d[3] | h2d[11] << 8);
  task.lba = bytes24(h2d, 4) | bytes24(h2d, 8) << 24;
  task.count = static_cast<uint16_t>(h2d[12] | h2d[13] << 8);
  task.device = h2d[7];
  return task;
}

SectorRange range28(const TaskFile &task) {
  uint64_t lba = (task.lba & 0xFFFFFF) | uint64_t{task.device & 0x0Fu} << 24;
  return {lba, task.count8() ? task.count8() : 256u};
}

SectorRange range48(const TaskFile &task) {
  return {task.lba, task.count ? task.count : 65536u};
}

SectorRange range_queued(const TaskFile &task) {
  return {task.lba, task.features ? task.features : 65536u};
}

Fis make_d2h(uint8_t status, uint8_t error, const Outputs &outputs) {
  Fis fis{};
  fis[0] = kD2hRegister;
  fis[1] = kD2hInterrupt;
  fis[2] = status;
  fis[3] = error;
  for (unsigned i = 0; i < 3; i++) {
    fis[4 + i] = static_cast<uint8_t>(outputs.lba >> (8 * i));
    fis[8 + i] = static_cast<uint8_t>(outputs.lba >> (24 + 8 * i));
  }
  fis[7] = outputs.device;
  fis[12] = static_cast<uint8_t>(outputs.count);
  fis[13] = static_cast<uint8_t>(outputs.count >> 8);
  return fis;
}

}  // namespace revodrive
