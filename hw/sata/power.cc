// SPDX-License-Identifier: GPL-2.0-or-later
//
// Power management (ATA8-ACS 4.18, 7.11, 7.17, 7.18, 7.55 to 7.57). The modes are in power_state.h.
#include "sata/drive.h"

namespace revodrive {

void Drive::power(AtaCommand &command, const Request &request) {
  catch_up(command.issue_ns);
  if (request.task.opcode == ata::kIdle || request.task.opcode == ata::kStandby)
    power_.set_timer(request.task.count8(), command.issue_ns);
  switch (request.task.opcode) {
    case ata::kIdle:
    case ata::kIdleImmediate:
      power_.enter(PowerMode::kIdle);
      return succeed(command, request, request.ready_ns);
    case ata::kSleep:
      power_.enter(PowerMode::kSleep);
      self_test_.stop(SelfTest::Result::kAborted, smart_.power_on_ns());
      break;
    default:
      power_.enter(PowerMode::kStandby);
      break;
  }
  flash_.rest(power_.mode(settings_, command.issue_ns) >= PowerMode::kStandby);
  map_open_ = false;
  smart_.park(true);
  persist(command);
  // The cache must be safe before the power may go.
  submit_flush(command, request);
}

void Drive::check_power_mode(AtaCommand &command, const Request &request) {
  constexpr uint16_t kCountStandby = 0x00;
  constexpr uint16_t kCountIdle = 0x80;
  constexpr uint16_t kCountActive = 0xFF;
  PowerMode mode = power_.mode(settings_, command.issue_ns);
  uint16_t count = mode == PowerMode::kActive ? kCountActive
                   : mode == PowerMode::kIdle ? kCountIdle
                                              : kCountStandby;
  succeed(command, request, request.ready_ns, 0, count);
}

}  // namespace revodrive
