// SPDX-License-Identifier: GPL-2.0-or-later
//
// The volume as the SCSI device above it sees it: a range of blocks over several members, and
// requests that read, write, verify, trim or flush it, or give one ATA command to one or to every
// member. A request belongs to its client; between submit() and its end it is the volume's.
#ifndef REVODRIVE_VOLUME_BLOCK_VOLUME_H
#define REVODRIVE_VOLUME_BLOCK_VOLUME_H

#include <string>
#include <vector>

#include "volume/windows.h"

namespace revodrive {

constexpr unsigned kMaxMembers = RD_MAX_PORTS;

enum class VolumeOp : uint8_t {
  kRead,
  kWrite,
  kVerify,
  kTrim,
  kFlush,   // all that has ended is on stable storage
  kOpen,    // ends when reads and writes may come
  kEach,    // `h2d` to every member, one by one in its queue
  kMember,  // `h2d` to `member`, whatever its state
};

// What went wrong first, in order of the volume's LBAs.
enum class VolumeFailure : uint8_t {
  kNone,
  kMedium,   // cannot be read
  kFault,    // device fault: cannot be written
  kAddress,  // the member says there is no such sector
  kAborted,
  kCrc,      // bytes were damaged on the way
  kLocked,   // by a password of the member
  kMissing,  // no member there, or not the one of this volume
  kData,     // the guest's memory could not be used
  kMap,      // the map of the volume is damaged, or of another volume
};

// A piece of a request on one member, where the placement made a list of them.
struct VolumePart {
  static constexpr uint8_t kGuest = 0, kHead = 1, kTail = 2;  // sources

  uint64_t lba = 0;  // of the member
  uint32_t sectors = 0;
  uint64_t volume_lba = 0;
  uint8_t member = 0;
  uint8_t source = kGuest;  // where its data is: the request's window, or one of its edges
  bool in_place = false;    // a write to where the block is already
  uint32_t link = 0;        // one more than the index of the member's next part, 0: none
};

struct VolumeRequest {
  // Set by the client.
  VolumeOp op = VolumeOp::kRead;
  uint64_t lba = 0;
  uint64_t sectors = 0;
  bool stable = false;  // writes: done only when on stable storage
  unsigned member = 0;
  Fis h2d{};
  DataWindow *data = nullptr;  // kRead, kWrite: sectors * 512 bytes; else what the command moves
  uint32_t data_bytes = 0;     // kEach, kMember
  bool data_apart = false;     // kEach: member n moves the n-th data_bytes of the window
  int64_t start_ns = 0;

  // The outcome.
  int64_t done_ns = 0;  // it is not done before
  VolumeFailure failure = VolumeFailure::kNone;
  uint64_t failed_lba = 0;                 // of the volume; kRead to kTrim
  Journey before;                          // up to there: of the commands it had waited for
  Journey last;                            // of the member command that ended last
  std::array<Fis, kMaxMembers> answers{};  // kEach, kMember: last FIS of each

  // The volume's own.
  SharedMap map;
  std::array<uint64_t, kMaxMembers> next{}, end{};  // of each member's share
  std::array<VolumeRequest *, kMaxMembers> link{};  // in the queue of that member
  uint8_t queued = 0;                               // bit n: waits in the queue of member n
  uint32_t running = 0;                             // member commands
  bool internal = false;                            // of the placement: no client hears of it
  bool submitting = false;                          // inside submit(), which tells the outcome
  bool over = false;
  // ... and of a placement that keeps a map (dispatch.h).
  enum class Phase : uint8_t { kFirst, kClearing, kCommit, kTrimming } phase = Phase::kFirst;
  std::vector<VolumePart> parts;
  std::array<uint32_t, kMaxMembers> last_part{};
  std::vector<VolumePart> holes;        // of reads: what is mapped nowhere
  std::array<BufferWindow, 2> edges{};  // blocks of the map that are written in part
  bool mapped = false;                  // the map has changed
  bool counted = false;                 // among what the members have to do

  // Of blocks of the volume.
  bool addressed() const { return op <= VolumeOp::kTrim; }
  bool moves_data() const { return op == VolumeOp::kRead || op == VolumeOp::kWrite; }
  // At the end of the member's share, which is 0 for none (next), up to 0 (end).
  void add_part(const VolumePart &part) {
    parts.push_back(part);
    auto index = static_cast<uint32_t>(parts.size());
    if (next[part.member] == 0)
      next[part.member] = index;
    else
      parts[last_part[part.member] - 1].link = index;
    last_part[part.member] = index;
  }
  bool failed() const { return failure != VolumeFailure::kNone; }
  void note_failure(VolumeFailure what, uint64_t at_lba) {
    if (failed() && failed_lba <= at_lba)
      return;
    failure = what;
    failed_lba = at_lba;
  }
};

class VolumeClient {
 public:
  virtual void volume_done(VolumeRequest &request) = 0;
  virtual void volume_late(int64_t late_ns) = 0;

 protected:
  ~VolumeClient() = default;
};

enum class MemberState : uint8_t {
  kReady,
  kMissing,  // nothing is plugged in
  kDown,     // the link is lost
  kForeign,  // another drive than the one this volume was made of
  kSmall,    // it has fewer sectors than its share: a crashed firmware, a host protected area
  kLocked,   // by its password
};

class BlockVolume {
 public:
  virtual ~BlockVolume() = default;
  virtual void set_client(VolumeClient *client) = 0;
  // True: it has ended already, and volume_done() does not come.
  virtual bool submit(VolumeRequest &request) = 0;
  // Afterwards nothing of it runs.
  virtual void cancel(VolumeRequest &request) = 0;

  // Resets the links of members that have nothing to do: a drive that hangs needs that.
  virtual void reset_links() = 0;

  virtual bool formed() const = 0;  // false: there were never enough members
  // Reads and writes may come; otherwise a request kOpen has to end first.
  virtual bool opened() const = 0;
  // Its map was read, and cannot be used: only an erase helps.
  virtual bool damaged() const = 0;
  // All members were just erased, or may have been in part.
  virtual void erased(bool completely) = 0;
  // How much of the time of a request's member commands has passed, of 65536; the slowest one's.
  virtual uint16_t progress(const VolumeRequest &request) const = 0;
  // Blocks that were unmapped, or never written, read as zeroes.
  virtual bool zeroes() const = 0;
  // What is mapped as one; 1 where there is no map.
  virtual uint32_t map_unit_sectors() const = 0;
  virtual uint64_t sectors() const = 0;
  virtual unsigned members() const = 0;
  virtual uint32_t chunk_sectors() const = 0;
  virtual MemberState state(unsigned member) const = 0;
  // IDENTIFY DEVICE and signature as they were when the member was last looked at; null: never.
  virtual const std::array<uint8_t, RD_SECTOR_BYTES> *identity(unsigned member) const = 0;
  // 64 bits that are the same for the same members in the same order.
  virtual uint64_t fingerprint() const = 0;
  // The time when the volume's firmware has taken up a request that came at `at_ns`.
  virtual int64_t accept(int64_t at_ns) = 0;
  virtual int64_t now_ns() const = 0;
};

}  // namespace revodrive
#endif
