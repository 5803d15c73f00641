// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which parts of the mapping table are in the controller. A drive without DRAM holds the mapping of
// a part of its units; the rest is in flash and comes in map pages, each of so many neighbouring
// units. Sets of four pages, the one used longest ago goes.
#ifndef REVODRIVE_SF2281_MAP_CACHE_H
#define REVODRIVE_SF2281_MAP_CACHE_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "revodrive/stream.h"

namespace revodrive {

class MapCache {
 public:
  // `units` 0: everything is in the controller.
  MapCache(uint64_t units, uint32_t page_units)
      : page_units_(page_units), sets_((units / page_units + kWays - 1) / kWays) {}

  bool whole() const { return sets_.empty(); }
  uint64_t page_of(uint64_t unit) const { return unit / page_units_; }
  uint32_t page_units() const { return page_units_; }
  // True: it was there. It is from now on.
  bool use(uint64_t page) {
    if (whole())
      return true;
    Set &set = sets_[page % sets_.size()];
    auto tag = static_cast<uint32_t>(page + 1);
    for (size_t way = 0; way < kWays; way++) {
      if (set[way] != tag)
        continue;
      std::rotate(set.begin(), set.begin() + way, set.begin() + way + 1);
      return true;
    }
    std::rotate(set.begin(), set.end() - 1, set.end());
    set[0] = tag;
    return false;
  }
  void clear() { std::fill(sets_.begin(), sets_.end(), Set{}); }
  uint64_t memory_bytes() const { return sets_.size() * sizeof(Set); }

  void save(StreamWriter &out) const {
    out.put(static_cast<uint32_t>(sets_.size()));
    for (const Set &set : sets_)
      for (uint32_t tag : set)
        out.put(tag);
  }
  void load(StreamReader &in) {
    if (in.get<uint32_t>() != sets_.size())
      in.fail();
    for (Set &set : sets_)
      for (uint32_t &tag : set)
        in.get(tag);
  }

 private:
  static constexpr size_t kWays = 4;
  using Set = std::array<uint32_t, kWays>;  // page + 1, most recent first

  uint32_t page_units_;
  std::vector<Set> sets_;
};

}  // namespace revodrive
#endif
