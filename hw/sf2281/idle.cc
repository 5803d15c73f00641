// SPDX-License-Identifier: GPL-2.0-or-later
//
// Background collection, which some firmware does while the host leaves the drive alone: when no
// command has come for idle_gc_ms, superblocks are collected until idle_gc_free_permille of them
// are free, none that is left is worth moving, or a command comes. What was begun is ended then:
// the dies have no suspend, and the command waits for them.
//
// Nothing runs while the drive is idle. The model has no timer: it catches up when somebody looks,
// which is the next command, a query or the storing of the state. So it costs a comparison for each
// command, needs nothing of the host, and is the same in all hosts. It goes in steps of a group of
// pages; a step is done if it would have begun by now, and the time of the next one is kept, so
// that looking more often changes nothing. A step waits for the die that it will program, so that
// all dies work and none has much waiting when a command comes.
#include <algorithm>

#include "sf2281/model.h"

namespace revodrive {

// False: there is no idle time to be used, or not yet.
bool FlashModel::begin_idle() {
  bool had_power = first_ns_ >= 0 && dark_ns_ != seen_ns_;
  if (resting_ || !had_power)
    return false;
  if (idle_next_ns_ != 0)
    return true;
  int64_t quiet_ns = std::max({seen_ns_, core_.busy_until_ns(), nand_.busy_until_ns()});
  idle_next_ns_ = quiet_ns + idle_ns_;
  idle_left_ = geometry_.superblocks;
  return true;
}

// Moves what fills a group of pages. False: there is nothing left to do.
bool FlashModel::collect_group(int64_t at_ns) {
  const Stripe &stripe = stripes_[Ftl::kGc];
  uint32_t superblock = ftl_.open_superblock(Ftl::kGc);
  uint64_t group = stripe.programmed / geometry_.group_bytes;
  while (superblock == ftl_.open_superblock(Ftl::kGc) &&
         group == stripe.programmed / geometry_.group_bytes) {
    uint32_t unit;
    if (ftl_.next_of_victim(&unit)) {
      counters_.idle_gc_units++;
      move(unit, at_ns);
      continue;
    }
    // Small superblocks may gain nothing in the end: each is taken once.
    if (idle_left_ == 0 || !ftl_.idle_wanted() || ftl_.idle_victim() == 0)
      return false;
    idle_left_--;
  }
  return true;
}

void FlashModel::idle(int64_t now_ns) {
  if (first_look_ns_ < 0)
    first_look_ns_ = now_ns;
  looked_ns_ = now_ns;
  if (now_ns - seen_ns_ <= idle_ns_ || !begin_idle())
    return;
  while (idle_next_ns_ < now_ns) {
    int64_t at_ns = idle_next_ns_;
    if (!collect_group(at_ns)) {
      idle_next_ns_ = kLatestNs;  // nothing more before the next command
      return;
    }
    uint64_t group = stripes_[Ftl::kGc].programmed / geometry_.group_bytes;
    idle_next_ns_ = std::max(at_ns, nand_.busy_until_ns(die_of(group)));
    counters_.idle_gc_ns += static_cast<uint64_t>(idle_next_ns_ - at_ns);
  }
}

}  // namespace revodrive
