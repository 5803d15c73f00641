// SPDX-License-Identifier: GPL-2.0-or-later
//
// Files beside the report: latency histograms, and the ATA commands of a run one by one.
#ifndef REVODRIVE_SIM_EXTRA_OUTPUT_H
#define REVODRIVE_SIM_EXTRA_OUTPUT_H

#include <cstdio>
#include <memory>
#include <string>

#include "sim/block_layer.h"
#include "sim/report.h"

namespace revodrive::sim {

// Buckets of each direction over all jobs: JSON if the name ends in .json, else text with bars.
void write_histogram(const std::string &path, const Report &report);

// port,tag,opcode,lba,sectors,submit_ns,done_ns,failed,number in order of completion; times since
// the jobs began, numbers in order of submission. Another host that submits the same commands at
// the same times gets the same ends.
class CommandDump {
 public:
  CommandDump(const std::string &path, int64_t start_ns);
  void add(const CommandRecord &record);

 private:
  struct Close {
    void operator()(FILE *file) const { std::fclose(file); }
  };
  std::unique_ptr<FILE, Close> file_;
  int64_t start_ns_;
};

}  // namespace revodrive::sim
#endif
