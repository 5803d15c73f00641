// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/extra_output.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <string>
#include <vector>

namespace revodrive::sim {

namespace {

struct Kind {
  const char *name;
  LatencyStats stats;
};

std::vector<Kind> kinds_of(const Report &report) {
  std::vector<Kind> kinds = {{"read", {}}, {"write", {}}, {"trim", {}}, {"sync", {}}};
  for (const ReportJob &job : report.jobs) {
    for (unsigned i = 0; i < kDirections; i++)
      kinds[i].stats.merge(job.stats.directions[i].completion);
    kinds[kDirections].stats.merge(job.stats.syncs);
  }
  std::erase_if(kinds, [](const Kind &kind) { return kind.stats.count() == 0; });
  return kinds;
}

std::string histogram_json(const std::vector<Kind> &kinds) {
  JsonWriter json;
  json.open();
  for (const Kind &kind : kinds) {
    json.open_array(kind.name);
    kind.stats.for_each([&](uint64_t low, uint64_t high, uint64_t count) {
      json.open();
      json.put("from_ns", low);
      json.put("to_ns", high);
      json.put("count", count);
      json.close();
    });
    json.close_array();
  }
  json.close();
  return json.text();
}

// Powers of two, which fit a screen.
std::string histogram_text(const std::vector<Kind> &kinds) {
  constexpr unsigned kWidth = 50;
  std::string text;
  char line[160];
  for (const Kind &kind : kinds) {
    std::array<uint64_t, 65> powers{};
    kind.stats.for_each([&](uint64_t low, uint64_t, uint64_t count) {
      powers[static_cast<size_t>(std::bit_width(low))] += count;
    });
    uint64_t most = *std::max_element(powers.begin(), powers.end());
    std::snprintf(line, sizeof(line), "%s: %llu\n", kind.name,
                  static_cast<unsigned long long>(kind.stats.count()));
    text += line;
    for (size_t i = 0; i < powers.size(); i++) {
      if (powers[i] == 0)
        continue;
      double upper = static_cast<double>(i < 64 ? uint64_t{1} << i : UINT64_MAX);
      std::snprintf(line, sizeof(line), "  < %12.3f us %12llu ", upper / 1000,
                    static_cast<unsigned long long>(powers[i]));
      text += line;
      text += std::string(std::max<uint64_t>(powers[i] * kWidth / most, 1), '#') + "\n";
    }
  }
  return text;
}

}  // namespace

void write_histogram(OutputFile &file, bool json, const Report &report) {
  std::vector<Kind> kinds = kinds_of(report);
  file.write(json ? histogram_json(kinds) : histogram_text(kinds));
  file.close();
}

CommandDump::CommandDump(OutputFile &file, int64_t start_ns) : file_(file), start_ns_(start_ns) {
  file_.write("port,tag,opcode,lba,sectors,submit_ns,done_ns,failed,number\n");
}

void CommandDump::add(const CommandRecord &record) {
  file_.print("%u,%u,0x%02x,%llu,%llu,%lld,%lld,%d,%llu\n", record.ata.port, record.ata.tag,
              ata_opcode(record.ata.kind), static_cast<unsigned long long>(record.ata.lba),
              static_cast<unsigned long long>(record.ata.sectors),
              static_cast<long long>(record.submit_ns - start_ns_),
              static_cast<long long>(record.done_ns - start_ns_), record.failed ? 1 : 0,
              static_cast<unsigned long long>(record.number));
}

}  // namespace revodrive::sim
