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

void HostLogs::save_persistent(StreamWriter &out) const {
  for (size_t log = 0; log < kLogs; log++) {
    for (size_t at = 0; at < logs_[log].size(); at += ata::kSectorBytes) {
      auto page = std::span(logs_[log]).subspan(at, ata::kSectorBytes);
      if (std::all_of(page.begin(), page.end(), [](uint8_t byte) { return byte == 0; }))
        continue;
      out.put(static_cast<uint8_t>(log));
      out.put(static_cast<uint8_t>(at / ata::kSectorBytes));
      out.put_bytes(page);
    }
  }
}

void HostLogs::load_persistent(StreamReader &in) {
  while (in.ok() && !in.at_end()) {
    auto log = in.get<uint8_t>();
    auto page = in.get<uint8_t>();
    std::array<uint8_t, ata::kSectorBytes> bytes{};
    in.get_bytes(bytes);
    if (log >= kLogs || page >= kPages)
      return in.fail();
    write(static_cast<uint8_t>(ata::kLogHostFirst + log), page, bytes);
  }
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
