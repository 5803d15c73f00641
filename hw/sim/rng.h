// SPDX-License-Identifier: GPL-2.0-or-later
//
// The random numbers of revosim: xoshiro256** (Blackman and Vigna, 2018), seeded by splitmix64. The
// same seed gives the same numbers on every machine.
#ifndef REVODRIVE_SIM_RNG_H
#define REVODRIVE_SIM_RNG_H

#include <array>
#include <bit>
#include <cstdint>

namespace revodrive::sim {

// A good mixer of 64 bits; also what turns one seed into many.
inline uint64_t mix64(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

class Rng {
 public:
  explicit Rng(uint64_t seed = 0) {
    for (uint64_t &word : state_)
      word = seed = mix64(seed);
  }

  uint64_t next() {
    uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  // 0 to limit - 1; limit >= 1. The bias of limit / 2^64 does not matter here.
  uint64_t below(uint64_t limit) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * limit) >> 64);
  }
  // True in `percent` of 100 cases.
  bool chance(unsigned percent) { return below(100) < percent; }
  // [0, 1), a multiple of 2^-53.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace revodrive::sim
#endif
