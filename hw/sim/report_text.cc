// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/report.h"

#include <cstdarg>
#include <cstdio>

namespace revodrive::sim {

namespace {

void say(std::string &text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void say(std::string &text, const char *format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  std::vsnprintf(line, sizeof(line), format, args);
  va_end(args);
  text += line;
}

struct Unit {
  const char *name;
  double ns;
};

// The largest unit in which the least value still has digits.
Unit unit_for(double ns) {
  if (ns >= 10e6)
    return {"msec", 1e6};
  if (ns >= 10e3)
    return {"usec", 1e3};
  return {"nsec", 1};
}

std::string iops_text(double iops) {
  char text[32];
  if (iops >= 10000)
    std::snprintf(text, sizeof(text), "%.1fk", iops / 1000);
  else
    std::snprintf(text, sizeof(text), "%.0f", iops);
  return text;
}

void say_latency(std::string &text, const char *name, const LatencyStats &stats) {
  Unit unit = unit_for(stats.mean_ns());
  say(text, "    %s (%s): min=%.0f, max=%.0f, avg=%.2f, stdev=%.2f\n", name, unit.name,
      static_cast<double>(stats.min_ns()) / unit.ns, static_cast<double>(stats.max_ns()) / unit.ns,
      stats.mean_ns() / unit.ns, stats.stddev_ns() / unit.ns);
}

void say_percentiles(std::string &text, const LatencyStats &stats, const JobOptions &options) {
  Unit unit = unit_for(static_cast<double>(stats.percentile_ns(50)));
  say(text, "    clat percentiles (%s):\n     |", unit.name);
  unsigned column = 0;
  for (double percent : percentiles_of(options)) {
    if (column == 3) {
      say(text, "\n     |");
      column = 0;
    }
    say(text, " %5.2fth=[%5.0f],", percent,
        static_cast<double>(stats.percentile_ns(percent)) / unit.ns);
    column++;
  }
  text.back() = '\n';
}

void say_direction(std::string &text, const char *name, const DirectionStats &stats, int64_t ns,
                   const JobOptions &options) {
  if (stats.completion.count() == 0)
    return;
  double seconds = static_cast<double>(ns) / 1e9;
  double rate = seconds > 0 ? static_cast<double>(stats.bytes) / seconds : 0;
  double iops = seconds > 0 ? static_cast<double>(stats.completion.count()) / seconds : 0;
  say(text, "  %s: IOPS=%s, BW=%s/s (%s/s)(%s/%.0fmsec)\n", name, iops_text(iops).c_str(),
      binary_size(rate).c_str(), decimal_size(rate).c_str(),
      binary_size(static_cast<double>(stats.bytes)).c_str(), seconds * 1000);
  if (stats.submission.count())
    say_latency(text, "slat", stats.submission);
  say_latency(text, "clat", stats.completion);
  say_latency(text, " lat", stats.latency());
  say_percentiles(text, stats.completion, options);
  const Samples &bw = stats.bandwidth;
  if (bw.count())
    say(text, "   bw (  KiB/s): min=%.0f, max=%.0f, avg=%.2f, stdev=%.2f, samples=%llu\n", bw.min(),
        bw.max(), bw.mean(), bw.stddev(), static_cast<unsigned long long>(bw.count()));
}

void say_shares(std::string &text, const JobStats &stats) {
  LatencyShares shares = latency_shares(stats);
  auto say_list = [&](const char *unit, const auto &list) {
    bool any = false;
    for (const auto &[name, share] : list) {
      if (share < 0.005)
        continue;
      if (any)
        say(text, ", %s=%.2f%%", name.c_str(), share);
      else
        say(text, "  lat (%s)   : %s=%.2f%%", unit, name.c_str(), share);
      any = true;
    }
    if (any)
      text += '\n';
  };
  say_list("nsec", shares.ns);
  say_list("usec", shares.us);
  say_list("msec", shares.ms);
  say(text, "  IO depths    :");
  constexpr const char *kNames[] = {"1", "2", "4", "8", "16", "32", ">=64"};
  for (size_t i = 0; i < kDepthLevels; i++)
    say(text, " %s=%.1f%%%s", kNames[i],
        stats.submitted ? 100 * static_cast<double>(stats.depth_levels[i]) /
                              static_cast<double>(stats.submitted)
                        : 0,
        i + 1 < kDepthLevels ? "," : "\n");
}

void say_job(std::string &text, const ReportJob &job) {
  constexpr const char *kNames[] = {"read", "write", "trim"};
  const JobStats &stats = job.stats;
  say(text, "%s: (groupid=%u, jobs=%u): err=%2d\n", job.name.c_str(), job.group, job.jobs,
      stats.errors ? 5 : 0);
  if (!job.options->description.empty())
    say(text, "  Description  : [%s]\n", job.options->description.c_str());
  for (unsigned i = 0; i < kDirections; i++)
    say_direction(text, kNames[i], stats.directions[i], stats.runtime_ns(), *job.options);
  if (stats.syncs.count()) {
    say(text, "  sync: %llu\n", static_cast<unsigned long long>(stats.syncs.count()));
    say_latency(text, "sync", stats.syncs);
  }
  if (stats.submitted)
    say_shares(text, stats);
  if (stats.replayed)
    say(text,
        "  replay       : %llu commands, late: mean=%.1fus, max=%.1fus, last=%.1fus; %llu %s\n",
        static_cast<unsigned long long>(stats.replayed),
        static_cast<double>(stats.late_sum_ns) / 1e3 / static_cast<double>(stats.replayed),
        static_cast<double>(stats.late_max_ns) / 1e3, static_cast<double>(stats.late_last_ns) / 1e3,
        static_cast<unsigned long long>(stats.wrapped), "wrapped into the target");
}

void say_groups(std::string &text, const Report &report) {
  constexpr const char *kNames[] = {"READ", "WRITE", "TRIM"};
  std::map<unsigned, JobStats> groups;
  for (const ReportJob &job : report.jobs)
    groups[job.group].merge(job.stats);
  for (const auto &[group, stats] : groups) {
    say(text, "\nRun status group %u (all jobs):\n", group);
    double seconds = static_cast<double>(stats.runtime_ns()) / 1e9;
    for (unsigned i = 0; i < kDirections; i++) {
      const DirectionStats &direction = stats.directions[i];
      if (direction.bytes == 0)
        continue;
      double rate = seconds > 0 ? static_cast<double>(direction.bytes) / seconds : 0;
      say(text, "  %5s: bw=%s/s (%s/s), io=%s (%s), run=%.0fmsec\n", kNames[i],
          binary_size(rate).c_str(), decimal_size(rate).c_str(),
          binary_size(static_cast<double>(direction.bytes)).c_str(),
          decimal_size(static_cast<double>(direction.bytes)).c_str(), seconds * 1000);
    }
  }
}

// Where a command's time goes, in percent; stages below one percent are left out.
void say_stages(std::string &text, const StageSums &sums) {
  for (unsigned kind = 0; kind < RD_COMMAND_KINDS; kind++) {
    const StageSums::Kind &sum = sums.kinds[kind];
    if (sum.total_ns == 0)
      continue;
    auto total = static_cast<double>(sum.total_ns);
    say(text, "  %-5s %9.1f us:", rd_kind_name(kind),
        total / 1000 / static_cast<double>(sum.count));
    for (unsigned stage = 0; stage < RD_STAGES; stage++) {
      double share = 100 * static_cast<double>(sum.stage_ns[stage]) / total;
      if (share >= 1)
        say(text, " %s=%.0f%%", rd_stage_name(stage), share);
    }
    text += '\n';
  }
}

void say_card(std::string &text, const Report &report) {
  say(text, "\nCard: profile %s, %u x %s, placement %s%s\n", report.profile.c_str(),
      report.setup.members, decimal_size(static_cast<double>(report.setup.member_bytes)).c_str(),
      report.placement.c_str(), report.interrupted ? "; interrupted" : "");
  say_stages(text, report.stages);
  uint64_t host_bytes = host_write_bytes(report);
  uint64_t flash_bytes = member_change(report, "nand_write_bytes");
  if (host_bytes > 0)
    say(text, "  flash writes: %s for %s of the host, write amplification %.2f\n",
        decimal_size(static_cast<double>(flash_bytes)).c_str(),
        decimal_size(static_cast<double>(host_bytes)).c_str(),
        static_cast<double>(flash_bytes) / static_cast<double>(host_bytes));
  say(text, "  energy: %.3f J\n", static_cast<double>(member_change(report, "energy_uj")) / 1e6);
}

}  // namespace

std::string text_report(const Report &report) {
  std::string text;
  for (const ReportJob &job : report.jobs)
    say_job(text, job);
  say_groups(text, report);
  say_card(text, report);
  return text;
}

}  // namespace revodrive::sim
