// SPDX-License-Identifier: GPL-2.0-or-later
//
// SMART Command Transport (ATA8-ACS clause 8) as far as these drives have it: the status, and one
// data table, the history of temperatures. Commands come as writes of log E0h, the status is read
// there, tables are read from log E1h. The drive has no sensor: every sample is the same; gaps say
// where the power was off. All times are the drive's power-on time in ns.
#ifndef REVODRIVE_SATA_SCT_H
#define REVODRIVE_SATA_SCT_H

#include <array>
#include <cstdint>
#include <span>

#include "revodrive/stream.h"
#include "sata/page.h"

namespace revodrive {

class Sct {
 public:
  static constexpr uint8_t kTemperature = 30;  // in degrees, of every real drive that was seen

  // False: refused; the status says why.
  bool command(std::span<const uint8_t, ata::kSectorBytes> bytes);
  Page status_page(uint8_t device_state) const;
  // False: no command asked for a table.
  bool table_page(Page &page);

  void advance(int64_t power_on_ns);
  void reset() { table_ready_ = false; }
  void power_cycle();

  void save(StreamWriter &out) const;
  void load(StreamReader &in);
  void save_persistent(StreamWriter &out) const;
  void load_persistent(StreamReader &in);

 private:
  static constexpr size_t kSamples = 478;  // as real drives report it
  static constexpr uint8_t kNoSample = 0x80;

  void sample(uint8_t value);

  std::array<uint8_t, kSamples> history_ = filled();
  uint16_t newest_ = 0;
  int64_t next_ns_ = 0;  // when the next sample is due
  bool table_ready_ = false;
  uint16_t action_ = 0, function_ = 0, extended_status_ = 0;

  static constexpr std::array<uint8_t, kSamples> filled() {
    std::array<uint8_t, kSamples> samples{};
    samples.fill(kNoSample);
    return samples;
  }
};

}  // namespace revodrive
#endif
