// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which places of one member are free: a bitmap with summaries above it, so that a search takes a
// few steps however large the member is. The lowest free places are used first: what lies above
// the highest place ever used stays untouched, which the member's flash translation lives on.
#ifndef REVODRIVE_VOLUME_FREE_SPACE_H
#define REVODRIVE_VOLUME_FREE_SPACE_H

#include <cstdint>
#include <vector>

namespace revodrive {

class FreeSpace {
 public:
  struct Run {
    uint64_t first = 0;
    uint32_t count = 0;
  };

  // All of `places` are free afterwards.
  void reset(uint64_t places);
  uint64_t free() const { return free_; }
  bool is_free(uint64_t place) const { return levels_[0][place / kBits] >> place % kBits & 1; }
  // The lowest run of `wanted` free places, if one of the first few runs is as long; else the
  // longest of these. Count 0: nothing is free.
  Run find(uint32_t wanted) const;
  // They have to be free, or taken.
  void take(uint64_t first, uint32_t count);
  void release(uint64_t first, uint32_t count);

 private:
  static constexpr unsigned kBits = 64;
  static constexpr unsigned kRuns = 16;  // that a search looks at

  uint64_t next(uint64_t from) const;
  uint32_t length(uint64_t first, uint32_t most) const;

  uint64_t places_ = 0;
  uint64_t free_ = 0;
  // Bit n of the lowest is place n; bit n of the others is: word n of the level below is not 0.
  std::vector<std::vector<uint64_t>> levels_;
};

}  // namespace revodrive
#endif
