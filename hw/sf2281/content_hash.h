// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a chunk of data is known by: 128 bits of XXH3 and its length. Not proof against someone who
// searches for two chunks of one hash; all they could gain is a wrong time for their own write.
#ifndef REVODRIVE_SF2281_CONTENT_HASH_H
#define REVODRIVE_SF2281_CONTENT_HASH_H

#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // the same hash, by the widest instructions there are
#endif

#include <cstdint>
#include <span>

namespace revodrive {

struct ContentHash {
  uint64_t low = 0;
  uint64_t high = 0;

  static ContentHash of(std::span<const uint8_t> chunk) {
    XXH128_hash_t hash = XXH3_128bits(chunk.data(), chunk.size());
    return {hash.low64, hash.high64 + chunk.size()};
  }
  bool operator==(const ContentHash &) const = default;
};

}  // namespace revodrive
#endif
