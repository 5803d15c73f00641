// SPDX-License-Identifier: GPL-2.0-or-later
//
// ATA PASS-THROUGH 12 and 16 to the member of the logical unit (SAT-2 12.2).
#include "revodrive/ata.h"
#include "volume/scsi_device.h"

namespace revodrive {

namespace {

// Protocols of SAT-2 table 98 that a command can have here.
enum AtaProtocol : uint8_t {
  kNonData = 3,
  kPioIn = 4,
  kPioOut = 5,
  kDma = 6,
  kDiagnostic = 8,
  kUdmaIn = 10,
  kUdmaOut = 11,
};

constexpr uint8_t kCheckBit = 0x20, kBlocksBit = 0x04;
constexpr uint8_t kLengthNone = 0, kLengthFeatures = 1, kLengthCount = 2;
constexpr uint8_t kLastQueued = 0x65;

bool known(uint8_t protocol) {
  return protocol == kNonData || protocol == kPioIn || protocol == kPioOut || protocol == kDma ||
         protocol == kDiagnostic || protocol == kUdmaIn || protocol == kUdmaOut;
}

Fis fis12(const ScsiTask &task) {
  Fis fis{0x27, 0x80, task.cdb(9), task.cdb(3), task.cdb(5), task.cdb(6), task.cdb(7), task.cdb(8)};
  fis[12] = task.cdb(4);
  return fis;
}

Fis fis16(const ScsiTask &task) {
  Fis fis{0x27,        0x80,         task.cdb(14), task.cdb(4),
          task.cdb(8), task.cdb(10), task.cdb(12), task.cdb(13)};
  fis[12] = task.cdb(6);
  if (task.cdb(1) & 1) {
    fis[8] = task.cdb(7);
    fis[9] = task.cdb(9);
    fis[10] = task.cdb(11);
    fis[11] = task.cdb(3);
    fis[13] = task.cdb(5);
  }
  return fis;
}

// ATA status return descriptor (SAT-2 12.2.6), behind an empty sense header.
void put_status(std::span<uint8_t> sense, const Fis &d2h, bool extended) {
  constexpr uint8_t kBytes = 14;
  sense[7] = kBytes;
  sense[8] = 0x09;
  sense[9] = kBytes - 2;
  sense[10] = extended;
  sense[11] = d2h[3];
  sense[12] = extended ? d2h[13] : 0;
  sense[13] = d2h[12];
  for (size_t i = 0; i < 3; i++) {
    sense[14 + 2 * i] = extended ? d2h[8 + i] : 0;
    sense[15 + 2 * i] = d2h[4 + i];
  }
  sense[20] = d2h[7];
  sense[21] = d2h[2];
}

}  // namespace

void ScsiDevice::pass_through(ScsiTask &task) {
  bool long_form = task.operation->bytes == 16;
  auto protocol = static_cast<uint8_t>(task.cdb(1) >> 1 & 0xF);
  if (!known(protocol))
    return bad_field(task, 1, 4);
  task.h2d = long_form ? fis16(task) : fis12(task);
  uint8_t opcode = task.h2d[2];
  if (opcode >= ata::kReadFpdmaQueued && opcode <= kLastQueued)
    return bad_field(task, long_form ? 14 : 9);  // tags are the volume's
  uint8_t where = task.cdb(2) & 0x3;
  uint64_t count = 0;
  if (where == kLengthFeatures)
    count = task.h2d[3] | (long_form ? task.h2d[11] << 8 : 0);
  else if (where == kLengthCount)
    count = task.h2d[12] | (long_form ? task.h2d[13] << 8 : 0);
  else if (where != kLengthNone)
    return bad_field(task, 2, 1);
  if (task.cdb(2) & kBlocksBit)
    count *= kBlockBytes;
  bool no_data = protocol == kNonData || protocol == kDiagnostic;
  if (no_data != (count == 0))
    return bad_field(task, 2, 1);
  if (count > task.command->data->size())
    return check(task, {scsi::kAbortedCommand, scsi::kDataPhase, {}, {}});
  task.op = VolumeOp::kMember;
  task.member = task.unit;
  task.data = count > 0 ? task.command->data : nullptr;
  task.data_bytes = static_cast<uint32_t>(count);
  submit(task, &ScsiDevice::passed_through);
}

void ScsiDevice::passed_through(ScsiTask &task) {
  bool extended = task.operation->bytes == 16 && (task.cdb(1) & 1);
  if (task.failure == VolumeFailure::kMissing || task.failure == VolumeFailure::kData)
    return fail_volume(task);
  if (!task.failed() && !(task.cdb(2) & kCheckBit))
    return good(task);
  Sense sense{scsi::kRecovered, scsi::kAtaInformation, {}, {}};
  if (task.failed())
    sense = sense_of(task);
  check(task, sense);
  // Always with descriptors: the registers are in one.
  ScsiCommand &command = *task.command;
  constexpr uint8_t kBytes = 22;
  sense.encode(command.sense, true);
  put_status(command.sense, task.answers[task.member], extended);
  command.sense_bytes = kBytes;
}

}  // namespace revodrive
