// SPDX-License-Identifier: GPL-2.0-or-later
//
// Logs 80h to 9Fh: 16 sectors each that a host may use as it likes (ATA8-ACS A.15). Zero until
// written; they outlive resets and power cycles. Memory is taken when a log is first written.
#ifndef REVODRIVE_SATA_HOST_LOGS_H
#define REVODRIVE_SATA_HOST_LOGS_H

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "revodrive/stream.h"
#include "sata/page.h"

namespace revodrive {

class HostLogs {
 public:
  static constexpr uint32_t kPages = 16;
  static constexpr unsigned kLogs = ata::kLogHostLast - ata::kLogHostFirst + 1;

  static bool is_host_log(uint8_t address) {
    return address >= ata::kLogHostFirst && address <= ata::kLogHostLast;
  }
  // `address` is a host log, `page` below kPages.
  Page read(uint8_t address, uint32_t page) const;
  void write(uint8_t address, uint32_t page, std::span<const uint8_t, ata::kSectorBytes> bytes);

  // As sections do: only the pages that hold something.
  void save_persistent(StreamWriter &out) const;
  void load_persistent(StreamReader &in);
  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  static constexpr size_t kLogBytes = size_t{kPages} * ata::kSectorBytes;
  std::array<std::vector<uint8_t>, kLogs> logs_;  // each empty or kLogBytes
};

}  // namespace revodrive
#endif
