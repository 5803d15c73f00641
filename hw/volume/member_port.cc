// SPDX-License-Identifier: GPL-2.0-or-later
//
// From the queue of a member to the drive and back.
#include "volume/member_port.h"

#include <algorithm>

#include "revodrive/ata.h"

namespace revodrive {

namespace {

constexpr uint8_t kTrimFeature = 0x01;  // of DATA SET MANAGEMENT
constexpr size_t kTrimRanges = 64;

bool queued(VolumeOp op) {
  return op == VolumeOp::kRead || op == VolumeOp::kWrite;
}

Fis make_h2d(uint8_t opcode, uint64_t lba, uint16_t features, uint16_t count, uint8_t device) {
  Fis fis{};
  fis[0] = 0x27;
  fis[1] = 0x80;
  fis[2] = opcode;
  fis[3] = static_cast<uint8_t>(features);
  fis[11] = static_cast<uint8_t>(features >> 8);
  for (unsigned i = 0; i < 3; i++) {
    fis[4 + i] = static_cast<uint8_t>(lba >> (8 * i));
    fis[8 + i] = static_cast<uint8_t>(lba >> (24 + 8 * i));
  }
  fis[7] = device;
  fis[12] = static_cast<uint8_t>(count);
  fis[13] = static_cast<uint8_t>(count >> 8);
  return fis;
}

// Security and the host protected area: what a member is may be another thing afterwards.
bool changes_identity(uint8_t opcode) {
  return opcode == ata::kSecuritySetPassword || opcode == ata::kSecurityUnlock ||
         opcode == ata::kSecurityEraseUnit || opcode == ata::kSecurityDisablePassword ||
         opcode == ata::kSetMax || opcode == ata::kSetMaxAddressExt;
}

uint64_t fis_lba(const Fis &fis) {
  uint64_t lba = 0;
  for (unsigned i = 0; i < 3; i++)
    lba |= uint64_t{fis[4 + i]} << (8 * i) | uint64_t{fis[8 + i]} << (24 + 8 * i);
  return lba;
}

}  // namespace

MemberPort::MemberPort(MemberPortOwner &owner, unsigned number, HostPort &host, EventQueue &queue,
                       bool timing)
    : owner_(owner),
      number_(number),
      host_(host),
      timing_(timing),
      mend_event_(
          queue,
          [](void *opaque) {
            auto *port = static_cast<MemberPort *>(opaque);
            port->mend_link(port->lost_by_);
          },
          this) {
  for (uint8_t tag = 0; tag <= kTags; tag++) {
    commands_[tag] = std::make_unique<MemberCommand>(*this, tag, queue, due);
    commands_[tag]->ata.owner = commands_[tag].get();
  }
  commands_[kTags]->buffer = std::make_unique<BufferWindow>();
  commands_[kTags]->buffer->bytes.resize(RD_SECTOR_BYTES);
}

// Whoever talks to one drive alone needs no whole volume.
bool MemberPort::usable(const VolumeRequest &request) const {
  if (request.op == VolumeOp::kMember)
    return target_ && state_ != MemberState::kDown;
  return state_ == MemberState::kReady || (state_ == MemberState::kLocked && !request.addressed());
}

uint64_t MemberPort::next_lba(const VolumeRequest &request) {
  return request.sectors > 0 ? owner_.placement().next_lba(request, number_) : 0;
}

void MemberPort::fail_share(VolumeRequest &request) {
  uint64_t lba = next_lba(request);
  bool locked = state_ == MemberState::kLocked;
  request.note_failure(locked ? VolumeFailure::kLocked : VolumeFailure::kMissing, lba);
  request.next[number_] = request.end[number_];
}

void MemberPort::enqueue(VolumeRequest &request) {
  if (!usable(request))
    return fail_share(request);
  request.queued = static_cast<uint8_t>(request.queued | 1u << number_);
  request.link[number_] = nullptr;
  if (tail_)
    tail_->link[number_] = &request;
  else
    head_ = &request;
  tail_ = &request;
  pump();
}

void MemberPort::pop() {
  VolumeRequest &request = *head_;
  head_ = request.link[number_];
  if (!head_)
    tail_ = nullptr;
  request.queued = static_cast<uint8_t>(request.queued & ~(1u << number_));
}

bool MemberPort::idle() const {
  return std::all_of(commands_.begin(), commands_.end(),
                     [](const auto &it) { return it->state == State::kFree; });
}

MemberCommand *MemberPort::free_tag() {
  for (uint8_t tag = 0; tag < kTags; tag++) {
    if (commands_[tag]->state == State::kFree)
      return commands_[tag].get();
  }
  return nullptr;
}

void MemberPort::pump() {
  while (head_ && send_next()) {
  }
}

// False: the first in the queue has to wait.
bool MemberPort::send_next() {
  if (quiet_ || recovering_ || commands_[kTags]->state != State::kFree)
    return false;
  VolumeRequest &request = *head_;
  bool with_tag = queued(request.op);
  if (!with_tag && !idle())
    return false;
  MemberCommand *command = with_tag ? free_tag() : commands_[kTags].get();
  if (!command)
    return false;
  start(*command, request);
  return true;
}

void MemberPort::start(MemberCommand &command, VolumeRequest &request) {
  command.request = &request;
  command.retries = 0;
  if (command.ata.fault.touched())
    command.ata.fault.clear();
  request.running++;
  if (queued(request.op))
    fill_queued(command, request);
  else
    fill_alone(command, request);
  if (request.next[number_] == request.end[number_])
    pop();
  counters_.commands++;
  target_->expect(command.ata.h2d);
  send(command, owner_.schedule(std::max(request.start_ns, host_.now_ns())));
}

void MemberPort::fill_queued(MemberCommand &command, VolumeRequest &request) {
  command.run = owner_.placement().take(request, number_);
  const MemberRun &run = command.run;
  bool read = request.op == VolumeOp::kRead;
  uint8_t fua = request.stable && !read ? ata::kDeviceFua : 0;
  command.ata.h2d =
      make_h2d(read ? ata::kReadFpdmaQueued : ata::kWriteFpdmaQueued, run.lba,
               static_cast<uint16_t>(run.sectors), static_cast<uint16_t>(command.tag << 3),
               static_cast<uint8_t>(ata::kDeviceLba | fua));
  command.ata.data = run.data;
  if (run.data)
    return;
  uint64_t offset = run.volume_lba - request.lba;
  command.slice.open(request.map, static_cast<uint32_t>(offset * RD_SECTOR_BYTES),
                     run.sectors * RD_SECTOR_BYTES);
  command.ata.data = &command.slice;
}

void MemberPort::fill_alone(MemberCommand &command, VolumeRequest &request) {
  command.ata.data = command.buffer.get();
  if (request.op == VolumeOp::kTrim)
    return fill_trim(command, request);
  if (request.op == VolumeOp::kVerify) {
    command.run = owner_.placement().take(request, number_);
    command.ata.h2d = make_h2d(ata::kReadVerifyExt, command.run.lba, 0,
                               static_cast<uint16_t>(command.run.sectors), ata::kDeviceLba);
    return;
  }
  command.run = {};
  request.next[number_] = request.end[number_];
  command.ata.h2d = request.h2d;
  if (!request.data)
    return;
  command.slice.open(request.map, request.data_apart ? number_ * request.data_bytes : 0,
                     request.data_bytes);
  command.ata.data = &command.slice;
}

void MemberPort::fill_trim(MemberCommand &command, VolumeRequest &request) {
  std::vector<uint8_t> &bytes = command.buffer->bytes;
  std::fill(bytes.begin(), bytes.end(), uint8_t{0});
  for (size_t i = 0; i < kTrimRanges && request.next[number_] != request.end[number_]; i++) {
    MemberRun run = owner_.placement().take(request, number_);
    if (i == 0)
      command.run = run;
    uint64_t raw = run.lba | uint64_t{run.sectors} << 48;
    for (size_t byte = 0; byte < 8; byte++)
      bytes[8 * i + byte] = static_cast<uint8_t>(raw >> (8 * byte));
  }
  command.ata.h2d = make_h2d(ata::kDataSetManagement, 0, kTrimFeature, 1, ata::kDeviceLba);
}

void MemberPort::send(MemberCommand &command, int64_t at_ns) {
  command.state = State::kRunning;
  command.unsent = false;
  if (target_->faults() && rests_at_fetch(command))
    return;
  execute(command, at_ns);
}

void MemberPort::execute(MemberCommand &command, int64_t at_ns) {
  command.ata.issue_ns = at_ns;
  command.ata.failed = false;
  command.ata.journey.start(at_ns);
  target_->execute(command.ata);
  command.due_ns = command.ata.finish_ns;
  if (command.due_ns == RD_NEVER)
    command.state = State::kResting;
  else
    command.event.arm(command.due_ns);
}

void MemberPort::due(void *opaque) {
  MemberCommand &command = *static_cast<MemberCommand *>(opaque);
  MemberPort &port = command.port;
  if (command.state == State::kResting)
    return port.go_on(command);
  if (command.unsent)
    return port.settle(command);
  if (command.ata.media_pending == 0)
    return port.finish(command);
  command.state = State::kWaiting;
  // A timer that fired late is not the backend.
  command.due_ns = std::max(command.due_ns, port.host_.now_ns());
  // A host that can wait for its backend ends the command from inside this call.
  port.host_.block_wait(port.number_);
}

void MemberPort::media_ready(AtaCommand &ata) {
  MemberCommand &command = *static_cast<MemberCommand *>(ata.owner);
  if (command.canceling || command.state != State::kWaiting)
    return;
  int64_t late_ns = host_.now_ns() - command.due_ns;
  if (timing_ && late_ns > 0)
    owner_.member_late(late_ns);
  finish(command);
}

void MemberPort::finish(MemberCommand &command) {
  finishing_++;
  target_->finish(command.ata);
  finishing_--;
  if (command.ata.finish_ns == RD_NEVER) {
    command.state = State::kResting;
  } else if (command.ata.fault.stop == FaultAction::kNone || !rests_at_completion(command)) {
    settle(command);
  }
  if (recovering_)
    read_log();
}

// The drive is done with it.
void MemberPort::settle(MemberCommand &command) {
  command.event.cancel();
  if (!command.request)
    return log_read(command);
  VolumeRequest &request = *command.request;
  const Fis &d2h = command.ata.d2h;
  if (!request.addressed())
    request.answers[number_] = d2h;
  if (!command.ata.failed) {
    if (!request.addressed() && changes_identity(request.h2d[2]))
      inspect();
    return end(command, VolumeFailure::kNone, 0);
  }
  if (command.ata.data_short)
    return end(command, VolumeFailure::kData, command.run.lba);
  if (queued(request.op) && !command.unsent) {
    command.state = State::kStopped;
    return recover();
  }
  end(command, failure_of(d2h[2], d2h[3]), fis_lba(d2h));
}

// `lba` of the member.
void MemberPort::end(MemberCommand &command, VolumeFailure failure, uint64_t lba) {
  VolumeRequest &request = *command.request;
  command.state = State::kFree;
  command.request = nullptr;
  request.running--;
  request.last = command.ata.journey;
  if (failure != VolumeFailure::kNone) {
    counters_.failed++;
    request.note_failure(failure, request.sectors > 0 ? volume_lba(command, lba) : 0);
  }
  owner_.part_done(request);
  pump();
}

// A drive that names no sector of the command means its first one.
uint64_t MemberPort::volume_lba(const MemberCommand &command, uint64_t lba) {
  const MemberRun &run = command.run;
  bool inside = lba >= run.lba && lba - run.lba < run.sectors;
  return owner_.placement().volume_lba(run, number_, inside ? lba : run.lba);
}

VolumeFailure MemberPort::failure_of(uint8_t status, uint8_t error) const {
  if (state_ == MemberState::kLocked)
    return VolumeFailure::kLocked;
  if (error & ata::kInterfaceCrc)
    return VolumeFailure::kCrc;
  if (error & ata::kUncorrectable)
    return VolumeFailure::kMedium;
  if (error & ata::kIdNotFound)
    return VolumeFailure::kAddress;
  return status & ata::kStatusFault ? VolumeFailure::kFault : VolumeFailure::kAborted;
}

// Takes the command from the drive, or from its rest; nothing of it runs then.
void MemberPort::withdraw(MemberCommand &command) {
  command.event.cancel();
  if (command.ata.target) {
    command.canceling = true;
    target_->cancel(command.ata);
    command.canceling = false;
  }
  command.state = State::kFree;
  command.request = nullptr;
}

void MemberPort::cancel(VolumeRequest &request) {
  for (auto &command : commands_) {
    if (command->request == &request && command->state != State::kFree)
      withdraw(*command);
  }
  VolumeRequest *before = nullptr;
  for (VolumeRequest *it = head_; it; before = it, it = it->link[number_]) {
    if (it != &request)
      continue;
    (before ? before->link[number_] : head_) = it->link[number_];
    if (tail_ == it)
      tail_ = before;
    break;
  }
  request.queued = static_cast<uint8_t>(request.queued & ~(1u << number_));
  if (recovering_ && commands_[kTags]->state == State::kResting)
    reset_link();  // the drive does not even say what is wrong
  else if (recovering_)
    read_log();
  pump();
}

uint16_t MemberPort::progress(const VolumeRequest &request) const {
  if (request.queued & 1u << number_)
    return 0;
  int64_t least = UINT16_MAX;
  for (const auto &command : commands_) {
    if (command->state == State::kFree || command->request != &request)
      continue;
    int64_t whole_ns = command->due_ns - command->ata.issue_ns;
    int64_t passed_ns = std::max<int64_t>(host_.now_ns() - command->ata.issue_ns, 0);
    double share =
        whole_ns > 0 ? static_cast<double>(passed_ns) / static_cast<double>(whole_ns) : 1;
    least = std::min(least, static_cast<int64_t>(std::min(share, 1.0) * UINT16_MAX));
  }
  return static_cast<uint16_t>(least);
}

void MemberPort::drop_all() {
  quiet_ = true;
  for (auto &command : commands_) {
    if (command->state != State::kFree)
      withdraw(*command);
  }
  head_ = tail_ = nullptr;
  recovering_ = false;
  quiet_ = false;
}

}  // namespace revodrive
