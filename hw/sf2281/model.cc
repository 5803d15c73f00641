// SPDX-License-Identifier: GPL-2.0-or-later
//
// The model as a whole: what is no read and no write, counters, power, state.
#include "sf2281/model.h"

#include <algorithm>
#include <bit>

namespace revodrive {

namespace {

constexpr uint64_t kRingSlack = 64;

}  // namespace

FlashModel::FlashModel(const FlashProfile &profile, const FlashGeometry &geometry, uint64_t sectors,
                       bool timing, const MemoryHint &memory)
    : profile_(profile),
      geometry_(geometry),
      drive_bytes_(sectors * RD_SECTOR_BYTES),
      timing_(timing),
      memory_(memory),
      compressor_(profile.store_floor_permille,
                  {.window_chunks = static_cast<uint32_t>(profile.dedupe_window_chunks),
                   .reference_bytes = static_cast<uint32_t>(profile.dedupe_reference_bytes)},
                  static_cast<CompressMeasure>(profile.compress_measure)),
      ftl_(geometry, profile, memory),
      nand_(geometry, profile, timing),
      map_cache_(profile.map_cache_units >= geometry.units ? 0 : profile.map_cache_units,
                 profile.map_page_units),
      io_throttle_(profile.throttle_iops, profile.throttle_burst_ios),
      stored_throttle_(uint64_t{profile.throttle_kb_s} * 1000,
                       uint64_t{profile.throttle_burst_kb} * 1000),
      leaving_(std::bit_ceil(profile.write_buffer_bytes / geometry.page_bytes + kRingSlack)),
      idle_ns_(profile.idle_gc_ms == 0 ? INT64_MAX
                                       : static_cast<int64_t>(profile.idle_gc_ms) * 1'000'000),
      gathered_(geometry.unit_bytes) {
}

int64_t FlashModel::engine_ns(uint64_t bytes, uint32_t mb_s) {
  return mb_s == 0 ? 0 : static_cast<int64_t>((bytes * 1000 + mb_s - 1) / mb_s);
}

int64_t FlashModel::core(int64_t at_ns, int64_t work_ns, const char *label, Journey &journey) {
  if (timing_)
    at_ns = core_.reserve_pieces(at_ns, work_ns, label).end_ns;
  journey.reach(Stage::kController, at_ns);
  return at_ns;
}

// Time in the controller that occupies nothing.
int64_t FlashModel::pass(int64_t at_ns, int64_t latency_ns, Journey &journey) const {
  if (timing_)
    at_ns += latency_ns;
  journey.reach(Stage::kController, at_ns);
  return at_ns;
}

int64_t FlashModel::command(int64_t at_ns, Journey &journey) {
  if (at_ns - seen_ns_ > idle_ns_) {
    idle(at_ns);
    idle_next_ns_ = 0;
  }
  if (first_ns_ < 0)
    first_ns_ = at_ns;
  seen_ns_ = std::max(seen_ns_, at_ns);
  return core(at_ns, profile_.command_ns, "command", journey);
}

// Units of which a part is left stay as they are.
int64_t FlashModel::trim(int64_t at_ns, uint64_t lba, uint64_t sectors, Journey &journey) {
  uint64_t begin = lba * RD_SECTOR_BYTES, end = begin + sectors * RD_SECTOR_BYTES;
  uint64_t first = (begin + geometry_.unit_bytes - 1) / geometry_.unit_bytes;
  uint64_t last = end == drive_bytes_ ? geometry_.units : end / geometry_.unit_bytes;
  if (first < last) {
    ftl_.trim(first, last - first);
    read_ahead_.changed(first, last, profile_.read_ahead_bytes / geometry_.unit_bytes);
  }
  return core(at_ns, profile_.trim_range_ns, "trim", journey);
}

// Each die erases its blocks one after the other, one of each plane at a time; the bus is idle.
int64_t FlashModel::erase_all(int64_t at_ns, Journey &journey) {
  // What IDENTIFY words 89 and 90 promise.
  constexpr int64_t kMostNs = 120 * int64_t{1'000'000'000};
  int64_t start_ns = timing_ ? std::max(at_ns, nand_.host_end_ns()) : at_ns;
  power_cycle();
  ftl_.erase_all();
  stripes_ = {};
  int64_t turns = std::min<int64_t>(geometry_.superblocks, kMostNs);
  int64_t work_ns = std::min(turns * std::min(nand_.erase_ns(), kMostNs), kMostNs);
  nand_.erase_all(start_ns, work_ns, geometry_.superblocks);
  int64_t end_ns = timing_ ? start_ns + work_ns : at_ns;
  journey.reach(Stage::kDie, end_ns);
  return end_ns;
}

void FlashModel::renew(FlashPreset kind, uint64_t seed, std::span<const rd_extent> data) {
  ftl_ = Ftl(geometry_, profile_, memory_);
  stripes_ = {};
  power_cycle();
  switch (kind) {
    case FlashPreset::kFresh:
      break;
    case FlashPreset::kFull:
      ftl_.preset(Ftl::Fill::kSequential, geometry_.unit_bytes, seed);
      break;
    case FlashPreset::kSteady:
      ftl_.preset(Ftl::Fill::kShuffled, geometry_.unit_bytes, seed);
      break;
    case FlashPreset::kImage:
      ftl_.preset_written(written_units(data, drive_bytes_, geometry_.unit_bytes),
                          geometry_.unit_bytes);
      break;
  }
  if (ftl_.open_superblock(Ftl::kHost) != 0)
    stripes_[Ftl::kHost].programmed = ftl_.fill_bytes(Ftl::kHost);
}

FlashHealth FlashModel::health() const {
  Ftl::Wear wear = ftl_.wear();
  uint64_t rated = profile_.endurance_cycles;
  auto percent = [&](uint64_t cycles) {
    return static_cast<uint32_t>(std::min<uint64_t>(cycles * 100 / rated, 100));
  };
  return {.program_fails = ftl_.counts().program_fails,
          .erase_fails = ftl_.counts().erase_fails,
          .retired_blocks = ftl_.retired_blocks(),
          .spare_blocks = ftl_.spare_blocks(),
          .wear_range_percent = percent(wear.most - wear.least),
          .endurance_used_percent = percent(wear.mean)};
}

uint64_t FlashModel::energy_uj() const {
  const Nand::Counts &done = nand_.counts();
  int64_t begin_ns = first_ns_;
  if (first_look_ns_ >= 0 && (begin_ns < 0 || first_look_ns_ < begin_ns))
    begin_ns = first_look_ns_;
  auto on_ns = static_cast<uint64_t>(begin_ns < 0 ? 0 : std::max(seen_ns_, looked_ns_) - begin_ns);
  uint64_t milliwatt_ns =
      on_ns * profile_.idle_mw + static_cast<uint64_t>(core_.busy_ns()) * profile_.active_mw;
  uint64_t nj = done.read_ops * profile_.read_nj + done.program_ops * profile_.program_nj +
                done.erase_ops * profile_.erase_nj;
  return milliwatt_ns / 1'000'000 + nj / 1000 + done.bus_bytes * profile_.bus_pj_byte / 1'000'000;
}

void FlashModel::query(const FlashController::Visitor &visit) const {
  Ftl::Wear wear = ftl_.wear();
  const Nand::Counts &done = nand_.counts();
  uint64_t blocks = uint64_t{geometry_.dies} * geometry_.planes;
  uint64_t host = counters_.host_write_bytes;
  visit("nand_write_bytes", done.program_bytes);
  visit("nand_read_bytes", done.read_bytes);
  visit("stored_bytes", counters_.stored_bytes);
  visit("write_amplification_permille", host == 0 ? 0 : done.program_bytes * 1000 / host);
  visit("gc_moved_bytes", ftl_.counts().gc_bytes);
  visit("gc_wait_ns", counters_.gc_wait_ns);
  visit("idle_gc_units", counters_.idle_gc_units);
  visit("idle_gc_ns", counters_.idle_gc_ns);
  visit("throttled_ns", counters_.throttled_ns);
  visit("erases", ftl_.counts().erases * blocks);
  visit("program_fails", ftl_.counts().program_fails);
  visit("erase_fails", ftl_.counts().erase_fails);
  visit("retired_blocks", ftl_.retired_blocks());
  visit("wear_min", wear.least);
  visit("wear_max", wear.most);
  visit("wear_avg", wear.mean);
  visit("superblocks", geometry_.superblocks);
  visit("superblock_bytes", geometry_.data_bytes);
  visit("free_superblocks", ftl_.free_superblocks());
  visit("mapped_units", ftl_.mapped_units());
  visit("unmapped_reads", counters_.unmapped_reads);
  visit("buffer_hits", counters_.buffer_hits);
  visit("read_ahead_hits", counters_.read_ahead_hits);
  visit("map_misses", counters_.map_misses);
  visit("core_busy_ns", static_cast<uint64_t>(core_.busy_ns()));
  visit("compress_busy_ns", static_cast<uint64_t>(compress_.busy_ns()));
  visit("die_busy_ns", static_cast<uint64_t>(nand_.die_busy_ns()));
  visit("channel_busy_ns", static_cast<uint64_t>(nand_.channel_busy_ns()));
  visit("energy_uj", energy_uj());
  visit("flash_memory_bytes", ftl_.memory_bytes() + map_cache_.memory_bytes() + sizeof(*this));
}

void FlashModel::watch(Observer *observer, const std::string &prefix) {
  core_.watch(observer, prefix + "core");
  compress_.watch(observer, prefix + "compress");
  decompress_.watch(observer, prefix + "decompress");
  store_.watch(observer, prefix + "store");
  nand_.watch(observer, prefix);
}

void FlashModel::power_cycle() {
  for (Ftl::Stream stream : {Ftl::kHost, Ftl::kGc}) {
    ftl_.pad(stream);
    program_rest(stream, seen_ns_);
    stripes_[stream].ready_ns = 0;
  }
  nand_.clear();
  for (Timeline FlashModel::*engine : kEngines)
    (this->*engine).clear();
  compressor_.power_cycle();
  map_cache_.clear();
  read_ahead_.clear();
  io_throttle_.clear();
  stored_throttle_.clear();
  leaving_first_ = leaving_end_ = leaving_bytes_ = 0;
  gc_quota_ = 0;
  gc_ready_ns_ = 0;
  gc_page_ = 0;
  erased_ns_ = 0;
  idle_next_ns_ = 0;
  dark_ns_ = first_ns_ < 0 ? -1 : seen_ns_;
  resting_ = false;
}

const char *FlashModel::check_books() const {
  for (Ftl::Stream stream : {Ftl::kHost, Ftl::kGc}) {
    if (ftl_.open_superblock(stream) != 0 && stripes_[stream].programmed > ftl_.fill_bytes(stream))
      return "more was programmed than written";
  }
  uint64_t leaving = 0;
  for (uint64_t i = leaving_first_; i != leaving_end_; i++)
    leaving += leaving_[i % leaving_.size()].bytes;
  if (leaving != leaving_bytes_)
    return "bytes that leave the write buffer differ";
  return ftl_.check();
}

}  // namespace revodrive
