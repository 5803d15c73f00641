// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/host_logs.h"

#include <algorithm>

namespace revodrive {

Page HostLogs::read(uint8_t address, uint32_t page) const {
  Page out;
  const std::vector<uint8_t> &log = logs_.at(address - ata::kLogHostFirst);
  if (log.empty())
    return out;
  for (size_t i = 0; i < ata::kSectorBytes; i++)
    out[i] = log.at(page * ata::kSectorBytes + i);
  return out;
}

void HostLogs::write(uint8_t address, uint32_t page,
                     std::span<const uint8_t, ata::kSectorBytes> bytes) {
  std::vector<uint8_t> &log = logs_.at(address - ata::kLogHostFirst);
  log.resize(kLogBytes);
  std::copy(bytes.begin(), bytes.end(), log.begin() + page * ata::kSectorBytes);
}

void HostLogs::save(StreamWriter &out) const {
  out.section("HLOG");
  for (const std::vector<uint8_t> &log : logs_) {
    out.put(!log.empty());
    out.put_bytes(log);
  }
}

void HostLogs::load(StreamReader &in) {
  in.section("HLOG");
  for (std::vector<uint8_t> &log : logs_) {
    log.assign(in.get<bool>() ? kLogBytes : 0, 0);
    in.get_bytes(log);
  }
}

}  // namespace revodrive
