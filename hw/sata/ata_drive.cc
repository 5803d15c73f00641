// SPDX-License-Identifier: GPL-2.0-or-later
//
// The life of a command, from execute() to its end, and the drive as a whole: reset, save, load,
// query.
#include "revodrive/ata_drive.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "sata/drive.h"

namespace revodrive {

namespace {

constexpr int64_t kLatestNs = INT64_MAX / 4;  // of a loaded time

}  // namespace

std::unique_ptr<AtaDrive> AtaDrive::create(const DriveIdentity &identity, const SataProfile &sata,
                                           const FlashProfile &flash, Media &media, bool timing) {
  return std::make_unique<Drive>(identity, sata, flash, media, timing);
}

Drive::Drive(const DriveIdentity &identity, const SataProfile &sata, const FlashProfile &flash,
             Media &media, bool timing)
    : identity_(identity),
      sata_generation_(sata.speed),
      media_(media),
      wire_(sata, timing),
      flash_(flash, timing) {
}

Fis Drive::signature() const {
  return make_d2h(ata::kGood, ata::kDiagnosticsPassed, {.lba = 1, .count = 1});
}

// A drive asleep is woken by any command: hosts that know sleep send a reset first, but behind this
// bridge most resets never reach the drive, and it must not be lost for that.
void Drive::execute(AtaCommand &command) {
  executing_++;
  command.target = this;
  command.failed = false;
  command.data_short = false;
  command.media_error = 0;
  command.mapped = false;
  command.lba = 0;
  command.sectors = 0;
  // Holds the end back until everything is decided, also when a transfer ends from inside submit().
  command.media_pending = 1;

  Request request;
  request.task = TaskFile::parse(command.h2d);
  request.info = command_info(request.task.opcode);
  request.ready_ns = flash_.command(wire_.command(command.issue_ns));
  if (power_ == PowerMode::kSleep)
    power_ = PowerMode::kStandby;
  if (!request.task.valid) {
    request.info.protocol = Protocol::kNonData;
    unsupported(command, request);
  } else if (is_queued(request.info.protocol)) {
    (this->*request.info.handler)(command, request);
  } else if (queue_.live()) {
    interrupt_queue(command, request);
  } else {
    queue_.resume();
    (this->*request.info.handler)(command, request);
  }

  if (--command.media_pending == 0)
    unmap(command, command.media_error == 0);
  executing_--;
}

void Drive::succeed(AtaCommand &command, const Request &request, int64_t at_ns, uint64_t lba,
                    uint16_t count) {
  command.d2h =
      make_d2h(ata::kGood, 0, {.lba = lba, .count = count, .device = request.task.device});
  command.finish_ns = wire_.end(request.info.protocol, at_ns);
}

void Drive::fail(AtaCommand &command, const Request &request, uint8_t error, uint64_t lba) {
  command.failed = true;
  Outputs outputs{.lba = lba, .count = request.task.count, .device = request.task.device};
  if (is_queued(request.info.protocol)) {
    if (!queue_.stopped())
      queue_.stop({true, request.task.tag(), ata::kQueueFailed, error, outputs});
    command.d2h = make_d2h(ata::kQueueFailed, ata::kAbort);
  } else {
    command.d2h = make_d2h(ata::kFailed, error, outputs);
  }
  command.finish_ns = wire_.error(request.ready_ns);
}

void Drive::fail_short(AtaCommand &command, const Request &request) {
  command.data_short = true;
  fail(command, request, ata::kAbort);
}

void Drive::submit(AtaCommand &command, rd_block_op op, SectorRange range,
                   std::span<const rd_iov> iov) {
  command.media_pending++;
  media_.submit(op, range.lba * ata::kSectorBytes, uint64_t{range.sectors} * ata::kSectorBytes, iov,
                command);
}

// One block of small data, ready when the command is decoded.
void Drive::reply(AtaCommand &command, const Request &request, const Page &page) {
  if (command.data->size() < ata::kSectorBytes || !command.data->copy_to_guest(0, page.bytes()))
    return fail_short(command, request);
  Span ready{request.ready_ns, request.ready_ns};
  int64_t sent_ns =
      wire_.send(*command.data, request.info.protocol, ata::kSectorBytes, ready, ata::kSectorBytes);
  succeed(command, request, sent_ns);
}

void Drive::unmap(AtaCommand &command, bool done) {
  if (!command.mapped)
    return;
  command.mapped = false;
  command.data->unmap(done);
}

void Drive::media_done(AtaCommand &command, int error) {
  assert(command.media_pending > 0);
  if (command.media_error == 0)
    command.media_error = error;
  if (--command.media_pending > 0)
    return;
  bool canceled = &command == cancelling_;
  bool aborted = queue_.aborted(command);
  unmap(command, command.media_error == 0 && !aborted && !canceled);
  if (canceled || !initiator_)
    return;
  if (aborted && executing_ == 0)
    return hand_back_aborted();
  initiator_->media_ready(command);
}

void Drive::finish(AtaCommand &command) {
  settle(command);
  hand_back_aborted();
}

// Leaves d2h and failed as the initiator shall see them; the drive then forgets the command.
void Drive::settle(AtaCommand &command) {
  assert(command.media_pending == 0);
  bool aborted = queue_.aborted(command);
  queue_.remove(command);
  if (aborted) {
    command.failed = true;
    command.d2h = make_d2h(ata::kQueueFailed, ata::kAbort);
  } else if (!command.failed && command.media_error != 0) {
    settle_media_error(command);
  }
  if (command.failed && (aborted || command.media_error == 0 || command.media_error == -ECANCELED))
    counters_[kAborted]++;
  command.target = nullptr;
}

// The backend's errno as the ATA error a drive with that fault would report.
void Drive::settle_media_error(AtaCommand &command) {
  TaskFile task = TaskFile::parse(command.h2d);
  Protocol protocol = command_info(task.opcode).protocol;
  bool read = protocol == Protocol::kQueuedIn || protocol == Protocol::kDmaIn ||
              protocol == Protocol::kPioIn;
  bool canceled = command.media_error == -ECANCELED;
  // TRIM is a hint: a backend that knows no discard has done no harm.
  if (task.opcode == ata::kDataSetManagement &&
      (command.media_error == -ENOTSUP || command.media_error == -EOPNOTSUPP))
    return;
  if (!canceled)
    counters_[kMediaErrors]++;
  uint8_t error = read && !canceled ? ata::kUncorrectable : ata::kAbort;
  uint8_t fault = read || canceled ? 0 : ata::kStatusFault;
  Outputs outputs{.lba = command.lba, .count = task.count, .device = task.device};
  command.failed = true;
  if (!is_queued(protocol)) {
    command.d2h = make_d2h(ata::kFailed | fault, error, outputs);
    return;
  }
  if (!queue_.stopped())
    queue_.stop(
        {true, task.tag(), static_cast<uint8_t>(ata::kQueueFailed | fault), error, outputs});
  // Not the real error: libata applies this one to every command of the queue.
  command.d2h = make_d2h(ata::kQueueFailed, ata::kAbort);
}

// After an error: the other queued commands, as far as their transfers have ended. Those that still
// run follow from media_done(). Inside execute() nothing may complete; what is skipped there is
// settled by the finish() it gets anyway.
void Drive::hand_back_aborted() {
  if (executing_ > 0 || !initiator_)
    return;
  while (AtaCommand *command = queue_.idle_aborted()) {
    settle(*command);
    initiator_->complete_now(*command);
  }
}

void Drive::cancel(AtaCommand &command) {
  const AtaCommand *outer = cancelling_;
  cancelling_ = &command;
  queue_.remove(command);
  if (command.media_pending > 0)
    media_.drain();
  assert(command.media_pending == 0);
  unmap(command, false);
  command.target = nullptr;
  cancelling_ = outer;
}

void Drive::reset(LinkReset kind) {
  queue_.reset();
  wire_.clear();
  power_ = PowerMode::kActive;
  if (kind == LinkReset::kPowerOn) {
    settings_ = {};
    security_frozen_ = false;
    comresets_ = 0;
    smart_.power_cycle();
    flash_.power_cycle();
    return;
  }
  counters_[kLinkResets]++;
  comresets_ = static_cast<uint16_t>(std::min(comresets_ + 1, 0xFFFF));
  if (!settings_.preserved)
    settings_ = {};
}

void Drive::save_command(const AtaCommand &command, StreamWriter &out) const {
  out.section("CMD ");
  out.put(command.finish_ns);
  out.put(command.failed);
  out.put(command.data_short);
  out.put(static_cast<int32_t>(command.media_error));
  out.put(command.lba);
  out.put(command.sectors);
  out.put(queue_.holds(command));
  out.put(queue_.aborted(command));
}

// Only commands whose transfers have ended are saved this way; the others are executed anew.
void Drive::load_command(AtaCommand &command, StreamReader &in) {
  in.section("CMD ");
  in.get(command.finish_ns);
  in.get(command.failed);
  in.get(command.data_short);
  command.media_error = in.get<int32_t>();
  in.get(command.lba);
  in.get(command.sectors);
  bool queued = in.get<bool>();
  bool aborted = in.get<bool>();
  command.media_pending = 0;
  command.mapped = false;
  TaskFile task = TaskFile::parse(command.h2d);
  bool sane = command.finish_ns >= 0 && command.finish_ns <= kLatestNs &&
              command.media_error <= 0 && command.lba <= media_.sectors();
  if (queued)
    sane &= is_queued(command_info(task.opcode).protocol) && !queue_.busy(task.tag());
  else
    sane &= !aborted;
  if (!sane)
    in.fail();
  if (!in.ok())
    return;
  command.target = this;
  if (queued)
    queue_.add(task.tag(), command);
  if (aborted)
    queue_.mark_aborted(task.tag());
}

void Drive::query(const Visitor &visit) const {
  static constexpr std::array<std::string_view, kCounters> kNames = {
      "reads",   "writes",      "read_sectors", "write_sectors", "flushes",
      "trims",   "trim_ranges", "trim_sectors", "ncq_commands",  "media_errors",
      "aborted", "mixed_ncq",   "link_resets",
  };
  for (size_t i = 0; i < kNames.size(); i++)
    visit(kNames[i], counters_[i]);
  visit("sata_busy_ns", static_cast<uint64_t>(wire_.busy_ns()));
}

void Drive::save(StreamWriter &out) const {
  out.section("ATA ");
  out.put(media_.sectors());
  out.put(power_);
  out.put(security_frozen_);
  out.put(comresets_);
  for (uint64_t value : counters_)
    out.put(value);
  settings_.save(out);
  smart_.save(out);
  host_logs_.save(out);
  queue_.save(out);
  wire_.save(out);
  flash_.save(out);
}

void Drive::load(StreamReader &in) {
  in.section("ATA ");
  if (in.get<uint64_t>() != media_.sectors())
    in.fail();
  auto power = in.get<PowerMode>();
  if (power > PowerMode::kSleep)
    in.fail();
  else
    power_ = power;
  in.get(security_frozen_);
  in.get(comresets_);
  for (uint64_t &value : counters_)
    in.get(value);
  settings_.load(in);
  smart_.load(in);
  host_logs_.load(in);
  queue_.load(in);
  wire_.load(in);
  flash_.load(in);
}

}  // namespace revodrive
