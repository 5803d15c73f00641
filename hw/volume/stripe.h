// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where the blocks of a striped volume lie: chunk 0 on member 0, chunk 1 on member 1, and so on
// round the members, as md does with --build --level=0 over members of one size. The share of one
// member in any range of the volume is one range of that member. All counts are sectors.
#ifndef REVODRIVE_VOLUME_STRIPE_H
#define REVODRIVE_VOLUME_STRIPE_H

#include <algorithm>
#include <cstdint>

namespace revodrive {

class Stripe {
 public:
  Stripe() = default;
  // Members of other sizes: `member_sectors` is that of the smallest. What is left of it behind the
  // last whole chunk is not used.
  Stripe(unsigned members, uint32_t chunk_sectors, uint64_t member_sectors)
      : members_(members),
        chunk_(chunk_sectors),
        member_sectors_(member_sectors / chunk_sectors * chunk_sectors) {}

  unsigned members() const { return members_; }
  uint32_t chunk() const { return chunk_; }
  uint64_t member_sectors() const { return member_sectors_; }
  uint64_t sectors() const { return members_ * member_sectors_; }

  // Sectors of the member that lie below this LBA of the volume; so its share of [lba, end) is
  // [below(lba), below(end)).
  uint64_t below(unsigned member, uint64_t lba) const {
    uint64_t row = uint64_t{chunk_} * members_;
    uint64_t inside = lba % row, start = uint64_t{chunk_} * member;
    uint64_t part = inside > start ? std::min<uint64_t>(inside - start, chunk_) : 0;
    return lba / row * chunk_ + part;
  }
  uint64_t volume_lba(unsigned member, uint64_t lba) const {
    return (lba / chunk_ * members_ + member) * chunk_ + lba % chunk_;
  }
  // Sectors from `lba` of a member to the end of its chunk.
  uint32_t run(uint64_t lba) const { return chunk_ - static_cast<uint32_t>(lba % chunk_); }

 private:
  unsigned members_ = 1;
  uint32_t chunk_ = 1;
  uint64_t member_sectors_ = 0;
};

}  // namespace revodrive
#endif
