// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads, writes, verifies and flushes: the commands that address the medium (ATA8-ACS 7.14, 7.24 to
// 7.38, 7.60 to 7.72).
#include <algorithm>

#include "sata/drive.h"

namespace revodrive {

namespace {

bool to_guest(Protocol protocol) {
  return protocol == Protocol::kPioIn || protocol == Protocol::kDmaIn ||
         protocol == Protocol::kQueuedIn;
}

}  // namespace

// Sectors that this command can address.
uint64_t Drive::limit(const Request &request) const {
  uint64_t sectors = hpa_.sectors();
  return request.info.has(CommandInfo::kLba48) ? sectors : std::min(sectors, ata::kLba28Sectors);
}

uint32_t Drive::block_bytes(const Request &request) const {
  bool multiple = request.info.has(CommandInfo::kMultiple) && settings_.multiple > 0;
  return ata::kSectorBytes * (multiple ? settings_.multiple : 1u);
}

// False: the old cylinder, head and sector addresses, which the drive does not take.
bool Drive::decode_range(const Request &request, SectorRange *range) const {
  if (request.info.has(CommandInfo::kLba48)) {
    *range = range48(request.task);
    return true;
  }
  *range = range28(request.task);
  return (request.task.device & ata::kDeviceLba) != 0;
}

void Drive::read_write(AtaCommand &command, const Request &request) {
  SectorRange range;
  if (!decode_range(request, &range))
    return fail(command, request, ata::kAbort);
  if (request.info.has(CommandInfo::kMultiple) && settings_.multiple == 0)
    return fail(command, request, ata::kAbort);
  transfer(command, request, range, request.info.has(CommandInfo::kFua));
}

void Drive::transfer(AtaCommand &command, const Request &request, SectorRange range, bool fua) {
  if (!range.inside(limit(request)))
    return fail(command, request, ata::kIdNotFound, range.lba);
  if (faults() && faulted_in_transfer(command, request))
    return;
  bool read = to_guest(request.info.protocol);
  uint32_t bytes = range.sectors * ata::kSectorBytes;
  std::span<const rd_iov> iov;
  if (bytes <= command.data->size())
    iov = command.data->map(read ? DataDirection::kToGuest : DataDirection::kFromGuest, bytes);
  if (iov.empty())
    return fail_short(command, request);
  command.mapped = true;
  command.lba = range.lba;
  command.sectors = range.sectors;
  unpark(command.issue_ns);
  if (is_queued(request.info.protocol)) {
    queue_.add(request.task.tag(), command);
    counters_[kNcqCommands]++;
    wire_.release(request.ready_ns);
  }
  bool stable = fua || !settings_.write_cache;
  if (read) {
    command.iov = iov;
    plan_read(command, request, range);
  } else {
    note_write(command, range);
    plan_write(command, request, range, iov, stable);
  }
  if (!read && command.fault.flip_bits > 0)
    iov = corrupt_write(command, iov);
  rd_block_op write_op = stable ? RD_BLOCK_WRITE_FUA : RD_BLOCK_WRITE;
  submit(command, read ? RD_BLOCK_READ : write_op, range, iov);
}

void Drive::plan_read(AtaCommand &command, const Request &request, SectorRange range) {
  counters_[kReads]++;
  counters_[kReadSectors] += range.sectors;
  Span ready = flash_.read(request.ready_ns, range.lba, range.sectors, command.journey);
  int64_t sent_ns = wire_.send(*command.data, request.info.protocol, block_bytes(request), ready,
                               range.sectors * ata::kSectorBytes, command.journey);
  succeed(command, request, sent_ns);
}

void Drive::plan_write(AtaCommand &command, const Request &request, SectorRange range,
                       std::span<const rd_iov> iov, bool stable) {
  counters_[kWrites]++;
  counters_[kWriteSectors] += range.sectors;
  if (faults())
    faults_.written(range.lba, range.sectors);
  int64_t at_ns =
      wire_.receive(*command.data, request.info.protocol, block_bytes(request), request.ready_ns,
                    range.sectors * ata::kSectorBytes, command.journey);
  at_ns = flash_.write(at_ns, range.lba, range.sectors, iov, command.journey);
  if (stable)
    at_ns = flash_.flush(at_ns, command.journey);
  succeed(command, request, at_ns);
}

void Drive::verify(AtaCommand &command, const Request &request) {
  SectorRange range;
  if (!decode_range(request, &range))
    return fail(command, request, ata::kAbort);
  if (!range.inside(limit(request)))
    return fail(command, request, ata::kIdNotFound, range.lba);
  if (faults() && meets_fault(FaultStage::kMedia, command, request))
    return;
  unpark(command.issue_ns);
  command.step = AtaCommand::Step::kVerify;
  command.step_lba = range.lba;
  command.step_end = range.end();
  int64_t read_ns = flash_.read(request.ready_ns, range.lba, range.sectors, command.journey).end_ns;
  command.journey.reach(Stage::kChannel, read_ns);
  succeed(command, request, read_ns);
}

void Drive::flush(AtaCommand &command, const Request &request) {
  counters_[kFlushes]++;
  submit_flush(command, request);
  note_changed(command.issue_ns);
}

// Ends `command` when all that was written is on stable storage.
void Drive::submit_flush(AtaCommand &command, const Request &request) {
  submit(command, RD_BLOCK_FLUSH, {});
  succeed(command, request, flash_.flush(request.ready_ns, command.journey));
}

}  // namespace revodrive
