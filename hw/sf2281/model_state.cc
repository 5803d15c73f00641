// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>

#include "sf2281/model.h"

namespace revodrive {

namespace {

// What save_persistent() wrote.
enum class Kept : uint8_t { kMap = 1, kSummary = 2 };

}  // namespace

void FlashModel::save_leaving(StreamWriter &out) const {
  out.put(static_cast<uint32_t>(leaving_end_ - leaving_first_));
  for (uint64_t i = leaving_first_; i != leaving_end_; i++) {
    const Leaving &it = leaving_[i % leaving_.size()];
    out.put(it.ticket.die);
    out.put(it.ticket.number);
    out.put(it.ticket.end_ns);
    out.put(it.ticket.background);
    out.put(it.superblock);
    out.put(it.bytes);
    out.put(it.offset);
  }
}

void FlashModel::load_leaving(StreamReader &in) {
  leaving_first_ = leaving_end_ = leaving_bytes_ = 0;
  auto count = in.get<uint32_t>();
  if (count > leaving_.size())
    in.fail();
  for (uint32_t i = 0; in.ok() && i < count; i++) {
    Leaving it;
    in.get(it.ticket.die);
    in.get(it.ticket.number);
    in.get(it.ticket.end_ns);
    in.get(it.ticket.background);
    in.get(it.superblock);
    in.get(it.bytes);
    in.get(it.offset);
    if (it.ticket.die >= geometry_.dies || it.ticket.end_ns < 0 || it.ticket.end_ns > kLatestNs ||
        it.bytes > geometry_.group_bytes || it.superblock > geometry_.superblocks ||
        it.offset >= geometry_.data_bytes)
      return in.fail();
    leaving_bytes_ += it.bytes;
    leaving_[leaving_end_++ % leaving_.size()] = it;
  }
}

void FlashModel::save_stripes(StreamWriter &out) const {
  for (const Stripe &stripe : stripes_) {
    out.put(stripe.programmed);
    out.put(stripe.ready_ns);
  }
}

void FlashModel::load_stripes(StreamReader &in) {
  for (Ftl::Stream stream : {Ftl::kHost, Ftl::kGc}) {
    Stripe &stripe = stripes_[stream];
    in.get(stripe.programmed);
    in.get(stripe.ready_ns);
    bool open = in.ok() && ftl_.open_superblock(stream) != 0;
    if (stripe.programmed % geometry_.page_bytes != 0 || stripe.ready_ns < 0 ||
        stripe.ready_ns > kLatestNs || (open && stripe.programmed > ftl_.fill_bytes(stream)))
      in.fail();
  }
}

void FlashModel::save(StreamWriter &out) const {
  out.section("FLSH");
  ftl_.save(out, SIZE_MAX);
  nand_.save(out);
  map_cache_.save(out);
  read_ahead_.save(out);
  io_throttle_.save(out);
  stored_throttle_.save(out);
  for (Timeline FlashModel::*engine : kEngines)
    (this->*engine).save(out);
  compressor_.save(out);
  save_stripes(out);
  save_leaving(out);
  out.put(gc_quota_);
  out.put(gc_ratio_permille_);
  out.put(gc_page_);
  out.put(gc_ready_ns_);
  out.put(first_ns_);
  out.put(seen_ns_);
  out.put(erased_ns_);
  out.put(idle_next_ns_);
  out.put(idle_left_);
  out.put(dark_ns_);
  out.put(resting_);
  for (uint64_t value : {counters_.unmapped_reads, counters_.buffer_hits, counters_.read_ahead_hits,
                         counters_.map_misses, counters_.host_write_bytes, counters_.stored_bytes,
                         counters_.throttled_ns, counters_.gc_wait_ns, counters_.idle_gc_units,
                         counters_.idle_gc_ns})
    out.put(value);
}

void FlashModel::load(StreamReader &in) {
  in.section("FLSH");
  ftl_.load(in);
  nand_.load(in);
  map_cache_.load(in);
  read_ahead_.load(in);
  io_throttle_.load(in);
  stored_throttle_.load(in);
  for (Timeline FlashModel::*engine : kEngines)
    (this->*engine).load(in);
  compressor_.load(in);
  load_stripes(in);
  load_leaving(in);
  in.get(gc_quota_);
  in.get(gc_ratio_permille_);
  in.get(gc_page_);
  in.get(gc_ready_ns_);
  in.get(first_ns_);
  in.get(seen_ns_);
  in.get(erased_ns_);
  in.get(idle_next_ns_);
  in.get(idle_left_);
  in.get(dark_ns_);
  in.get(resting_);
  for (uint64_t *value :
       {&counters_.unmapped_reads, &counters_.buffer_hits, &counters_.read_ahead_hits,
        &counters_.map_misses, &counters_.host_write_bytes, &counters_.stored_bytes,
        &counters_.throttled_ns, &counters_.gc_wait_ns, &counters_.idle_gc_units,
        &counters_.idle_gc_ns})
    in.get(*value);
  auto most = static_cast<int64_t>(geometry_.data_bytes);
  if (gc_quota_ < -most || gc_quota_ > 16 * most || gc_ratio_permille_ > 16000 ||
      gc_ready_ns_ < 0 || gc_ready_ns_ > kLatestNs || first_ns_ < -1 || seen_ns_ < 0 ||
      first_ns_ > seen_ns_ || seen_ns_ > kLatestNs || erased_ns_ < 0 || erased_ns_ > kLatestNs ||
      idle_next_ns_ < 0 || idle_next_ns_ > kLatestNs || idle_left_ > geometry_.superblocks ||
      dark_ns_ < -1 || dark_ns_ > seen_ns_)
    in.fail();
  if (!in.ok())
    reset_books();
}

// After a failed load: an empty drive, and nothing that points into one with data.
void FlashModel::reset_books() {
  ftl_.forget_all();
  stripes_ = {};
  leaving_first_ = leaving_end_ = leaving_bytes_ = 0;
  nand_.clear();
  power_cycle();
}

bool FlashModel::save_persistent(StreamWriter &out, size_t most_bytes) const {
  StreamWriter map;
  if (ftl_.save(map, most_bytes)) {
    out.put(Kept::kMap);
    out.put_bytes(map.bytes());
    save_stripes(out);
    return false;
  }
  out.put(Kept::kSummary);
  ftl_.save_summary(out);
  return true;
}

void FlashModel::load_persistent(StreamReader &in) {
  stripes_ = {};
  auto kept = in.get<uint8_t>();
  if (kept == static_cast<uint8_t>(Kept::kMap)) {
    ftl_.load(in);
    load_stripes(in);
  } else if (kept == static_cast<uint8_t>(Kept::kSummary)) {
    ftl_.load_summary(in);
  } else {
    in.fail();
  }
  if (!in.ok())
    reset_books();
  ftl_.begin_counts();
}

}  // namespace revodrive
