// SPDX-License-Identifier: GPL-2.0-or-later
//
// SMART as a SandForce drive shows it: the attribute table (ids, flags, thresholds, raw formats and
// normalised values as in smartmontools' drive database and reports of real drives) over what the
// model counts, and the time the drive has had power, which is the clock of its self-tests and of
// its temperature log. Totals are those of earlier lives of the drive, kept here, plus those of
// this one, which the drive passes in; what the flash knows of its whole life comes from there.
#ifndef REVODRIVE_SATA_SMART_H
#define REVODRIVE_SATA_SMART_H

#include <array>
#include <cstdint>
#include <span>

#include "revodrive/flash_controller.h"
#include "revodrive/stream.h"
#include "sata/page.h"

namespace revodrive {

// What the drive has done; its whole life, or the part since it was created.
struct SmartTotals {
  uint64_t read_sectors = 0;
  uint64_t written_sectors = 0;
  uint64_t nand_bytes = 0;
  uint64_t uncorrectable = 0;  // reads that ended with UNC

  SmartTotals operator+(const SmartTotals &other) const;
};

class Smart {
 public:
  Smart() { worst_.fill(UINT8_MAX); }

  bool enabled() const { return enabled_; }
  void set_enabled(bool enabled) { enabled_ = enabled; }
  void set_autosave(bool on) { autosave_ = on; }

  // Time. The clock is started when the power comes on; going back is taken as standing still.
  void start_clock(int64_t now_ns) { seen_ns_ = now_ns; }
  void advance(int64_t now_ns);
  int64_t power_on_ns() const { return power_on_ns_; }

  // Parked: the power may go without being counted as an unexpected loss.
  bool parked() const { return parked_; }
  void park(bool parked) { parked_ = parked; }
  // `now`: of this life so far.
  void power_cycle(const SmartTotals &now);

  // The attributes into the SMART data page, from its start; `now` as above.
  void fill_attributes(Page &page, const SmartTotals &now, const FlashHealth &flash);
  Page threshold_page() const;
  // No pre-failure attribute is at its threshold.
  bool healthy(const SmartTotals &now, const FlashHealth &flash) const;
  // Life left (attribute 231) is shown no higher than this; 100 shows what the model has.
  void set_life_left_limit(uint8_t percent) { life_left_limit_ = percent; }
  uint64_t power_cycles() const { return power_cycles_; }
  uint64_t power_losses() const { return power_losses_; }

  void save(StreamWriter &out) const;
  void load(StreamReader &in);
  void save_persistent(StreamWriter &out, const SmartTotals &now) const;
  void load_persistent(StreamReader &in);

 private:
  struct Attribute;
  static constexpr size_t kAttributes = 22;
  static const std::array<Attribute, kAttributes> kTable;
  struct Reading {
    uint8_t value;
    uint64_t raw;  // 56 bits: the formats of SandForce use the reserved byte as well
  };
  Reading read(const Attribute &attribute, const SmartTotals &now, const FlashHealth &flash) const;
  Reading read_error_rate(uint8_t best, const SmartTotals &now) const;

  bool enabled_ = true;
  bool autosave_ = true;
  bool parked_ = false;
  uint8_t life_left_limit_ = 100;
  int64_t seen_ns_ = 0;      // of the host's clock, up to here counted
  int64_t power_on_ns_ = 0;  // of all lives
  uint64_t power_cycles_ = 1;
  uint64_t power_losses_ = 0;
  SmartTotals before_;      // of earlier lives
  SmartTotals this_cycle_;  // of this life when the power came on last
  std::array<uint8_t, kAttributes> worst_;
};

}  // namespace revodrive
#endif
