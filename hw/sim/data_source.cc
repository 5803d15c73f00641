// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/data_source.h"

#include <algorithm>
#include <cstring>

namespace revodrive::sim {

namespace {

void fill_random(std::span<uint8_t> bytes, uint64_t seed) {
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  size_t at = 0;
  for (; at + sizeof(seed) <= bytes.size(); at += sizeof(seed)) {
    seed += kStep;
    uint64_t word = (seed ^ seed >> 32) * 0xD6E8FEB86659FD93;
    word ^= word >> 32;
    std::memcpy(&bytes[at], &word, sizeof(word));
  }
  uint64_t word = mix64(seed);
  if (at < bytes.size())
    std::memcpy(&bytes[at], &word, bytes.size() - at);
}

}  // namespace

DataSource::DataSource(const BufferOptions &options, uint64_t block, uint64_t seed)
    : options_(options), block_(block), rng_(seed), last_seed_(rng_.next()) {
  // fio: a share below 100 and deduplication need fresh buffers; 0 is as if it were not given.
  bool compress = options.compress_percent > 0;
  bool fresh = (compress && options.compress_percent < 100) || options.dedupe_percent > 0;
  refill_ = (options.refill || fresh) && !options.zero;
  scramble_ = options.scramble && !options.zero && !compress && options.pattern.empty();
}

void DataSource::fill(std::span<uint8_t> buffer) {
  for (size_t at = 0; at < buffer.size(); at += block_) {
    if (options_.dedupe_percent == 0 || !rng_.chance(options_.dedupe_percent))
      last_seed_ = rng_.next();
    fill_block(buffer.subspan(at, std::min<size_t>(block_, buffer.size() - at)), last_seed_);
  }
}

void DataSource::fill_block(std::span<uint8_t> block, uint64_t seed) const {
  bool shaped = options_.compress_percent > 0;
  if (!shaped && (options_.zero || !options_.pattern.empty()))
    return fill_pattern(block);
  if (!shaped)
    return fill_random(block, seed);
  size_t chunk = options_.compress_chunk ? options_.compress_chunk : block.size();
  auto share = static_cast<size_t>(100 - options_.compress_percent);
  for (size_t at = 0; at < block.size(); at += chunk) {
    std::span<uint8_t> piece = block.subspan(at, std::min(chunk, block.size() - at));
    size_t random = piece.size() * share / 100;
    fill_random(piece.first(random), mix64(seed + at));
    fill_pattern(piece.subspan(random));
  }
}

void DataSource::fill_pattern(std::span<uint8_t> bytes) const {
  const std::vector<uint8_t> &pattern = options_.pattern;
  if (pattern.empty()) {
    std::fill(bytes.begin(), bytes.end(), uint8_t{0});
    return;
  }
  for (size_t at = 0; at < bytes.size(); at += pattern.size())
    std::memcpy(&bytes[at], pattern.data(), std::min(pattern.size(), bytes.size() - at));
}

// Where fio 3.33 does it: in each sector the offset at the beginning of one of eight 64-byte lines,
// the time at the end of the first. No two blocks are the same; however often a buffer is used, at
// most 80 bytes of a sector have changed, and it compresses hardly better than at first.
void DataSource::scramble(std::span<uint8_t> data, uint64_t offset, int64_t now_ns) {
  constexpr size_t kSector = 512, kLine = 64;
  constexpr uint64_t kSecond = 1'000'000'000;
  auto time = static_cast<uint64_t>(now_ns);
  uint64_t clock[] = {time / kSecond, time % kSecond};
  size_t place = ((clock[1] ^ offset) & (kSector / kLine - 1)) * kLine;
  for (size_t at = 0; at + kSector <= data.size(); at += kSector) {
    uint64_t where = offset + at;
    std::memcpy(&data[at + place], &where, sizeof(where));
    std::memcpy(&data[at + kLine - sizeof(clock)], clock, sizeof(clock));
  }
}

}  // namespace revodrive::sim
