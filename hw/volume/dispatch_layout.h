// SPDX-License-Identifier: GPL-2.0-or-later
//
// How policy=dispatch uses its members: places for data from the first sector on, one for each
// block of 4 KiB; behind them, at the end, the area of the map (map_area.h). The same on each
// member. Some places are kept back, so that a full volume can still put blocks elsewhere.
#ifndef REVODRIVE_VOLUME_DISPATCH_LAYOUT_H
#define REVODRIVE_VOLUME_DISPATCH_LAYOUT_H

#include <algorithm>
#include <cstdint>

namespace revodrive {

struct DispatchLayout {
  static constexpr uint32_t kUnitSectors = 8;       // of a block of the map
  static constexpr uint32_t kPageEntries = 1016;    // blocks in a page of the map
  static constexpr uint32_t kPageSectors = 8;       // of one of its two copies
  static constexpr uint32_t kHeadSectors = 32;      // label and records, before the pages
  static constexpr uint64_t kLeastSpare = 1024;     // places; one request takes up to 1024
  static constexpr uint64_t kSpareShare = 64;       // one in so many
  static constexpr uint64_t kLeastSectors = 32768;  // of a member: 16 MiB

  unsigned members = 0;
  uint64_t places = 0;    // of a member
  uint64_t units = 0;     // blocks of the volume
  uint32_t pages = 0;     // of the map
  uint64_t area_lba = 0;  // of a member
  uint64_t end_lba = 0;   // behind the area

  // Members = 0: it cannot be done, because they are too small or too large.
  static DispatchLayout make(unsigned members, uint64_t member_sectors) {
    DispatchLayout layout;
    uint64_t all = member_sectors / kUnitSectors;
    uint64_t rows = all / kPageEntries + 1;  // pages on a member
    uint64_t area = (kHeadSectors + rows * 2 * kPageSectors) / kUnitSectors;
    if (member_sectors < kLeastSectors || (all - area) * members >= UINT32_MAX)
      return layout;
    layout.places = all - area;
    layout.units = members * (layout.places - std::max(kLeastSpare, layout.places / kSpareShare));
    layout.pages = static_cast<uint32_t>((layout.units + kPageEntries - 1) / kPageEntries);
    layout.area_lba = layout.places * kUnitSectors;
    layout.end_lba = all * kUnitSectors;
    layout.members = members;
    return layout;
  }

  // Page n lies on member n modulo their number, in its row there.
  uint32_t rows() const { return (pages + members - 1) / members; }
  uint64_t label_lba() const { return area_lba; }
  uint64_t record_lba(unsigned slot) const { return area_lba + 8 + 8 * uint64_t{slot}; }
  uint64_t row_lba(uint32_t row) const {
    return area_lba + kHeadSectors + uint64_t{row} * 2 * kPageSectors;
  }
  uint64_t page_lba(uint32_t page, unsigned slot) const {
    return row_lba(page / members) + uint64_t{slot} * kPageSectors;
  }
};

}  // namespace revodrive
#endif
