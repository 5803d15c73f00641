// SPDX-License-Identifier: GPL-2.0-or-later
#include "volume/dispatch_map.h"

#include <algorithm>

#include "volume/map_area.h"

namespace revodrive {

namespace {

// A page: mark, number, commit, places, checksum.
constexpr uint32_t kMark = 0x504D5652;  // "RVMP"
constexpr size_t kNumberAt = 4, kCommitAt = 8, kPlacesAt = 16;
constexpr size_t kSumAt = DispatchMap::kPageBytes - 8;
static_assert(kPlacesAt + 4 * DispatchLayout::kPageEntries <= kSumAt);

}  // namespace

void DispatchMap::reset(const DispatchLayout &layout) {
  layout_ = layout;
  pages_.clear();
  pages_.resize(layout.pages);
  dirty_.clear();
  mapped_ = sum_ = 0;
}

uint32_t DispatchMap::place(uint64_t unit) const {
  const Page &page = pages_[unit / kEntries];
  return page.places ? (*page.places)[unit % kEntries] : kNowhere;
}

void DispatchMap::set(uint64_t unit, uint32_t place) {
  Page &page = pages_[unit / kEntries];
  if (!page.places) {
    if (place == kNowhere)
      return;
    page.places = std::make_unique<Places>();
  }
  uint32_t &entry = (*page.places)[unit % kEntries];
  if (entry == place)
    return;
  mapped_ += (place != kNowhere) - (entry != kNowhere);
  entry = place;
  mark(static_cast<uint32_t>(unit / kEntries));
}

void DispatchMap::mark(uint32_t number) {
  if (pages_[number].dirty)
    return;
  pages_[number].dirty = true;
  dirty_.push_back(number);
}

void DispatchMap::encode(uint32_t number, uint64_t commit,
                         std::span<uint8_t, kPageBytes> out) const {
  std::fill(out.begin(), out.end(), uint8_t{0});
  map_area::put(out, 0, 4, kMark);
  map_area::put(out, kNumberAt, 4, number);
  map_area::put(out, kCommitAt, 8, commit);
  const Page &page = pages_[number];
  for (size_t i = 0; page.places && i < kEntries; i++)
    map_area::put(out, kPlacesAt + 4 * i, 4, (*page.places)[i]);
  map_area::put(out, kSumAt, 8, map_area::checksum(out.first(kSumAt)));
}

void DispatchMap::all_written(uint64_t commit) {
  for (uint32_t number : dirty_) {
    Page &page = pages_[number];
    sum_ += commit - page.commit;
    page.commit = commit;
    page.slot ^= 1;
    page.dirty = false;
  }
  dirty_.clear();
}

uint64_t DispatchMap::commit_of(uint32_t page, std::span<const uint8_t, kPageBytes> copy) {
  bool whole = map_area::get(copy, 0, 4) == kMark && map_area::get(copy, kNumberAt, 4) == page &&
               map_area::get(copy, kSumAt, 8) == map_area::checksum(copy.first(kSumAt));
  return whole ? map_area::get(copy, kCommitAt, 8) : 0;
}

bool DispatchMap::adopt(uint32_t number, unsigned slot, std::span<const uint8_t, kPageBytes> copy) {
  Page &page = pages_[number];
  page.commit = map_area::get(copy, kCommitAt, 8);
  page.slot = static_cast<uint8_t>(slot);
  sum_ += page.commit;
  uint64_t first = uint64_t{number} * kEntries;
  for (size_t i = 0; i < kEntries; i++) {
    auto place = static_cast<uint32_t>(map_area::get(copy, kPlacesAt + 4 * i, 4));
    if (place == kNowhere)
      continue;
    if (place > layout_.places * layout_.members || first + i >= layout_.units)
      return false;
    if (!page.places)
      page.places = std::make_unique<Places>();
    (*page.places)[i] = place;
    mapped_++;
  }
  return true;
}

void DispatchMap::save(StreamWriter &out) const {
  for (const Page &page : pages_) {
    out.put(page.commit);
    out.put(page.slot);
    out.put(page.dirty);
    out.put(page.places != nullptr);
    for (size_t i = 0; page.places && i < kEntries; i++)
      out.put((*page.places)[i]);
  }
}

void DispatchMap::load(StreamReader &in) {
  for (uint32_t number = 0; number < pages_.size() && in.ok(); number++) {
    Page &page = pages_[number];
    in.get(page.commit);
    in.get(page.slot);
    if (in.get<bool>())
      mark(number);
    bool used = in.get<bool>();
    if (page.slot > 1)
      in.fail();
    sum_ += page.commit;
    if (!used || !in.ok())
      continue;
    page.places = std::make_unique<Places>();
    for (size_t i = 0; i < kEntries; i++) {
      uint32_t &place = (*page.places)[i];
      in.get(place);
      if (place > layout_.places * layout_.members ||
          (place != kNowhere && uint64_t{number} * kEntries + i >= layout_.units))
        in.fail();
      mapped_ += place != kNowhere;
    }
  }
}

}  // namespace revodrive
