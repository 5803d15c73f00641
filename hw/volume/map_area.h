// SPDX-License-Identifier: GPL-2.0-or-later
//
// What stands in front of the map's pages at the end of each member (docs/vca.md has the format): a
// label, which says that the member is one of a volume and which, and the record of the last
// commit, in two slots that take turns. One sector each, with a checksum, little-endian.
#ifndef REVODRIVE_VOLUME_MAP_AREA_H
#define REVODRIVE_VOLUME_MAP_AREA_H

#include <array>
#include <cstdint>
#include <span>

#include "revodrive/host.h"
#include "volume/dispatch_layout.h"

namespace revodrive::map_area {

using Sector = std::span<uint8_t, RD_SECTOR_BYTES>;
using ConstSector = std::span<const uint8_t, RD_SECTOR_BYTES>;

void put(std::span<uint8_t> bytes, size_t at, size_t count, uint64_t value);
uint64_t get(std::span<const uint8_t> bytes, size_t at, size_t count);
uint64_t checksum(std::span<const uint8_t> bytes);
// Nothing was ever written there, or it was erased or trimmed.
bool is_blank(std::span<const uint8_t> bytes);

struct Label {
  uint64_t volume = 0;  // the same on all members
  unsigned member = 0;
  DispatchLayout layout;

  void encode(Sector out) const;
};

enum class Found : uint8_t {
  kGood,
  kBlank,
  kDamaged,  // or something else
  kOther,    // of another version or layout
  kForeign,  // of another volume, or another member of it
};

// Of the member at that place; *volume is set when it is good or foreign.
Found read_label(ConstSector bytes, unsigned member, const DispatchLayout &layout,
                 uint64_t *volume);

struct Record {
  uint64_t commit = 0;
  uint64_t previous = 0;                         // the commit before it
  uint64_t sum = 0;                              // DispatchMap::sum()
  std::array<uint64_t, RD_MAX_PORTS> written{};  // by the host to each member, in sectors

  void encode(Sector out) const;
  bool decode(ConstSector bytes);  // false: there is none
};

}  // namespace revodrive::map_area
#endif
