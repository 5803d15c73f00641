// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a job does next: made up by the job's options (Generator) or read from a log (IologSource).
#ifndef REVODRIVE_SIM_IO_SOURCE_H
#define REVODRIVE_SIM_IO_SOURCE_H

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/address_source.h"
#include "sim/job_options.h"

namespace revodrive::sim {

struct NextIo {
  Op op = Op::kRead;
  uint8_t target = 0;
  uint32_t bytes = 0;
  uint64_t offset = 0;
  int64_t not_before_ns = 0;  // since the job's start
  bool recorded = false;      // not_before_ns comes from a log: lateness counts
};

class RatePacer;

class IoSource {
 public:
  virtual ~IoSource() = default;
  // False: the job is done.
  virtual bool next(NextIo &io) = 0;
  // Starts from the beginning, for another loop.
  virtual void rewind() = 0;
  // Of a replay: entries that were moved inside the target (replay_wrap).
  virtual uint64_t wrapped() const { return 0; }
};

// I/Os that follow the job's options.
class Generator final : public IoSource {
 public:
  // `regions`: of each of the job's files. `total_bytes`: when the source ends; 0: never. `pacer`
  // has a word in which direction a mix goes (null: none has).
  Generator(const JobOptions &job, const std::vector<Region> &regions, uint64_t total_bytes,
            uint64_t seed, const RatePacer *pacer = nullptr);
  bool next(NextIo &io) override;
  void rewind() override;

 private:
  unsigned pick_direction();
  uint64_t pick_bytes(unsigned direction);

  const JobOptions &job_;
  const RatePacer *pacer_;
  std::vector<Region> regions_;
  uint64_t total_bytes_;
  uint64_t seed_;
  std::vector<AddressSource> addresses_;
  Rng rng_;
  uint64_t done_bytes_ = 0;
  uint8_t file_ = 0;
  bool write_again_ = false;  // trimwrite: the block that was trimmed comes again as a write
  NextIo last_;
};

}  // namespace revodrive::sim
#endif
