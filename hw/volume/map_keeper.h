// SPDX-License-Identifier: GPL-2.0-or-later
//
// Keeps the map of policy=dispatch on the members: reads it when the volume is first used, and
// makes it durable by commits. A commit is all or nothing, wherever power is lost:
//   1. pages that changed are written, each over the older of its two copies;
//   2. all members are flushed: the pages, and the data that they point to;
//   3. the record of the commit is written to all members. With the first of these it counts.
// Members that are blank get labels before the first write is let in. Who changes the map while a
// commit runs breaks it: the owner starts no write then.
//
// map_keeper.cc: commits; map_reader.cc: reading.
#ifndef REVODRIVE_VOLUME_MAP_KEEPER_H
#define REVODRIVE_VOLUME_MAP_KEEPER_H

#include <array>
#include <string>

#include "volume/dispatch_map.h"
#include "volume/map_area.h"
#include "volume/placement.h"

namespace revodrive {

class MapKeeperOwner {
 public:
  // read() has ended. Without failure the map is there, or state() is kBad.
  virtual void map_read(VolumeFailure failure) = 0;
  // False: the places in the map cannot be (two blocks in one).
  virtual bool accept_map() = 0;
  // A step of read() or commit() has ended, by a command that went this way.
  virtual void map_step(const Journey &way) = 0;
  // commit() has ended; after a failure it is as if it had not begun.
  virtual void map_committed(VolumeFailure failure) = 0;

 protected:
  ~MapKeeperOwner() = default;
};

class MapKeeper {
 public:
  enum class State : uint8_t { kUnread, kReady, kBad };
  using Written = std::array<uint64_t, RD_MAX_PORTS>;

  MapKeeper(PlacementHost &host, MapKeeperOwner &owner);

  void form(const DispatchLayout &layout);
  State state() const { return state_; }
  DispatchMap &map() { return map_; }
  const DispatchMap &map() const { return map_; }
  bool busy() const { return step_ != Step::kIdle; }
  // What the last commit that was read knew of the host's writes.
  const Written &written() const { return record_.written; }
  uint64_t commits() const { return commits_; }

  void read();
  void commit(const Written &written);
  // One of the keeper's own requests has ended.
  void ended(VolumeRequest &request);
  // What runs is forgotten. `power`: the map is what is stored.
  void drop(bool power);
  // Nobody can say what the members hold.
  void spoil(const std::string &why);

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  enum class Step : uint8_t {
    kIdle,
    kReadHead,     // labels and records
    kReadStart,    // of members without a label: are they somebody's?
    kFirstRecord,  // of commit 0, before the labels
    kLabels,
    kReadPages,
    kPages,
    kFlush,
    kRecord,
  };
  static constexpr uint32_t kBatch = 32;  // pages, or rows of pages, at once on a member

  void begin(Step step);
  void next();
  void fail(VolumeFailure failure);
  void start_commit();
  void end_commit(VolumeFailure failure);

  // Transfers of a step, one for each member.
  VolumeRequest &transfer(VolumeOp op, unsigned member, uint32_t sectors);
  void add(VolumeRequest &request, unsigned member, uint64_t lba, uint32_t sectors,
           uint32_t offset);
  void go(VolumeRequest &request);
  void flush();
  void write_labels();
  void write_records(const map_area::Record &record);
  bool write_pages();

  // map_reader.cc
  void read_heads();
  void heads_read();
  void read_starts();
  void starts_read();
  void labels_written();
  bool read_pages();
  bool take_pages();
  bool take_page(uint32_t page, std::span<const uint8_t> copies);
  void pages_read();
  bool find_record(uint64_t *oldest);
  void end_read();

  PlacementHost &host_;
  MapKeeperOwner &owner_;
  DispatchLayout layout_;
  DispatchMap map_;
  State state_ = State::kUnread;
  map_area::Record record_;   // of the last commit
  unsigned record_slot_ = 1;  // where it is
  bool record_pending_ =
      false;  // it may not be everywhere yet, and has to be before another commit
  uint64_t next_commit_ = 1;
  uint64_t commits_ = 0;

  Step step_ = Step::kIdle;
  uint64_t commit_ = 0;  // that runs
  Written written_{};
  uint32_t position_ = 0;  // in the list of dirty pages; a row
  unsigned pending_ = 0;   // transfers of the step
  VolumeFailure failure_ = VolumeFailure::kNone;
  std::array<VolumeRequest, kMaxMembers> transfers_;
  std::array<BufferWindow, kMaxMembers> buffers_;
};

}  // namespace revodrive
#endif
