// SPDX-License-Identifier: GPL-2.0-or-later
//
// One I/O of a job, on its way through placement and block layer to the members and back. Belongs
// to the job, which keeps as many as its depth; nobody allocates per I/O. Bytes; times in ns.
#ifndef REVODRIVE_SIM_IO_REQUEST_H
#define REVODRIVE_SIM_IO_REQUEST_H

#include <cstdint>

namespace revodrive::sim {

class Job;

enum class Op : uint8_t { kRead, kWrite, kTrim, kFlush };
// Read, write and trim are fio's data directions.
constexpr unsigned kDirections = 3;

struct IoRequest {
  Job *job = nullptr;
  uint64_t buffer = 0;  // bus address of the data, as long as the job's largest block
  uint64_t offset = 0;  // in the target
  uint32_t bytes = 0;
  Op op = Op::kRead;
  uint8_t target = 0;  // which of the job's files
  bool failed = false;
  uint32_t parts = 0;    // commands that have not come back
  int64_t start_ns = 0;  // the job began to submit it: latency with the host's part
  int64_t issue_ns = 0;  // it was handed to the card
};

}  // namespace revodrive::sim
#endif
