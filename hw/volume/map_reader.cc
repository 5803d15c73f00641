// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reading the map: what is found has to be exactly what the last commit left, or the volume is not
// opened. A page that is older than its commit would show blocks of others.
#include <algorithm>

#include "volume/map_keeper.h"

namespace revodrive {

namespace {

constexpr uint32_t kHeadSectors = DispatchLayout::kHeadSectors;
constexpr uint32_t kRowSectors = 2 * DispatchLayout::kPageSectors;
constexpr uint32_t kStartSectors = 128;  // partition tables and file systems are found there
constexpr size_t kFirstRecord = 8, kSecondRecord = 16;  // sectors of the head

map_area::ConstSector sector(const BufferWindow &buffer, size_t number) {
  return map_area::ConstSector(buffer.bytes.data() + number * RD_SECTOR_BYTES,
                               size_t{RD_SECTOR_BYTES});
}

const char *word_of(map_area::Found found) {
  switch (found) {
    case map_area::Found::kBlank:
      return "has no map, others have";
    case map_area::Found::kOther:
      return "has a map of another version or size";
    case map_area::Found::kForeign:
      return "is of another volume, or in another place than it was";
    default:
      return "has a map that is damaged, or something else in its place";
  }
}

}  // namespace

void MapKeeper::read() {
  failure_ = VolumeFailure::kNone;
  map_.reset(layout_);
  begin(Step::kReadHead);
}

void MapKeeper::read_heads() {
  for (unsigned i = 0; i < layout_.members; i++) {
    VolumeRequest &request = transfer(VolumeOp::kRead, i, kHeadSectors);
    add(request, i, layout_.area_lba, kHeadSectors, 0);
    go(request);
  }
}

// The newest record of all members; false if there is none. *oldest is that of the member that is
// behind.
bool MapKeeper::find_record(uint64_t *oldest) {
  bool any = false;
  record_ = {};
  record_slot_ = 1;
  *oldest = UINT64_MAX;
  for (unsigned i = 0; i < layout_.members; i++) {
    uint64_t newest = 0;
    for (unsigned slot = 0; slot < 2; slot++) {
      map_area::Record one;
      if (!one.decode(sector(buffers_[i], slot == 0 ? kFirstRecord : kSecondRecord)))
        continue;
      newest = std::max(newest, one.commit);
      if (any && one.commit <= record_.commit)
        continue;
      any = true;
      record_ = one;
      record_slot_ = slot;
    }
    *oldest = std::min(*oldest, newest);
  }
  return any;
}

void MapKeeper::heads_read() {
  using map_area::Found;
  unsigned good = 0, blank = 0;
  bool alike = true;  // all of one volume
  Found worst = Found::kGood;
  unsigned who = 0;
  uint64_t volume = 0;
  for (unsigned i = 0; i < layout_.members; i++) {
    uint64_t found_volume = volume;
    Found found = map_area::read_label(sector(buffers_[i], 0), i, layout_, &found_volume);
    alike &= found == Found::kGood && (i == 0 || found_volume == volume);
    volume = found_volume;
    good += found == Found::kGood;
    blank += found == Found::kBlank;
    if (found == Found::kGood || worst > Found::kBlank)
      continue;
    worst = found;
    who = i;
  }
  uint64_t oldest = 0;
  bool recorded = find_record(&oldest);
  // No commit begins before the one before it is told to all.
  bool together = oldest == record_.commit || oldest == record_.previous;
  record_pending_ = oldest != record_.commit;
  next_commit_ = record_.commit + 1;
  position_ = 0;
  if (good + blank == layout_.members && record_.commit == 0 && !alike)
    return begin(Step::kReadStart);  // new, or its format was cut short
  if (alike && recorded && together)
    return begin(Step::kReadPages);
  if (alike && recorded)
    spoil("an SSD is older than the others, or its record of the last commit is damaged");
  else if (alike)
    spoil("no record of the last commit is whole");
  else if (good == layout_.members)
    spoil("the SSDs are of different volumes");
  else
    spoil("SSD " + std::to_string(who) + " " + word_of(worst));
  end_read();
}

void MapKeeper::end_read() {
  step_ = Step::kIdle;
  owner_.map_read(VolumeFailure::kNone);
}

void MapKeeper::read_starts() {
  for (unsigned i = 0; i < layout_.members; i++) {
    VolumeRequest &request = transfer(VolumeOp::kRead, i, kStartSectors);
    add(request, i, 0, kStartSectors, 0);
    go(request);
  }
}

// Members with somebody's data in front: they may have been disks of their own, or a stripe.
void MapKeeper::starts_read() {
  auto used = std::find_if(buffers_.begin(), buffers_.begin() + layout_.members,
                           [](const BufferWindow &it) { return !map_area::is_blank(it.bytes); });
  if (used == buffers_.begin() + layout_.members) {
    record_ = {};
    record_pending_ = false;
    record_slot_ = 0;
    return begin(Step::kFirstRecord);
  }
  spoil("SSD " + std::to_string(used - buffers_.begin()) +
        " has no map, but something in its first sectors");
  end_read();
}

void MapKeeper::labels_written() {
  owner_.accept_map();
  state_ = State::kReady;
  end_read();
}

bool MapKeeper::read_pages() {
  uint32_t rows = std::min(layout_.rows() - position_, kBatch);
  for (unsigned i = 0; i < layout_.members; i++) {
    VolumeRequest &request = transfer(VolumeOp::kRead, i, rows * kRowSectors);
    add(request, i, layout_.row_lba(position_), rows * kRowSectors, 0);
    go(request);
  }
  return true;
}

// True: there are more to read.
bool MapKeeper::take_pages() {
  uint32_t rows = std::min(layout_.rows() - position_, kBatch);
  for (uint32_t row = 0; row < rows; row++) {
    for (unsigned i = 0; i < layout_.members; i++) {
      uint32_t page = (position_ + row) * layout_.members + i;
      auto copies = std::span<const uint8_t>(buffers_[i].bytes)
                        .subspan(size_t{row} * kRowSectors * RD_SECTOR_BYTES,
                                 size_t{kRowSectors} * RD_SECTOR_BYTES);
      if (page < layout_.pages && !take_page(page, copies)) {
        spoil("page " + std::to_string(page) + " of the map has places that there are not");
        return false;
      }
    }
  }
  position_ += rows;
  return position_ < layout_.rows();
}

// The newer copy that the last commit, or one before, has written. What an unfinished one has left
// has to be written over by the next: it must never be taken for that one's.
bool MapKeeper::take_page(uint32_t page, std::span<const uint8_t> copies) {
  using Copy = std::span<const uint8_t, DispatchMap::kPageBytes>;
  uint64_t best = 0;
  unsigned best_slot = 0;
  bool unfinished = false;
  for (unsigned slot = 0; slot < 2; slot++) {
    uint64_t commit = DispatchMap::commit_of(
        page,
        Copy(copies.data() + slot * DispatchMap::kPageBytes, size_t{DispatchMap::kPageBytes}));
    next_commit_ = std::max(next_commit_, commit + 1);
    if (commit > record_.commit) {
      unfinished = true;
    } else if (commit > best) {
      best = commit;
      best_slot = slot;
    }
  }
  if (unfinished)
    map_.mark(page);
  return best == 0 || map_.adopt(page, best_slot,
                                 Copy(copies.data() + best_slot * DispatchMap::kPageBytes,
                                      size_t{DispatchMap::kPageBytes}));
}

void MapKeeper::pages_read() {
  if (state_ == State::kBad)
    return end_read();
  if (map_.sum() != record_.sum)
    spoil("pages of the map are missing, or older than its last commit");
  else if (!owner_.accept_map())
    spoil("the map has two blocks in one place");
  else
    state_ = State::kReady;
  end_read();
}

}  // namespace revodrive
