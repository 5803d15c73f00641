// SPDX-License-Identifier: GPL-2.0-or-later
//
// Placement by the fixed layout of a stripe (stripe.h). The share of a member in any request is one
// range of it, so a request needs no list of parts: its shares are ranges of member LBAs.
#ifndef REVODRIVE_VOLUME_STRIPE_PLACEMENT_H
#define REVODRIVE_VOLUME_STRIPE_PLACEMENT_H

#include "volume/placement.h"
#include "volume/stripe.h"

namespace revodrive {

class StripePlacement final : public Placement {
 public:
  StripePlacement(PlacementHost &host, unsigned members, uint32_t chunk_sectors)
      : host_(host), stripe_(members, chunk_sectors, 0) {}

  uint64_t least_sectors() const override { return stripe_.chunk(); }
  bool form(uint64_t smallest) override;
  uint64_t sectors() const override { return stripe_.sectors(); }
  uint64_t member_sectors() const override { return stripe_.member_sectors(); }
  bool opened() const override { return stripe_.member_sectors() > 0; }
  bool damaged() const override { return false; }
  bool keeps_map() const override { return false; }
  bool zeroes() const override { return false; }
  uint32_t unit_sectors() const override { return 1; }
  void submit(VolumeRequest &request) override;
  void ended(VolumeRequest &request) override { host_.finish(request); }
  void cancel(VolumeRequest &) override {}
  void drop_all(bool) override {}
  void erased(bool) override {}
  MemberRun take(VolumeRequest &request, unsigned member) override;
  uint64_t next_lba(const VolumeRequest &request, unsigned member) const override {
    return stripe_.volume_lba(member, request.next[member]);
  }
  uint64_t volume_lba(const MemberRun &, unsigned member, uint64_t lba) const override {
    return stripe_.volume_lba(member, lba);
  }
  void query(const Visitor &) const override {}
  void save(StreamWriter &out) const override { out.put(stripe_.member_sectors()); }
  void load(StreamReader &in) override;

 private:
  PlacementHost &host_;
  Stripe stripe_;
};

}  // namespace revodrive
#endif
