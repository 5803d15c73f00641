// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where the blocks of a volume lie on its members, and what a request has to go through because of
// that. The volume gives each request to its placement, which has it sent to the members, now or
// later, and says when it is over. stripe_placement.h: the layout of md's RAID 0; dispatch.h: a
// map.
#ifndef REVODRIVE_VOLUME_PLACEMENT_H
#define REVODRIVE_VOLUME_PLACEMENT_H

#include <functional>
#include <string_view>

#include "revodrive/stream.h"
#include "volume/block_volume.h"

namespace revodrive {

// The next command for a member of a request that addresses the medium.
struct MemberRun {
  uint64_t lba = 0;  // of the member
  uint32_t sectors = 0;
  uint64_t volume_lba = 0;
  DataWindow *data = nullptr;  // null: the request's own window
};

// What a placement asks of its volume.
class PlacementHost {
 public:
  // For an internal request before its shares are set: as if it came from a client.
  virtual void prepare(VolumeRequest &request) = 0;
  // Sends all shares (next to end of each member). Placement::ended() follows, maybe from inside.
  virtual void send(VolumeRequest &request) = 0;
  // The request is over: its client is told, unless it is internal.
  virtual void finish(VolumeRequest &request) = 0;
  // When the firmware has worked on something for `cost_ns`.
  virtual int64_t work(int64_t at_ns, int64_t cost_ns) = 0;
  virtual int64_t now_ns() const = 0;
  virtual MemberState state(unsigned member) const = 0;
  virtual uint64_t fingerprint() const = 0;
  // A text for a person who runs the machine.
  virtual void warn(const std::string &text) = 0;

 protected:
  ~PlacementHost() = default;
};

class Placement {
 public:
  using Visitor = std::function<void(std::string_view name, uint64_t value)>;

  virtual ~Placement() = default;
  // The smallest member that makes a volume.
  virtual uint64_t least_sectors() const = 0;
  // All members are known, the smallest has so many sectors. False: there is no volume of them.
  virtual bool form(uint64_t smallest) = 0;
  virtual uint64_t sectors() const = 0;         // of the volume
  virtual uint64_t member_sectors() const = 0;  // that each member has to have
  virtual bool opened() const = 0;
  virtual bool damaged() const = 0;
  virtual bool keeps_map() const = 0;  // a flush is more than a flush of all members
  virtual bool zeroes() const = 0;
  virtual uint32_t unit_sectors() const = 0;

  // Takes the request; PlacementHost::finish() comes sooner or later, maybe from inside.
  virtual void submit(VolumeRequest &request) = 0;
  // All its shares have ended.
  virtual void ended(VolumeRequest &request) = 0;
  // Nothing of it is with a member any more, and it is to be forgotten.
  virtual void cancel(VolumeRequest &request) = 0;
  // The same for all requests. `power`: what was not on stable storage is lost.
  virtual void drop_all(bool power) = 0;
  virtual void erased(bool completely) = 0;

  // Moves request.next[member] past what it gives.
  virtual MemberRun take(VolumeRequest &request, unsigned member) = 0;
  // The block of the volume at request.next[member].
  virtual uint64_t next_lba(const VolumeRequest &request, unsigned member) const = 0;
  // ... and at `lba` of the member, which lies in `run`.
  virtual uint64_t volume_lba(const MemberRun &run, unsigned member, uint64_t lba) const = 0;

  virtual void query(const Visitor &visit) const = 0;
  virtual void save(StreamWriter &out) const = 0;
  // After the same members were formed.
  virtual void load(StreamReader &in) = 0;
};

}  // namespace revodrive
#endif
