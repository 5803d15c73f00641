// SPDX-License-Identifier: GPL-2.0-or-later
//
// fio's I/O logs (fio 3.33, "Trace file format"): version 2 with relative waits, version 3 with a
// time on each line, in us. Reading takes a whole log into memory, 32 bytes an entry; an action or
// a line that is not understood ends the run with file and line, never a skip. Writing is
// version 3.
#ifndef REVODRIVE_SIM_IOLOG_H
#define REVODRIVE_SIM_IOLOG_H

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/io_source.h"
#include "sim/job.h"
#include "sim/job_options.h"
#include "sim/output_file.h"
#include "sim/placement.h"

namespace revodrive::sim {

struct TraceEntry {
  uint64_t offset = 0;
  int64_t at_ns = 0;  // since the first line
  uint32_t bytes = 0;
  uint32_t line = 0;
  Op op = Op::kRead;
  uint8_t file = 0;
};

struct Trace {
  std::string path;
  std::vector<std::string> files;
  std::vector<TraceEntry> entries;
  uint64_t longest_bytes = 0;  // of reads and writes
};

// Throws UserError.
Trace parse_trace(std::string_view text, const std::string &path);
// The log that the clone of a job replays: read_iolog may name several, separated by ':'.
Trace read_trace(const JobOptions &job, unsigned clone);

// The source of a replay; appends the target of each file of the trace.
using Resolve = std::function<Placement *(const std::string &name)>;
std::unique_ptr<IoSource> open_replay(const JobOptions &job, Trace trace, const Resolve &resolve,
                                      std::vector<Placement *> *targets);

// Writes what the job issues to `files`, which are its targets. Several clones get a log each,
// NAME.0, NAME.1, ...
std::unique_ptr<IssueLog> open_issue_log(const JobOptions &job, unsigned clone,
                                         const std::vector<std::string> &files, OutputFiles &all);

}  // namespace revodrive::sim
#endif
