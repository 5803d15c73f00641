// SPDX-License-Identifier: GPL-2.0-or-later
//
// rate and rate_iops: spaces the I/Os of each direction evenly, from the job's start on. Of a job
// that reads and writes, an I/O goes the other way when its own is ahead of its rate, as fio 3.33
// does it (rate_ddir): so each direction keeps its rate, whatever the mix says.
#ifndef REVODRIVE_SIM_RATE_PACER_H
#define REVODRIVE_SIM_RATE_PACER_H

#include <cstdint>

#include "sim/card_host.h"
#include "sim/io_source.h"
#include "sim/job_options.h"

namespace revodrive::sim {

class RatePacer {
 public:
  RatePacer(const JobOptions &options, const CardHost &host);

  bool active() const { return active_; }
  void start(int64_t at_ns) { start_ns_ = at_ns; }
  // Read or write, in place of the one that was drawn.
  Op choose(Op drawn) const;
  // When the I/O is due: once those of its direction before it should be through. Counts it.
  int64_t take(const NextIo &io);

 private:
  int64_t due_ns(Op direction) const;

  const JobOptions &options_;
  const CardHost &host_;
  bool active_ = false;
  int64_t start_ns_ = 0;
  PerDirection<uint64_t> bytes_ = {};
  PerDirection<uint64_t> ios_ = {};
};

}  // namespace revodrive::sim
#endif
