// SPDX-License-Identifier: GPL-2.0-or-later
//
// Power management (ATA8-ACS 4.6, 7.11, 7.17, 7.18, 7.55 to 7.57). The standby timers are accepted
// and not run.
#include "sata/drive.h"

namespace revodrive {

void Drive::power(AtaCommand &command, const Request &request) {
  switch (request.task.opcode) {
    case ata::kIdle:
    case ata::kIdleImmediate:
      power_ = PowerMode::kIdle;
      return succeed(command, request, request.ready_ns);
    case ata::kSleep:
      power_ = PowerMode::kSleep;
      break;
    default:
      power_ = PowerMode::kStandby;
      break;
  }
  // The cache must be safe before the power may go.
  submit_flush(command, request);
}

void Drive::check_power_mode(AtaCommand &command, const Request &request) {
  constexpr uint16_t kCountStandby = 0x00;
  constexpr uint16_t kCountIdle = 0x80;
  constexpr uint16_t kCountActive = 0xFF;
  uint16_t count = power_ == PowerMode::kActive ? kCountActive
                   : power_ == PowerMode::kIdle ? kCountIdle
                                                : kCountStandby;
  succeed(command, request, request.ready_ns, 0, count);
}

}  // namespace revodrive
