// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/simulation.h"

#include <algorithm>

#include "sim/look_ahead.h"
#include "sim/user_error.h"

namespace revodrive::sim {

namespace {

constexpr uint64_t kPage = 4096;

uint64_t page_up(uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// Guest memory for one request: data that nobody looks at needs none, but an address.
uint64_t buffer_bytes(const RunningJob &running) {
  const JobOptions &job = running.options;
  if (!job.replay.log.empty())
    return page_up(std::max(running.trace.longest_bytes, kPage));
  return page_up(std::max(job.block_max[static_cast<unsigned>(Op::kRead)],
                          job.block_max[static_cast<unsigned>(Op::kWrite)]));
}

unsigned long long big(uint64_t value) {
  return value;
}

// Whose fault it is that a part of a target has no room for a block.
const char *no_room_where(const JobOptions &job, uint64_t first, uint64_t whole, uint64_t least) {
  return first + least > whole
             ? where_of(job, {"offset", "offset_increment", "filesize", "bs", "bsrange", "bssplit"})
             : where_of(job, {"size", "bs", "bsrange", "bssplit"});
}

}  // namespace

Simulation::Simulation(const rd_card_config &config, const HostSetup &setup,
                       const std::string &placement, const std::vector<JobOptions> &jobs,
                       bool spans)
    : setup_(setup), placement_(placement), volume_(config.vca) {
  lay_out(jobs);
  uint64_t bytes = HbaDriver::kAreaBytes;
  for (const auto &job : jobs_)
    bytes += buffer_bytes(*job) * job->options.depth;
  host_ = std::make_unique<CardHost>(config, bytes, spans);
  for (unsigned port = 0; port < setup.members; port++)
    host_->attach(port, setup.member_bytes, setup.preset);
  driver_ = std::make_unique<HbaDriver>(*host_, CardHost::kMemoryBase, volume_);
  blocks_ = std::make_unique<BlockLayer>(*host_, *driver_, disks(), setup.depth, volume_);
}

// Clones become jobs of their own; stonewall begins a wave and a group, new_group a group.
void Simulation::lay_out(const std::vector<JobOptions> &jobs) {
  unsigned wave = 0;
  unsigned group = 0;
  for (const JobOptions &options : jobs) {
    bool first = jobs_.empty();
    if (!first && (options.stonewall || options.new_group))
      group++;
    if (!first && options.stonewall)
      wave++;
    for (unsigned clone = 0; clone < options.clones; clone++) {
      auto running = std::make_unique<RunningJob>();
      running->options = options;
      running->wave = wave;
      running->group = group;
      running->clone = clone;
      if (!options.replay.log.empty())
        running->trace = read_trace(options, clone);
      jobs_.push_back(std::move(running));
    }
  }
  waves_ = wave + 1;
}

Members Simulation::members() const {
  uint64_t volume = volume_ ? host_->counter("volume_sectors") * RD_SECTOR_BYTES : 0;
  return {setup_.members, setup_.member_bytes, setup_.max_command_bytes, blocks_->in_flight(),
          volume};
}

void Simulation::prepare(OutputFiles &outputs) {
  // A wrong one is an error even where no job needs it.
  Placement::volume(members(), placement_);
  driver_->probe(volume_ ? 1 : setup_.members, setup_.coalescing);
  uint64_t buffers = CardHost::kMemoryBase + HbaDriver::kAreaBytes;
  unsigned number = 0;
  for (auto &running : jobs_) {
    uint64_t bytes = buffer_bytes(*running) * running->options.depth;
    build(*running, number++, buffers, outputs);
    buffers += bytes;
  }
  start_ns_ = host_->now_ns();
}

Placement &Simulation::target(const std::string &name, const std::string &asked) {
  std::unique_ptr<Placement> &placement = targets_[name];
  if (placement)
    return *placement;
  if (name == "card") {
    placement = Placement::volume(members(), placement_);
    return *placement;
  }
  bool is_ssd = name.size() == 4 && name.starts_with("ssd") && name[3] >= '0' && name[3] <= '9';
  unsigned port = is_ssd ? static_cast<unsigned>(name[3] - '0') : RD_MAX_PORTS;
  if (volume_)
    refuse("%s: with --placement=%s there is card alone", asked.c_str(), placement_.c_str());
  if (port >= setup_.members)
    refuse("%s: there are card and ssd0 to ssd%u", asked.c_str(), setup_.members - 1);
  placement = Placement::single(members(), port);
  return *placement;
}

// Each file's part of the job, as fio cuts it.
std::vector<Region> Simulation::regions(const JobOptions &job, unsigned clone,
                                        const std::vector<Placement *> &targets) const {
  std::vector<Region> regions;
  auto [step, least] = std::ranges::minmax(job.block_min);
  for (size_t i = 0; i < targets.size(); i++) {
    uint64_t whole = targets[i]->bytes();
    if (job.file_size.given())
      whole = std::min(whole, job.file_size.of(whole));
    uint64_t first = job.offset.of(whole) + clone * job.offset_increment;
    if (job.offset.percent)  // fio: on to the next whole block
      first = (first + step - 1) / step * step;
    uint64_t bytes = first < whole ? whole - first : 0;
    if (job.size.percent)
      bytes = std::min(bytes, job.size.of(whole));
    else if (job.size.bytes)
      bytes = std::min(bytes, job.size.bytes / targets.size());
    bytes -= bytes % RD_SECTOR_BYTES;
    if (first % RD_SECTOR_BYTES != 0)
      refuse("%s: job '%s': it begins at byte %llu: must be a multiple of 512",
             where_of(job, {"offset", "offset_increment"}), job.name.c_str(), big(first));
    if (bytes < least)
      refuse(
          "%s: job '%s': offset %llu, size %llu of %s with %llu bytes: no block of %llu bytes fits",
          no_room_where(job, first, whole, least), job.name.c_str(), big(first), big(bytes),
          job.files[i].c_str(), big(whole), big(least));
    regions.push_back({first, first + bytes});
  }
  return regions;
}

void Simulation::build(RunningJob &running, unsigned number, uint64_t buffers,
                       OutputFiles &outputs) {
  const JobOptions &job = running.options;
  JobParts parts{.host = *host_, .blocks = *blocks_, .cost = setup_.cost};
  parts.pacer = std::make_unique<RatePacer>(job, *host_);
  // randrepeat=0 means other numbers, here: others that are the same in each run.
  uint64_t base = job.seed + (job.repeat || job.seed_given ? 0 : mix64(0x5EED));
  parts.seed = mix64(mix64(base) + number);
  parts.buffers = buffers;
  parts.buffer_bytes = buffer_bytes(running);
  std::vector<std::string> files = job.replay.log.empty() ? job.files : running.trace.files;
  if (!job.replay.log.empty() && !job.replay.redirect.empty())
    std::fill(files.begin(), files.end(), job.replay.redirect);
  open_targets(running, parts);
  if (!job.write_log.empty())
    parts.log = open_issue_log(job, running.clone, files, outputs);
  running.job = std::make_unique<Job>(running.options, std::move(parts));
}

// And the source of the I/Os that go there.
void Simulation::open_targets(RunningJob &running, JobParts &parts) {
  const JobOptions &job = running.options;
  auto asked = [&](const char *option, const std::string &value) {
    return std::string(where_of(job, {option})) + ": job '" + job.name + "': " + option + "=" +
           value;
  };
  if (!job.replay.log.empty()) {
    std::string log = running.trace.path;
    auto resolve = [&](const std::string &name) {
      bool moved = !job.replay.redirect.empty();
      return &target(name, moved ? asked("replay_redirect", name)
                                 : asked("read_iolog", log) + ": '" + name + "' in it");
    };
    parts.source = open_replay(job, std::move(running.trace), resolve, &parts.targets);
    return;
  }
  for (const std::string &file : job.files)
    parts.targets.push_back(&target(file, asked("filename", file)));
  std::vector<Region> regions = this->regions(job, running.clone, parts.targets);
  uint64_t total = 0;
  for (const Region &region : regions)
    total += region.bytes();
  if (job.io_size.given())
    total = job.io_size.of(total);
  parts.planned_bytes = total * job.loops;
  parts.source = std::make_unique<Generator>(job, regions, total, parts.seed, parts.pacer.get());
  // Which way a paced job goes is not known before.
  if (job.direction.random && !parts.pacer->active())
    parts.source = std::make_unique<LookAhead>(std::move(parts.source), *host_, parts.targets);
}

void Simulation::finish_logs() {
  for (auto &running : jobs_)
    running->job->finish_log();
}

void Simulation::run(const std::function<bool()> &tick) {
  for (unsigned wave = 0; wave < waves_; wave++) {
    if (!run_wave(wave, tick))
      break;
  }
  for (auto &running : jobs_)
    running->job->stop();
}

uint64_t Simulation::energy_uj() const {
  uint64_t sum = 0;
  host_->query([&](const std::string &name, uint64_t value) {
    if (name.ends_with(".energy_uj"))
      sum += value;
  });
  return sum;
}

bool Simulation::run_wave(unsigned wave, const std::function<bool()> &tick) {
  std::vector<RunningJob *> active;
  Rng rng(wave);
  uint64_t energy_before_uj = energy_uj();
  for (auto &running : jobs_) {
    if (running->wave != wave)
      continue;
    auto [least, most] = running->options.start_delay_ns;
    int64_t delay_ns =
        least + static_cast<int64_t>(rng.below(static_cast<uint64_t>(most - least) + 1));
    running->job->start(host_->now_ns() + delay_ns);
    active.push_back(running.get());
  }
  bool go_on = true;
  constexpr unsigned kTickSteps = 4096;
  for (unsigned steps = 0; !active.empty(); steps++) {
    step(active);
    std::erase_if(active, [&](RunningJob *running) {
      if (running->job->state() != Job::State::kDone)
        return false;
      running->energy_uj = energy_uj() - energy_before_uj;
      return true;
    });
    if (steps % kTickSteps != 0 || !go_on)
      continue;
    go_on = tick();
    for (RunningJob *running : active) {
      if (!go_on)
        running->job->stop();
    }
  }
  return go_on;
}

// To the next moment at which the card or a job has something to do.
void Simulation::step(const std::vector<RunningJob *> &active) {
  int64_t next_ns = host_->deadline_ns();
  for (const RunningJob *running : active)
    next_ns = std::min(next_ns, running->job->wake_ns());
  if (next_ns == RD_NEVER)
    throw std::logic_error("jobs wait, but neither card nor job has anything to do");
  host_->move_to(std::max(next_ns, host_->now_ns()));
  do {
    blocks_->serve([](IoRequest &io) { io.job->completed(io); });
    for (const RunningJob *running : active) {
      if (running->job->wake_ns() <= host_->now_ns())
        running->job->pump();
    }
  } while (host_->irq());
}

uint64_t Simulation::done_ios() const {
  uint64_t ios = 0;
  for (const auto &running : jobs_)
    ios += running->job->stats().submitted;
  return ios;
}

double Simulation::done_share() const {
  double sum = 0;
  for (const auto &running : jobs_)
    sum += running->job->done_share();
  return sum / static_cast<double>(jobs_.size());
}

}  // namespace revodrive::sim
