// SPDX-License-Identifier: GPL-2.0-or-later
//
// A 512-byte block that the drive composes: IDENTIFY data, SMART data, log pages. Zero to begin
// with, so that no byte of the host ever leaks into it. Numbers are little-endian.
#ifndef REVODRIVE_SATA_PAGE_H
#define REVODRIVE_SATA_PAGE_H

#include <array>
#include <cassert>
#include <cstdint>
#include <span>

#include "revodrive/ata.h"

namespace revodrive {

class Page {
 public:
  uint8_t &operator[](size_t at) { return bytes_.at(at); }
  void put(size_t at, uint64_t value, unsigned bytes) {
    assert(at + bytes <= bytes_.size());
    for (unsigned i = 0; i < bytes; i++)
      bytes_[at + i] = static_cast<uint8_t>(value >> (8 * i));
  }
  // IDENTIFY counts in 16-bit words.
  void word(size_t index, uint16_t value) { put(2 * index, value, 2); }
  // Makes all bytes sum to 0 modulo 256 by the last one.
  void seal() {
    uint8_t sum = 0;
    for (size_t i = 0; i + 1 < bytes_.size(); i++)
      sum = static_cast<uint8_t>(sum + bytes_[i]);
    bytes_.back() = static_cast<uint8_t>(-sum);
  }
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::array<uint8_t, ata::kSectorBytes> bytes_{};
};

}  // namespace revodrive
#endif
