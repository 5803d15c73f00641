// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads: from the write buffer, ahead of time, or from the dies. What was never written or was
// trimmed touches no flash.
#include <algorithm>

#include "sf2281/model.h"

namespace revodrive {

// Brings the parts of the map that are missing. A write goes on meanwhile: its entry is journalled.
int64_t FlashModel::find_maps(int64_t at_ns, uint64_t first, uint64_t last, bool wait,
                              Journey &journey) {
  if (map_cache_.whole())
    return at_ns;
  for (uint64_t page = map_cache_.page_of(first); page <= map_cache_.page_of(last); page++) {
    bool written = ftl_.touched(std::max(page * map_cache_.page_units(), first));
    if (!written && wait)
      continue;
    if (map_cache_.use(page) || !written)
      continue;
    counters_.map_misses++;
    if (timing_)
      at_ns = core_.reserve_pieces(at_ns, profile_.map_miss_ns, "map").end_ns;
    auto die = static_cast<uint32_t>(page % geometry_.dies);
    Nand::Read read = nand_.read(at_ns, die, 1, geometry_.page_bytes, geometry_.page_bytes);
    if (wait)
      at_ns = read.end_ns;
    journey.reach(Stage::kMap, at_ns);
  }
  return at_ns;
}

// Still in the controller: not yet handed to a die, or its program has not ended.
bool FlashModel::buffered(const Ftl::Place &place, int64_t at_ns) const {
  if (place.superblock == ftl_.open_superblock(Ftl::kHost) &&
      place.offset >= stripes_[Ftl::kHost].programmed)
    return true;
  for (uint64_t i = leaving_end_; i-- > leaving_first_;) {
    const Leaving &it = leaving_[i % leaving_.size()];
    if (it.superblock != place.superblock)
      return false;
    if (place.offset >= it.offset)
      return place.offset < it.offset + it.bytes && nand_.end_ns(it.ticket) > at_ns;
  }
  return false;
}

Nand::Read FlashModel::fetch(int64_t at_ns, const Piece &piece) {
  uint32_t word = std::min(profile_.codeword_bytes, geometry_.page_bytes);
  uint32_t low = piece.low / word * word;
  uint32_t high = std::min((piece.high + word - 1) / word * word, geometry_.group_bytes);
  uint32_t pages = (high - 1) / geometry_.page_bytes - low / geometry_.page_bytes + 1;
  uint32_t first_high = std::min((piece.low + piece.first_bytes + word - 1) / word * word, high);
  return nand_.read(at_ns, die_of(piece.group), pages, high - low, first_high - low);
}

void FlashModel::read_piece(ReadState &state) {
  if (state.piece.empty())
    return;
  Nand::Read read = fetch(state.at_ns, state.piece);
  state.piece = {};
  state.ready.end_ns = std::max(state.ready.end_ns, read.end_ns);
  if (state.any)
    return;
  state.any = true;
  state.first = read;
  state.ready.start_ns = read.first_ns;
}

// A unit that is stored as it is need not be read whole.
Ftl::Place FlashModel::wanted_part(const ReadState &state, uint32_t unit, Ftl::Place place) const {
  if (profile_.store_floor_permille != 0 || place.bytes != geometry_.unit_bytes)
    return place;
  uint64_t unit_begin = uint64_t{unit} * geometry_.unit_bytes;
  uint64_t begin = std::max(state.begin, unit_begin);
  uint64_t end = std::min(state.end, unit_begin + place.bytes);
  place.offset += begin - unit_begin;
  place.bytes = static_cast<uint32_t>(end - begin);
  return place;
}

// Data of several units that lies in the same pages is read once. A unit may begin in the pages of
// one die and end in those of the next.
void FlashModel::read_unit(ReadState &state, uint32_t unit) {
  Ftl::Place place = ftl_.find(unit);
  if (place.bytes == 0)
    return;
  state.mapped++;
  if (buffered(place, state.at_ns)) {
    counters_.buffer_hits++;
    return;
  }
  place = wanted_part(state, unit, place);
  for (uint64_t at = place.offset, end = place.offset + place.bytes; at < end;) {
    uint64_t group = at / geometry_.group_bytes;
    uint64_t group_end = std::min((group + 1) * geometry_.group_bytes, end);
    auto low = static_cast<uint32_t>(at - group * geometry_.group_bytes);
    auto high = static_cast<uint32_t>(group_end - group * geometry_.group_bytes);
    Piece &piece = state.piece;
    if (piece.superblock == place.superblock && piece.group == group) {
      piece.low = std::min(piece.low, low);
      piece.high = std::max(piece.high, high);
    } else {
      read_piece(state);
      piece = {place.superblock, group, low, high, std::min(high - low, kCoreBytes)};
    }
    at = group_end;
  }
}

// The units that follow a sequential stream, as far as the profile says.
void FlashModel::read_ahead(int64_t at_ns, ReadAhead::Stream &stream) {
  uint64_t end =
      std::min(stream.next + profile_.read_ahead_bytes / geometry_.unit_bytes, geometry_.units);
  while (stream.ahead < end && !ReadAhead::full(stream)) {
    ReadState state(at_ns);
    uint64_t unit = stream.ahead;
    do
      read_unit(state, static_cast<uint32_t>(unit++));
    while (unit < end && !state.any);
    read_piece(state);
    ReadAhead::add(stream, unit, state.ready.end_ns);
  }
}

// Reads the units that were not fetched ahead.
void FlashModel::read_units(ReadState &state, uint64_t first, uint64_t last,
                            ReadAhead::Stream *stream) {
  for (uint64_t unit = first; unit <= last; unit++) {
    int64_t there_ns = stream ? ReadAhead::ready_ns(*stream, unit) : -1;
    if (there_ns < 0) {
      read_unit(state, static_cast<uint32_t>(unit));
      continue;
    }
    counters_.read_ahead_hits++;
    state.mapped++;
    there_ns = std::max(there_ns, state.at_ns);
    if (unit == first) {
      state.any = true;
      state.first = {there_ns, there_ns, there_ns};
      state.ready.start_ns = there_ns;
    }
    state.ready.end_ns = std::max(state.ready.end_ns, there_ns);
  }
  read_piece(state);
}

// From when the firmware has dealt with the first of so many units until it has with all.
Span FlashModel::plan_read(int64_t at_ns, uint64_t units) {
  if (!timing_)
    return {at_ns, at_ns};
  auto rest = static_cast<int64_t>(units * geometry_.unit_bytes / kCoreBytes) - 1;
  int64_t first_ns = core_.reserve_pieces(at_ns, profile_.read_unit_ns, "read").end_ns;
  return {first_ns, core_.reserve_pieces(first_ns, rest * profile_.read_unit_ns, "read").end_ns};
}

Span FlashModel::read(int64_t at_ns, uint64_t lba, uint32_t sectors, Journey &journey) {
  if (sectors == 0)
    return {at_ns, at_ns};
  uint64_t first = lba * RD_SECTOR_BYTES / geometry_.unit_bytes;
  uint64_t last = ((lba + sectors) * RD_SECTOR_BYTES - 1) / geometry_.unit_bytes;
  // The firmware works through the rest while the first of it is on its way.
  Span planned = plan_read(at_ns, last - first + 1);
  at_ns = pass(planned.start_ns, profile_.read_latency_ns, journey);
  at_ns = find_maps(at_ns, first, last, true, journey);
  ReadAhead::Stream *stream =
      profile_.read_ahead_bytes > 0 ? read_ahead_.follow(first, last) : nullptr;
  ReadState state(at_ns);
  state.begin = lba * RD_SECTOR_BYTES;
  state.end = state.begin + uint64_t{sectors} * RD_SECTOR_BYTES;
  read_units(state, first, last, stream);
  if (stream)
    read_ahead(at_ns, *stream);
  if (state.mapped == 0)
    counters_.unmapped_reads++;
  if (!timing_)
    return {at_ns, at_ns};
  journey.reach(Stage::kDie, state.first.sensed_ns);
  journey.reach(Stage::kChannel, state.first.first_ns);
  Span ready = state.ready;
  if (timing_)
    ready.end_ns = std::max(ready.end_ns, planned.end_ns + int64_t{profile_.read_latency_ns});
  if (profile_.decompress_mb_s > 0 && state.mapped > 0) {
    // Works on data as it comes.
    int64_t unit_ns = engine_ns(geometry_.unit_bytes, profile_.decompress_mb_s);
    int64_t work_ns = engine_ns(state.mapped * geometry_.unit_bytes, profile_.decompress_mb_s);
    Span engine = decompress_.reserve(ready.start_ns, work_ns, "decompress");
    ready.start_ns = engine.start_ns + unit_ns;
    ready.end_ns = std::max({ready.end_ns + unit_ns, engine.end_ns, ready.start_ns});
  }
  journey.reach(Stage::kCompression, ready.start_ns);
  return ready;
}

}  // namespace revodrive
