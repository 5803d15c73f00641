// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where each mapping unit of the drive is and how much it takes there: 5 bytes a unit, in chunks
// that exist once one of their units was written. An address has 31 bits, 0 is "not mapped"; the
// top bit is a mark for whoever goes over all units for a moment.
#ifndef REVODRIVE_SF2281_UNIT_MAP_H
#define REVODRIVE_SF2281_UNIT_MAP_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace revodrive {

class UnitMap {
 public:
  static constexpr uint32_t kChunkUnits = 65536;
  static constexpr uint32_t kMark = uint32_t{1} << 31;

  explicit UnitMap(uint64_t units)
      : units_(units), chunks_((units + kChunkUnits - 1) / kChunkUnits) {}

  uint64_t units() const { return units_; }
  // With the mark, if it is set.
  uint32_t address(uint32_t unit) const {
    const Chunk *chunk = chunks_[unit / kChunkUnits].get();
    return chunk ? chunk->address(unit % kChunkUnits) : 0;
  }
  // Stored size in granules, 1..256; of a mapped unit.
  uint32_t granules(uint32_t unit) const {
    return *chunks_[unit / kChunkUnits]->granules(unit % kChunkUnits) + 1u;
  }
  void set(uint32_t unit, uint32_t address, uint32_t granules) {
    Chunk &chunk = touch(unit / kChunkUnits);
    chunk.set_address(unit % kChunkUnits, address);
    *chunk.granules(unit % kChunkUnits) = static_cast<uint8_t>(granules - 1);
  }
  // Of a mapped unit.
  void set_address(uint32_t unit, uint32_t address) {
    chunks_[unit / kChunkUnits]->set_address(unit % kChunkUnits, address);
  }
  // The first unit from `unit` on whose chunk exists; units() if there is none.
  uint64_t next_touched(uint64_t unit) const;
  bool touched(uint64_t unit) const { return chunks_[unit / kChunkUnits] != nullptr; }
  void clear();
  uint64_t memory_bytes() const {
    return chunks_.size() * sizeof(void *) + touched_ * sizeof(Chunk);
  }

 private:
  // Both numbers of a unit side by side: one miss of the processor's cache, not two.
  struct Chunk {
    static constexpr size_t kEntry = 5;
    uint8_t bytes[kChunkUnits * kEntry];

    uint32_t address(size_t index) const {
      uint32_t value;
      std::memcpy(&value, bytes + index * kEntry, sizeof(value));
      return value;
    }
    void set_address(size_t index, uint32_t value) {
      std::memcpy(bytes + index * kEntry, &value, sizeof(value));
    }
    uint8_t *granules(size_t index) { return bytes + index * kEntry + sizeof(uint32_t); }
  };
  struct Free {
    void operator()(Chunk *chunk) const { std::free(chunk); }
  };
  Chunk &touch(size_t index) {
    if (!chunks_[index]) [[unlikely]]
      allocate(index);
    return *chunks_[index];
  }
  void allocate(size_t index);

  uint64_t units_;
  std::vector<std::unique_ptr<Chunk, Free>> chunks_;
  uint64_t touched_ = 0;
};

}  // namespace revodrive
#endif
