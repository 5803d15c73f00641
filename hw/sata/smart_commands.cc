// SPDX-License-Identifier: GPL-2.0-or-later
//
// SMART (ATA8-ACS 7.53): one opcode, the feature register says which command.
#include "sata/drive.h"

namespace revodrive {

SmartInputs Drive::smart_inputs(int64_t now_ns) const {
  return {.now_ns = now_ns,
          .read_sectors = counters_[kReadSectors],
          .written_sectors = counters_[kWriteSectors],
          .uncorrectable = counters_[kMediaErrors]};
}

void Drive::smart(AtaCommand &command, const Request &request) {
  const TaskFile &task = request.task;
  bool key = (task.lba >> 8 & 0xFFFF) == ata::kSmartKey;
  if (!key || (!smart_.enabled() && task.feature() != ata::kSmartEnable))
    return fail(command, request, ata::kAbort);
  SmartInputs inputs = smart_inputs(command.issue_ns);
  Request data_in = request;
  data_in.info.protocol = Protocol::kPioIn;
  Request data_out = request;
  data_out.info.protocol = Protocol::kPioOut;
  switch (task.feature()) {
    case ata::kSmartReadData:
      reply(command, data_in, smart_.data_page(inputs));
      return;
    case ata::kSmartReadThresholds:
      reply(command, data_in, smart_.threshold_page());
      return;
    case ata::kSmartReadLog:
      return send_log(command, data_in, LogSpace::kSmart, 0, task.count8());
    case ata::kSmartWriteLog:
      return receive_log(command, data_out, 0, task.count8());
    case ata::kSmartReturnStatus: {
      uint64_t key_out = smart_.healthy(inputs) ? ata::kSmartKey : ata::kSmartFailing;
      return succeed(command, request, request.ready_ns, key_out << 8);
    }
    case ata::kSmartEnable:
    case ata::kSmartDisable:
      smart_.set_enabled(task.feature() == ata::kSmartEnable);
      return succeed(command, request, request.ready_ns);
    case ata::kSmartAutosave:
      if (task.count8() != 0x00 && task.count8() != 0xF1)
        return fail(command, request, ata::kAbort);
      smart_.set_autosave(task.count8() != 0);
      return succeed(command, request, request.ready_ns);
    case ata::kSmartSaveAttributes:
      return succeed(command, request, request.ready_ns);
    default:
      return fail(command, request, ata::kAbort);
  }
}

}  // namespace revodrive
