// SPDX-License-Identifier: GPL-2.0-or-later
//
// The bytes that a job writes, by fio's rules: buffers are filled once and used again, slightly
// changed for each write (scramble_buffers), unless they are refilled; buffer_compress_percentage
// (100: fully compressible) puts so much fixed pattern after random bytes into each chunk;
// dedupe_percentage repeats earlier blocks.
#ifndef REVODRIVE_SIM_DATA_SOURCE_H
#define REVODRIVE_SIM_DATA_SOURCE_H

#include <cstdint>
#include <span>

#include "sim/job_options.h"
#include "sim/rng.h"

namespace revodrive::sim {

class DataSource {
 public:
  // `block`: the job's smallest block, the unit in which blocks repeat.
  DataSource(const BufferOptions &options, uint64_t block, uint64_t seed);

  // A buffer, before its first use.
  void fill(std::span<uint8_t> buffer);
  // Before each write of it.
  void prepare(std::span<uint8_t> data, uint64_t offset, int64_t now_ns) {
    if (refill_)
      fill(data);
    else if (scramble_)
      scramble(data, offset, now_ns);
  }

 private:
  void fill_block(std::span<uint8_t> block, uint64_t seed) const;
  void fill_pattern(std::span<uint8_t> bytes) const;
  static void scramble(std::span<uint8_t> data, uint64_t offset, int64_t now_ns);

  BufferOptions options_;
  uint64_t block_;
  Rng rng_;
  uint64_t last_seed_;
  bool refill_;
  bool scramble_;
};

}  // namespace revodrive::sim
#endif
