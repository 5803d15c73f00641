// SPDX-License-Identifier: GPL-2.0-or-later
//
// Files beside the report: latency histograms, and the ATA commands of a run one by one.
#ifndef REVODRIVE_SIM_EXTRA_OUTPUT_H
#define REVODRIVE_SIM_EXTRA_OUTPUT_H

#include <cstdint>

#include "sim/block_layer.h"
#include "sim/output_file.h"
#include "sim/report.h"

namespace revodrive::sim {

// Buckets of each direction over all jobs, as JSON or as text with bars. Closes the file.
void write_histogram(OutputFile &file, bool json, const Report &report);

// port,tag,opcode,lba,sectors,submit_ns,done_ns,failed,number in order of completion; times since
// the jobs began, numbers in order of submission. Another host that submits the same commands at
// the same times gets the same ends.
class CommandDump {
 public:
  CommandDump(OutputFile &file, int64_t start_ns);
  void add(const CommandRecord &record);

 private:
  OutputFile &file_;
  int64_t start_ns_;
};

}  // namespace revodrive::sim
#endif
