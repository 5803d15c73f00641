// SPDX-License-Identifier: GPL-2.0-or-later
//
// What an image holds, in mapping units of the drive: a unit counts as written as soon as any byte
// of it does. Ranges are in order, do not touch each other and lie in the drive, whatever the
// extents were that they come from.
#ifndef REVODRIVE_SF2281_WRITTEN_H
#define REVODRIVE_SF2281_WRITTEN_H

#include <cstdint>
#include <span>
#include <vector>

#include "revodrive/host.h"

namespace revodrive {

struct UnitRange {
  uint32_t first = 0;
  uint32_t count = 0;  // never 0
};

// Extents in any order, which may overlap and reach beyond the drive.
std::vector<UnitRange> written_units(std::span<const rd_extent> data, uint64_t drive_bytes,
                                     uint32_t unit_bytes);

}  // namespace revodrive
#endif
