// SPDX-License-Identifier: GPL-2.0-or-later
//
// From open superblocks to dies, and garbage collection. A superblock is filled row by row; a row
// is a page of each plane of each die. With parity one die of each row has it, another one in each
// row.
#include <algorithm>

#include "sf2281/model.h"

namespace revodrive {

uint32_t FlashModel::die_of(uint64_t group) const {
  uint64_t row = group / geometry_.data_dies;
  auto die = static_cast<uint32_t>(group % geometry_.data_dies);
  if (geometry_.raise && die >= row % geometry_.dies)
    die++;
  return die;
}

void FlashModel::program(Ftl::Stream stream, int64_t at_ns, uint32_t pages) {
  Stripe &stripe = stripes_[stream];
  uint64_t group = stripe.programmed / geometry_.group_bytes;
  uint32_t bytes = pages * geometry_.page_bytes;
  bool background = stream == Ftl::kGc;
  if (!background && timing_)
    at_ns = store_.reserve(at_ns, engine_ns(bytes, profile_.store_mb_s), "store").end_ns;
  Nand::Ticket ticket =
      nand_.program(std::max(at_ns, stripe.ready_ns), die_of(group), pages, background);
  if (!background) {
    if (leaving_end_ - leaving_first_ == leaving_.size()) {
      leaving_bytes_ -= leaving_[leaving_first_ % leaving_.size()].bytes;
      leaving_first_++;
    }
    leaving_[leaving_end_++ % leaving_.size()] = {ticket, ftl_.open_superblock(stream), bytes,
                                                  stripe.programmed};
    leaving_bytes_ += bytes;
  }
  stripe.programmed += bytes;
  uint64_t row_bytes = uint64_t{geometry_.data_dies} * geometry_.group_bytes;
  if (stripe.programmed % row_bytes == 0)
    program_parity(stream, at_ns, stripe.programmed / row_bytes - 1);
}

void FlashModel::program_parity(Ftl::Stream stream, int64_t at_ns, uint64_t row) {
  if (!geometry_.raise)
    return;
  auto die = static_cast<uint32_t>(row % geometry_.dies);
  nand_.program(std::max(at_ns, stripes_[stream].ready_ns), die, geometry_.planes,
                stream == Ftl::kGc);
}

// Each group of pages that is full goes to its die. The host's pay for what they use up.
void FlashModel::program_full(Ftl::Stream stream, int64_t at_ns) {
  Stripe &stripe = stripes_[stream];
  uint64_t fill = ftl_.fill_bytes(stream);
  for (;;) {
    auto left =
        static_cast<uint32_t>(geometry_.group_bytes - stripe.programmed % geometry_.group_bytes);
    if (fill - stripe.programmed < left)
      return;
    program(stream, at_ns, left / geometry_.page_bytes);
    if (stream == Ftl::kHost)
      collect_share(at_ns);
  }
}

// After a pad(): whole pages that do not fill a group.
void FlashModel::program_rest(Ftl::Stream stream, int64_t at_ns) {
  if (ftl_.open_superblock(stream) == 0)
    return;
  program_full(stream, at_ns);
  uint64_t rest = ftl_.fill_bytes(stream) - stripes_[stream].programmed;
  if (rest >= geometry_.page_bytes)
    program(stream, at_ns, static_cast<uint32_t>(rest / geometry_.page_bytes));
}

void FlashModel::finish(Ftl::Stream stream, int64_t at_ns) {
  if (ftl_.open_superblock(stream) == 0)
    return;
  ftl_.pad(stream);
  program_rest(stream, at_ns);
  uint64_t row_bytes = uint64_t{geometry_.data_dies} * geometry_.group_bytes;
  if (stripes_[stream].programmed % row_bytes != 0)
    program_parity(stream, at_ns, stripes_[stream].programmed / row_bytes);
}

void FlashModel::ensure_open(Ftl::Stream stream, int64_t at_ns) {
  if (ftl_.has_room(stream))
    return;
  finish(stream, at_ns);
  bool open = ftl_.open(stream);
  for (uint32_t i = 0; !open; i++) {
    bool helps = stream == Ftl::kHost && i < geometry_.superblocks && collect_one(at_ns);
    open = ftl_.open(stream, !helps);
  }
  stripes_[stream] = {};
  if (ftl_.opened_clean())
    return;
  erase(at_ns);
  if (profile_.erase_at_once > 0)
    stripes_[stream].ready_ns = erased_ns_;  // it is opened when all of it is erased
}

// What is erased for the other stream comes first.
void FlashModel::erase(int64_t at_ns) {
  int64_t start_ns = std::max(at_ns, erased_ns_);
  for (uint32_t die = 0; die < geometry_.dies; die++)
    nand_.erase(start_ns + nand_.erase_turn_ns(die), die);
  if (timing_)
    erased_ns_ = start_ns + nand_.erase_turn_ns(geometry_.dies);
}

// ------------------------------------------------------------------------------------- collection

// Reads a unit of the victim, once for all that share a page, and appends it elsewhere.
void FlashModel::move(uint32_t unit, int64_t at_ns) {
  Ftl::Place place = ftl_.find(unit);
  Stripe &stripe = stripes_[Ftl::kGc];
  uint64_t page = place.offset / geometry_.page_bytes;
  uint64_t name = uint64_t{place.superblock} << 40 | page;
  if (name != gc_page_) {
    gc_page_ = name;
    uint64_t group = place.offset / geometry_.group_bytes;
    int64_t end_ns =
        nand_.read(at_ns, die_of(group), 1, geometry_.page_bytes, geometry_.page_bytes, "collect")
            .end_ns;
    gc_ready_ns_ = timing_ ? std::max(gc_ready_ns_, end_ns) : 0;
  }
  ensure_open(Ftl::kGc, at_ns);
  stripe.ready_ns = std::max(stripe.ready_ns, gc_ready_ns_);
  ftl_.append(Ftl::kGc, unit, place.bytes);
  program_full(Ftl::kGc, at_ns);
}

// What the victim costs for what it gains, in thousandths.
uint32_t FlashModel::choose_victim() {
  constexpr uint64_t kMost = 16000;
  uint32_t victim = ftl_.victim();
  if (victim == 0)
    return 0;
  uint64_t valid = ftl_.valid_bytes(victim);
  // The journal takes its share of what is gained.
  uint64_t moved = valid + valid * profile_.journal_permille / 1000;
  uint64_t gain = geometry_.data_bytes - std::min(moved, geometry_.data_bytes);
  gc_ratio_permille_ = std::min(valid * 1000 / (gain + 1) + 1, kMost);
  return victim;
}

// For each group that the host fills: as much as gains one group, so that collection keeps pace
// with the host instead of stopping it now and then.
void FlashModel::collect_share(int64_t at_ns) {
  if (!ftl_.wanted()) {
    gc_quota_ = 0;
    return;
  }
  if (!ftl_.collecting() && choose_victim() == 0)
    return;
  gc_quota_ += static_cast<int64_t>(geometry_.group_bytes * gc_ratio_permille_ / 1000);
  while (gc_quota_ > 0) {
    uint32_t unit;
    if (!ftl_.next_of_victim(&unit)) {
      if (!ftl_.wanted() || choose_victim() == 0)
        return;
      continue;
    }
    gc_quota_ -= ftl_.find(unit).bytes;
    move(unit, at_ns);
  }
}

// A whole victim, at once: the host waits for a superblock. False: nothing is to be gained.
bool FlashModel::collect_one(int64_t at_ns) {
  if (choose_victim() == 0)
    return false;
  uint32_t unit;
  while (ftl_.next_of_victim(&unit))
    move(unit, at_ns);
  return true;
}

}  // namespace revodrive
