// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/phy_counters.h"

#include <algorithm>

namespace revodrive {

namespace {

using Id = PhyCounters::Id;

constexpr Id kOrder[] = {
    Id::kCommandIcrc,   Id::kDataOutRErr,  Id::kDataInRErr,   Id::kNonDataOutRErr,
    Id::kNonDataInRErr, Id::kRetries,      Id::kNotReady,     Id::kSignatures,
    Id::kDataInCrc,     Id::kDataInNonCrc, Id::kNonDataInCrc, Id::kNonDataInNonCrc,
    Id::kDataRErr,      Id::kNonDataRErr,  Id::kCrcErrors,    Id::kNonCrcErrors,
};

}  // namespace

void PhyCounters::count(Id id, unsigned events) {
  constexpr unsigned kMax = UINT16_MAX;
  values_[id] = static_cast<uint16_t>(std::min(values_[id] + std::min(events, kMax), kMax));
}

// Counters 002h and 005h are the sums of both directions, 00Bh counts what 00Fh and 012h split.
void PhyCounters::count_data_crc(Direction direction) {
  count(kDataRErr);
  if (direction == Direction::kToHost)
    return count(kDataOutRErr);
  count(kDataInRErr);
  count(kCrcErrors);
  count(kDataInCrc);
}

// Serial ATA 3.0, 13.9.2: each identifier carries the size in words in bits 14:12.
Page PhyCounters::page() const {
  constexpr uint16_t kOneWord = 1 << 12;
  Page page;
  size_t at = 4;
  for (Id id : kOrder) {
    page.put(at, kOneWord | id, 2);
    page.put(at + 2, values_[id], 2);
    at += 4;
  }
  page.seal();
  return page;
}

void PhyCounters::save(StreamWriter &out) const {
  out.section("PHYC");
  for (uint16_t value : values_)
    out.put(value);
}

void PhyCounters::load(StreamReader &in) {
  in.section("PHYC");
  for (uint16_t &value : values_)
    in.get(value);
}

}  // namespace revodrive
