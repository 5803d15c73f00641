// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/report.h"

#include <cstdio>

namespace revodrive::sim {

namespace {

constexpr double kNsPerSec = 1e9;

double per_second(uint64_t amount, int64_t ns) {
  return ns > 0 ? static_cast<double>(amount) * kNsPerSec / static_cast<double>(ns) : 0;
}

void put_latency(JsonWriter &json, const char *key, const LatencyStats &stats,
                 const std::vector<double> &percentiles, bool bins = false) {
  json.open(key);
  json.put("min", stats.min_ns());
  json.put("max", stats.max_ns());
  json.put("mean", stats.mean_ns());
  json.put("stddev", stats.stddev_ns());
  json.put("N", stats.count());
  if (stats.count() > 0 && !percentiles.empty()) {
    json.open("percentile");
    for (double percent : percentiles) {
      char name[32];
      std::snprintf(name, sizeof(name), "%f", percent);
      json.put(name, stats.percentile_ns(percent));
    }
    json.close();
  }
  if (bins && stats.count() > 0) {
    json.open("bins");
    stats.for_each([&](uint64_t low, uint64_t high, uint64_t count) {
      json.put(std::to_string(low + (high - low) / 2), count);
    });
    json.close();
  }
  json.close();
}

// Without a cost of the host every submission took 0 ns.
void put_submission(JsonWriter &json, const DirectionStats &stats) {
  if (stats.submission.count())
    return put_latency(json, "slat_ns", stats.submission, {});
  json.open("slat_ns");
  json.put("min", 0);
  json.put("max", 0);
  json.put("mean", 0.0);
  json.put("stddev", 0.0);
  json.put("N", stats.completion.count());
  json.close();
}

// `group_mean`: of all jobs of the group.
void put_bandwidth(JsonWriter &json, const DirectionStats &stats, double group_mean) {
  const Samples &bw = stats.bandwidth;
  json.put("bw_min", static_cast<uint64_t>(bw.min()));
  json.put("bw_max", static_cast<uint64_t>(bw.max()));
  json.put("bw_agg", group_mean > 0 ? 100 * bw.mean() / group_mean : 0.0);
  json.put("bw_mean", bw.mean());
  json.put("bw_dev", bw.stddev());
  json.put("bw_samples", bw.count());
  json.put("iops_min", static_cast<uint64_t>(stats.iops.min()));
  json.put("iops_max", static_cast<uint64_t>(stats.iops.max()));
  json.put("iops_mean", stats.iops.mean());
  json.put("iops_stddev", stats.iops.stddev());
  json.put("iops_samples", stats.iops.count());
}

double group_mean(const Report &report, unsigned group, unsigned direction) {
  double sum = 0;
  for (const ReportJob &job : report.jobs)
    sum += job.group == group ? job.stats.directions[direction].bandwidth.mean() : 0;
  return sum;
}

void put_direction(JsonWriter &json, const Report &report, const ReportJob &job,
                   unsigned direction) {
  constexpr const char *kNames[] = {"read", "write", "trim"};
  const DirectionStats &stats = job.stats.directions[direction];
  uint64_t ios = stats.completion.count();
  int64_t ns = ios ? job.stats.runtime_ns() : 0;
  double bytes_per_second = per_second(stats.bytes, ns);
  json.open(kNames[direction]);
  json.put("io_bytes", stats.bytes);
  json.put("io_kbytes", stats.bytes >> 10);
  json.put("bw_bytes", static_cast<uint64_t>(bytes_per_second));
  json.put("bw", static_cast<uint64_t>(bytes_per_second / 1024));
  json.put("iops", per_second(ios, ns));
  json.put("runtime", ns / kNsPerMs);
  json.put("total_ios", ios);
  json.put("short_ios", 0);
  json.put("drop_ios", 0);
  put_submission(json, stats);
  put_latency(json, "clat_ns", stats.completion, percentiles_of(*job.options), report.bins);
  put_latency(json, "lat_ns", stats.latency(), {});
  put_bandwidth(json, stats, group_mean(report, job.group, direction));
  json.close();
}

void put_levels(JsonWriter &json, const char *key, const std::array<double, kDepthLevels> &shares,
                const char *first) {
  constexpr const char *kNames[] = {"1", "2", "4", "8", "16", "32", ">=64"};
  json.open(key);
  for (size_t i = 0; i < kDepthLevels; i++)
    json.put(i == 0 ? first : kNames[i], shares[i]);
  json.close();
}

// fio's names of the levels of iodepth_submit differ: 0, 4, 8, ... 64, >=64. One I/O at a time is
// in the first above 0.
void put_batches(JsonWriter &json, const char *key, bool any) {
  constexpr const char *kNames[] = {"0", "4", "8", "16", "32", "64", ">=64"};
  json.open(key);
  for (size_t i = 0; i < kDepthLevels; i++)
    json.put(kNames[i], i == 1 && any ? 100.0 : 0.0);
  json.close();
}

void put_depths(JsonWriter &json, const JobStats &stats) {
  std::array<double, kDepthLevels> shares{};
  for (size_t i = 0; i < kDepthLevels; i++) {
    if (stats.submitted)
      shares[i] =
          100 * static_cast<double>(stats.depth_levels[i]) / static_cast<double>(stats.submitted);
  }
  put_levels(json, "iodepth_level", shares, "1");
  put_batches(json, "iodepth_submit", stats.submitted > 0);
  put_batches(json, "iodepth_complete", stats.submitted > 0);
}

void put_shares(JsonWriter &json, const JobStats &stats) {
  LatencyShares shares = latency_shares(stats);
  auto put = [&](const char *key, const auto &list) {
    json.open(key);
    for (const auto &[name, share] : list)
      json.put(name, share);
    json.close();
  };
  put("latency_ns", shares.ns);
  put("latency_us", shares.us);
  put("latency_ms", shares.ms);
}

void put_job(JsonWriter &json, const Report &report, const ReportJob &job) {
  constexpr int kEio = 5;
  const JobStats &stats = job.stats;
  json.open();
  json.put("jobname", job.name);
  json.put("groupid", job.group);
  json.put("error", stats.errors ? kEio : 0);
  json.put("eta", 0);
  json.put("elapsed", stats.runtime_ns() / kNsPerSecond + 1);
  json.open("job options");
  for (const auto &[name, value] : job.options->given)
    json.put(name, value);
  json.close();
  for (unsigned i = 0; i < kDirections; i++)
    put_direction(json, report, job, i);
  json.open("sync");
  json.put("total_ios", stats.syncs.count());
  put_latency(json, "lat_ns", stats.syncs,
              stats.syncs.count() ? percentiles_of(*job.options) : std::vector<double>{});
  json.close();
  json.put("job_runtime", stats.runtime_ns() / kNsPerMs);
  json.put("usr_cpu", 0.0);
  json.put("sys_cpu", 0.0);
  json.put("ctx", 0);
  json.put("majf", 0);
  json.put("minf", 0);
  put_depths(json, stats);
  put_shares(json, stats);
  json.put("latency_depth", job.options->depth);
  json.put("latency_target", 0);
  json.put("latency_percentile", 100.0);
  json.put("latency_window", 0);
  json.put("revosim_energy_j", static_cast<double>(job.energy_uj) / 1e6);
  if (stats.replayed > 0) {
    json.open("revosim_replay");
    json.put("commands", stats.replayed);
    json.put("wrapped", stats.wrapped);
    json.put("late_mean_ns",
             static_cast<double>(stats.late_sum_ns) / static_cast<double>(stats.replayed));
    json.put("late_max_ns", stats.late_max_ns);
    json.put("late_last_ns", stats.late_last_ns);
    json.close();
  }
  json.close();
}

uint64_t change_of(const Report &report, const std::string &name) {
  auto found = report.counters.find(name);
  return found == report.counters.end() ? 0 : found->second.after - found->second.before;
}

void put_disks(JsonWriter &json, const Report &report) {
  json.open_array("disk_util");
  for (size_t port = 0; port < report.disks.size(); port++) {
    std::string prefix = "port" + std::to_string(port) + ".";
    json.open();
    json.put("name", "ssd" + std::to_string(port));
    json.put("read_ios", change_of(report, prefix + "reads"));
    json.put("write_ios", change_of(report, prefix + "writes"));
    json.put("read_merges", 0);
    json.put("write_merges", 0);
    const DiskUse &use = report.disks[port];
    int64_t whole_ns = report.end_ns - report.start_ns;
    json.put("read_ticks", use.read_ns / kNsPerMs);
    json.put("write_ticks", use.write_ns / kNsPerMs);
    json.put("in_queue", use.all_ns / kNsPerMs);
    json.put("util", whole_ns > 0
                         ? 100 * static_cast<double>(use.busy_ns) / static_cast<double>(whole_ns)
                         : 0.0);
    json.close();
  }
  json.close_array();
}

// What each counter is at the end, and what the run added to those that only grow.
void put_counters(JsonWriter &json, const Report &report) {
  json.open("counters");
  for (const auto &[name, change] : report.counters)
    json.put(name, change.after);
  json.close();
  json.open("changes");
  for (const auto &[name, change] : report.counters) {
    if (change.after > change.before)
      json.put(name, change.after - change.before);
  }
  json.close();
  uint64_t host_bytes = host_write_bytes(report);
  if (host_bytes > 0)
    json.put("write_amplification", static_cast<double>(member_change(report, "nand_write_bytes")) /
                                        static_cast<double>(host_bytes));
  if (report.counters.contains("port0.energy_uj"))
    json.put("energy_j", static_cast<double>(member_change(report, "energy_uj")) / 1e6);
}

// Mean time of a command in each stage of its way, by kind.
void put_stages(JsonWriter &json, const StageSums &sums) {
  json.open("stages");
  for (unsigned kind = 0; kind < RD_COMMAND_KINDS; kind++) {
    const StageSums::Kind &sum = sums.kinds[kind];
    if (sum.count == 0)
      continue;
    auto mean = [&](uint64_t ns) {
      return static_cast<double>(ns) / static_cast<double>(sum.count);
    };
    json.open(rd_kind_name(kind));
    json.put("commands", sum.count);
    json.put("mean_ns", mean(sum.total_ns));
    for (unsigned stage = 0; stage < RD_STAGES; stage++)
      json.put(std::string(rd_stage_name(stage)) + "_ns", mean(sum.stage_ns[stage]));
    json.close();
  }
  json.close();
}

void put_revosim(JsonWriter &json, const Report &report) {
  json.open("revosim");
  json.put("version", report.version);
  json.put("profile", report.profile);
  json.put("placement", report.placement);
  json.put("members", report.setup.members);
  json.put("member_bytes", report.setup.member_bytes);
  json.put("virtual_ns", report.end_ns - report.start_ns);
  json.put("interrupted", report.interrupted ? 1 : 0);
  put_stages(json, report.stages);
  put_counters(json, report);
  json.close();
}

}  // namespace

std::string json_report(const Report &report) {
  JsonWriter json;
  json.open();
  // fio's tools want a version of fio's form; the figures have the schema of this one.
  json.put("fio version", "fio-3.33");
  json.put("timestamp", report.end_ns / kNsPerSecond);
  json.put("timestamp_ms", report.end_ns / kNsPerMs);
  json.put("time", "virtual");
  json.open("global options");
  for (const auto &[name, value] : report.global.given)
    json.put(name, value);
  json.close();
  json.open_array("jobs");
  for (const ReportJob &job : report.jobs)
    put_job(json, report, job);
  json.close_array();
  put_disks(json, report);
  put_revosim(json, report);
  json.close();
  return json.text();
}

}  // namespace revodrive::sim
