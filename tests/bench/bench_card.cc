// SPDX-License-Identifier: GPL-2.0-or-later
//
// How many commands the card simulates in a second of one processor, through its C interface:
// doorbell, rings, bridge, drive, flash, completion, interrupt. `meson test -C build --benchmark
// --verbose` runs all loads; `build/tests/bench/bench_card [--commands N] [NAME…]` some of them.
// Nothing is asserted on time: compare the figures with each other, on one machine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "fast_host.h"

using revodrive::bench::FastHost;
using revodrive::bench::Load;

namespace {

constexpr uint64_t kWholeBytes = 120'034'123'776;  // as IDEMA counts 120 GB

constexpr Load kLoads[] = {
    {.name = "read"},
    {.name = "read-coalesced", .coalescing = true},
    {.name = "read-untimed", .timing = false},
    {.name = "read-watched", .watched = true},
    {.name = "read-128k", .bytes = 131072, .sequential = true},
    {.name = "write-zeros", .write = true, .compressible_percent = 100},
    {.name = "write-half", .write = true, .compressible_percent = 50},
    {.name = "write-noise", .write = true},
    {.name = "write-128k", .write = true, .bytes = 131072, .sequential = true},
    // The whole of a 480 GB card: what its map costs, which no cache of the processor holds.
    {.name = "whole-read", .member_bytes = kWholeBytes, .preset = "full"},
    {.name = "whole-write",
     .write = true,
     .compressible_percent = 100,
     .member_bytes = kWholeBytes,
     .preset = "full"},
};

// Of this process alone, so that others on the machine disturb less.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}

// The fastest of three: what disturbs only ever makes it slower.
void measure(const Load &load, uint64_t commands, double *first) {
  if (load.bytes > 65536)
    commands /= 16;
  FastHost host(load);
  host.run(commands / 4);
  double best = 0, model = 0;
  for (int round = 0; round < 3; round++) {
    int64_t model_ns = host.now_ns();
    double start = cpu_seconds();
    host.run(commands);
    best = std::max(best, double(commands) / (cpu_seconds() - start));
    model = double(commands) * 1e9 / double(std::max<int64_t>(host.now_ns() - model_ns, 1));
  }
  if (*first == 0)
    *first = best;
  std::printf("%-15s %12.0f %10.0f %8.2f %12.0f\n", load.name, best, 1e9 / best, best / *first,
              load.timing ? model : 0.0);
  std::fflush(stdout);
}

int usage(const char *problem) {
  std::fprintf(stderr,
               "bench_card: %s\nusage: bench_card [--commands N] [NAME...]; names:", problem);
  for (const Load &load : kLoads)
    std::fprintf(stderr, " %s", load.name);
  std::fprintf(stderr, "\n");
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char **argv) {
  uint64_t commands = 200'000;
  std::vector<std::string> names(argv + 1, argv + argc);
  if (names.size() >= 2 && names[0] == "--commands") {
    commands = std::strtoull(names[1].c_str(), nullptr, 10);
    names.erase(names.begin(), names.begin() + 2);
  }
  if (commands < 1000)
    return usage("--commands: a number from 1000 on");
  for (const std::string &name : names) {
    auto known = [&](const Load &load) { return name == load.name; };
    if (std::none_of(std::begin(kLoads), std::end(kLoads), known))
      return usage(("there is no load \"" + name + "\"").c_str());
  }
  std::printf("%-15s %12s %10s %8s %12s\n", "load", "commands/s", "ns each", "ratio", "model IOPS");
  double first = 0;
  for (const Load &load : kLoads) {
    if (names.empty() || std::find(names.begin(), names.end(), load.name) != names.end())
      measure(load, commands, &first);
  }
  return EXIT_SUCCESS;
}
