// SPDX-License-Identifier: GPL-2.0-or-later
//
// What fault rules do inside the drive: at decode before a command's handler, at link and media
// once its range is known to be good, and to its outcome. A command that rests here has done
// nothing yet but to take its tag; execute() starts it anew and skips the stages it has passed.
#include <algorithm>
#include <cerrno>

#include "sata/drive.h"
#include "sata/fault_facts.h"

namespace revodrive {

namespace {

// Turns over the bits that the command's fault names; the same ones for the same seed.
void flip(std::span<const rd_iov> iov, const FaultState &fault) {
  uint64_t total_bytes = 0;
  for (const rd_iov &piece : iov)
    total_bytes += piece.len;
  uint64_t first_byte = uint64_t{fault.flip_first} * ata::kSectorBytes;
  if (first_byte >= total_bytes)
    return;
  uint64_t bytes =
      std::min(uint64_t{fault.flip_sectors} * ata::kSectorBytes, total_bytes - first_byte);
  uint64_t stride = bytes * 8 / fault.flip_bits;  // never the same bit twice
  for (uint64_t i = 0; i < fault.flip_bits; i++) {
    uint64_t bit = (fault.flip_seed % (bytes * 8) + i * stride) % (bytes * 8);
    uint64_t at = first_byte + bit / 8;
    for (const rd_iov &piece : iov) {
      if (at < piece.len) {
        static_cast<uint8_t *>(piece.base)[at] ^= static_cast<uint8_t>(1u << (bit % 8));
        break;
      }
      at -= piece.len;
    }
  }
}

}  // namespace

// True: the handler is not to be called.
bool Drive::faulted_on_arrival(AtaCommand &command, const Request &request) {
  bool queued = is_queued(request.info.protocol);
  // An error of the host is answered as ever.
  if (!request.task.valid || (queued && (queue_.stopped() || queue_.busy(request.task.tag()))))
    return false;
  if (faults_.hung()) {
    faults_.rest(FaultStage::kDecode, command);
    keep_tag(command, request);
    return true;
  }
  if (meets_fault(FaultStage::kDecode, command, request))
    return true;
  FaultFacts facts = fault_facts(command.h2d);
  if (facts.medium)
    return false;  // its range has to be looked at first
  bool flash = request.task.opcode == ata::kFlushCache ||
               request.task.opcode == ata::kFlushCacheExt ||
               request.task.opcode == ata::kDataSetManagement;
  return (facts.direction != FaultDirection::kNone &&
          meets_fault(FaultStage::kLink, command, request)) ||
         (flash && meets_fault(FaultStage::kMedia, command, request));
}

// A read or write of sectors that exist. True: no data moves.
bool Drive::faulted_in_transfer(AtaCommand &command, const Request &request) {
  bool read = fault_facts(command.h2d).direction == FaultDirection::kIn;
  FaultStage first = read ? FaultStage::kMedia : FaultStage::kLink;
  FaultStage second = read ? FaultStage::kLink : FaultStage::kMedia;
  return meets_fault(first, command, request) || meets_fault(second, command, request);
}

// Takes the command to `stage`. True: it rests there, or is to end with an error.
bool Drive::meets_fault(FaultStage stage, AtaCommand &command, const Request &request) {
  FaultHit hit = faults_.ask(stage, command);
  if (hit.action == FaultAction::kHang)
    faults_.set_hung(hit.rule);
  bool rests = command.fault.stop != FaultAction::kNone;
  if (!rests && !command.fault.fails)
    return false;
  keep_tag(command, request);
  if (!rests)
    command.finish_ns = wire_.error(request.ready_ns, command.journey);
  return true;
}

// The command stays here unfinished. What was dropped is forgotten, tag and all: an error of
// another command does not bring it back.
void Drive::keep_tag(AtaCommand &command, const Request &request) {
  command.finish_ns = RD_NEVER;
  if (!is_queued(request.info.protocol) || command.fault.stop == FaultAction::kDrop)
    return;
  queue_.add(request.task.tag(), command);
}

// Called when all of the command is done but its last FIS. True: it rests before that.
bool Drive::rests_at_end(AtaCommand &command) {
  if (faults_.hung()) {
    faults_.rest(FaultStage::kCompletion, command);
    command.finish_ns = RD_NEVER;
    return true;
  }
  faults_.ask(FaultStage::kCompletion, command);
  return false;
}

void Drive::count_fault(AtaCommand &command) {
  FaultError error = command.fault.error;
  bool to_host = fault_facts(command.h2d).direction == FaultDirection::kIn;
  if (error.error & ata::kInterfaceCrc) {
    counters_[kIcrcErrors]++;
    phy_counters_.count(PhyCounters::kCommandIcrc);
    phy_counters_.count_data_crc(to_host ? PhyCounters::Direction::kToHost
                                         : PhyCounters::Direction::kToDevice);
  }
  if (error.error & ata::kUncorrectable)
    counters_[kUncorrectableReads]++;
  if ((error.error & ata::kUncorrectable) || (error.status & ata::kStatusFault)) {
    counters_[kMediaErrors]++;
    command.media_error = -EIO;  // so that it does not count as refused
  }
}

void Drive::settle_fault(AtaCommand &command) {
  const FaultState &fault = command.fault;
  TaskFile task = TaskFile::parse(command.h2d);
  Protocol protocol = command_info(task.opcode).protocol;
  Outputs outputs{.lba = fault.lba, .count = task.count, .device = task.device};
  command.failed = true;
  count_fault(command);
  if (!is_queued(protocol)) {
    command.d2h = make_d2h(ata::kFailed | fault.error.status, fault.error.error, outputs);
    return;
  }
  uint8_t status = ata::kQueueFailed | fault.error.status;
  if (!queue_.stopped())
    queue_.stop({true, task.tag(), status, fault.error.error, outputs});
  command.d2h = make_d2h(ata::kQueueFailed, ata::kAbort);  // as for any error of the queue
}

// What is written in place of the guest's data, which stays as it is.
std::span<const rd_iov> Drive::corrupt_write(AtaCommand &command, std::span<const rd_iov> iov) {
  FaultState &fault = command.fault;
  fault.scratch = std::make_unique<std::vector<uint8_t>>();
  for (const rd_iov &piece : iov) {
    const auto *bytes = static_cast<const uint8_t *>(piece.base);
    fault.scratch->insert(fault.scratch->end(), bytes, bytes + piece.len);
  }
  fault.scratch_iov = {fault.scratch->data(), fault.scratch->size()};
  flip({&fault.scratch_iov, 1}, fault);
  return {&fault.scratch_iov, 1};
}

void Drive::corrupt_read(AtaCommand &command) {
  if (fault_facts(command.h2d).direction == FaultDirection::kIn)
    flip(command.iov, command.fault);
}

}  // namespace revodrive
