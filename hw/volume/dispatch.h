// SPDX-License-Identifier: GPL-2.0-or-later
//
// Placement as OCZ described it: what is written goes to the SSD that is free, wherever the blocks
// were before, and a map remembers. Rules, guarantees and format: docs/vca.md.
//
// Reads go as the map says. What changes the map (writes, trims) stands in line with flushes:
// those that touch the same blocks wait for each other, a flush waits for all before it and lets
// none pass, and while a commit runs none starts. So a commit sees a map at rest.
//
// dispatch.cc: the line; dispatch_place.cc: who gets what; map_keeper.h: the map on the members.
#ifndef REVODRIVE_VOLUME_DISPATCH_H
#define REVODRIVE_VOLUME_DISPATCH_H

#include <array>
#include <vector>

#include "revodrive/profile.h"
#include "volume/free_space.h"
#include "volume/map_keeper.h"
#include "volume/placement.h"

namespace revodrive {

class Dispatch final : public Placement, private MapKeeperOwner {
 public:
  Dispatch(PlacementHost &host, unsigned members, uint32_t chunk_sectors,
           const VolumeProfile &profile);

  uint64_t least_sectors() const override { return DispatchLayout::kLeastSectors; }
  bool form(uint64_t smallest) override;
  uint64_t sectors() const override { return layout_.units * kUnit; }
  uint64_t member_sectors() const override { return layout_.end_lba; }
  bool opened() const override { return keeper_.state() == MapKeeper::State::kReady; }
  bool damaged() const override { return keeper_.state() == MapKeeper::State::kBad; }
  bool keeps_map() const override { return true; }
  bool zeroes() const override { return true; }
  uint32_t unit_sectors() const override { return kUnit; }
  void submit(VolumeRequest &request) override;
  void ended(VolumeRequest &request) override;
  void cancel(VolumeRequest &request) override;
  void drop_all(bool power) override;
  void erased(bool completely) override;
  MemberRun take(VolumeRequest &request, unsigned member) override;
  uint64_t next_lba(const VolumeRequest &request, unsigned member) const override;
  uint64_t volume_lba(const MemberRun &run, unsigned, uint64_t lba) const override {
    return run.volume_lba + (lba - run.lba);
  }
  void query(const Visitor &visit) const override;
  void save(StreamWriter &out) const override;
  void load(StreamReader &in) override;

 private:
  static constexpr uint32_t kUnit = DispatchLayout::kUnitSectors;
  static constexpr uint32_t kDepth = 32;       // parts that a member has; more wait in line
  static constexpr uint32_t kLongest = 65528;  // sectors of a part: what a TRIM range holds
  using Line = std::vector<VolumeRequest *>;

  // dispatch.cc
  void open(VolumeRequest &request);
  void pump();
  VolumeRequest *startable();
  bool conflicts(const VolumeRequest &request, const Line &with, size_t count) const;
  void start(VolumeRequest &request);
  bool full() const;
  bool unsafe(const VolumeRequest &request) const;
  VolumeFailure members_failure() const;
  void begin_commit();
  void end_change(VolumeRequest &request);
  void wait_for_places(VolumeRequest &request);
  void fail(VolumeRequest &request, VolumeFailure failure);
  void release_pending();
  void map_read(VolumeFailure failure) override;
  bool accept_map() override;
  void map_step(const Journey &way) override;
  void map_committed(VolumeFailure failure) override;
  bool claim(uint32_t place);
  bool load_map(StreamReader &in);

  // dispatch_place.cc
  void assign(VolumeRequest &request, const VolumePart &part);
  void assign_write(VolumeRequest &request, const VolumePart &part);
  void discount(VolumeRequest &request);
  void give_back(const VolumePart &part);
  void retract(VolumeRequest &request);
  void charge(VolumeRequest &request, uint64_t chunks);
  void look_up(VolumeRequest &request);
  int choose();
  bool place_write(VolumeRequest &request);
  bool place_edge(VolumeRequest &request, uint64_t unit);
  bool place_chunk(VolumeRequest &request, uint64_t unit, uint32_t units);
  void enter(VolumeRequest &request);
  void clear_edges(VolumeRequest &request);
  void clear_edge(VolumeRequest &request, uint64_t lba, uint64_t end, uint8_t source);
  void unmap(VolumeRequest &request);
  uint64_t unit_lba(uint32_t place) const { return (place - 1) % layout_.places * kUnit; }
  unsigned member_of(uint32_t place) const {
    return static_cast<unsigned>((place - 1) / layout_.places);
  }
  uint32_t place_of(unsigned member, uint64_t number) const {
    return static_cast<uint32_t>(member * layout_.places + number + 1);
  }

  PlacementHost &host_;
  unsigned members_;
  uint32_t chunk_;  // sectors that go to one SSD as one
  VolumeProfile profile_;
  DispatchLayout layout_;
  uint64_t smallest_ = 0;
  MapKeeper keeper_;
  std::array<FreeSpace, kMaxMembers> free_;
  std::array<uint32_t, kMaxMembers> load_{};     // parts with the member, or waiting there
  std::array<uint64_t, kMaxMembers> written_{};  // sectors of the host
  std::vector<uint32_t> pending_;                // places that are free after the next commit

  Line opening_;     // wait for the map
  Line line_;        // wait for their turn
  Line flying_;      // change the map when they end
  Line committing_;  // wait for the commit, the first `covered_` for the one that runs
  size_t covered_ = 0;
  bool commit_wanted_ = false;
  bool short_ = false;  // of places: the first in line waits for a commit
  bool pumping_ = false;
  uint64_t crowded_ = 0;  // chunks that went past the balance for want of places
};

}  // namespace revodrive
#endif
