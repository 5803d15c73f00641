// SPDX-License-Identifier: GPL-2.0-or-later
//
// How many bytes of flash the data of a write takes after the controller's in-line compression.
// Each 4 KiB (and a smaller tail) is measured by itself with zstd at its fastest regular level,
// with one context that is kept, so that nothing is allocated once it has its size. A controller
// cannot store arbitrarily little: below the profile's floor data costs the floor (fully
// compressible sequential data was stored at 0.14 of its size: Tom's Hardware, Intel SSD 520
// review), and what does not compress is stored as it is.
#ifndef REVODRIVE_SF2281_COMPRESSOR_H
#define REVODRIVE_SF2281_COMPRESSOR_H

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "revodrive/host.h"

struct ZSTD_CCtx_s;

namespace revodrive {

class Compressor {
 public:
  static constexpr uint32_t kChunkBytes = 4096;

  // `floor_permille`: smallest stored share, 1..1000. 0: a controller without compression.
  explicit Compressor(uint32_t floor_permille);

  // Stored size of `bytes` of data, of which `data` holds the first ones; what is missing there
  // counts as incompressible.
  uint64_t stored_bytes(std::span<const rd_iov> data, uint64_t bytes);

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s *context) const;
  };
  uint32_t measure(std::span<const uint8_t> chunk);

  uint32_t floor_permille_;
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  std::array<uint8_t, kChunkBytes> gathered_;
  std::array<uint8_t, kChunkBytes> packed_;
};

}  // namespace revodrive
#endif
