// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/unit_map.h"

#include <algorithm>
#include <utility>

namespace revodrive {

uint64_t UnitMap::next_touched(uint64_t unit) const {
  size_t index = unit / kChunkUnits;
  if (index < chunks_.size() && chunks_[index].touched)
    return unit;
  while (index < chunks_.size() && !chunks_[index].touched)
    index++;
  return index < chunks_.size() ? uint64_t{index} * kChunkUnits : units_;
}

void UnitMap::follow(Deal deal) {
  bool whole = deal.dealt() == deal.units();
  for (size_t i = 0; i < chunks_.size(); i++) {
    auto first = static_cast<uint32_t>(i * kChunkUnits);
    auto units = static_cast<uint32_t>(deal.units_of_chunk(static_cast<uint32_t>(i)));
    uint32_t mapped = units;
    for (uint32_t unit = 0; !whole && unit < units; unit++)
      mapped -= deal.entry(first + unit).address == 0;
    chunks_[i] = {mapped, mapped > 0};
  }
  deal_ = std::move(deal);
}

// In order it is worked out in less time than memory takes to answer.
UnitMap::Entry UnitMap::work_out(uint32_t unit) const {
  if (used(unit) && *size(unit) == kForgotten)
    return {};
  Entry dealt = deal_->entry(unit);
  if (deal_->shuffled())
    store(unit, dealt.address,
          dealt.address ? static_cast<uint8_t>(dealt.granules - 1) : kForgotten);
  return dealt;
}

void UnitMap::clear() {
  deal_.reset();
  memory_.clear();
  std::fill(chunks_.begin(), chunks_.end(), Chunk{});
  std::fill(pieces_.begin(), pieces_.end(), 0);
}

uint64_t UnitMap::memory_bytes() const {
  auto pieces = std::count(pieces_.begin(), pieces_.end(), 1);
  return chunks_.size() * sizeof(Chunk) + pieces_.size() + (deal_ ? deal_->memory_bytes() : 0) +
         std::min<uint64_t>(static_cast<uint64_t>(pieces) * kPiece, memory_.bytes());
}

}  // namespace revodrive
