// SPDX-License-Identifier: GPL-2.0-or-later
#include "volume/stripe_placement.h"

#include <algorithm>

namespace revodrive {

namespace {

constexpr uint32_t kMaxRange = 65535;  // sectors of a TRIM range or a verify

}  // namespace

bool StripePlacement::form(uint64_t smallest) {
  stripe_ = Stripe(stripe_.members(), stripe_.chunk(), smallest);
  return stripe_.member_sectors() > 0;
}

void StripePlacement::submit(VolumeRequest &request) {
  if (request.op == VolumeOp::kOpen)
    return host_.finish(request);
  for (unsigned i = 0; i < stripe_.members(); i++) {
    request.next[i] = stripe_.below(i, request.lba);
    request.end[i] = stripe_.below(i, request.lba + request.sectors);
  }
  host_.send(request);
}

// Reads and writes end at the chunk, as what follows on the member is not what follows here.
MemberRun StripePlacement::take(VolumeRequest &request, unsigned member) {
  uint64_t lba = request.next[member];
  uint64_t left = request.end[member] - lba;
  uint64_t most = request.moves_data() ? stripe_.run(lba) : kMaxRange;
  auto sectors = static_cast<uint32_t>(std::min(left, most));
  request.next[member] += sectors;
  return {lba, sectors, stripe_.volume_lba(member, lba), nullptr};
}

void StripePlacement::load(StreamReader &in) {
  auto member_sectors = in.get<uint64_t>();
  if (member_sectors % stripe_.chunk() != 0 || member_sectors >= uint64_t{1} << 48)
    in.fail();
  if (in.ok())
    stripe_ = Stripe(stripe_.members(), stripe_.chunk(), member_sectors);
}

}  // namespace revodrive
