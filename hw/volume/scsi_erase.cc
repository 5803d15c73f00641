// SPDX-License-Identifier: GPL-2.0-or-later
//
// FORMAT UNIT and SANITIZE (SBC-3): all members are erased. With IMMED the guest has its status
// when every member has taken the password; the rest is a command of the device's own then, and
// others hear how far it is.
#include <algorithm>
#include <bit>
#include <string_view>

#include "revodrive/ata.h"
#include "volume/scsi_device.h"

namespace revodrive {

namespace {

bool took(const Fis &answer) {
  return answer[2] != 0 && (answer[2] & (ata::kStatusError | ata::kStatusFault)) == 0;
}

}  // namespace

// The header of the parameter list of FORMAT UNIT, short or long (SBC-3 5.3.2). There are no lists
// of defects, no protection information and no initialization pattern. False: the command is
// settled.
bool ScsiDevice::take_format_list(ScsiTask &task) {
  constexpr uint8_t kFormatData = 0x10, kLongList = 0x20;     // in the CDB
  constexpr uint8_t kOptionsValid = 0x80, kImmediate = 0x02;  // in the list
  constexpr uint8_t kOptions = 0x70;                          // DPRY, DCRT, STPF
  if (!(task.cdb(1) & kFormatData))
    return true;
  bool long_form = task.cdb(1) & kLongList;
  size_t length_at = long_form ? 4 : 2;
  Bytes list(long_form ? 8 : 4);
  if (!fetch(task, list))
    return false;
  for (size_t i = 0; i < list.size(); i++) {
    unsigned known = i == 1 ? kOptionsValid | kImmediate : 0;
    if (i == 1 && (list[1] & kOptionsValid))
      known |= kOptions;
    unsigned wrong = list[i] & ~known;
    if (wrong == 0)
      continue;
    if (i < length_at)
      bad_parameter(task, static_cast<uint16_t>(i), std::bit_width(wrong) - 1);
    else
      bad_parameter(task, static_cast<uint16_t>(length_at));  // a list of defects
    return false;
  }
  task.immediate = list[1] & kImmediate;
  return true;
}

// As ATA hosts erase a drive: a password of the user, then SECURITY ERASE UNIT, which drops it.
// The password is no secret: between the steps a power cut leaves members locked with it, and they
// stay so until this is done again.
void ScsiDevice::erase(ScsiTask &task) {
  constexpr uint8_t kImmediate = 0x80;
  bool format = task.operation->action == ScsiOp::kNoAction;
  if (format && !take_format_list(task))
    return;
  if (!format)
    task.immediate = task.cdb(1) & kImmediate;
  erasing_ = format ? scsi::kFormatting : scsi::kSanitizing;
  erase_begin(task);
}

void ScsiDevice::erase_begin(ScsiTask &task) {
  task.erases = true;
  if (!volume_.opened())
    return erase_lock(task);
  task.op = VolumeOp::kFlush;  // what runs ends first
  submit(task, &ScsiDevice::erase_lock);
}

void ScsiDevice::erase_lock(ScsiTask &task) {
  constexpr std::string_view kPassword = "VCA ERASE";
  std::vector<uint8_t> &block = task.buffer.bytes;
  block.assign(kBlockBytes, 0);
  std::copy(kPassword.begin(), kPassword.end(), block.begin() + 2);
  task.data = &task.buffer;
  task.data_bytes = kBlockBytes;
  submit_each(task, {0x27, 0x80, ata::kSecuritySetPassword, 0, 0, 0, 0, 0x40},
              &ScsiDevice::erase_prepare);
}

// A member that is locked may have this password from an erase that was cut short: that will tell.
// If any other refuses it (security is frozen), nothing is erased.
void ScsiDevice::erase_prepare(ScsiTask &task) {
  for (unsigned i = 0; i < volume_.members(); i++) {
    if (!took(task.answers[i]) && volume_.state(i) != MemberState::kLocked)
      return erase_undo(task);
  }
  if (task.immediate)
    return erase_detached(task);
  erase_prepared(task);
}

// From here on the erase is the device's own.
void ScsiDevice::erase_detached(ScsiTask &task) {
  task.erases = false;
  good(task);
  ScsiTask &own = take_own(task.cdb());
  own.ready_ns = task.ready_ns;
  own.buffer.bytes = task.buffer.bytes;
  own.erases = true;
  erase_prepared(own);
  if (own.settled)
    release(own);
}

ScsiTask &ScsiDevice::take_own(const std::array<uint8_t, 16> &cdb) {
  own_command_ = {};
  own_command_.cdb = cdb;
  own_command_.data = &own_window_;
  ScsiTask &own = take_task(own_command_);
  bool unused = false;
  own.operation = find(cdb, &unused);
  own.unit = 0;
  return own;
}

// One that was under way when the state was saved begins anew.
void ScsiDevice::resume() {
  if (!resumes_)
    return;
  resumes_ = false;
  ScsiTask &own = take_own(erasing_ == scsi::kFormatting ? std::array<uint8_t, 16>{0x04}
                                                         : std::array<uint8_t, 16>{0x48, 0x02});
  own.ready_ns = volume_.now_ns();
  erase_begin(own);
  if (own.settled)
    release(own);
}

// Nobody waits for it, and its members are about to be reset.
void ScsiDevice::cut_short() {
  if (resumes_)
    erase_cut();
  resumes_ = false;
  if (own_command_.task)
    cancel(own_command_);
}

// What the erase that runs has come to if it fails.
uint16_t ScsiDevice::erase_failure() const {
  return erasing_ == scsi::kFormatting ? scsi::kFormatFailed : scsi::kSanitizeFailed;
}

void ScsiDevice::erase_cut() {
  erase_failed_ = erase_failure();
  erasing_ = 0;
  volume_.erased(false);
}

// What others hear while it runs.
Sense ScsiDevice::erase_sense() const {
  Sense sense{scsi::kNotReady, erasing_, {}, {}};
  sense.progress = uint16_t{0};
  for (const auto &task : tasks_) {
    if (task->command && task->erases && task->then == &ScsiDevice::erase_end)
      sense.progress = volume_.progress(*task);
  }
  return sense;
}

void ScsiDevice::erase_prepared(ScsiTask &task) {
  task.data = nullptr;
  task.data_bytes = 0;
  submit_each(task, {0x27, 0x80, ata::kSecurityErasePrepare, 0, 0, 0, 0, 0x40},
              &ScsiDevice::erase_unit);
}

void ScsiDevice::erase_unit(ScsiTask &task) {
  task.data = &task.buffer;
  task.data_bytes = kBlockBytes;
  submit_each(task, {0x27, 0x80, ata::kSecurityEraseUnit, 0, 0, 0, 0, 0x40},
              &ScsiDevice::erase_end);
}

void ScsiDevice::erase_end(ScsiTask &task) {
  auto refused = [](const Fis &answer) { return answer[2] != 0 && !took(answer); };
  auto members = std::span(task.answers).first(volume_.members());
  if (task.failed() && std::all_of(members.begin(), members.end(), refused))
    return erase_undo(task);
  erase_failed_ = task.failed() ? erase_failure() : uint16_t{0};
  volume_.erased(!task.failed());
  erase_over(task);
}

// No member has erased anything: they shall not be locked when they get their power back.
void ScsiDevice::erase_undo(ScsiTask &task) {
  task.undone = task.failure;
  task.data = &task.buffer;
  task.data_bytes = kBlockBytes;
  submit_each(task, {0x27, 0x80, ata::kSecurityDisablePassword, 0, 0, 0, 0, 0x40},
              &ScsiDevice::erase_undone);
}

void ScsiDevice::erase_undone(ScsiTask &task) {
  task.failure = task.undone == VolumeFailure::kNone ? VolumeFailure::kAborted : task.undone;
  if (task.command == &own_command_)
    deferred_ = erase_failure();
  erase_over(task);
}

void ScsiDevice::erase_over(ScsiTask &task) {
  erasing_ = 0;
  task.erases = false;
  end_volume(task);
}

}  // namespace revodrive
