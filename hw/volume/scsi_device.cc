// SPDX-License-Identifier: GPL-2.0-or-later
//
// The life of a SCSI command: found, checked, handled, ended.
#include "volume/scsi_device.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "volume/volume.h"

namespace revodrive {

namespace {

// NAA 5 with OCZ's OUI e83a97; the last bits tell the port from the logical units.
constexpr uint64_t kNaa = uint64_t{0x5e83a97} << 36;
constexpr uint64_t kPortBits = 0xF;

}  // namespace

std::unique_ptr<ScsiTarget> make_scsi_target(BlockVolume &volume, const IdentityProfile &identity) {
  return std::make_unique<ScsiDevice>(volume, identity);
}

uint64_t ScsiTask::be(size_t at, size_t count) const {
  uint64_t value = 0;
  for (size_t i = 0; i < count; i++)
    value = value << 8 | cdb(at + i);
  return value;
}

ScsiDevice::ScsiDevice(BlockVolume &volume, const IdentityProfile &identity)
    : volume_(volume), identity_(identity) {
  volume_.set_client(this);
}

uint64_t ScsiDevice::sas_address() const {
  return unit_name(0) | kPortBits;
}

uint64_t ScsiDevice::unit_name(unsigned unit) const {
  uint64_t print = volume_.fingerprint();
  return kNaa | ((print ^ print >> 28) >> 28 & ~kPortBits) | unit;
}

// -1: there is no such unit. Single level addressing, peripheral or flat (SAM-4 4.7.4).
int ScsiDevice::unit_of(uint64_t lun) const {
  constexpr uint64_t kRest = 0x0000'FFFF'FFFF'FFFF;
  auto method = lun >> 62;
  auto number = lun >> 48 & 0x3FFF;
  if ((lun & kRest) != 0 || method > 1 || number >= volume_.members())
    return -1;
  return static_cast<int>(number);
}

ScsiTask &ScsiDevice::take_task(ScsiCommand &command) {
  if (free_.empty()) {
    tasks_.push_back(std::make_unique<ScsiTask>());
    free_.reserve(tasks_.size());
    free_.push_back(tasks_.back().get());
  }
  ScsiTask &task = *free_.back();
  free_.pop_back();
  task.command = &command;
  task.settled = false;
  task.then = nullptr;
  task.data = nullptr;
  task.data_bytes = 0;
  task.data_apart = false;
  task.stable = false;
  task.failure = VolumeFailure::kNone;
  task.sectors = 0;
  task.position = 0;
  task.comparison = 0;
  task.claim = ScsiTask::Claim::kNone;
  task.erases = false;
  task.immediate = false;
  command.task = &task;
  return task;
}

void ScsiDevice::release(ScsiTask &task) {
  task.command->task = nullptr;
  task.command = nullptr;
  free_.push_back(&task);
  alone_ -= task.claim == ScsiTask::Claim::kAlone;
  task.claim = ScsiTask::Claim::kNone;
  if (!waiting_.empty())
    wake();
}

void ScsiDevice::execute(ScsiCommand &command) {
  command.finish_ns = RD_NEVER;
  command.status = scsi::kGood;
  command.sense_bytes = 0;
  ScsiTask &task = take_task(command);
  task.ready_ns = volume_.accept(command.issue_ns);
  if (command.journey)
    command.journey->reach(Stage::kBridge, task.ready_ns);
  dispatch(task);
  if (task.settled)
    release(task);
}

const ScsiOp *ScsiDevice::find(const std::array<uint8_t, 16> &cdb, bool *opcode_known) {
  constexpr uint8_t kActionMask = 0x1F;
  *opcode_known = false;
  for (const ScsiOp &operation : operations()) {
    if (operation.opcode != cdb[0])
      continue;
    *opcode_known = true;
    if (operation.action == ScsiOp::kNoAction || operation.action == (cdb[1] & kActionMask))
      return &operation;
  }
  return nullptr;
}

void ScsiDevice::dispatch(ScsiTask &task) {
  int unit = unit_of(task.command->lun);
  if (unit < 0)
    return no_unit(task);
  task.unit = static_cast<unsigned>(unit);
  bool opcode_known = false;
  task.operation = find(task.cdb(), &opcode_known);
  bool here = task.operation && task.operation->known_to(task.unit);
  bool quiet = here && task.operation->has(ScsiOp::kNoAttention);
  if (Sense pending = quiet ? Sense() : take_pending(); pending.key != scsi::kNoSense)
    return check(task, pending);
  if (!here && opcode_known && !task.operation)
    return bad_field(task, 1, 4);
  if (!here)
    return check(task, {scsi::kIllegalRequest, scsi::kBadOpcode, {}, Sense::Field{0, -1, true}});
  if (!check_cdb(task) || !check_ready(task))
    return;
  bool opens = task.operation->has(ScsiOp::kMap) && task.unit == 0 && !volume_.opened();
  if (opens && not_ready().key == scsi::kNoSense)
    return open(task);
  (this->*task.operation->handler)(task);
}

// What is told instead of a command, once: a unit attention, then the fate of an erase of the
// device's own that changed nothing after its status was good. No sense: nothing.
Sense ScsiDevice::take_pending() {
  if (attention_ != 0)
    return {scsi::kUnitAttention, std::exchange(attention_, uint16_t{0}), {}, {}};
  if (deferred_ == 0)
    return {};
  Sense sense{scsi::kMediumError, std::exchange(deferred_, uint16_t{0}), {}, {}};
  sense.deferred = true;
  return sense;
}

// The first commands wait until the map of the volume has been read.
void ScsiDevice::open(ScsiTask &task) {
  task.op = VolumeOp::kOpen;
  submit(task, &ScsiDevice::volume_opened);
}

void ScsiDevice::volume_opened(ScsiTask &task) {
  if (task.failed())
    return fail_volume(task);
  (this->*task.operation->handler)(task);
}

// A unit that is not there answers INQUIRY and REPORT LUNS (SPC-4 4.2.2, 6.4.2).
void ScsiDevice::no_unit(ScsiTask &task) {
  constexpr uint8_t kInquiry = 0x12, kReportLuns = 0xA0, kNoDevice = 0x7F;
  if (task.cdb(0) == kReportLuns) {
    task.unit = 0;
    return report_luns(task);
  }
  if (task.cdb(0) != kInquiry || (task.cdb(1) & 1))
    return check(task, {scsi::kIllegalRequest, scsi::kBadLun, {}, {}});
  task.unit = 0;
  Bytes bytes = standard_inquiry(task);
  bytes[0] = kNoDevice;
  reply(task, bytes, task.be(3, 2));
}

bool ScsiDevice::check_cdb(ScsiTask &task) {
  for (uint16_t i = 1; i < task.operation->bytes; i++) {
    unsigned wrong = task.cdb(i) & ~task.operation->usage[i];
    if (wrong == 0)
      continue;
    bad_field(task, i, std::bit_width(wrong) - 1);
    return false;
  }
  return true;
}

bool ScsiDevice::check_ready(ScsiTask &task) {
  if (erasing_ != 0 && task.operation->has(ScsiOp::kNotErasing)) {
    check(task, erase_sense());
    return false;
  }
  if (!task.operation->has(ScsiOp::kVolume))
    return true;
  Sense sense = not_ready();
  bool helps = sense.key == scsi::kMediumError || sense.code == scsi::kManual;
  if (helps && task.operation->handler == &ScsiDevice::erase)
    return true;
  if (sense.key != scsi::kNoSense)
    check(task, sense);
  return sense.key == scsi::kNoSense;
}

// Why the medium cannot be used now; no sense if it can.
Sense ScsiDevice::not_ready() const {
  if (!volume_.formed())
    return {scsi::kNotReady, scsi::kNotFormed, {}, {}};
  if (stopped_)
    return {scsi::kNotReady, scsi::kStopped, {}, {}};
  if (erasing_ != 0)
    return erase_sense();
  if (erase_failed_ != 0)
    return {scsi::kMediumError, erase_failed_, {}, {}};
  if (volume_.damaged())
    return {scsi::kNotReady, scsi::kManual, {}, {}};
  return {};
}

// ------------------------------------------------------------------------------ volume and steps

void ScsiDevice::submit(ScsiTask &task, Step then) {
  task.start_ns = task.ready_ns;
  task.then = then;
  if (!volume_.submit(task))
    return;
  note_moved(task);
  task.ready_ns = std::max(task.ready_ns, task.done_ns);
  (this->*then)(task);
}

void ScsiDevice::submit_each(ScsiTask &task, const Fis &h2d, Step then) {
  task.op = VolumeOp::kEach;
  task.h2d = h2d;
  submit(task, then);
}

void ScsiDevice::volume_done(VolumeRequest &request) {
  auto &task = static_cast<ScsiTask &>(request);
  note_moved(task);
  task.ready_ns = std::max({task.ready_ns, volume_.now_ns(), task.done_ns});
  // Between them the firmware was busy with others, or the member was.
  if (Journey *journey = task.command->journey) {
    journey->follow(task.before, Stage::kBridge);
    journey->follow(task.last, Stage::kBridge);
  }
  (this->*task.then)(task);
  settled_late(task);
}

void ScsiDevice::note_moved(const ScsiTask &task) {
  if (!task.moves_data())
    return;
  Moved &moved = moved_[task.op == VolumeOp::kWrite];
  if (!task.failed())
    moved.bytes += task.sectors * kBlockBytes;
  else if (task.failure == VolumeFailure::kMedium || task.failure == VolumeFailure::kFault)
    moved.failed++;
}

// Its initiator waits for it.
void ScsiDevice::settled_late(ScsiTask &task) {
  if (!task.settled)
    return;
  ScsiCommand &command = *task.command;
  release(task);
  if (initiator_ && &command != &own_command_)
    initiator_->scsi_done(command);
}

void ScsiDevice::volume_late(int64_t late_ns) {
  if (initiator_)
    initiator_->scsi_late(late_ns);
}

void ScsiDevice::cancel(ScsiCommand &command) {
  auto *task = static_cast<ScsiTask *>(command.task);
  if (!task)
    return;
  if (std::erase(waiting_, task) == 0)
    volume_.cancel(*task);
  if (task->erases)
    erase_cut();
  release(*task);
}

// --------------------------------------------------------------------------- the end of a command

void ScsiDevice::good(ScsiTask &task) {
  task.settled = true;
  task.command->status = scsi::kGood;
  task.command->finish_ns = task.ready_ns;
}

void ScsiDevice::check(ScsiTask &task, const Sense &sense) {
  task.settled = true;
  task.command->status = scsi::kCheckCondition;
  task.command->sense_bytes = sense.encode(task.command->sense, descriptors_);
  task.command->finish_ns = task.ready_ns;
}

void ScsiDevice::bad_field(ScsiTask &task, uint16_t byte, int bit) {
  check(task, {scsi::kIllegalRequest, scsi::kBadField, {}, Sense::Field{byte, bit, true}});
}

void ScsiDevice::bad_parameter(ScsiTask &task, uint16_t byte, int bit) {
  check(task, {scsi::kIllegalRequest, scsi::kBadParameter, {}, Sense::Field{byte, bit, false}});
}

// An allocation length or a buffer that is too short cuts the answer, and that is no error.
void ScsiDevice::reply(ScsiTask &task, std::span<const uint8_t> bytes, uint64_t allocated) {
  DataWindow &window = *task.command->data;
  size_t count = std::min<uint64_t>({bytes.size(), allocated, window.size()});
  if (count > 0) {
    if (!window.copy_to_guest(0, bytes.first(count)))
      return check(task, {scsi::kAbortedCommand, scsi::kDataPhase, {}, {}});
    auto length = static_cast<uint32_t>(count);
    task.ready_ns = window.reserve(DataDirection::kToGuest, task.ready_ns, length).end_ns;
  }
  good(task);
}

// The parameter list of a command. False: the command is settled.
bool ScsiDevice::fetch(ScsiTask &task, std::span<uint8_t> to) {
  DataWindow &window = *task.command->data;
  if (window.size() < to.size() || !window.copy_from_guest(0, to)) {
    check(task, {scsi::kAbortedCommand, scsi::kDataPhase, {}, {}});
    return false;
  }
  auto length = static_cast<uint32_t>(to.size());
  task.ready_ns = window.reserve(DataDirection::kFromGuest, task.ready_ns, length).end_ns;
  return true;
}

void ScsiDevice::end_volume(ScsiTask &task) {
  if (task.failed())
    return fail_volume(task);
  good(task);
}

// The first failure in order of LBA; everything below it has been done, which is what a host makes
// of the information field.
void ScsiDevice::fail_volume(ScsiTask &task) {
  check(task, sense_of(task));
}

Sense ScsiDevice::sense_of(const ScsiTask &task) {
  Sense sense;
  bool addressed =
      task.op == VolumeOp::kRead || task.op == VolumeOp::kWrite || task.op == VolumeOp::kVerify;
  if (addressed)
    sense.information = task.failed_lba;
  auto set = [&](scsi::SenseKey key, scsi::Code code) {
    sense.key = key;
    sense.code = code;
  };
  switch (task.failure) {
    case VolumeFailure::kMedium:
      set(scsi::kMediumError, scsi::kReadError);
      break;
    case VolumeFailure::kFault:
      set(scsi::kHardwareError, scsi::kTargetFailure);
      break;
    case VolumeFailure::kAddress:
      set(scsi::kIllegalRequest, scsi::kOutOfRange);
      break;
    case VolumeFailure::kCrc:
      set(scsi::kAbortedCommand, scsi::kCrc);
      break;
    case VolumeFailure::kLocked:
      set(scsi::kDataProtect, scsi::kAccessDenied);
      break;
    case VolumeFailure::kMissing:
      set(scsi::kHardwareError, scsi::kCommunication);
      break;
    case VolumeFailure::kMap:
      set(scsi::kNotReady, scsi::kManual);
      break;
    case VolumeFailure::kData:
      set(scsi::kAbortedCommand, scsi::kDataPhase);
      break;
    case VolumeFailure::kAborted:
    case VolumeFailure::kNone:
      set(scsi::kAbortedCommand, scsi::kNothing);
      break;
  }
  return sense;
}

// ---------------------------------------------------------------------------------- reset, stream

void ScsiDevice::reset(ScsiReset kind) {
  write_cache_ = true;
  descriptors_ = false;
  if (kind == ScsiReset::kPowerOn || kind == ScsiReset::kHardReset)
    cut_short();
  switch (kind) {
    case ScsiReset::kPowerOn:
      attention_ = scsi::kPowerOn;
      stopped_ = false;
      scratchpad_ = {};
      moved_ = {};
      break;
    case ScsiReset::kHardReset:
      attention_ = scsi::kBusReset;
      stopped_ = false;
      break;
    case ScsiReset::kNexusLoss:
      attention_ = scsi::kNexusLoss;
      break;
    case ScsiReset::kLunReset:
      attention_ = scsi::kLunReset;
      break;
  }
  if (kind != ScsiReset::kPowerOn)
    volume_.reset_links();
}

void ScsiDevice::save(StreamWriter &out) const {
  out.section("SCSI");
  out.put(attention_);
  out.put(write_cache_);
  out.put(descriptors_);
  out.put(stopped_);
  out.put(erase_failed_);
  out.put(deferred_);
  out.put(own_command_.task || resumes_ ? erasing_ : uint16_t{0});
  for (const Moved &moved : moved_) {
    out.put(moved.bytes);
    out.put(moved.failed);
  }
  out.put_bytes(scratchpad_);
}

void ScsiDevice::load(StreamReader &in) {
  in.section("SCSI");
  in.get(attention_);
  in.get(write_cache_);
  in.get(descriptors_);
  in.get(stopped_);
  in.get(erase_failed_);
  in.get(deferred_);
  in.get(erasing_);
  if (erasing_ != 0 && erasing_ != scsi::kFormatting && erasing_ != scsi::kSanitizing) {
    erasing_ = 0;
    in.fail();
  }
  resumes_ = erasing_ != 0;
  for (Moved &moved : moved_) {
    in.get(moved.bytes);
    in.get(moved.failed);
  }
  in.get_bytes(scratchpad_);
}

}  // namespace revodrive
