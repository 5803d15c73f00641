// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/unit_map.h"

#include <new>

namespace revodrive {

uint64_t UnitMap::next_touched(uint64_t unit) const {
  size_t index = unit / kChunkUnits;
  if (index < chunks_.size() && chunks_[index])
    return unit;
  while (index < chunks_.size() && !chunks_[index])
    index++;
  return index < chunks_.size() ? uint64_t{index} * kChunkUnits : units_;
}

void UnitMap::clear() {
  for (auto &chunk : chunks_)
    chunk.reset();
  touched_ = 0;
}

// Zeroed by the system: pages of it that nobody touches take no memory.
void UnitMap::allocate(size_t index) {
  chunks_[index].reset(static_cast<Chunk *>(std::calloc(1, sizeof(Chunk))));
  if (!chunks_[index])
    throw std::bad_alloc();
  touched_++;
}

}  // namespace revodrive
