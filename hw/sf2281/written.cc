// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/written.h"

#include <algorithm>

namespace revodrive {

std::vector<UnitRange> written_units(std::span<const rd_extent> data, uint64_t drive_bytes,
                                     uint32_t unit_bytes) {
  std::vector<UnitRange> ranges;
  ranges.reserve(data.size());
  for (const rd_extent &extent : data) {
    if (extent.bytes == 0 || extent.offset >= drive_bytes)
      continue;
    uint64_t last = extent.offset + std::min(extent.bytes, drive_bytes - extent.offset) - 1;
    uint64_t first = extent.offset / unit_bytes;
    ranges.push_back(
        {static_cast<uint32_t>(first), static_cast<uint32_t>(last / unit_bytes - first + 1)});
  }
  auto before = [](const UnitRange &a, const UnitRange &b) { return a.first < b.first; };
  if (!std::is_sorted(ranges.begin(), ranges.end(), before))
    std::sort(ranges.begin(), ranges.end(), before);
  size_t kept = 0;
  for (const UnitRange &range : ranges) {
    if (kept > 0 && range.first <= ranges[kept - 1].first + ranges[kept - 1].count) {
      UnitRange &last = ranges[kept - 1];
      last.count = std::max(last.count, range.first - last.first + range.count);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
  return ranges;
}

}  // namespace revodrive
