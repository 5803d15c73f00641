// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/flash_controller.h"

#include <algorithm>

#include "sf2281/compressor.h"

namespace revodrive {

namespace {

constexpr int64_t kNsPerUs = 1000;

}  // namespace

FlashController::FlashController(const FlashProfile &profile, bool timing)
    : profile_(profile),
      timing_(timing),
      compressor_(std::make_unique<Compressor>(profile.store_floor_permille)),
      channels_(profile.channels),
      dies_(size_t{profile.channels} * profile.dies_per_channel),
      buffer_(std::max(profile.write_buffer_pages, 1u), 0) {
}

FlashController::~FlashController() = default;

void FlashController::watch(Observer *observer, const std::string &prefix) {
  core_.watch(observer, prefix + "core");
  for (size_t i = 0; i < channels_.size(); i++)
    channels_[i].watch(observer, prefix + "channel " + std::to_string(i));
  for (size_t i = 0; i < dies_.size(); i++)
    dies_[i].watch(observer, prefix + "die " + std::to_string(i));
}

int64_t FlashController::page_transfer_ns() const {
  uint64_t bytes = uint64_t{profile_.page_bytes} + profile_.page_spare_bytes;
  return static_cast<int64_t>((bytes * 1000 + profile_.bus_mb_s - 1) / profile_.bus_mb_s);
}

int64_t FlashController::command(int64_t at_ns, Journey &journey) {
  if (timing_)
    at_ns = core_.reserve(at_ns, profile_.command_ns, "command").end_ns;
  journey.reach(Stage::kController, at_ns);
  return at_ns;
}

// Pages go round the channels first, then round the dies of each channel.
int64_t FlashController::read_page(int64_t at_ns, uint64_t page) {
  size_t die = page % dies_.size();
  int64_t sensed_ns = dies_[die].reserve(at_ns, profile_.read_page_us * kNsPerUs, "read").end_ns;
  return channels_[die % channels_.size()].reserve(sensed_ns, page_transfer_ns(), "out").end_ns;
}

Span FlashController::read(int64_t at_ns, uint64_t lba, uint32_t sectors, Journey &journey) {
  if (!timing_ || sectors == 0)
    return {at_ns, at_ns};
  uint64_t first = lba * RD_SECTOR_BYTES / profile_.page_bytes;
  uint64_t last = ((lba + sectors) * RD_SECTOR_BYTES - 1) / profile_.page_bytes;
  Span ready;
  ready.start_ns = ready.end_ns = read_page(at_ns, first);
  for (uint64_t page = first + 1; page <= last; page++)
    ready.end_ns = std::max(ready.end_ns, read_page(at_ns, page));
  journey.reach(Stage::kDie, ready.start_ns);
  return ready;
}

// Returns when the buffer had room for the page; its program ends later.
int64_t FlashController::program_page(int64_t at_ns) {
  if (!timing_) {
    programs_++;
    return at_ns;
  }
  int64_t &slot_ns = buffer_[programs_ % buffer_.size()];
  int64_t room_ns = std::max(at_ns, slot_ns);
  size_t die = programs_ % dies_.size();
  int64_t moved_ns =
      channels_[die % channels_.size()].reserve(room_ns, page_transfer_ns(), "in").end_ns;
  // A die programs one page of each plane together; each page bears its share of the time.
  int64_t program_ns = profile_.program_page_us * kNsPerUs / std::max(profile_.planes, 1u);
  slot_ns = dies_[die].reserve(moved_ns, program_ns, "program").end_ns;
  last_program_ns_ = std::max(last_program_ns_, slot_ns);
  programs_++;
  return room_ns;
}

int64_t FlashController::write(int64_t at_ns, uint64_t, uint32_t sectors,
                               std::span<const rd_iov> data, Journey &journey) {
  uint64_t stored = compressor_->stored_bytes(data, uint64_t{sectors} * RD_SECTOR_BYTES);
  uint64_t bytes = stored + open_bytes_;
  int64_t accepted_ns = at_ns;
  for (; bytes >= profile_.page_bytes; bytes -= profile_.page_bytes)
    accepted_ns = std::max(accepted_ns, program_page(at_ns));
  open_bytes_ = static_cast<uint32_t>(bytes);
  journey.reach(Stage::kBuffer, accepted_ns);
  return accepted_ns;
}

int64_t FlashController::flush(int64_t at_ns, Journey &journey) {
  if (open_bytes_ > 0)
    program_page(at_ns);
  open_bytes_ = 0;
  int64_t end_ns = std::max(at_ns, last_program_ns_);
  journey.reach(Stage::kDie, end_ns);
  return end_ns;
}

int64_t FlashController::trim(int64_t at_ns, uint64_t, uint64_t, Journey &journey) {
  if (timing_)
    at_ns = core_.reserve(at_ns, profile_.trim_range_ns, "trim").end_ns;
  journey.reach(Stage::kController, at_ns);
  return at_ns;
}

// Each die erases its blocks one after the other, one of each plane at a time; the bus is idle.
int64_t FlashController::erase_all(int64_t at_ns, uint64_t sectors, Journey &journey) {
  // What IDENTIFY words 89 and 90 promise.
  constexpr int64_t kMostNs = 120 * int64_t{1'000'000'000};
  int64_t start_ns = flush(at_ns, journey);
  power_cycle();
  if (!timing_)
    return at_ns;
  uint64_t block_bytes = uint64_t{profile_.page_bytes} * profile_.block_pages;
  uint64_t per_turn = block_bytes * dies_.size() * std::max(profile_.planes, 1u);
  uint64_t turns = (sectors * RD_SECTOR_BYTES + per_turn - 1) / per_turn;
  auto erase_ns = static_cast<int64_t>(std::min<uint64_t>(turns, kMostNs / kNsPerUs)) *
                  profile_.erase_block_us * kNsPerUs;
  int64_t end_ns = start_ns + std::min(erase_ns, kMostNs);
  for (Timeline &die : dies_)
    die.reserve(start_ns, end_ns - start_ns, "erase");
  journey.reach(Stage::kDie, end_ns);
  return end_ns;
}

void FlashController::power_cycle() {
  core_.clear();
  for (Timeline &channel : channels_)
    channel.clear();
  for (Timeline &die : dies_)
    die.clear();
  std::fill(buffer_.begin(), buffer_.end(), 0);
  open_bytes_ = 0;
  last_program_ns_ = 0;
}

void FlashController::save(StreamWriter &out) const {
  out.section("FLSH");
  out.put(static_cast<uint32_t>(channels_.size()));
  out.put(static_cast<uint32_t>(dies_.size()));
  out.put(static_cast<uint32_t>(buffer_.size()));
  core_.save(out);
  for (const Timeline &channel : channels_)
    channel.save(out);
  for (const Timeline &die : dies_)
    die.save(out);
  for (int64_t end_ns : buffer_)
    out.put(end_ns);
  out.put(programs_);
  out.put(open_bytes_);
  out.put(last_program_ns_);
}

void FlashController::load(StreamReader &in) {
  constexpr int64_t kLatestNs = INT64_MAX / 4;
  in.section("FLSH");
  bool same_shape = in.get<uint32_t>() == channels_.size();
  same_shape &= in.get<uint32_t>() == dies_.size();
  same_shape &= in.get<uint32_t>() == buffer_.size();
  if (!same_shape)
    in.fail();
  core_.load(in);
  for (Timeline &channel : channels_)
    channel.load(in);
  for (Timeline &die : dies_)
    die.load(in);
  bool sane = true;
  for (int64_t &end_ns : buffer_) {
    in.get(end_ns);
    sane &= end_ns >= 0 && end_ns <= kLatestNs;
  }
  in.get(programs_);
  in.get(open_bytes_);
  in.get(last_program_ns_);
  sane &= last_program_ns_ >= 0 && last_program_ns_ <= kLatestNs;
  if (!sane || open_bytes_ >= profile_.page_bytes)
    in.fail();
  if (!in.ok())
    power_cycle();
}

}  // namespace revodrive
