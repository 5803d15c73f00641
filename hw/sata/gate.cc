// SPDX-License-Identifier: GPL-2.0-or-later
//
// What may keep a command from its handler: the security state and a soft reset, both decided here
// and nowhere else; and the soft reset itself.
#include "sata/drive.h"

namespace revodrive {

namespace {

// H2D register FIS (Serial ATA 3.0, 10.3.4): byte 1 bit 7 says command or control, byte 15 is the
// Device Control register.
constexpr uint8_t kFisHostToDevice = 0x27;
constexpr uint8_t kFisCommand = 0x80;
constexpr uint8_t kControlReset = 0x04;
// Fitted: an SSD answers a soft reset within some milliseconds.
constexpr int64_t kSoftResetNs = 2'000'000;

bool asks_for_reset(const Fis &h2d) {
  return (h2d[15] & kControlReset) != 0;
}

}  // namespace

// Has side effects that each command has: permissions for the next command end.
bool Drive::permitted(const Request &request) {
  if (request.task.opcode != ata::kSecurityEraseUnit)
    security_.forget_prepared();
  max_address_allowed_ = hpa_.take_allowed();
  if (options_.panicked && !request.info.has(CommandInfo::kInPanic))
    return false;
  if (srst_ || eraser_)
    return false;  // BSY is set: a host that looks does not get here
  if (security_.locked() && request.info.has(CommandInfo::kNotLocked))
    return false;
  return !security_.frozen() || !request.info.has(CommandInfo::kNotFrozen);
}

// A write of the Device Control register that begins or ends a soft reset.
bool Drive::is_soft_reset(const Fis &h2d) const {
  bool control = h2d[0] == kFisHostToDevice && (h2d[1] & kFisCommand) == 0;
  return control && (srst_ || asks_for_reset(h2d));
}

// Settings stay, as SET FEATURES 66h has it on this drive; queued commands are gone, and each ends
// aborted. The drive says nothing before the bit falls: the first FIS ends when it was sent.
void Drive::soft_reset(AtaCommand &command, const Request &request) {
  if (queue_.live())
    queue_.stop({});
  queue_.resume();
  security_.forget_prepared();
  hpa_.take_allowed();
  firmware_.drop();
  power_.rouse(PowerMode::kActive, command.issue_ns);
  flash_.rest(false);
  bool ended = srst_ && !asks_for_reset(command.h2d);
  srst_ = !ended;
  int64_t done_ns = request.ready_ns + (ended && timing_ ? kSoftResetNs : 0);
  succeed(command, request, done_ns);
  if (ended)
    command.d2h = signature();
}

}  // namespace revodrive
