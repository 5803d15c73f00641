// SPDX-License-Identifier: GPL-2.0-or-later
//
// The SECURITY commands (ATA8-ACS 7.43 to 7.49). When they are allowed at all is decided in
// gate.cc.
#include "sata/drive.h"

namespace revodrive {

void Drive::security_command(AtaCommand &command, const Request &request) {
  if (request.info.protocol == Protocol::kNonData) {
    if (request.task.opcode == ata::kSecurityFreezeLock)
      security_.freeze();
    else
      security_.prepare_erase();
    return succeed(command, request, request.ready_ns);
  }
  std::array<uint8_t, ata::kSectorBytes> block;
  if (command.data->size() < block.size() || !command.data->copy_from_guest(0, block))
    return fail_short(command, request);
  int64_t at_ns = wire_.receive(*command.data, request.info.protocol, ata::kSectorBytes,
                                request.ready_ns, ata::kSectorBytes, command.journey);
  switch (request.task.opcode) {
    case ata::kSecurityUnlock:
      if (!security_.unlock(block))
        return fail(command, request, ata::kAbort);
      return succeed(command, request, at_ns);
    case ata::kSecurityEraseUnit:
      return erase_unit(command, request, block, at_ns);
    case ata::kSecurityDisablePassword:
      if (!security_.disable_password(block))
        return fail(command, request, ata::kAbort);
      break;
    default:
      security_.set_password(block);
      break;
  }
  persist(command);
  succeed(command, request, at_ns);
}

// Normal and enhanced erase do the same here: all flash blocks, and zeroes over the whole image
// behind them (chain.cc), also beyond a host protected area.
void Drive::erase_unit(AtaCommand &command, const Request &request, Security::Block block,
                       int64_t at_ns) {
  if (!security_.begin_erase(block))
    return fail(command, request, ata::kAbort);
  counters_[kSecureErases]++;
  eraser_ = &command;
  command.step = AtaCommand::Step::kErase;
  command.step_lba = 0;
  command.step_end = media_.sectors();
  persist(command);
  succeed(command, request, flash_.erase_all(at_ns, command.journey));
}

}  // namespace revodrive
