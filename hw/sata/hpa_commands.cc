// SPDX-License-Identifier: GPL-2.0-or-later
//
// READ NATIVE MAX ADDRESS and SET MAX in both forms (ATA8-ACS 7.33, 7.34, 7.50 to 7.52).
#include <algorithm>

#include "sata/drive.h"

namespace revodrive {

namespace {

constexpr uint16_t kKeep = 1 << 0;  // count register: the value outlives the power

// The short form has LBA bits 27:24 in the device register.
Outputs short_outputs(const TaskFile &task, uint64_t lba) {
  return {.lba = lba & 0xFFFFFF,
          .count = task.count,
          .device = static_cast<uint8_t>((task.device & 0xF0) | (lba >> 24 & 0x0F))};
}

}  // namespace

void Drive::read_native_max(AtaCommand &command, const Request &request) {
  bool ext = request.info.has(CommandInfo::kLba48);
  uint64_t last = hpa_.native_sectors() - 1;
  hpa_.allow(ext ? Hpa::Form::kExt : Hpa::Form::kShort);
  succeed(command, request, request.ready_ns, last);
  if (!ext)
    command.d2h =
        make_d2h(ata::kGood, 0, short_outputs(request.task, std::min(last, ata::kLba28Sectors)));
}

void Drive::set_max_address(AtaCommand &command, const Request &request) {
  bool ext = request.info.has(CommandInfo::kLba48);
  uint64_t lba = ext ? range48(request.task).lba : range28(request.task).lba;
  bool keep = (request.task.count & kKeep) != 0;
  switch (
      hpa_.set_max(ext ? Hpa::Form::kExt : Hpa::Form::kShort, max_address_allowed_, lba, keep)) {
    case Hpa::Outcome::kAborted:
      return fail(command, request, ata::kAbort, lba);
    case Hpa::Outcome::kIdNotFound:
      return fail(command, request, ata::kIdNotFound, lba);
    case Hpa::Outcome::kDone:
      break;
  }
  if (keep)
    persist(command);
  succeed(command, request, request.ready_ns, lba);
  if (!ext)
    command.d2h = make_d2h(ata::kGood, 0, short_outputs(request.task, lba));
}

// Right behind READ NATIVE MAX ADDRESS the opcode means SET MAX ADDRESS whatever the feature says.
void Drive::set_max(AtaCommand &command, const Request &request) {
  uint8_t feature = request.task.feature();
  if (feature == ata::kSetMaxAddress || max_address_allowed_ == Hpa::Form::kShort)
    return set_max_address(command, request);
  bool done = false;
  int64_t at_ns = request.ready_ns;
  if (feature == ata::kSetMaxPassword || feature == ata::kSetMaxUnlock) {
    std::array<uint8_t, ata::kSectorBytes> block;
    if (command.data->size() < block.size() || !command.data->copy_from_guest(0, block))
      return fail_short(command, request);
    at_ns = wire_.receive(*command.data, Protocol::kPioOut, ata::kSectorBytes, at_ns,
                          ata::kSectorBytes, command.journey);
    done = feature == ata::kSetMaxUnlock ? hpa_.unlock(block) : hpa_.set_password(block);
  } else if (feature == ata::kSetMaxLock) {
    done = hpa_.lock();
  } else if (feature == ata::kSetMaxFreezeLock) {
    done = hpa_.freeze();
  }
  if (!done)
    return fail(command, request, ata::kAbort);
  succeed(command, request, at_ns);
}

}  // namespace revodrive
