// SPDX-License-Identifier: GPL-2.0-or-later
//
// Chunks of 4 KiB (and tails of less) of all kinds of data that people store: made up, or taken
// from files that each machine has which builds this.
#ifndef REVODRIVE_TESTS_CHUNK_SAMPLES_H
#define REVODRIVE_TESTS_CHUNK_SAMPLES_H

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace revodrive::test {

using Bytes = std::vector<uint8_t>;
using Random = std::mt19937_64;

constexpr size_t kChunk = 4096;

struct Samples {
  std::string name;
  std::vector<Bytes> chunks;
};

Bytes noise(Random &random, size_t size);

// As fio lays out buffer_compress_percentage: noise first, zeros for the rest.
Bytes fio_mixed(Random &random, unsigned compressible_percent);

// fio's scrambled buffer after so many uses: in each sector 8 bytes of the offset at a multiple of
// 64, and the time in the 16 bytes from 48 on.
Bytes fio_scrambled(Random &random, unsigned uses);

// All kinds. Each has at least 20 chunks.
std::vector<Samples> all_samples(Random &random);

// The same, cut to 512..3584 bytes.
std::vector<Samples> tails(Random &random, std::vector<Samples> samples);

}  // namespace revodrive::test
#endif
