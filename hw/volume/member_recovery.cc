// SPDX-License-Identifier: GPL-2.0-or-later
//
// A member in bad days: its queue stops, fault rules hold commands, its link is lost, the drive is
// pulled out and another one comes.
#include <algorithm>
#include <vector>

#include "revodrive/ata.h"
#include "volume/member_port.h"

namespace revodrive {

namespace {

constexpr uint8_t kNotQueued = 0x80;

uint16_t word(const MemberPort::Identity &identity, size_t number) {
  return static_cast<uint16_t>(identity[2 * number] | identity[2 * number + 1] << 8);
}

uint64_t sectors_of(const MemberPort::Identity &identity) {
  uint64_t sectors = 0;
  for (size_t i = 0; i < 4; i++)
    sectors |= uint64_t{word(identity, 100 + i)} << (16 * i);
  return sectors;
}

constexpr size_t kSecurityWord = 128;  // bit 2: locked
constexpr uint16_t kSecurityLocked = 1 << 2;

}  // namespace

// ------------------------------------------------------------------------------- links and drives

void MemberPort::plug(AtaTarget &target) {
  target_ = &target;
  target.connect(this);
  target.reset(LinkReset::kComreset);
  inspect();
}

void MemberPort::unplug() {
  if (!target_)
    return;
  counters_.losses++;
  state_ = MemberState::kMissing;
  fail_everything();
  mend_event_.cancel();
  lost_by_ = 0;
  identified_ = false;
  target_->connect(nullptr);
  target_ = nullptr;
}

// IDENTIFY DEVICE, answered at once: the firmware asks before anyone else may.
void MemberPort::inspect() {
  if (!target_ || lost_by_ != 0)
    return;
  MemberCommand &command = *commands_[kTags];
  AtaCommand &ata = command.ata;
  ata.fault.clear();
  ata.h2d = {0x27, 0x80, ata::kIdentifyDevice};
  ata.data = command.buffer.get();
  ata.issue_ns = host_.now_ns();
  ata.journey.start(ata.issue_ns);
  command.canceling = true;  // nobody is to be told
  target_->execute(ata);
  bool answered = ata.finish_ns != RD_NEVER;
  if (answered)
    target_->finish(ata);
  else
    target_->cancel(ata);
  command.canceling = false;
  ata.fault.clear();
  identified_ = answered && !ata.failed;
  std::copy_n(command.buffer->bytes.begin(), identity_.size(), identity_.begin());
  if (!identified_ || !owner_.is_ours(number_, identity_))
    state_ = MemberState::kForeign;
  else if (sectors_of(identity_) < owner_.placement().member_sectors())
    state_ = MemberState::kSmall;
  else if (word(identity_, kSecurityWord) & kSecurityLocked)
    state_ = MemberState::kLocked;
  else
    state_ = MemberState::kReady;
}

// Ends all that is with the drive or waits for it. Nothing new is sent meanwhile.
void MemberPort::fail_everything() {
  quiet_ = true;
  std::vector<VolumeRequest *> touched;
  // Held, so that none ends before all is told: taking back one command may end others.
  auto hold = [&](VolumeRequest *request) {
    touched.push_back(request);
    request->running++;
  };
  for (auto &command : commands_) {
    VolumeRequest *request = command->request;
    if (command->state == State::kFree)
      continue;
    uint64_t lba = request && request->sectors > 0 ? volume_lba(*command, command->run.lba) : 0;
    if (request && std::find(touched.begin(), touched.end(), request) == touched.end())
      hold(request);
    withdraw(*command);
    if (!request)
      continue;
    request->running--;
    request->note_failure(VolumeFailure::kMissing, lba);
  }
  size_t flying = touched.size();
  while (head_) {
    auto end = touched.begin() + static_cast<ptrdiff_t>(flying);
    if (std::find(touched.begin(), end, head_) == end)
      hold(head_);  // each is in the queue once
    fail_share(*head_);
    pop();
  }
  recovering_ = false;
  quiet_ = false;
  for (VolumeRequest *request : touched) {
    request->running--;
    owner_.part_done(*request);
  }
}

void MemberPort::lose_link(uint32_t rule, int64_t for_ns) {
  if (!target_ || lost_by_ != 0)
    return;
  lost_by_ = rule;
  counters_.losses++;
  state_ = MemberState::kDown;
  fail_everything();
  if (for_ns != RD_NEVER)
    mend_event_.arm(host_.now_ns() + for_ns);
}

void MemberPort::mend_link(uint32_t rule) {
  if (lost_by_ == 0 || lost_by_ != rule)
    return;
  mend_event_.cancel();
  lost_by_ = 0;
  target_->reset(LinkReset::kComreset);
  inspect();
}

// ----------------------------------------------------------------------------------- queue errors

void MemberPort::complete_now(AtaCommand &ata) {
  MemberCommand &command = *static_cast<MemberCommand *>(ata.owner);
  if (command.canceling)
    return;
  command.event.cancel();
  command.state = State::kStopped;
  recover();
}

void MemberPort::recover() {
  recovering_ = true;
  read_log();
}

// When the drive has given back everything it says whom to blame.
void MemberPort::read_log() {
  bool busy = finishing_ > 0 || quiet_ || commands_[kTags]->state != State::kFree ||
              std::any_of(commands_.begin(), commands_.end(), [](const auto &it) {
                return it->ata.target != nullptr && it->state != State::kFree;
              });
  if (busy)
    return;
  MemberCommand &command = *commands_[kTags];
  command.request = nullptr;
  command.ata.h2d = {0x27, 0x80, ata::kReadLogExt, 0, ata::kLogQueuedError, 0, 0, 0x40};
  command.ata.h2d[12] = 1;
  command.ata.data = command.buffer.get();
  if (command.ata.fault.touched())
    command.ata.fault.clear();
  send(command, owner_.schedule(host_.now_ns()));
}

void MemberPort::log_read(MemberCommand &log) {
  log.state = State::kFree;
  recovering_ = false;
  const auto &page = log.buffer->bytes;
  bool known = !log.ata.failed && (page[0] & kNotQueued) == 0;
  uint8_t blamed = known ? page[0] & 31 : kTags;
  uint64_t lba = 0;
  for (size_t i = 0; i < 3; i++)
    lba |= uint64_t{page[4 + i]} << (8 * i) | uint64_t{page[8 + i]} << (24 + 8 * i);
  send_stopped(blamed, known ? failure_of(page[2], page[3]) : VolumeFailure::kAborted, lba);
}

// Those that fell with the queue go to the drive again, but for the one to blame.
void MemberPort::send_stopped(uint8_t blamed, VolumeFailure failure, uint64_t lba) {
  std::vector<MemberCommand *> stopped;
  for (auto &command : commands_) {
    if (command->state == State::kStopped)
      stopped.push_back(command.get());
  }
  quiet_ = true;  // the stopped ones go before anything new
  for (MemberCommand *command : stopped) {
    if (command->state != State::kStopped)
      continue;  // the end of another has cancelled it
    if (command->tag == blamed || ++command->retries > kMaxRetries) {
      end(*command, failure, lba);
      continue;
    }
    counters_.retried++;
    command->ata.fault.clear();
    send(*command, owner_.schedule(host_.now_ns()));
  }
  quiet_ = false;
  if (recovering_)
    read_log();
  pump();
}

// The last resort of a host whose commands do not come back: all members that have nothing to do.
void MemberPort::reset_link() {
  MemberCommand &log = *commands_[kTags];
  bool stuck = recovering_ && log.state == State::kResting;
  if (!target_ || lost_by_ != 0 || (!stuck && (!idle() || head_)))
    return;
  if (stuck)
    withdraw(log);
  recovering_ = false;
  target_->reset(LinkReset::kComreset);
  inspect();
  send_stopped(kTags, VolumeFailure::kAborted, 0);
}

// ------------------------------------------------------------------------------------ fault rules

// True: nothing more is to be done with the command now.
bool MemberPort::rests_at_fetch(MemberCommand &command) {
  FaultHit hit = target_->faults()->ask(FaultStage::kFetch, command.ata);
  switch (hit.action) {
    case FaultAction::kHold:
    case FaultAction::kDrop:
      rest(command, RD_NEVER);
      return true;
    case FaultAction::kDelay:
      rest(command, hit.delay_ns);
      return true;
    case FaultAction::kLinkDown:
      lose_link(hit.rule, hit.delay_ns == 0 ? RD_NEVER : hit.delay_ns);  // ends this one, too
      return true;
    case FaultAction::kFail:
      command.unsent = true;
      command.ata.failed = true;
      command.ata.data_short = false;
      command.ata.media_pending = 0;
      command.ata.d2h = {0x34, 0x40, 0x41, 0x04};
      command.ata.d2h[2] |= command.ata.fault.error.status;
      command.ata.d2h[3] = command.ata.fault.error.error;
      command.event.arm(host_.now_ns());
      return true;
    default:
      return false;
  }
}

// The drive is done with the command, and a rule has stopped it there.
bool MemberPort::rests_at_completion(MemberCommand &command) {
  FaultState &fault = command.ata.fault;
  if (fault.stop != FaultAction::kLinkDown) {
    rest(command, fault.stop == FaultAction::kDelay ? fault.delay_ns : RD_NEVER);
    return true;
  }
  lose_link(fault.rule, fault.delay_ns == 0 ? RD_NEVER : fault.delay_ns);
  return command.state == State::kFree;
}

void MemberPort::rest(MemberCommand &command, int64_t delay_ns) {
  command.state = State::kResting;
  command.event.cancel();
  if (delay_ns != RD_NEVER)
    command.event.arm(host_.now_ns() + delay_ns);
}

// From where the rule has stopped it.
void MemberPort::go_on(MemberCommand &command) {
  AtaCommand &ata = command.ata;
  command.event.cancel();
  command.state = State::kRunning;
  if (ata.fault.stage == FaultStage::kCompletion) {
    ata.fault.stop = FaultAction::kNone;
    ata.finish_ns = host_.now_ns();
    return ata.target ? finish(command) : settle(command);
  }
  execute(command, host_.now_ns());
}

void MemberPort::release(const FaultChoice &choice) {
  mend_link(choice.rule);
  std::vector<MemberCommand *> chosen;
  auto fits = [&](const MemberCommand &command) {
    return command.state == State::kResting && choice.fits(command.ata);
  };
  for (auto &command : commands_) {
    if (fits(*command))
      chosen.push_back(command.get());
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const auto *a, const auto *b) { return a->ata.fault.order < b->ata.fault.order; });
  if (chosen.size() > choice.count)
    chosen.resize(choice.count);
  for (MemberCommand *command : chosen) {
    if (fits(*command))  // one that went on may have ended others
      go_on(*command);
  }
}

unsigned MemberPort::resting(uint32_t rule) const {
  return static_cast<unsigned>(
      std::count_if(commands_.begin(), commands_.end(), [&](const auto &command) {
        return command->state == State::kResting && command->ata.fault.rule == rule;
      }));
}

// Commands are not saved: the bridge delivers the request anew.
void MemberPort::save(StreamWriter &out) const {
  out.put(target_ != nullptr);
  out.put(state_);
  out.put(lost_by_);
  out.put(mend_event_.at_ns());
  out.put(mend_event_.order());
  out.put(counters_.commands);
  out.put(counters_.failed);
  out.put(counters_.retried);
  out.put(counters_.losses);
}

void MemberPort::load(StreamReader &in) {
  if (in.get<bool>() != (target_ != nullptr))
    in.fail();
  auto state = in.get<MemberState>();
  auto lost_by = in.get<uint32_t>();
  auto mend_ns = in.get<int64_t>();
  auto mend_order = in.get<uint64_t>();
  in.get(counters_.commands);
  in.get(counters_.failed);
  in.get(counters_.retried);
  in.get(counters_.losses);
  bool down = state == MemberState::kDown;
  if (state > MemberState::kLocked || down != (lost_by != 0) || (down && !target_) ||
      (mend_ns != RD_NEVER && !down))
    in.fail();
  mend_event_.cancel();
  if (!in.ok())
    return;
  lost_by_ = lost_by;
  state_ = target_ ? state : MemberState::kMissing;
  if (mend_ns != RD_NEVER)
    mend_event_.restore(mend_ns, mend_order);
}

}  // namespace revodrive
