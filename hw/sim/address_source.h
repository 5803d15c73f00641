// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where a job goes next in one target: sequential positions of each direction, or random blocks.
// Random without repeats (fio's random map) is a permutation of the block numbers that is computed,
// not stored: every block comes once before one comes again, in constant memory. With blocks of
// different sizes it is the first sector of each that does not repeat.
#ifndef REVODRIVE_SIM_ADDRESS_SOURCE_H
#define REVODRIVE_SIM_ADDRESS_SOURCE_H

#include <array>
#include <cstdint>
#include <vector>

#include "sim/job_options.h"
#include "sim/rng.h"

namespace revodrive::sim {

// The numbers 0 to count - 1 in an order that depends on the seed.
class Permutation {
 public:
  Permutation(uint64_t count, uint64_t seed);
  uint64_t at(uint64_t index) const;

 private:
  uint64_t round(uint64_t value) const;
  uint64_t count_;
  unsigned bits_;
  uint64_t mask_;
  std::array<uint64_t, 3> keys_;
};

// Block numbers of one random distribution over `blocks` blocks.
class BlockPicker {
 public:
  BlockPicker(const Distribution &distribution, uint64_t blocks, bool map, uint64_t seed);
  uint64_t next();

 private:
  uint64_t zipf();
  uint64_t pareto();
  uint64_t zoned();
  uint64_t scattered(uint64_t rank) const;

  Distribution distribution_;
  uint64_t blocks_;
  bool map_;
  Rng rng_;
  Permutation order_;
  uint64_t taken_ = 0;
  // Zipf, after Gray et al., "Quickly generating billion-record synthetic databases" (1994).
  double zeta_n_ = 0;
  double eta_ = 0;
  double half_power_ = 0;
  double exponent_ = 0;  // zipf: 1 / (1 - theta); pareto: log(h) / log(1 - h)
};

// Bytes [first, end) of a target, cut into blocks.
struct Region {
  uint64_t first = 0;
  uint64_t end = 0;
  uint64_t bytes() const { return end - first; }
};

class AddressSource {
 public:
  AddressSource(const JobOptions &job, Region region, uint64_t seed);
  // Where an I/O of so many bytes (not more than the region) starts.
  uint64_t next(unsigned direction, uint64_t bytes);

 private:
  bool random_now(unsigned direction);

  Region region_;
  bool random_;
  bool always_random_;
  PerDirection<unsigned> percentage_random_;
  PerDirection<uint64_t> unit_;
  PerDirection<uint64_t> position_;
  std::vector<BlockPicker> pickers_;
  Rng rng_;
};

}  // namespace revodrive::sim
#endif
