// SPDX-License-Identifier: GPL-2.0-or-later
//
// Random numbers that are the same on every machine (xorshift64*, Vigna 2016).
#ifndef REVODRIVE_TESTS_RANDOM_H
#define REVODRIVE_TESTS_RANDOM_H

#include <cstdint>

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Dull;
  }
  uint64_t below(uint64_t bound) { return (next() >> 11) % bound; }
  bool one_in(uint64_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

#endif
