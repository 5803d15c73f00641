// SPDX-License-Identifier: GPL-2.0-or-later
//
// Commands that take more than one step on the backend: READ VERIFY reads its range through a small
// buffer, SECURITY ERASE UNIT writes zeroes over the whole medium in pieces. A step begins when the
// transfers of the one before have ended; the command ends when no step is left.
#include <algorithm>

#include "sata/drive.h"

namespace revodrive {

namespace {

constexpr uint32_t kVerifySectors = 512;             // 256 KiB
constexpr uint32_t kEraseSectors = 256u << 20 >> 9;  // 256 MiB: short enough not to hold up others

}  // namespace

// The command's transfers have ended. True: others were started.
bool Drive::advance(AtaCommand &command) {
  while (command.step != AtaCommand::Step::kNone) {
    if (command.media_error != 0 || &command == cancelling_) {
      end_chain(command);
      return false;
    }
    command.media_pending = 1;  // against an end from inside submit(), as in execute()
    take_step(command);
    if (--command.media_pending > 0)
      return true;
  }
  return false;
}

void Drive::take_step(AtaCommand &command) {
  using Step = AtaCommand::Step;
  bool over = command.step_lba >= command.step_end;
  switch (command.step) {
    case Step::kVerify:
      if (over)
        command.step = Step::kNone;
      else
        submit_chunk(command, RD_BLOCK_READ, kVerifySectors);
      break;
    case Step::kErase:
      if (!over)
        return submit_chunk(command, RD_BLOCK_WRITE_ZEROES, kEraseSectors);
      command.step = Step::kEraseFlush;
      submit(command, RD_BLOCK_FLUSH, {});
      break;
    case Step::kEraseFlush:
      command.step = Step::kNone;
      trim_map_.clear_all();
      security_.end_erase();
      persist(command);
      break;
    case Step::kNone:
      break;
  }
}

void Drive::submit_chunk(AtaCommand &command, rd_block_op op, uint32_t most) {
  uint64_t left = command.step_end - command.step_lba;
  SectorRange range{command.step_lba, static_cast<uint32_t>(std::min<uint64_t>(left, most))};
  command.lba = range.lba;  // what an error is about
  command.sectors = range.sectors;
  command.step_lba = range.end();
  if (op != RD_BLOCK_READ)
    return submit(command, op, range);
  scratch_.resize(size_t{kVerifySectors} * ata::kSectorBytes);
  command.step_iov = {scratch_.data(), size_t{range.sectors} * ata::kSectorBytes};
  submit(command, op, range, {&command.step_iov, 1});
}

void Drive::end_chain(AtaCommand &command) {
  bool erase = command.step != AtaCommand::Step::kVerify;
  command.step = AtaCommand::Step::kNone;
  if (erase)
    security_.stop_erase();
}

}  // namespace revodrive
