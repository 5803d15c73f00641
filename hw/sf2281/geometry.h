// SPDX-License-Identifier: GPL-2.0-or-later
//
// How much flash a drive has and how it is cut, from the profile and the drive's size. A superblock
// is one block of each plane of each die: it is filled in stripes over all dies, collected and
// erased as a whole. The number of blocks follows the drive's size, so that a small image behaves
// like the real drive:
//   - raw flash = size x raw_permille / 1000, rounded to whole superblocks;
//   - with fewer than 512 superblocks, blocks get half the pages (tBERS shrinks alike) until there
//     are as many or a superblock would hold too little; with more than 16384, twice the pages;
//   - at least kSpare superblocks more than the data needs, whatever the ratio says.
// What the ratio itself cannot hold, or a fixed number of blocks, is refused.
#ifndef REVODRIVE_SF2281_GEOMETRY_H
#define REVODRIVE_SF2281_GEOMETRY_H

#include <cstdint>

#include "revodrive/host.h"
#include "revodrive/profile.h"

namespace revodrive {

struct FlashGeometry {
  // Two open superblocks, and what garbage collection needs to finish one.
  static constexpr uint32_t kSpare = 6;

  uint64_t units = 0;       // mapping units of the drive
  uint32_t unit_bytes = 0;  // a power of two
  uint32_t granule = 0;     // of stored sizes: unit_bytes / 256

  uint32_t channels = 0;
  uint32_t dies = 0;
  uint32_t planes = 0;
  uint32_t page_bytes = 0;
  uint32_t block_pages = 0;
  bool raise = false;

  uint32_t superblocks = 0;
  uint32_t least_superblocks = 0;  // what the drive cannot do without
  uint32_t data_dies = 0;          // of a stripe: without parity
  uint32_t group_bytes = 0;        // a page of each plane of a die
  uint64_t data_bytes = 0;         // of a superblock, parity excluded
  uint32_t room_bytes = 0;         // what an append takes at most: a unit, and the journal's page
  uint32_t slot_bytes = 0;         // addresses within a superblock are kept in these steps
  uint32_t slot_bits = 0;          // a superblock has 1 << slot_bits addresses, not all are used

  uint64_t block_count() const { return uint64_t{superblocks} * dies * planes; }
  uint64_t raw_bytes() const { return block_count() * block_pages * page_bytes; }

  // False: *error says with the arithmetic what does not fit.
  static bool make(const FlashProfile &profile, uint64_t sectors, FlashGeometry *out,
                   rd_error *error);
};

}  // namespace revodrive
#endif
