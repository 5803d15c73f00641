// SPDX-License-Identifier: GPL-2.0-or-later
#include "volume/map_area.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace revodrive::map_area {

namespace {

constexpr char kLabelMark[] = "REVODISP", kRecordMark[] = "REVOCOMM";
constexpr size_t kMarkBytes = 8;
constexpr uint32_t kVersion = 1;
constexpr size_t kWrittenAt = 32;
constexpr size_t kSumAt = RD_SECTOR_BYTES - 8;

bool whole(ConstSector bytes, const char *mark) {
  return std::memcmp(bytes.data(), mark, kMarkBytes) == 0 &&
         get(bytes, kSumAt, 8) == checksum(bytes.first(kSumAt));
}

void seal(Sector bytes, const char *mark) {
  std::memcpy(bytes.data(), mark, kMarkBytes);
  put(bytes, kSumAt, 8, checksum(bytes.first(kSumAt)));
}

}  // namespace

void put(std::span<uint8_t> bytes, size_t at, size_t count, uint64_t value) {
  for (size_t i = 0; i < count; i++)
    bytes[at + i] = static_cast<uint8_t>(value >> (8 * i));
}

uint64_t get(std::span<const uint8_t> bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; i++)
    value |= uint64_t{bytes[at + i]} << (8 * i);
  return value;
}

uint64_t checksum(std::span<const uint8_t> bytes) {
  return XXH64(bytes.data(), bytes.size(), 0);
}

bool is_blank(std::span<const uint8_t> bytes) {
  bool blank = bytes[0] == 0x00 || bytes[0] == 0xFF;
  return blank && std::all_of(bytes.begin(), bytes.end(), [&](uint8_t b) { return b == bytes[0]; });
}

void Label::encode(Sector out) const {
  std::fill(out.begin(), out.end(), uint8_t{0});
  put(out, 8, 4, kVersion);
  put(out, 12, 1, member);
  put(out, 13, 1, layout.members);
  put(out, 16, 8, volume);
  put(out, 24, 8, layout.places);
  put(out, 32, 8, layout.units);
  put(out, 40, 4, layout.pages);
  put(out, 44, 4, DispatchLayout::kUnitSectors);
  seal(out, kLabelMark);
}

Found read_label(ConstSector bytes, unsigned member, const DispatchLayout &layout,
                 uint64_t *volume) {
  if (is_blank(bytes))
    return Found::kBlank;
  if (!whole(bytes, kLabelMark))
    return Found::kDamaged;
  bool fits = get(bytes, 8, 4) == kVersion && get(bytes, 24, 8) == layout.places &&
              get(bytes, 32, 8) == layout.units && get(bytes, 40, 4) == layout.pages &&
              get(bytes, 44, 4) == DispatchLayout::kUnitSectors;
  if (!fits)
    return Found::kOther;
  *volume = get(bytes, 16, 8);
  bool ours = get(bytes, 12, 1) == member && get(bytes, 13, 1) == layout.members;
  return ours ? Found::kGood : Found::kForeign;
}

void Record::encode(Sector out) const {
  std::fill(out.begin(), out.end(), uint8_t{0});
  put(out, 8, 8, commit);
  put(out, 16, 8, previous);
  put(out, 24, 8, sum);
  for (size_t i = 0; i < written.size(); i++)
    put(out, kWrittenAt + 8 * i, 8, written[i]);
  seal(out, kRecordMark);
}

bool Record::decode(ConstSector bytes) {
  if (!whole(bytes, kRecordMark))
    return false;
  commit = get(bytes, 8, 8);
  previous = get(bytes, 16, 8);
  sum = get(bytes, 24, 8);
  for (size_t i = 0; i < written.size(); i++)
    written[i] = get(bytes, kWrittenAt + 8 * i, 8);
  return true;
}

}  // namespace revodrive::map_area
