// SPDX-License-Identifier: GPL-2.0-or-later
//
// The life of a command, from execute() to its end, and the drive as a whole: reset, save, load,
// query.
#include "revodrive/ata_drive.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "sata/drive.h"

namespace revodrive {

std::unique_ptr<AtaDrive> AtaDrive::create(const DriveIdentity &identity, const SataProfile &sata,
                                           const FlashProfile &flash, Media &media, bool timing,
                                           const DriveOptions &options) {
  return std::make_unique<Drive>(identity, sata, flash, media, timing, options);
}

Drive::Drive(const DriveIdentity &identity, const SataProfile &sata, const FlashProfile &flash,
             Media &media, bool timing, const DriveOptions &options)
    : identity_(identity),
      sata_generation_(sata.speed),
      timing_(timing),
      options_(options),
      media_(media),
      wire_(sata, timing),
      flash_(flash, media.sectors(), timing, options.memory),
      self_test_(media.sectors()),
      hpa_(media.sectors()),
      firmware_(identity.firmware),
      trim_map_(media.sectors()) {
  security_.power_on(options_.frozen);
  flash_.renew(options_.preset, identity.wwn, options_.image_data);
}

Fis Drive::signature() const {
  return make_d2h(ata::kGood, ata::kDiagnosticsPassed, {.lba = 1, .count = 1});
}

void Drive::expect(const Fis &h2d) const {
  expect_sector(TaskFile::parse(h2d).lba);
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
  command.iov = {};
  command.step = AtaCommand::Step::kNone;
  command.map_generation = 0;
  // Holds the end back until everything is decided, also when a transfer ends from inside submit().
  command.media_pending = 1;

  now_ns_ = command.issue_ns;
  Request request;
  request.task = TaskFile::parse(command.h2d);
  request.info = command_info(request.task.opcode);
  request.ready_ns =
      flash_.command(wire_.command(command.issue_ns, command.journey), command.journey);
  if (command.fault.stop != FaultAction::kNone) {  // it rested, and goes on
    queue_.remove(command);
    command.fault.stop = FaultAction::kNone;
  }
  if (!faults() || !faulted_on_arrival(command, request))
    dispatch(command, request);

  if (command.finish_ns != RD_NEVER)
    command.finish_ns += std::exchange(command.fault.delay_ns, 0);
  if (command.finish_ns != RD_NEVER)
    command.journey.reach(Stage::kFault, command.finish_ns);
  if (--command.media_pending == 0 && !advance(command))
    unmap(command, command.media_error == 0);
  executing_--;
}

void Drive::dispatch(AtaCommand &command, Request &request) {
  if (power_.mode(settings_, command.issue_ns) == PowerMode::kSleep)
    power_.rouse(PowerMode::kStandby, command.issue_ns);
  bool allowed = permitted(request);
  if (allowed && request.info.has(CommandInfo::kMedium)) {
    int64_t wake_ns = power_.wake(settings_, command.issue_ns);
    if (wake_ns > 0)
      flash_.rest(false);
    request.ready_ns += timing_ ? wake_ns : 0;
    command.journey.reach(Stage::kController, request.ready_ns);
  }
  if (!allowed)
    request.info.handler = &Drive::unsupported;
  if (is_soft_reset(command.h2d)) {
    request.info.protocol = Protocol::kNonData;
    soft_reset(command, request);
  } else if (!request.task.valid) {
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
}

void Drive::succeed(AtaCommand &command, const Request &request, int64_t at_ns, uint64_t lba,
                    uint16_t count) {
  command.journey.reach(Stage::kController, at_ns);
  command.d2h =
      make_d2h(ata::kGood, 0, {.lba = lba, .count = count, .device = request.task.device});
  command.finish_ns = wire_.end(request.info.protocol, at_ns, command.journey);
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
  command.finish_ns =
      wire_.error(std::max(request.ready_ns, command.journey.at_ns()), command.journey);
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
  int64_t sent_ns = wire_.send(*command.data, request.info.protocol, ata::kSectorBytes, ready,
                               ata::kSectorBytes, command.journey);
  succeed(command, request, sent_ns);
}

void Drive::unmap(AtaCommand &command, bool done) {
  if (!command.mapped)
    return;
  command.mapped = false;
  if (done && !command.iov.empty())
    patch_trimmed(command);
  if (done && command.fault.flip_bits > 0)
    corrupt_read(command);
  command.iov = {};
  command.fault.scratch.reset();
  command.data->unmap(done);
}

void Drive::media_done(AtaCommand &command, int error) {
  assert(command.media_pending > 0);
  if (command.media_error == 0)
    command.media_error = error;
  if (--command.media_pending > 0 || advance(command))
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
  if (faults() && rests_at_end(command))
    return;
  settle(command);
  hand_back_aborted();
}

// Leaves d2h and failed as the initiator shall see them; the drive then forgets the command.
void Drive::settle(AtaCommand &command) {
  assert(command.media_pending == 0);
  bool aborted = queue_.aborted(command);
  queue_.remove(command);
  if (eraser_ == &command)
    eraser_ = nullptr;
  if (command.map_generation == map_generation_ && command.media_error == 0)
    map_stored_ = false;
  if (aborted) {
    command.failed = true;
    command.d2h = make_d2h(ata::kQueueFailed, ata::kAbort);
  } else if (!command.failed && command.media_error != 0) {
    settle_media_error(command);
  } else if (!command.failed && command.fault.fails) {
    settle_fault(command);
  }
  if (command.failed && (aborted || command.media_error == 0 || command.media_error == -ECANCELED))
    counters_[kAborted]++;
  command.target = nullptr;
}

// The backend's errno as the ATA error a drive with that fault would report.
void Drive::settle_media_error(AtaCommand &command) {
  TaskFile task = TaskFile::parse(command.h2d);
  Protocol protocol = command_info(task.opcode).protocol;
  bool verify = task.opcode == ata::kReadVerify || task.opcode == ata::kReadVerifyNoRetry ||
                task.opcode == ata::kReadVerifyExt;
  bool read = protocol == Protocol::kQueuedIn || protocol == Protocol::kDmaIn ||
              protocol == Protocol::kPioIn || verify;
  bool canceled = command.media_error == -ECANCELED;
  // TRIM is a hint: a backend that knows no discard has done no harm.
  if (task.opcode == ata::kDataSetManagement &&
      (command.media_error == -ENOTSUP || command.media_error == -EOPNOTSUPP))
    return;
  if (!canceled)
    counters_[kMediaErrors]++;
  if (read && !canceled)
    counters_[kUncorrectableReads]++;
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
  if (eraser_ == &command)
    eraser_ = nullptr;
  command.target = nullptr;
  cancelling_ = outer;
}

void Drive::reset(LinkReset kind) {
  queue_.reset();
  faults_.set_hung(0);
  wire_.clear();
  security_.forget_prepared();
  hpa_.take_allowed();
  firmware_.drop();
  srst_ = false;
  if (kind == LinkReset::kPowerOn) {
    power_ = {};
    settings_ = {};
    security_.power_on(options_.frozen);
    hpa_.power_on();
    phy_counters_.clear();
    linked_ = false;
    self_test_.stop(SelfTest::Result::kInterrupted, smart_.power_on_ns());
    sct_.power_cycle();
    smart_.power_cycle(smart_totals());
    flash_.power_cycle();
    return;
  }
  power_.enter(PowerMode::kActive);
  flash_.rest(false);
  counters_[kLinkResets]++;
  if (linked_)
    phy_counters_.count(PhyCounters::kNotReady);
  linked_ = true;
  phy_counters_.count(PhyCounters::kSignatures);
  sct_.reset();
  if (self_test_.captive())
    self_test_.stop(SelfTest::Result::kInterrupted, smart_.power_on_ns());
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
  bool rests = command.finish_ns == RD_NEVER && command.fault.stop != FaultAction::kNone;
  bool sane = command.finish_ns >= 0 && (command.finish_ns <= kLatestNs || rests) &&
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
      "reads",         "writes",      "read_sectors", "write_sectors",       "flushes",
      "trims",         "trim_ranges", "trim_sectors", "ncq_commands",        "media_errors",
      "aborted",       "mixed_ncq",   "link_resets",  "uncorrectable_reads", "secure_erases",
      "trimmed_reads", "icrc_errors",
  };
  for (size_t i = 0; i < kNames.size(); i++)
    visit(kNames[i], counters_[i]);
  visit("trim_map_sectors", trim_map_.count());
  visit("trim_map_bytes", trim_map_.memory_bytes());
  visit("security", security_.identify_word());
  visit("fault_hits", faults_.hits());
  visit("sata_busy_ns", static_cast<uint64_t>(wire_.busy_ns()));
  flash_.query(visit);
  visit("power_cycles", smart_.power_cycles());
  visit("power_losses", smart_.power_losses());
}

void Drive::save(StreamWriter &out) const {
  out.section("ATA ");
  out.put(media_.sectors());
  out.put(srst_);
  out.put(linked_);
  for (uint64_t value : counters_)
    out.put(value);
  settings_.save(out);
  power_.save(out);
  security_.save(out);
  hpa_.save(out);
  firmware_.save(out);
  trim_map_.save(out);
  smart_.save(out);
  out.section("STST");
  self_test_.save(out);
  sct_.save(out);
  host_logs_.save(out);
  phy_counters_.save(out);
  queue_.save(out);
  wire_.save(out);
  flash_.save(out);
  faults_.save(out);
}

void Drive::load(StreamReader &in) {
  in.section("ATA ");
  if (in.get<uint64_t>() != media_.sectors())
    in.fail();
  in.get(srst_);
  in.get(linked_);
  for (uint64_t &value : counters_)
    in.get(value);
  settings_.load(in);
  power_.load(in);
  security_.load(in);
  hpa_.load(in);
  firmware_.load(in);
  trim_map_.load(in);
  // What the store holds is not known here.
  map_stored_ = true;
  map_generation_++;
  smart_.load(in);
  in.section("STST");
  self_test_.load(in);
  sct_.load(in);
  host_logs_.load(in);
  phy_counters_.load(in);
  queue_.load(in);
  wire_.load(in);
  flash_.load(in);
  faults_.load(in);
}

}  // namespace revodrive
