// SPDX-License-Identifier: GPL-2.0-or-later
//
// Writes: compressed, packed, and accepted as soon as the write buffer has room. The buffer gives
// room back in the order of writing, when the program of a page has ended.
#include <algorithm>
#include <cstring>

#include "sf2281/model.h"

namespace revodrive {

// The next bytes of the data as one piece of memory; shorter where the data ends.
rd_iov FlashModel::DataCursor::take(uint64_t bytes, std::vector<uint8_t> &gathered) {
  while (index < data.size() && used == data[index].len) {
    index++;
    used = 0;
  }
  if (index == data.size())
    return {nullptr, 0};
  auto *base = static_cast<uint8_t *>(data[index].base) + used;
  if (data[index].len - used >= bytes) {
    used += bytes;
    return {base, static_cast<size_t>(bytes)};
  }
  size_t fill = 0;
  for (; index < data.size() && fill < bytes; index++, used = 0) {
    size_t len = std::min<size_t>(data[index].len - used, bytes - fill);
    std::memcpy(gathered.data() + fill, static_cast<uint8_t *>(data[index].base) + used, len);
    fill += len;
    used += len;
    if (used < data[index].len)
      break;
  }
  return {gathered.data(), fill};
}

uint64_t FlashModel::unprogrammed() const {
  if (ftl_.open_superblock(Ftl::kHost) == 0)
    return 0;
  return ftl_.fill_bytes(Ftl::kHost) - stripes_[Ftl::kHost].programmed;
}

void FlashModel::retire_leaving(int64_t at_ns) {
  while (leaving_first_ != leaving_end_) {
    const Leaving &oldest = leaving_[leaving_first_ % leaving_.size()];
    if (nand_.end_ns(oldest.ticket) > at_ns)
      return;
    leaving_bytes_ -= oldest.bytes;
    leaving_first_++;
  }
}

// When the buffer has room for so much more.
int64_t FlashModel::make_room(int64_t at_ns, uint32_t bytes, Journey &journey) {
  retire_leaving(at_ns);
  while (leaving_first_ != leaving_end_ &&
         leaving_bytes_ + unprogrammed() + bytes > profile_.write_buffer_bytes) {
    const Leaving &oldest = leaving_[leaving_first_ % leaving_.size()];
    int64_t end_ns = std::max(nand_.end_ns(oldest.ticket), at_ns);
    if (oldest.ticket.background)
      counters_.gc_wait_ns += static_cast<uint64_t>(end_ns - at_ns);
    journey.reach(oldest.ticket.background ? Stage::kGc : Stage::kBuffer, end_ns);
    at_ns = end_ns;
    leaving_bytes_ -= oldest.bytes;
    leaving_first_++;
  }
  return at_ns;
}

// `bytes` of the unit's `unit_bytes` are new, and take `stored`.
int64_t FlashModel::write_unit(int64_t at_ns, uint32_t unit, uint64_t bytes, uint64_t unit_bytes,
                               uint64_t stored, Journey &journey) {
  if (bytes < unit_bytes) {
    // The rest is read and written again.
    Ftl::Place old = ftl_.find(unit);
    stored = std::min(stored + old.bytes - old.bytes * bytes / unit_bytes, unit_bytes);
    ReadState state(at_ns);
    read_unit(state, unit);
    read_piece(state);
  }
  uint32_t size = ftl_.rounded(stored);
  at_ns = make_room(at_ns, size, journey);
  ensure_open(Ftl::kHost, at_ns);
  ftl_.append(Ftl::kHost, unit, size);
  program_full(Ftl::kHost, at_ns);
  counters_.stored_bytes += size;
  return at_ns;
}

int64_t FlashModel::throttle(int64_t at_ns, uint64_t bytes, uint64_t stored, Journey &journey) {
  if (!timing_)
    return at_ns;
  int64_t free_ns = io_throttle_.take(at_ns, (bytes + kCoreBytes - 1) / kCoreBytes);
  free_ns = std::max(free_ns, stored_throttle_.take(at_ns, stored));
  counters_.throttled_ns += static_cast<uint64_t>(free_ns - at_ns);
  journey.reach(Stage::kGc, free_ns);
  return free_ns;
}

// Firmware and engine work on data as it comes: if they keep up with the link, the firmware has
// taken it in one unit after the last byte, the engine one segment. What the firmware does then
// holds up the next command, but not this one.
int64_t FlashModel::take_in(int64_t at_ns, uint64_t bytes, Journey &journey) {
  auto units = static_cast<int64_t>((bytes + kCoreBytes - 1) / kCoreBytes);
  int64_t ahead_ns = (units - 1) * profile_.write_unit_ns;
  if (!timing_)
    return pass(at_ns, 0, journey);
  int64_t firmware_ns = ahead_ns + profile_.write_unit_ns + profile_.write_command_ns;
  Span firmware =
      core_.reserve_pieces(std::max<int64_t>(at_ns - ahead_ns, 0), firmware_ns, "write");
  at_ns = firmware.end_ns - profile_.write_command_ns;
  journey.reach(Stage::kController, at_ns);
  uint64_t segment = std::min<uint64_t>(profile_.compress_segment_bytes, bytes);
  int64_t start_ns = at_ns - engine_ns(bytes - segment, profile_.compress_mb_s);
  int64_t work_ns = engine_ns(bytes, profile_.compress_mb_s);
  Span engine = compress_.reserve(std::max<int64_t>(start_ns, 0), work_ns, "compress");
  at_ns = std::max(at_ns, engine.end_ns);
  journey.reach(Stage::kCompression, at_ns);
  return at_ns;
}

int64_t FlashModel::write(int64_t at_ns, uint64_t lba, uint32_t sectors,
                          std::span<const rd_iov> data, Journey &journey) {
  if (sectors == 0)
    return at_ns;
  uint64_t begin = lba * RD_SECTOR_BYTES, end = begin + uint64_t{sectors} * RD_SECTOR_BYTES;
  uint64_t first = begin / geometry_.unit_bytes, last = (end - 1) / geometry_.unit_bytes;
  uint64_t bytes = end - begin;
  at_ns = take_in(at_ns, bytes, journey);
  at_ns = find_maps(at_ns, first, last, false, journey);
  read_ahead_.changed(first, last + 1, profile_.read_ahead_bytes / geometry_.unit_bytes);
  uint64_t stored_before = counters_.stored_bytes;
  DataCursor cursor{data};
  uint64_t drive_bytes = drive_bytes_;
  for (uint64_t unit = first; unit <= last; unit++) {
    uint64_t unit_begin = unit * geometry_.unit_bytes;
    uint64_t unit_end = std::min(unit_begin + geometry_.unit_bytes, drive_bytes);
    uint64_t part = std::min(unit_end, end) - std::max(unit_begin, begin);
    rd_iov piece = cursor.take(part, gathered_);
    uint64_t stored = compressor_.stored_bytes({&piece, 1}, part);
    at_ns = write_unit(at_ns, static_cast<uint32_t>(unit), part, unit_end - unit_begin, stored,
                       journey);
  }
  counters_.host_write_bytes += bytes;
  at_ns = throttle(at_ns, bytes, counters_.stored_bytes - stored_before, journey);
  return pass(at_ns, profile_.write_latency_ns, journey);
}

int64_t FlashModel::flush(int64_t at_ns, Journey &journey) {
  ftl_.pad(Ftl::kHost);
  program_rest(Ftl::kHost, at_ns);
  int64_t end_ns = std::max(at_ns, nand_.host_end_ns());
  if (!timing_)
    return at_ns;
  journey.reach(Stage::kDie, end_ns);
  return end_ns;
}

}  // namespace revodrive
