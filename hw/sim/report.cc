// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/report.h"

namespace revodrive::sim {

std::vector<ReportJob> report_jobs(const Simulation &simulation) {
  std::vector<ReportJob> list;
  bool grouped = false;
  for (const auto &running : simulation.jobs())
    grouped |= running->options.group_reporting;
  for (const auto &running : simulation.jobs()) {
    bool joins = grouped && !list.empty() && list.back().group == running->group;
    if (joins) {
      list.back().stats.merge(running->job->stats());
      list.back().jobs++;
      list.back().energy_uj = std::max(list.back().energy_uj, running->energy_uj);
      continue;
    }
    list.push_back({running->options.name, running->group, 1, &running->options,
                    running->job->stats(), running->energy_uj});
  }
  return list;
}

uint64_t member_change(const Report &report, const std::string &name) {
  uint64_t sum = 0;
  for (unsigned port = 0; port < report.setup.members; port++) {
    auto found = report.counters.find("port" + std::to_string(port) + "." + name);
    if (found != report.counters.end())
      sum += found->second.after - found->second.before;
  }
  return sum;
}

uint64_t host_write_bytes(const Report &report) {
  auto volume = report.counters.find("volume_write_sectors");
  uint64_t sectors = volume == report.counters.end() ? member_change(report, "write_sectors")
                                                     : volume->second.after - volume->second.before;
  return sectors * RD_SECTOR_BYTES;
}

std::vector<double> percentiles_of(const JobOptions &options) {
  if (!options.percentiles.empty())
    return options.percentiles;
  return {1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99};
}

LatencyShares latency_shares(const JobStats &stats) {
  constexpr uint64_t kLimits[] = {2, 4, 10, 20, 50, 100, 250, 500, 750, 1000};
  struct Bound {
    uint64_t below_ns;
    double *share;
  };
  LatencyShares shares;
  auto name = [&](auto &list, std::initializer_list<const char *> more) {
    for (uint64_t limit : kLimits)
      list.emplace_back(std::to_string(limit), 0);
    for (const char *text : more)
      list.emplace_back(text, 0);
  };
  name(shares.ns, {});
  name(shares.us, {});
  name(shares.ms, {"2000", ">=2000"});
  std::vector<Bound> bounds;
  uint64_t unit = 1;
  for (auto *list : {&shares.ns, &shares.us, &shares.ms}) {
    for (auto &[text, share] : *list)
      bounds.push_back({text[0] == '>' ? UINT64_MAX : std::stoull(text) * unit, &share});
    unit *= 1000;
  }
  uint64_t total = 0;
  for (const DirectionStats &direction : stats.directions)
    total += direction.latency().count();
  for (const DirectionStats &direction : stats.directions) {
    direction.latency().for_each([&](uint64_t low, uint64_t high, uint64_t count) {
      uint64_t middle = low + (high - low) / 2;
      for (const Bound &bound : bounds) {
        if (middle < bound.below_ns) {
          *bound.share += 100 * static_cast<double>(count) / static_cast<double>(total);
          break;
        }
      }
    });
  }
  return shares;
}

}  // namespace revodrive::sim
