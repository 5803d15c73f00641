// SPDX-License-Identifier: GPL-2.0-or-later
//
// Commands about the logical units themselves: state, sense, what there is and what they know.
#include <algorithm>

#include "revodrive/ata.h"
#include "volume/scsi_device.h"

namespace revodrive {

namespace {

constexpr uint8_t kBufferData = 0x02, kBufferDescriptor = 0x03;

// A command timeouts descriptor that promises nothing (SPC-4 6.35.4).
void add_timeouts(std::vector<uint8_t> &bytes) {
  constexpr size_t kBytes = 12;
  bytes.resize(bytes.size() + kBytes);
  put_be(bytes, bytes.size() - kBytes, 2, kBytes - 2);
}

}  // namespace

void ScsiDevice::test_unit_ready(ScsiTask &task) {
  Sense sense = task.unit == 0 ? not_ready() : Sense();
  if (sense.key != scsi::kNoSense)
    return check(task, sense);
  if (task.unit != 0 && !volume_.identity(task.unit))
    return check(task, {scsi::kNotReady, scsi::kCommunication, {}, {}});
  good(task);
}

// A pending unit attention is told and gone; then the state.
void ScsiDevice::request_sense(ScsiTask &task) {
  Sense sense = take_pending();
  if (sense.key == scsi::kNoSense && volume_.formed())
    sense = not_ready();
  if (sense.key == scsi::kNoSense && degraded())
    sense = {scsi::kNoSense, scsi::kDriveLost, {}, {}};
  std::array<uint8_t, 64> bytes;
  size_t length = sense.encode(bytes, task.cdb(1) & 1);
  reply(task, std::span(bytes).first(length), task.cdb(4));
}

void ScsiDevice::start_stop(ScsiTask &task) {
  constexpr uint8_t kStart = 0x01;
  if (task.cdb(4) & kStart) {
    stopped_ = false;
    return good(task);
  }
  if (!volume_.formed())
    return good(task);
  if (!volume_.opened())
    return stop_flushed(task);
  task.op = VolumeOp::kFlush;
  submit(task, &ScsiDevice::stop_flushed);
}

// A member that is away has nothing to keep.
void ScsiDevice::stop_flushed(ScsiTask &task) {
  if (task.failed() && task.failure != VolumeFailure::kMissing)
    return fail_volume(task);
  submit_each(task, {0x27, 0x80, ata::kStandbyImmediate, 0, 0, 0, 0, 0x40}, &ScsiDevice::stopped);
}

// STANDBY IMMEDIATE has flushed the member as well. IMMED is allowed to take as long.
void ScsiDevice::stopped(ScsiTask &task) {
  if (task.failed() && task.failure != VolumeFailure::kMissing)
    return fail_volume(task);
  stopped_ = true;
  good(task);
}

void ScsiDevice::report_luns(ScsiTask &task) {
  constexpr uint8_t kWellKnownOnly = 0x01, kEverything = 0x02;
  constexpr uint32_t kLeast = 16;
  uint8_t choice = task.cdb(2);
  if (choice > kEverything)
    return bad_field(task, 2);
  if (task.be(6, 4) < kLeast)
    return bad_field(task, 6);
  unsigned units = choice == kWellKnownOnly ? 0 : volume_.members();
  Bytes bytes(8 + 8 * units);
  put_be(bytes, 0, 4, 8 * units);
  for (unsigned i = 0; i < units; i++)
    bytes[8 + 8 * i + 1] = static_cast<uint8_t>(i);
  reply(task, bytes, task.be(6, 4));
}

ScsiDevice::Bytes ScsiDevice::all_operations(unsigned unit, bool timeouts) {
  constexpr uint8_t kTimeouts = 0x02, kAction = 0x01;
  Bytes bytes(4);
  for (const ScsiOp &operation : operations()) {
    if (!operation.known_to(unit))
      continue;
    bool action = operation.action != ScsiOp::kNoAction;
    size_t at = bytes.size();
    bytes.resize(at + 8);
    bytes[at] = operation.opcode;
    put_be(bytes, at + 2, 2, action ? static_cast<uint64_t>(operation.action) : 0);
    bytes[at + 5] = static_cast<uint8_t>((timeouts ? kTimeouts : 0) | (action ? kAction : 0));
    put_be(bytes, at + 6, 2, operation.bytes);
    if (timeouts)
      add_timeouts(bytes);
  }
  put_be(bytes, 0, 4, bytes.size() - 4);
  return bytes;
}

// SPC-4 6.35
void ScsiDevice::report_operations(ScsiTask &task) {
  constexpr uint8_t kTimeouts = 0x80, kAll = 0, kOpcode = 1, kAction = 2, kEither = 3;
  constexpr uint8_t kSupported = 0x03, kNotSupported = 0x01, kTimeoutsFollow = 0x80;
  bool timeouts = task.cdb(2) & kTimeouts;
  uint8_t option = task.cdb(2) & 0x07;
  uint64_t allocated = task.be(6, 4);
  if (option > kEither)
    return bad_field(task, 2, 2);
  if (option == kAll)
    return reply(task, all_operations(task.unit, timeouts), allocated);
  const ScsiOp *found = nullptr;
  bool with_actions = false;
  for (const ScsiOp &operation : operations()) {
    if (operation.opcode != task.cdb(3) || !operation.known_to(task.unit))
      continue;
    bool action = operation.action != ScsiOp::kNoAction;
    with_actions |= action;
    if (!action || static_cast<uint64_t>(operation.action) == task.be(4, 2))
      found = &operation;
  }
  if (option == kOpcode && with_actions)
    return bad_field(task, 3);
  if (option == kAction && found && !with_actions)
    return bad_field(task, 3);
  Bytes bytes{0, found ? kSupported : kNotSupported, 0, 0};
  if (found) {
    put_be(bytes, 2, 2, found->bytes);
    bytes.insert(bytes.end(), found->usage.begin(), found->usage.begin() + found->bytes);
    bytes[4] = found->opcode;
    if (with_actions)
      bytes[5] = static_cast<uint8_t>((bytes[5] & ~0x1F) | found->action);
    if (timeouts) {
      bytes[1] |= kTimeoutsFollow;
      add_timeouts(bytes);
    }
  }
  reply(task, bytes, allocated);
}

// SPC-4 6.36: abort task, abort and clear task set, logical unit reset, query task; nexus reset,
// query task set.
void ScsiDevice::report_functions(ScsiTask &task) {
  constexpr uint8_t kAbortAndMore = 0xD9, kQueries = 0x03;
  constexpr uint8_t kList[] = {kAbortAndMore, kQueries, 0, 0};
  if (task.be(6, 4) < sizeof(kList))
    return bad_field(task, 6);
  reply(task, kList, task.be(6, 4));
}

void ScsiDevice::read_buffer(ScsiTask &task) {
  uint8_t mode = task.cdb(1) & 0x1F;
  uint64_t offset = task.be(3, 3), length = task.be(6, 3);
  if (mode == kBufferDescriptor) {
    Bytes bytes(4);
    put_be(bytes, 1, 3, scratchpad_.size());
    return reply(task, bytes, length);
  }
  if (mode != kBufferData)
    return bad_field(task, 1, 4);
  if (offset > scratchpad_.size())
    return bad_field(task, 3);
  reply(task, std::span(scratchpad_).subspan(offset), length);
}

void ScsiDevice::write_buffer(ScsiTask &task) {
  if ((task.cdb(1) & 0x1F) != kBufferData)
    return bad_field(task, 1, 4);
  uint64_t offset = task.be(3, 3), length = task.be(6, 3);
  if (offset > scratchpad_.size())
    return bad_field(task, 3);
  if (length > scratchpad_.size() - offset)
    return bad_field(task, 6);
  if (length > 0 && !fetch(task, std::span(scratchpad_).subspan(offset, length)))
    return;
  good(task);
}

}  // namespace revodrive
