// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/dispatch.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "sim/user_error.h"

namespace revodrive::sim {

namespace {

// A granule's place: member in the upper bits, granule of the member below, plus one; 0: nowhere.
constexpr unsigned kMemberShift = 29;
constexpr uint32_t kGranuleMask = (1u << kMemberShift) - 1;

class Dispatch final : public Placement {
 public:
  Dispatch(const Members &members, uint32_t granule)
      : members_(members), granule_(granule), per_member_(members.bytes / granule) {
    if (per_member_ >= kGranuleMask)
      refuse("--placement=dispatch: SSDs of %llu bytes have too many granules of %u bytes",
             static_cast<unsigned long long>(members.bytes), granule);
    map_.reset(static_cast<uint32_t *>(std::calloc(granules(), sizeof(uint32_t))));
    if (!map_)
      refuse("--placement=dispatch: no memory for a map of %llu granules",
             static_cast<unsigned long long>(granules()));
  }
  uint64_t bytes() const override { return granules() * granule_; }
  void place(const IoRequest &io, std::vector<AtaRequest> &out) override;

 private:
  struct Free {
    void operator()(uint32_t *map) const { std::free(map); }
  };
  // One granule is kept back on each member, so that a full one can still exchange.
  uint64_t granules() const { return (per_member_ - 1) * members_.count; }
  unsigned least_busy() const;
  uint32_t allocate(unsigned port);
  void remap(uint64_t first, uint64_t last);
  uint32_t home(uint64_t granule) const;

  Members members_;
  uint32_t granule_;
  uint64_t per_member_;
  std::unique_ptr<uint32_t, Free> map_;
  std::array<uint32_t, RD_MAX_PORTS>
      next_{};  // granules of a member that were never used start here
  std::array<std::vector<uint32_t>, RD_MAX_PORTS> free_;
};

unsigned Dispatch::least_busy() const {
  unsigned best = 0;
  uint64_t best_load = UINT64_MAX;
  for (unsigned port = 0; port < members_.count; port++) {
    bool full = free_[port].empty() && next_[port] == per_member_;
    // Among equals the one with most room, which spreads wear.
    uint64_t load = uint64_t{members_.in_flight[port]} << 32 | (next_[port] - free_[port].size());
    if (!full && load < best_load) {
      best = port;
      best_load = load;
    }
  }
  return best;
}

uint32_t Dispatch::allocate(unsigned port) {
  if (free_[port].empty())
    return next_[port]++;
  uint32_t granule = free_[port].back();
  free_[port].pop_back();
  return granule;
}

// Granules that a write covers whole move to one member, as far as it has room.
void Dispatch::remap(uint64_t first, uint64_t last) {
  unsigned port = least_busy();
  for (uint64_t granule = first; granule < last; granule++) {
    if (free_[port].empty() && next_[port] == per_member_)
      port = least_busy();
    uint32_t &place = map_.get()[granule];
    if (place != 0)
      free_[(place - 1) >> kMemberShift].push_back((place - 1) & kGranuleMask);
    place = (port << kMemberShift | allocate(port)) + 1;
  }
}

// Where a granule that was never written would be read from: nobody can tell the difference.
uint32_t Dispatch::home(uint64_t granule) const {
  if (map_.get()[granule] != 0)
    return map_.get()[granule] - 1;
  return static_cast<uint32_t>(granule % members_.count) << kMemberShift |
         static_cast<uint32_t>(granule / members_.count);
}

void Dispatch::place(const IoRequest &io, std::vector<AtaRequest> &out) {
  if (io.op == Op::kFlush)
    return append_flushes(members_, out);
  uint64_t end = io.offset + io.bytes;
  uint64_t whole = (io.offset + granule_ - 1) / granule_;
  if (io.op == Op::kWrite) {
    remap(whole, std::max(whole, end / granule_));
    // A granule that is written in part for the first time gets a place, too.
    for (uint64_t edge : {io.offset / granule_, (end - 1) / granule_}) {
      if (map_.get()[edge] == 0)
        remap(edge, edge + 1);
    }
  }
  for (uint64_t at = io.offset; at < end;) {
    uint32_t place = home(at / granule_);
    uint64_t stop = std::min(end, (at / granule_ + 1) * granule_);
    while (stop < end && home(stop / granule_) == place + (stop / granule_ - at / granule_))
      stop = std::min(end, stop + granule_);
    IoRequest part = io;
    part.buffer += at - io.offset;
    append_range(members_, part, place >> kMemberShift,
                 uint64_t{place & kGranuleMask} * granule_ + at % granule_, stop - at, out);
    at = stop;
  }
}

}  // namespace

std::unique_ptr<Placement> dispatch(const Members &members, uint32_t granule) {
  return std::make_unique<Dispatch>(members, granule);
}

}  // namespace revodrive::sim
