// SPDX-License-Identifier: GPL-2.0-or-later
//
// The seam between a bridge (initiator) and a drive (target): one ATA command from its H2D FIS to
// its final D2H FIS, and the calls that move it.
//
// Life of a command:
//   1. The initiator fills h2d, cdb, data, issue_ns and calls AtaTarget::execute(). The target
//      plans all its time at once, moves small data (IDENTIFY, logs) through `data`, starts backend
//      transfers, and sets finish_ns and the success d2h. It never completes from inside execute().
//   2. At finish_ns, if media_pending is 0 (else when AtaInitiator::media_ready() comes: the
//      command is late), the initiator calls AtaTarget::finish(); the target settles the outcome in
//      d2h and failed. Then the command is the initiator's again and the target keeps no pointer to
//      it.
//   3. A target that stops its queue (NCQ error) sets failed and d2h of the other outstanding
//      commands and hands each back by AtaInitiator::complete_now() (never from inside execute()).
//      For those whose media_pending is not 0 yet it does so when the media is done.
//   4. Fault rules (faults.h) may stop a command. execute() or finish() then leave finish_ns at
//      RD_NEVER: the command rests with the target. To let it go on, the initiator sets issue_ns
//      and calls execute() again, or finish() again where that stopped it. After a finish() that
//      left command.fault.stop set the command is the initiator's, which keeps it to itself.
//   5. AtaTarget::cancel() takes a command back at any time: afterwards the target keeps no pointer
//      to it, no transfer runs, no completion comes.
// The initiator owns the AtaCommand and its DataWindow and keeps both alive from 1 to 2, 3 or 5.
#ifndef REVODRIVE_ATA_COMMAND_H
#define REVODRIVE_ATA_COMMAND_H

#include <array>
#include <cstdint>
#include <span>

#include "revodrive/faults.h"
#include "revodrive/journey.h"
#include "revodrive/media.h"
#include "revodrive/stream.h"
#include "revodrive/timeline.h"

namespace revodrive {

constexpr size_t kFisBytes = 20;  // register FISes, both directions (Serial ATA 3.0, 10.3)
using Fis = std::array<uint8_t, kFisBytes>;

enum class DataDirection { kNone, kToGuest, kFromGuest };

// The guest memory of one command, as its PRD list describes it. Bytes beyond size() do not exist.
class DataWindow {
 public:
  // What the guest offers: the smaller of the stated transfer length and the sum of the PRDs.
  virtual uint32_t size() const = 0;
  // Copies at byte `offset`. False: outside the window or the DMA failed; part may have been moved.
  virtual bool copy_to_guest(uint32_t offset, std::span<const uint8_t> from) = 0;
  virtual bool copy_from_guest(uint32_t offset, std::span<uint8_t> to) = 0;
  // Host memory for the first `bytes` of the window, for a backend transfer; valid until unmap(),
  // which is called once for each successful map(). Empty: too short, or the DMA failed.
  virtual std::span<const rd_iov> map(DataDirection direction, uint32_t bytes) = 0;
  // `done`: the data was moved; false: nothing may reach the guest that is not there yet.
  virtual void unmap(bool done) = 0;
  // Books the way between the initiator and host memory for `bytes`, from `earliest_ns` on.
  virtual Span reserve(DataDirection direction, int64_t earliest_ns, uint32_t bytes) = 0;

 protected:
  ~DataWindow() = default;
};

class AtaTarget;

struct AtaCommand final : MediaTransfer {
  // Set by the initiator before execute().
  Fis h2d{};
  std::array<uint8_t, 16> cdb{};  // PACKET commands only
  DataWindow *data = nullptr;     // never null
  int64_t issue_ns = 0;           // when the H2D FIS may go onto the wire
  void *owner = nullptr;          // the initiator's own
  Journey journey;                // at issue_ns or before; the target moves it to finish_ns

  // Set by the target.
  Fis d2h{};
  bool failed = false;      // d2h has ERR or DF
  bool data_short = false;  // the window was smaller than the command needs, or its DMA failed
  int64_t finish_ns = 0;    // when the final FIS has reached the initiator

  // The target's own: cleared by execute().
  AtaTarget *target = nullptr;
  uint32_t media_pending = 0;  // backend transfers running
  int media_error = 0;         // first error of them, negative errno
  bool mapped = false;         // data->unmap() is owed
  uint64_t lba = 0;
  uint32_t sectors = 0;
  std::span<const rd_iov> iov;  // while mapped
  // More steps follow when the running transfers have ended (hw/sata/chain.cc).
  enum class Step : uint8_t { kNone, kVerify, kErase, kEraseFlush } step = Step::kNone;
  uint64_t step_lba = 0, step_end = 0;
  rd_iov step_iov{};
  uint32_t map_generation = 0;  // not 0: the store of the trim map that this command revokes
  FaultState fault;             // see faults.h

  void media_done(int error) override;
};

class AtaInitiator {
 public:
  // The last backend transfer of this command has ended.
  virtual void media_ready(AtaCommand &command) = 0;
  // Outcome settled early: complete without waiting for finish_ns and without finish().
  virtual void complete_now(AtaCommand &command) = 0;

 protected:
  ~AtaInitiator() = default;
};

enum class LinkReset { kPowerOn, kComreset };

// A drive at the far end of a SATA link.
class AtaTarget {
 public:
  virtual ~AtaTarget() = default;
  virtual void connect(AtaInitiator *initiator) = 0;  // null: unplugged
  // The D2H FIS sent after a reset: holds the signature.
  virtual Fis signature() const = 0;
  // A command of this FIS will be executed soon: what that needs may be brought near. Does nothing
  // that could be seen.
  virtual void expect(const Fis &h2d) const = 0;
  virtual void execute(AtaCommand &command) = 0;
  virtual void finish(AtaCommand &command) = 0;
  virtual void cancel(AtaCommand &command) = 0;
  // All commands have been cancelled before.
  virtual void reset(LinkReset kind) = 0;
  // A backend transfer of the command ended; called through AtaCommand::media_done().
  virtual void media_done(AtaCommand &command, int error) = 0;

  // Commands in flight: the initiator saves its part and calls these for the rest. After a load the
  // command's h2d and d2h are filled; the target takes it back as outstanding.
  virtual void save_command(const AtaCommand &command, StreamWriter &out) const = 0;
  virtual void load_command(AtaCommand &command, StreamReader &in) = 0;

  // The fault rules, null while there are none.
  FaultSet *faults() { return faults_.active() ? &faults_ : nullptr; }
  FaultSet &fault_set() { return faults_; }
  const FaultSet &fault_set() const { return faults_; }

 protected:
  FaultSet faults_;
};

inline void AtaCommand::media_done(int error) {
  target->media_done(*this, error);
}

}  // namespace revodrive
#endif
