// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which chunks a controller that deduplicates still knows: the hashes of the last ones it stored,
// one to a place, so that a new chunk replaces the one that had its place. It is the controller's
// working memory: lost with the power, part of the saved state.
#ifndef REVODRIVE_SF2281_DEDUPE_WINDOW_H
#define REVODRIVE_SF2281_DEDUPE_WINDOW_H

#include <algorithm>
#include <cstdint>
#include <vector>

#include "revodrive/stream.h"
#include "sf2281/content_hash.h"

namespace revodrive {

class DedupeWindow {
 public:
  // How many chunks it knows; 0: none ever.
  explicit DedupeWindow(uint32_t chunks) : places_(chunks) {}

  bool active() const { return !places_.empty(); }
  // Whether it knows the chunk; it does from now on. Only while active.
  bool seen(const ContentHash &hash) {
    ContentHash &place = places_[hash.low % places_.size()];
    bool known = place == hash;
    place = hash;
    return known;
  }
  void forget() { std::fill(places_.begin(), places_.end(), ContentHash{}); }

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  std::vector<ContentHash> places_;
};

}  // namespace revodrive
#endif
