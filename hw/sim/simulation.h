// SPDX-License-Identifier: GPL-2.0-or-later
//
// A run: builds the card, its driver and the jobs, then moves virtual time from event to event
// until every job is done. Jobs run in waves, which stonewall separates. The same input gives the
// same result to the bit.
#ifndef REVODRIVE_SIM_SIMULATION_H
#define REVODRIVE_SIM_SIMULATION_H

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/block_layer.h"
#include "sim/card_host.h"
#include "sim/iolog.h"
#include "sim/job.h"
#include "sim/job_options.h"
#include "sim/output_file.h"
#include "sim/placement.h"

namespace revodrive::sim {

// The host's side of a profile: [host] and [card].
struct HostSetup {
  HostCost cost;
  Coalescing coalescing;
  unsigned depth = kTags;  // NCQ tags in use for each drive
  uint32_t max_command_bytes = 512 << 10;
  unsigned members = 4;
  uint64_t member_bytes = 120'034'123'776;
  std::string preset = "fresh";
  std::string profile;                          // its name, as saved states know it
  std::map<std::string, std::string> settings;  // every "section.key" in force
};

// Reads both from a profile and what is set on top. Throws UserError with the card's words.
HostSetup read_setup(const rd_card_config &config);

struct RunningJob {
  JobOptions options;
  unsigned wave = 0;
  unsigned group = 0;
  unsigned clone = 0;
  Trace trace;  // of a replay, until the job has it
  std::unique_ptr<Job> job;
  // What the card used from the beginning of the job's wave to the job's end.
  uint64_t energy_uj = 0;
};

class Simulation {
 public:
  // `spans`: the card will be watched (CardHost::watch).
  Simulation(const rd_card_config &config, const HostSetup &setup, const std::string &placement,
             const std::vector<JobOptions> &jobs, bool spans = false);

  CardHost &host() { return *host_; }
  BlockLayer &blocks() { return *blocks_; }
  const HostSetup &setup() const { return setup_; }
  const std::string &placement() const { return placement_; }
  // Disks as an operating system sees them; of the card's own volume its lanes.
  unsigned disks() const { return volume_ ? kVolumeLanes : setup_.members; }

  // Brings the driver up, makes the jobs ready and opens their logs. After a saved state was
  // loaded, if any is.
  void prepare(OutputFiles &outputs);
  // Runs all jobs. `tick` is called now and then; false ends the run early.
  void run(const std::function<bool()> &tick);

  // Closes the logs of the jobs. Throws UserError if one could not be written.
  void finish_logs();

  const std::vector<std::unique_ptr<RunningJob>> &jobs() const { return jobs_; }
  int64_t start_ns() const { return start_ns_; }
  int64_t now_ns() const { return host_->now_ns(); }
  uint64_t done_ios() const;
  // The share of the work that is done, 0 to 1.
  double done_share() const;

 private:
  void lay_out(const std::vector<JobOptions> &jobs);
  void build(RunningJob &running, unsigned number, uint64_t buffers, OutputFiles &outputs);
  void open_targets(RunningJob &running, JobParts &parts);
  // `asked`: who names it, for messages.
  Placement &target(const std::string &name, const std::string &asked);
  std::vector<Region> regions(const JobOptions &job, unsigned clone,
                              const std::vector<Placement *> &targets) const;
  uint64_t energy_uj() const;
  bool run_wave(unsigned wave, const std::function<bool()> &tick);
  void step(const std::vector<RunningJob *> &active);
  Members members() const;

  HostSetup setup_;
  std::string placement_;
  bool volume_;  // the card makes one disk of its drives
  std::unique_ptr<CardHost> host_;
  std::unique_ptr<HbaDriver> driver_;
  std::unique_ptr<BlockLayer> blocks_;
  std::map<std::string, std::unique_ptr<Placement>> targets_;
  std::vector<std::unique_ptr<RunningJob>> jobs_;
  unsigned waves_ = 0;
  int64_t start_ns_ = 0;
};

}  // namespace revodrive::sim
#endif
