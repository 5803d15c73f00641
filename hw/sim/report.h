// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a run is told as: fio's JSON (--output-format=json, schema of fio 3.33, so that fio's own
// tools read it; the object "revosim" has what fio does not know) and a summary for people in the
// manner of fio's.
#ifndef REVODRIVE_SIM_REPORT_H
#define REVODRIVE_SIM_REPORT_H

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/card_host.h"
#include "sim/job_options.h"
#include "sim/job_stats.h"
#include "sim/json_writer.h"
#include "sim/simulation.h"

namespace revodrive::sim {

// A line of the report: one clone, or a group of jobs with group_reporting.
struct ReportJob {
  std::string name;
  unsigned group = 0;
  unsigned jobs = 1;
  const JobOptions *options = nullptr;
  JobStats stats;
  uint64_t energy_uj = 0;  // see RunningJob; of a group: until its last job ended
};

// A counter of the card before and after the run.
struct CounterChange {
  uint64_t before = 0;
  uint64_t after = 0;
};

struct Report {
  std::string version;  // of revosim
  std::string profile;
  std::string placement;
  std::string command_line;
  HostSetup setup;
  JobOptions global;
  std::vector<ReportJob> jobs;
  std::map<std::string, CounterChange> counters;
  std::vector<DiskUse> disks;  // of each member
  StageSums stages;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  bool interrupted = false;
  bool bins = false;  // json+: every bucket of the completion latencies
};

// The jobs as they are reported.
std::vector<ReportJob> report_jobs(const Simulation &simulation);

// Over all members, of the run alone: "nand_write_bytes". 0 if no member has such a counter.
uint64_t member_change(const Report &report, const std::string &name);

// What the host wrote in the run, without what a volume wrote for itself.
uint64_t host_write_bytes(const Report &report);

std::string json_report(const Report &report);
std::string text_report(const Report &report);

// The shares, in percent, of latencies up to each of fio's limits: 2, 4, 10, ... in ns, us, ms.
struct LatencyShares {
  std::vector<std::pair<std::string, double>> ns, us, ms;
};
LatencyShares latency_shares(const JobStats &stats);
// fio's list, or the one of the job.
std::vector<double> percentiles_of(const JobOptions &options);

}  // namespace revodrive::sim
#endif
