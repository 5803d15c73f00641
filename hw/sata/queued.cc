// SPDX-License-Identifier: GPL-2.0-or-later
//
// READ and WRITE FPDMA QUEUED (Serial ATA 3.0, 13.6.4) and the collision of both worlds.
#include "sata/drive.h"

namespace revodrive {

void Drive::read_write_queued(AtaCommand &command, const Request &request) {
  SectorRange range = range_queued(request.task);
  // A tag that is busy is an error of the host that ends the whole queue (13.6.5.1).
  if (queue_.stopped() || queue_.busy(request.task.tag()))
    return fail(command, request, ata::kAbort, range.lba);
  transfer(command, request, range, (request.task.device & ata::kDeviceFua) != 0);
}

// A command that is not queued came while queued ones were outstanding: all of them and itself are
// aborted, and log 10h says that none of the tags is to blame (13.6.5.1, ATA8-ACS A.7).
void Drive::interrupt_queue(AtaCommand &command, const Request &request) {
  counters_[kMixedNcq]++;
  Outputs outputs{
      .lba = request.task.lba, .count = request.task.count, .device = request.task.device};
  queue_.stop({false, 0, ata::kQueueFailed, ata::kAbort, outputs});
  command.failed = true;
  command.d2h = make_d2h(ata::kQueueFailed, ata::kAbort);
  command.finish_ns = wire_.error(request.ready_ns, command.journey);
}

}  // namespace revodrive
