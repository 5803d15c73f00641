// SPDX-License-Identifier: GPL-2.0-or-later
//
// SMART (ATA8-ACS 7.53): one opcode, the feature register says which command.
#include "sata/drive.h"

namespace revodrive {

// Since the drive was created; what went before is in smart_.
SmartTotals Drive::smart_totals() const {
  return {.read_sectors = counters_[kReadSectors],
          .written_sectors = counters_[kWriteSectors],
          .nand_bytes = flash_.nand_bytes_written(),
          .uncorrectable = counters_[kUncorrectableReads]};
}

void Drive::catch_up(int64_t now_ns) {
  flash_.idle(now_ns);
  smart_.advance(now_ns);
  self_test_.advance(smart_.power_on_ns());
  sct_.advance(smart_.power_on_ns());
}

void Drive::unpark(int64_t now_ns) {
  if (!smart_.parked())
    return;
  smart_.park(false);
  // Not before this is stored would a loss of power be seen, but the host need not wait for it.
  if (store_)
    store_->store(nullptr, now_ns);
}

Page Drive::smart_data_page() {
  constexpr uint16_t kSavesOnPowerDown = 1 << 0;
  constexpr uint16_t kSavesByItself = 1 << 1;
  Page page;
  smart_.fill_attributes(page, smart_totals(), flash_.health());
  self_test_.fill_status(page, smart_.power_on_ns());
  page.put(368, kSavesOnPowerDown | kSavesByItself, 2);
  page.seal();
  return page;
}

void Drive::smart_status(AtaCommand &command, const Request &request) {
  uint64_t key =
      smart_.healthy(smart_totals(), flash_.health()) ? ata::kSmartKey : ata::kSmartFailing;
  succeed(command, request, request.ready_ns, key << 8);
}

// A captive test keeps the drive busy until its end.
void Drive::smart_offline(AtaCommand &command, const Request &request) {
  auto subcommand = static_cast<uint8_t>(request.task.lba);
  if (!self_test_.start(subcommand, smart_.power_on_ns()))
    return fail(command, request, ata::kAbort);
  bool captive = SelfTest::is_captive(subcommand);
  int64_t wait_ns = captive ? self_test_.remaining_ns(smart_.power_on_ns()) : 0;
  succeed(command, request, request.ready_ns + wait_ns, captive ? ata::kSmartKey << 8 : 0);
}

void Drive::enable_smart(AtaCommand &command, const Request &request, bool enable) {
  if (!enable)
    self_test_.stop(SelfTest::Result::kAborted, smart_.power_on_ns());
  if (enable != smart_.enabled()) {
    smart_.set_enabled(enable);
    persist(command);
  }
  succeed(command, request, request.ready_ns);
}

void Drive::smart(AtaCommand &command, const Request &request) {
  constexpr uint8_t kAutosaveOn = 0xF1;
  constexpr uint8_t kAutoOfflineOn = 0xF8;
  const TaskFile &task = request.task;
  bool key = (task.lba >> 8 & 0xFFFF) == ata::kSmartKey;
  if (!key || (!smart_.enabled() && task.feature() != ata::kSmartEnable))
    return fail(command, request, ata::kAbort);
  catch_up(command.issue_ns);
  Request data_in = request;
  data_in.info.protocol = Protocol::kPioIn;
  Request data_out = request;
  data_out.info.protocol = Protocol::kPioOut;
  switch (task.feature()) {
    case ata::kSmartReadData:
      return reply(command, data_in, smart_data_page());
    case ata::kSmartReadThresholds:
      return reply(command, data_in, smart_.threshold_page());
    case ata::kSmartReadLog:
      return send_log(command, data_in, LogSpace::kSmart, 0, task.count8());
    case ata::kSmartWriteLog:
      return receive_log(command, data_out, LogSpace::kSmart, 0, task.count8());
    case ata::kSmartReturnStatus:
      return smart_status(command, request);
    case ata::kSmartExecuteOffline:
      return smart_offline(command, request);
    case ata::kSmartEnable:
    case ata::kSmartDisable:
      return enable_smart(command, request, task.feature() == ata::kSmartEnable);
    case ata::kSmartAutosave:
      if (task.count8() != 0 && task.count8() != kAutosaveOn)
        return fail(command, request, ata::kAbort);
      smart_.set_autosave(task.count8() != 0);
      return succeed(command, request, request.ready_ns);
    case ata::kSmartAutoOffline:
      if (task.count8() != 0 && task.count8() != kAutoOfflineOn)
        return fail(command, request, ata::kAbort);
      self_test_.set_auto_offline(task.count8() != 0);
      return succeed(command, request, request.ready_ns);
    case ata::kSmartSaveAttributes:
      persist(command);
      return succeed(command, request, request.ready_ns);
    default:
      return fail(command, request, ata::kAbort);
  }
}

}  // namespace revodrive
