// SPDX-License-Identifier: GPL-2.0-or-later
//
// How many bytes of flash the data of a write takes after the controller's in-line compression.
// Each 4 KiB (and a smaller tail) is measured by itself: what zstd at its fastest regular level
// makes of it is estimated (estimate.h) or, for those who doubt that, really measured by zstd, with
// one context that is kept, so that nothing is allocated once it has its size. A controller
// cannot store arbitrarily little: below the profile's floor data costs the floor (fully
// compressible sequential data was stored at 0.14 of its size: Tom's Hardware, Intel SSD 520
// review), and what does not compress is stored as it is. Where the profile has it deduplicate, a
// chunk that was stored lately costs a reference.
//
// Measuring costs the host far more than a simulated command may, so what was measured is
// remembered by content: data that comes again costs a hash. The memory is of a pure function, so
// it changes no result and is not part of the state.
#ifndef REVODRIVE_SF2281_COMPRESSOR_H
#define REVODRIVE_SF2281_COMPRESSOR_H

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "revodrive/host.h"
#include "revodrive/stream.h"
#include "sf2281/content_hash.h"
#include "sf2281/dedupe_window.h"

struct ZSTD_CCtx_s;

namespace revodrive {

// Deduplication: how many chunks are known, and what one of them costs when it is written again.
struct DedupeOptions {
  uint32_t window_chunks = 0;  // 0: none
  uint32_t reference_bytes = 16;
};

// Numbers as the profile has them.
enum class CompressMeasure : uint32_t { kEstimate = 0, kZstd = 1 };

class Compressor {
 public:
  static constexpr uint32_t kChunkBytes = 4096;

  // `floor_permille`: smallest stored share, 1..1000. 0: a controller without compression, which
  // does not deduplicate either.
  explicit Compressor(uint32_t floor_permille, const DedupeOptions &dedupe = {},
                      CompressMeasure measure = CompressMeasure::kEstimate);

  // Stored size of `bytes` of data, of which `data` holds the first ones; what is missing there
  // counts as incompressible.
  uint64_t stored_bytes(std::span<const rd_iov> data, uint64_t bytes);

  // The power was lost: nothing is known any more of what was stored.
  void power_cycle() { window_.forget(); }
  void save(StreamWriter &out) const { window_.save(out); }
  void load(StreamReader &in) { window_.load(in); }

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s *context) const;
  };
  struct Measured {
    ContentHash hash;
    uint32_t stored = 0;  // 0: nothing is here
  };
  uint32_t measure(std::span<const uint8_t> chunk);
  uint32_t measure_zeros(std::span<const uint8_t> zeros);
  uint32_t pack(std::span<const uint8_t> chunk);
  uint32_t packed_by_zstd(std::span<const uint8_t> chunk);

  uint32_t floor_permille_;
  uint32_t reference_bytes_;
  DedupeWindow window_;
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;  // none: sizes are estimated
  std::vector<Measured> memory_;  // each hash has one place; the newer one stays
  // The last chunk of zeros: its size, what it was stored as.
  uint32_t zeros_bytes_ = 0;
  uint32_t zeros_stored_ = 0;
  std::array<uint8_t, kChunkBytes> gathered_;
  std::array<uint8_t, kChunkBytes> packed_;
};

}  // namespace revodrive
#endif
