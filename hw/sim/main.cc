// SPDX-License-Identifier: GPL-2.0-or-later
//
// revosim: fio for a card that is no longer sold. See docs/revosim.md.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>

#include "sim/command_line.h"
#include "sim/extra_output.h"
#include "sim/progress.h"
#include "sim/report.h"
#include "sim/simulation.h"
#include "sim/state_file.h"
#include "sim/user_error.h"

#ifndef REVOSIM_VERSION
#error "the build says which version this is"
#endif

namespace revodrive::sim {

namespace {

void write_output(const std::string &path, const std::string &text) {
  FILE *file = path.empty() ? stdout : std::fopen(path.c_str(), "w");
  bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written = file && (path.empty() ? std::fflush(file) : std::fclose(file)) == 0 && written;
  if (!written)
    refuse("%s: cannot be written", path.empty() ? "standard output" : path.c_str());
}

void note_counters(CardHost &host, Report &report, uint64_t CounterChange::*which) {
  host.query(
      [&](const std::string &name, uint64_t value) { report.counters[name].*which = value; });
}

std::string joined(const std::vector<std::string> &settings) {
  std::string text;
  for (const std::string &setting : settings)
    text += (text.empty() ? "" : ";") + setting;
  return text;
}

// `settings` must live as long as the result.
rd_card_config card_config(const CommandLine &line, const std::string &settings) {
  rd_card_config config = {};
  config.profile = line.profile.empty() ? nullptr : line.profile.c_str();
  config.profile_set = settings.empty() ? nullptr : settings.c_str();
  config.ports = RD_MAX_PORTS;
  config.timing = true;
  return config;
}

void list_profiles() {
  rd_profile_list([](void *, const char *name) { std::puts(name); }, nullptr);
}

void show_settings(const CommandLine &line) {
  std::string settings = joined(line.settings);
  for (const auto &[key, value] : read_setup(card_config(line, settings)).settings)
    std::printf("%s=%s\n", key.c_str(), value.c_str());
}

// Runs the jobs and takes the card's counters around them.
void run_jobs(Simulation &simulation, Report &report) {
  report.start_ns = simulation.now_ns();
  note_counters(simulation.host(), report, &CounterChange::before);
  {
    Progress progress(simulation);
    simulation.run([&] { return progress.tick(); });
    report.interrupted = progress.interrupted();
  }
  report.end_ns = simulation.now_ns();
  note_counters(simulation.host(), report, &CounterChange::after);
  report.stages = simulation.host().stages();
  report.jobs = report_jobs(simulation);
  for (unsigned port = 0; port < simulation.disks(); port++)
    report.disks.push_back(simulation.blocks().use(port));
}

void check_combination(const CommandLine &line) {
  if (!line.state.empty() && line.placement.starts_with("dispatch"))
    refuse("--state and --placement=%s: the map of a dispatched volume is not stored; use stripe",
           line.placement.c_str());
}

int run(const CommandLine &line, std::vector<JobOptions> jobs) {
  check_combination(line);
  std::string settings = joined(line.settings);
  rd_card_config config = card_config(line, settings);
  HostSetup setup = read_setup(config);
  setup.preset = line.preset;
  if (auto volume = CardVolume::parse(line.placement)) {
    config.vca = true;
    config.policy = volume->policy;
    config.chunk_bytes = volume->chunk_bytes;
    config.ports = setup.members;
  }
  Simulation simulation(config, setup, line.placement, jobs, !line.timeline.empty());
  if (!line.state.empty())
    load_state(line.state, simulation);
  simulation.prepare();
  int64_t start_ns = simulation.start_ns();
  TimelineTrace trace(start_ns + line.timeline_from_ns, start_ns + line.timeline_to_ns);
  if (!line.timeline.empty())
    simulation.host().watch(&trace);
  std::optional<CommandDump> dump;
  if (!line.dump_commands.empty()) {
    dump.emplace(line.dump_commands, start_ns);
    simulation.blocks().on_command = [&](const CommandRecord &record) { dump->add(record); };
  }
  Report report;
  report.version = REVOSIM_VERSION;
  report.placement = line.placement;
  report.setup = setup;
  report.profile = setup.profile;
  report.global = line.jobs.global();
  report.bins = line.bins;
  run_jobs(simulation, report);

  std::string text = line.text ? text_report(report) : "";
  write_output(line.output, text + (line.json ? json_report(report) : ""));
  if (!line.timeline.empty())
    trace.write(line.timeline);
  if (trace.dropped() > 0)
    std::fprintf(stderr, "revosim: --timeline=%s: %llu spans beyond the first %zu were left out\n",
                 line.timeline.c_str(), static_cast<unsigned long long>(trace.dropped()),
                 TimelineTrace::kMostSpans);
  if (!line.histogram.empty())
    write_histogram(line.histogram, report);
  if (!line.state.empty())
    store_state(line.state, simulation);
  auto failed = [](const ReportJob &job) { return job.stats.errors > 0; };
  bool any_failed = std::any_of(report.jobs.begin(), report.jobs.end(), failed);
  return report.interrupted ? 128 + SIGINT : any_failed ? 1 : 0;
}

int main_of(const std::vector<std::string> &arguments) {
  CommandLine line = parse_command_line(arguments);
  if (line.help)
    std::fputs(kUsage, stdout);
  else if (line.version)
    std::puts("revosim " REVOSIM_VERSION);
  else if (line.list_profiles)
    list_profiles();
  else if (line.show_settings)
    show_settings(line);
  else
    return run(line, line.jobs.take());
  return 0;
}

}  // namespace

}  // namespace revodrive::sim

int main(int argc, char **argv) {
  constexpr int kUsageError = 2;
  try {
    return revodrive::sim::main_of({argv + 1, argv + argc});
  } catch (const std::exception &problem) {
    std::fprintf(stderr, "revosim: %s\n", problem.what());
    return kUsageError;
  }
}
