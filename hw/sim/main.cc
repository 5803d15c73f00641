// SPDX-License-Identifier: GPL-2.0-or-later
//
// revosim: fio for a card that is no longer sold. See docs/revosim.md.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>

#include "sim/command_line.h"
#include "sim/extra_output.h"
#include "sim/output_file.h"
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

// Standard output may be a full disk.
void flush_stdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    refuse("standard output: cannot be written: %s", std::strerror(errno));
}

// The files that the command line asks for, open.
struct Outputs {
  Outputs(const CommandLine &line, const std::vector<JobOptions> &jobs);
  OutputFiles all;
  std::unique_ptr<StateFile> state;
  std::unique_ptr<OutputFile> report;
  std::unique_ptr<OutputFile> timeline;
  std::unique_ptr<OutputFile> histogram;
  std::unique_ptr<OutputFile> dump;
};

bool is_builtin(const std::string &profile) {
  struct Search {
    const std::string &name;
    bool found = false;
  } search{profile};
  auto compare = [](void *opaque, const char *name) {
    auto &it = *static_cast<Search *>(opaque);
    it.found |= it.name == name;
  };
  rd_profile_list(compare, &search);
  return search.found;
}

Outputs::Outputs(const CommandLine &line, const std::vector<JobOptions> &jobs) {
  for (const std::string &file : line.job_files)
    all.keep("job file '" + file + "'", file);
  for (const JobOptions &job : jobs) {
    if (!job.replay.log.empty())
      all.keep("read_iolog=" + job.replay.log, job.replay.log);
  }
  if (!line.profile.empty() && !is_builtin(line.profile))
    all.keep("--profile=" + line.profile, line.profile);
  auto open = [&](const char *option, const std::string &path) {
    return path.empty() ? nullptr : std::make_unique<OutputFile>(option + ("=" + path), path, all);
  };
  if (!line.state.empty())
    state = std::make_unique<StateFile>(line.state, all);
  report = open("--output", line.output);
  timeline = open("--timeline", line.timeline);
  histogram = open("--histogram", line.histogram);
  dump = open("--dump-commands", line.dump_commands);
}

void write_report(OutputFile *file, const std::string &text) {
  if (file) {
    file->write(text);
    file->close();
    return;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  flush_stdout();
}

void write_timeline(const CommandLine &line, const TimelineTrace &trace, OutputFile &file,
                    int64_t run_ns) {
  trace.write(file);
  if (trace.dropped() > 0)
    std::fprintf(stderr, "revosim: --timeline=%s: %llu spans beyond the first %zu were left out\n",
                 line.timeline.c_str(), static_cast<unsigned long long>(trace.dropped()),
                 TimelineTrace::kMostSpans);
  if (line.timeline_from_ns >= run_ns)
    std::fprintf(stderr,
                 "revosim: warning: --timeline-window begins at %.6f ms, but the run ended at %.6f "
                 "ms: the trace is empty\n",
                 static_cast<double>(line.timeline_from_ns) / kNsPerMs,
                 static_cast<double>(run_ns) / kNsPerMs);
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

void check_preset(const std::string &preset) {
  if (preset == "image")
    refuse("--preset=image: must be fresh, full or steady; the drives here have no image");
  if (preset != "fresh" && preset != "full" && preset != "steady")
    refuse("--preset=%s: must be fresh, full or steady", preset.c_str());
}

// All that the run has made, the most wanted first: what fails ends the program. The state comes
// last, as it is the start of the next run: whoever repeats this one finds it as it was.
void write_all(const CommandLine &line, Outputs &outputs, const Report &report,
               const TimelineTrace &trace, Simulation &simulation) {
  std::string text = line.text ? text_report(report) : "";
  write_report(outputs.report.get(), text + (line.json ? json_report(report) : ""));
  if (outputs.timeline)
    write_timeline(line, trace, *outputs.timeline, report.end_ns - report.start_ns);
  if (outputs.histogram)
    write_histogram(*outputs.histogram, line.histogram.ends_with(".json"), report);
  if (outputs.dump)
    outputs.dump->close();
  simulation.finish_logs();
  if (outputs.state)
    outputs.state->store(simulation);
}

int run(const CommandLine &line, std::vector<JobOptions> jobs) {
  check_combination(line);
  check_preset(line.preset);
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
  Outputs outputs(line, jobs);
  Simulation simulation(config, setup, line.placement, jobs, outputs.timeline != nullptr);
  if (outputs.state)
    outputs.state->load(simulation);
  simulation.prepare(outputs.all);
  int64_t start_ns = simulation.start_ns();
  TimelineTrace trace(start_ns + line.timeline_from_ns, start_ns + line.timeline_to_ns);
  if (outputs.timeline)
    simulation.host().watch(&trace);
  std::optional<CommandDump> dump;
  if (outputs.dump) {
    dump.emplace(*outputs.dump, start_ns);
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
  write_all(line, outputs, report, trace, simulation);
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
  flush_stdout();
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
