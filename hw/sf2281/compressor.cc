// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/compressor.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "sf2281/estimate.h"

namespace revodrive {

namespace {

constexpr int kLevel = 1;
constexpr size_t kRemembered = 1 << 14;

// The rest is compared with what is a cache line before it: no load goes over the end of a line.
bool all_zeros(std::span<const uint8_t> chunk) {
  constexpr std::array<uint8_t, 64> kLine{};
  size_t head = std::min(chunk.size(), kLine.size());
  return std::memcmp(chunk.data(), kLine.data(), head) == 0 &&
         std::memcmp(chunk.data(), chunk.data() + head, chunk.size() - head) == 0;
}

}  // namespace

void Compressor::FreeContext::operator()(ZSTD_CCtx_s *context) const {
  ZSTD_freeCCtx(context);
}

Compressor::Compressor(uint32_t floor_permille, const DedupeOptions &dedupe,
                       CompressMeasure measure)
    : floor_permille_(floor_permille),
      reference_bytes_(dedupe.reference_bytes),
      window_(floor_permille == 0 ? 0 : dedupe.window_chunks) {
  if (floor_permille_ == 0)
    return;
  memory_.resize(kRemembered);
  if (measure == CompressMeasure::kEstimate)
    return;
  context_.reset(ZSTD_createCCtx());
  if (!context_)
    throw std::bad_alloc();
}

uint32_t Compressor::measure(std::span<const uint8_t> chunk) {
  if (!window_.active() && all_zeros(chunk))
    return measure_zeros(chunk);
  ContentHash hash = ContentHash::of(chunk);
  if (window_.active() && window_.seen(hash))
    return std::min(reference_bytes_, static_cast<uint32_t>(chunk.size()));
  Measured &known = memory_[hash.low % kRemembered];
  if (known.stored == 0 || known.hash != hash)
    known = {hash, pack(chunk)};
  return known.stored;
}

uint32_t Compressor::measure_zeros(std::span<const uint8_t> zeros) {
  if (zeros.size() != zeros_bytes_) {
    zeros_bytes_ = static_cast<uint32_t>(zeros.size());
    zeros_stored_ = pack(zeros);
  }
  return zeros_stored_;
}

uint32_t Compressor::pack(std::span<const uint8_t> chunk) {
  auto size = static_cast<uint32_t>(chunk.size());
  uint32_t packed = context_ ? packed_by_zstd(chunk) : estimate_compressed_bytes(chunk);
  uint32_t floor = (size * floor_permille_ + 999) / 1000;
  return std::clamp(packed, floor, size);
}

// What zstd cannot squeeze into the chunk's own size fails there, and is stored as it is.
uint32_t Compressor::packed_by_zstd(std::span<const uint8_t> chunk) {
  size_t size = chunk.size();
  size_t packed =
      ZSTD_compressCCtx(context_.get(), packed_.data(), size, chunk.data(), size, kLevel);
  return static_cast<uint32_t>(ZSTD_isError(packed) ? size : packed);
}

uint64_t Compressor::stored_bytes(std::span<const rd_iov> data, uint64_t bytes) {
  if (floor_permille_ == 0)
    return bytes;
  uint64_t stored = 0;
  uint64_t left = bytes;
  size_t fill = 0;
  for (const rd_iov &piece : data) {
    auto *from = static_cast<const uint8_t *>(piece.base);
    for (size_t len = std::min<uint64_t>(piece.len, left); len > 0;) {
      size_t take = std::min(len, kChunkBytes - fill);
      if (take == kChunkBytes) {
        stored += measure({from, take});
      } else {
        std::memcpy(gathered_.data() + fill, from, take);
        fill += take;
        if (fill == kChunkBytes) {
          stored += measure(gathered_);
          fill = 0;
        }
      }
      from += take;
      len -= take;
      left -= take;
    }
  }
  if (fill > 0)
    stored += measure(std::span(gathered_).first(fill));
  return stored + left;
}

}  // namespace revodrive
