// SPDX-License-Identifier: GPL-2.0-or-later
//
// One running job (one clone of it): a thread of a benchmark. Keeps up to `depth` requests in
// flight, waits where its options say so (rate, think time, syncs, recorded times), pays the host's
// cost of each I/O, and counts. Everything happens in pump() and completed(); between them the job
// says when it wants to be called (wake_ns). Times in ns of virtual time.
#ifndef REVODRIVE_SIM_JOB_H
#define REVODRIVE_SIM_JOB_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/block_layer.h"
#include "sim/data_source.h"
#include "sim/io_source.h"
#include "sim/job_stats.h"
#include "sim/rate_pacer.h"

namespace revodrive::sim {

// Time of the job's own processor for each I/O: the stack of the operating system.
struct HostCost {
  int64_t submit_ns = 0;
  int64_t complete_ns = 0;
};

// Told of each I/O as it is issued (write_iolog).
class IssueLog {
 public:
  virtual ~IssueLog() = default;
  virtual void issued(const IoRequest &io, int64_t since_start_ns) = 0;
  // After the last. Throws UserError if the log is not whole.
  virtual void finish() = 0;
};

struct JobParts {
  CardHost &host;
  BlockLayer &blocks;
  HostCost cost;
  std::vector<Placement *> targets = {};  // of each of the job's files
  std::unique_ptr<RatePacer> pacer = nullptr;
  std::unique_ptr<IoSource> source = nullptr;
  std::unique_ptr<IssueLog> log = nullptr;
  uint64_t seed = 0;
  uint64_t buffers = 0;        // guest memory, depth * buffer_bytes
  uint64_t buffer_bytes = 0;   // the largest block
  uint64_t planned_bytes = 0;  // what the source gives, 0 if that is not known
};

class Job {
 public:
  enum class State { kWaiting, kRunning, kDraining, kDone };

  Job(const JobOptions &options, JobParts parts);

  // Starts at a time that is not before now.
  void start(int64_t at_ns);
  // Issues what can be issued now.
  void pump();
  void completed(IoRequest &io);
  // No further I/O: finish what is in flight.
  void stop();

  void finish_log() {
    if (parts_.log)
      parts_.log->finish();
  }

  int64_t wake_ns() const { return wake_ns_; }
  State state() const { return state_; }
  bool failed() const { return stats_.errors > 0; }
  const JobOptions &options() const { return options_; }
  const JobStats &stats() const { return stats_; }
  unsigned in_flight() const { return in_flight_; }
  // How much of the job is done, by time, bytes or I/Os, whichever is further; 0 to 1.
  double done_share() const;

 private:
  bool over(int64_t now_ns) const { return now_ns >= end_ns_; }
  bool fetch();
  bool think(int64_t now_ns);
  void issue(int64_t now_ns);
  void issue_sync(int64_t now_ns, uint8_t target);
  void drain(int64_t now_ns);
  void count(const IoRequest &io, int64_t done_ns);
  int64_t charge_cpu(int64_t earliest_ns, int64_t cost_ns);

  const JobOptions &options_;
  JobParts parts_;
  DataSource data_;
  std::vector<IoRequest> requests_;
  std::vector<IoRequest *> free_;
  IoRequest sync_;
  JobStats stats_;

  State state_ = State::kWaiting;
  int64_t wake_ns_ = RD_NEVER;
  int64_t start_ns_ = 0;
  int64_t count_from_ns_ = 0;  // end of the ramp
  int64_t end_ns_ = RD_NEVER;
  int64_t cpu_free_ns_ = 0;
  unsigned in_flight_ = 0;
  unsigned loops_left_ = 0;

  bool fetched_ = false;
  NextIo next_;
  int64_t issue_at_ns_ = 0;
  bool syncing_ = false;
  uint8_t last_syncs_ = 0;  // of end_fsync: targets that were flushed
  bool ramping_ = false;
  unsigned writes_since_sync_ = 0;
  unsigned since_thinking_ = 0;
  int64_t think_until_ns_ = 0;
  bool has_buffers_ = false;
  uint64_t done_bytes_ = 0;
  uint64_t issued_ = 0;
};

}  // namespace revodrive::sim
#endif
