// SPDX-License-Identifier: GPL-2.0-or-later
//
// The seam between a bridge (initiator) and a SAS target: one SCSI command from its CDB to its
// status. A command that can be answered at once is settled by execute(): finish_ns says when the
// answer has reached the initiator. Any other is the target's (finish_ns is RD_NEVER) until
// ScsiInitiator::scsi_done(), which never comes from inside execute() of the same command, or until
// cancel(): afterwards no data moves and nothing comes. The initiator owns the command and its data
// window and keeps both alive as long.
#ifndef REVODRIVE_SCSI_COMMAND_H
#define REVODRIVE_SCSI_COMMAND_H

#include <array>
#include <cstdint>

#include "revodrive/ata_command.h"

namespace revodrive {

struct ScsiCommand {
  // Set by the initiator before execute().
  std::array<uint8_t, 16> cdb{};
  uint64_t lun = 0;            // the eight bytes of SAM-4 4.7, first byte on top
  DataWindow *data = nullptr;  // never null
  int64_t issue_ns = 0;        // when the target has the command
  void *owner = nullptr;       // the initiator's own
  Journey *journey = nullptr;  // the target charges its time to it; may be null

  // Set by the target.
  int64_t finish_ns = RD_NEVER;
  uint8_t status = 0;  // SAM-4 5.3
  std::array<uint8_t, 64> sense{};
  uint8_t sense_bytes = 0;

  void *task = nullptr;  // the target's own
};

class ScsiInitiator {
 public:
  virtual void scsi_done(ScsiCommand &command) = 0;
  // A backend was slower than the model.
  virtual void scsi_late(int64_t late_ns) = 0;

 protected:
  ~ScsiInitiator() = default;
};

enum class ScsiReset : uint8_t { kPowerOn, kHardReset, kNexusLoss, kLunReset };

class ScsiTarget {
 public:
  virtual ~ScsiTarget() = default;
  virtual void connect(ScsiInitiator *initiator) = 0;
  // Of its port: NAA 5, never 0.
  virtual uint64_t sas_address() const = 0;
  virtual bool has_lun(uint64_t lun) const = 0;
  virtual void execute(ScsiCommand &command) = 0;
  virtual void cancel(ScsiCommand &command) = 0;
  // What goes on although its command has ended fails now: the members are about to be reset.
  virtual void cut_short() = 0;
  // All commands have been cancelled before.
  virtual void reset(ScsiReset kind) = 0;
  // Without the commands in flight: the initiator saves those it can and executes the others anew.
  virtual void save(StreamWriter &out) const = 0;
  virtual void load(StreamReader &in) = 0;
  // The machine runs with what was loaded.
  virtual void resume() = 0;
};

}  // namespace revodrive
#endif
