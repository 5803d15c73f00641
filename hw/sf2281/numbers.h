// SPDX-License-Identifier: GPL-2.0-or-later
//
// Numbers in a stream that are small as a rule: seven bits a byte, the lowest first (LEB128).
#ifndef REVODRIVE_SF2281_NUMBERS_H
#define REVODRIVE_SF2281_NUMBERS_H

#include <cstdint>

#include "revodrive/stream.h"

namespace revodrive {

inline void put_number(StreamWriter &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.put(static_cast<uint8_t>(value | 0x80));
  out.put(static_cast<uint8_t>(value));
}

inline uint64_t get_number(StreamReader &in) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    auto byte = in.get<uint8_t>();
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80)
      return value;
  }
  in.fail();
  return 0;
}

}  // namespace revodrive
#endif
