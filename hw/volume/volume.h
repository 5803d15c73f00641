// SPDX-License-Identifier: GPL-2.0-or-later
//
// The members as one range of blocks (OCZ's name for the firmware that did this was VCA). The
// placement says which part of a request is whose; each member takes its part in its own queue, and
// the request ends when all parts have. Rules of order and atomicity are in docs/vca.md.
//
// The volume is made of the members that are there when the last one of a new card is plugged in.
// From then on its size stays, and a member that was away comes back only as the same drive.
#ifndef REVODRIVE_VOLUME_VOLUME_H
#define REVODRIVE_VOLUME_VOLUME_H

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "revodrive/profile.h"
#include "revodrive/scsi_command.h"
#include "volume/member_port.h"

namespace revodrive {

struct VolumeParts {
  HostPort &host;
  EventQueue &queue;
  VolumeProfile profile;
  bool timing;
  rd_policy policy = RD_POLICY_STRIPE;
};

class Volume final : public BlockVolume, public MemberPortOwner, private PlacementHost {
 public:
  static constexpr uint32_t kMinChunkBytes = 4096;
  static constexpr uint32_t kMaxChunkBytes = 16 << 20;

  Volume(const VolumeParts &parts, unsigned members, uint32_t chunk_bytes);

  // False with a message: a drive of that size is too small to be a member.
  bool check(uint64_t member_sectors, rd_error *error) const;
  void plug(unsigned member, AtaTarget &target);
  void unplug(unsigned member) { ports_[member]->unplug(); }
  // Everything in flight goes without a word; the drives were reset by their owner. `power`: it was
  // off.
  void drop_all(bool power = false);
  void inspect();

  // Fault injection, as Bridge has it for a phy.
  MemberPort &port(unsigned member) { return *ports_[member]; }

  using Visitor = std::function<void(std::string_view name, uint64_t value)>;
  void query(const Visitor &visit) const;
  // Requests in flight are not saved: the bridge delivers them anew.
  void save(StreamWriter &out) const;
  void load(StreamReader &in);

  // BlockVolume
  void set_client(VolumeClient *client) override { client_ = client; }
  bool submit(VolumeRequest &request) override;
  void cancel(VolumeRequest &request) override;
  void reset_links() override;
  bool formed() const override { return formed_; }
  bool opened() const override { return formed_ && placement_->opened(); }
  bool damaged() const override { return formed_ && placement_->damaged(); }
  void erased(bool completely) override { placement_->erased(completely); }
  uint16_t progress(const VolumeRequest &request) const override;
  bool zeroes() const override { return placement_->zeroes(); }
  uint32_t map_unit_sectors() const override { return placement_->unit_sectors(); }
  uint64_t sectors() const override { return formed_ ? placement_->sectors() : 0; }
  unsigned members() const override { return members_; }
  uint32_t chunk_sectors() const override { return chunk_sectors_; }
  // The chunk of a state that load() refused for it; 0: it was not that. Asked once.
  uint32_t take_alien_chunk_sectors() { return std::exchange(alien_chunk_sectors_, 0); }
  rd_policy policy() const { return parts_.policy; }
  MemberState state(unsigned member) const override { return ports_[member]->state(); }
  const MemberPort::Identity *identity(unsigned member) const override {
    return ports_[member]->identity();
  }
  uint64_t fingerprint() const override;
  int64_t accept(int64_t at_ns) override;
  int64_t now_ns() const override { return parts_.host.now_ns(); }

 private:
  void form();
  void send_to(VolumeRequest &request);
  void fill_holes(VolumeRequest &request);
  bool ended(const VolumeRequest &request) const {
    return request.running == 0 && request.queued == 0;
  }

  // PlacementHost
  void prepare(VolumeRequest &request) override;
  void send(VolumeRequest &request) override;
  void finish(VolumeRequest &request) override;
  int64_t work(int64_t at_ns, int64_t cost_ns) override;
  void warn(const std::string &text) override;

  // MemberPortOwner
  Placement &placement() override { return *placement_; }
  int64_t schedule(int64_t at_ns) override;
  void part_done(VolumeRequest &request) override;
  void member_late(int64_t late_ns) override { client_->volume_late(late_ns); }
  bool is_ours(unsigned member, const MemberPort::Identity &identity) override;

  VolumeParts parts_;
  unsigned members_;
  uint32_t chunk_sectors_;
  uint32_t alien_chunk_sectors_ = 0;
  VolumeClient *client_ = nullptr;
  std::array<std::unique_ptr<MemberPort>, kMaxMembers> ports_;
  std::unique_ptr<Placement> placement_;
  bool formed_ = false;
  std::array<uint64_t, kMaxMembers> names_{};  // of the drives it was made of
  Timeline firmware_;
  uint64_t requests_ = 0;
  uint64_t failed_ = 0;
  uint64_t written_ = 0;  // sectors, by clients
};

// The SAS target in front of a volume; the volume must outlive it.
std::unique_ptr<ScsiTarget> make_scsi_target(BlockVolume &volume, const IdentityProfile &identity);

}  // namespace revodrive
#endif
