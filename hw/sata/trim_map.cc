// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/trim_map.h"

#include <algorithm>
#include <bit>

namespace revodrive {

namespace {

enum class Kind : uint8_t { kClear, kSet, kMixed };

// Seven bits a byte, the low ones first; the top bit says that more follow.
size_t varint_bytes(uint64_t value) {
  return value == 0 ? 1 : (static_cast<size_t>(std::bit_width(value)) + 6) / 7;
}

void put_varint(StreamWriter &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.put(static_cast<uint8_t>(value | 0x80));
  out.put(static_cast<uint8_t>(value));
}

uint64_t get_varint(StreamReader &in) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 63; shift += 7) {
    auto byte = in.get<uint8_t>();
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (!(byte & 0x80))
      return value;
  }
  in.fail();
  return 0;
}

// Bits `first` to `end` - 1 of a word, as far as they are in the word that starts at `base`.
uint64_t word_mask(uint32_t base, uint32_t first, uint32_t end) {
  uint32_t low = std::max(first, base) - base;
  uint32_t high = std::min<uint32_t>(end - base, 64);
  uint64_t upto = high == 64 ? UINT64_MAX : (uint64_t{1} << high) - 1;
  return upto & (UINT64_MAX << low);
}

}  // namespace

TrimMap::TrimMap(uint64_t sectors)
    : sectors_(sectors), slots_((sectors + kLeafSectors - 1) / kLeafSectors) {
}

uint64_t TrimMap::slot_sectors(size_t index) const {
  return std::min(kLeafSectors, sectors_ - index * kLeafSectors);
}

void TrimMap::fill(size_t index, bool value) {
  Slot &slot = slots_[index];
  if (slot.leaf)
    leaves_in_use_--;
  slot.leaf.reset();
  slot.all = value;
  uint32_t count = value ? static_cast<uint32_t>(slot_sectors(index)) : 0;
  count_ = count_ - slot.count + count;
  slot.count = count;
}

void TrimMap::clear_all() {
  for (size_t i = 0; i < slots_.size(); i++)
    fill(i, false);
}

void TrimMap::set(uint64_t lba, uint64_t sectors, bool value) {
  if (!value && count_ == 0)
    return;
  for (uint64_t end = lba + sectors; lba < end;) {
    size_t index = lba / kLeafSectors;
    uint64_t base = index * kLeafSectors;
    uint64_t stop = std::min(end, base + slot_sectors(index));
    if (stop - lba == slot_sectors(index))
      fill(index, value);
    else
      set_in_slot(index, static_cast<uint32_t>(lba - base), static_cast<uint32_t>(stop - base),
                  value);
    lba = stop;
  }
}

void TrimMap::set_in_slot(size_t index, uint32_t first, uint32_t end, bool value) {
  Slot &slot = slots_[index];
  if (!slot.leaf) {
    if (slot.all == value)
      return;
    slot.leaf = std::make_unique<Leaf>();
    slot.leaf->fill(slot.all ? UINT64_MAX : 0);
    leaves_in_use_++;
  }
  for (uint32_t base = first - first % kWordBits; base < end; base += kWordBits) {
    uint64_t &word = (*slot.leaf)[base / kWordBits];
    uint64_t mask = word_mask(base, first, end);
    uint64_t changed = value ? mask & ~word : mask & word;
    word ^= changed;
    auto bits = static_cast<uint32_t>(std::popcount(changed));
    slot.count += value ? bits : -bits;
    count_ += value ? uint64_t{bits} : -uint64_t{bits};
  }
  if (slot.count == 0 || slot.count == slot_sectors(index))
    fill(index, slot.count != 0);
}

bool TrimMap::test(uint64_t lba) const {
  const Slot &slot = slots_[lba / kLeafSectors];
  return slot.leaf ? bit(*slot.leaf, static_cast<uint32_t>(lba % kLeafSectors)) : slot.all;
}

bool TrimMap::any(uint64_t lba, uint64_t sectors) const {
  return count_ > 0 && find(lba, true) < lba + sectors;
}

uint64_t TrimMap::find(uint64_t lba, bool value) const {
  while (lba < sectors_) {
    size_t index = lba / kLeafSectors;
    const Slot &slot = slots_[index];
    uint64_t base = index * kLeafSectors;
    if (!slot.leaf) {
      if (slot.all == value)
        return lba;
      lba = base + kLeafSectors;
      continue;
    }
    auto at = static_cast<uint32_t>(lba - base);
    uint64_t word = (*slot.leaf)[at / kWordBits];
    word = (value ? word : ~word) & (UINT64_MAX << (at % kWordBits));
    if (word != 0)
      return std::min(sectors_,
                      base + at - at % kWordBits + static_cast<uint64_t>(std::countr_zero(word)));
    lba = base + at - at % kWordBits + kWordBits;
  }
  return sectors_;
}

void TrimMap::save(StreamWriter &out) const {
  out.section("TRIM");
  for (const Slot &slot : slots_) {
    if (!slot.leaf) {
      out.put(slot.all ? Kind::kSet : Kind::kClear);
      continue;
    }
    out.put(Kind::kMixed);
    for (uint64_t word : *slot.leaf)
      out.put(word);
  }
}

void TrimMap::load(StreamReader &in) {
  in.section("TRIM");
  clear_all();
  for (size_t i = 0; i < slots_.size() && in.ok(); i++) {
    auto kind = in.get<Kind>();
    if (kind > Kind::kMixed)
      in.fail();
    if (kind == Kind::kSet && in.ok())
      fill(i, true);
    if (kind != Kind::kMixed)
      continue;
    for (uint32_t at = 0; at < kLeafSectors && in.ok(); at += kWordBits) {
      auto word = in.get<uint64_t>();
      for (; word != 0; word &= word - 1) {
        uint32_t sector = at + static_cast<uint32_t>(std::countr_zero(word));
        if (sector < slot_sectors(i))
          set_in_slot(i, sector, sector + 1, true);
      }
    }
  }
  if (!in.ok())
    clear_all();
}

uint64_t TrimMap::save_runs(StreamWriter &out, size_t max_bytes) const {
  uint64_t left = count_;
  uint64_t done = 0;  // everything before is in the stream
  for (uint64_t at = find(0, true); at < sectors_; at = find(done, true)) {
    uint64_t end = find(at, false);
    size_t bytes = varint_bytes(at - done) + varint_bytes(end - at);
    if (bytes + 1 > max_bytes)
      break;
    max_bytes -= bytes;
    put_varint(out, end - at);
    put_varint(out, at - done);
    left -= end - at;
    done = end;
  }
  put_varint(out, 0);
  return left;
}

void TrimMap::load_runs(StreamReader &in) {
  clear_all();
  uint64_t at = 0;
  while (uint64_t sectors = get_varint(in)) {
    uint64_t gap = get_varint(in);
    if (!in.ok() || gap > sectors_ - at || sectors > sectors_ - at - gap) {
      in.fail();
      break;
    }
    mark(at + gap, sectors);
    at += gap + sectors;
  }
  if (!in.ok())
    clear_all();
}

}  // namespace revodrive
