// SPDX-License-Identifier: GPL-2.0-or-later
//
// SMART as a SandForce drive shows it: the attribute table (ids, flags, thresholds, raw formats as
// in smartmontools' drive database and reports of real drives) over what the model knows. Today few
// of the values move; those of flash wait for the controller model.
#ifndef REVODRIVE_SATA_SMART_H
#define REVODRIVE_SATA_SMART_H

#include <cstdint>

#include "revodrive/stream.h"
#include "sata/page.h"

namespace revodrive {

// Where the raw values come from.
struct SmartInputs {
  int64_t now_ns = 0;
  uint64_t read_sectors = 0;
  uint64_t written_sectors = 0;
  uint64_t uncorrectable = 0;
};

class Smart {
 public:
  bool enabled() const { return enabled_; }
  void set_enabled(bool enabled) { enabled_ = enabled; }
  void set_autosave(bool on) { autosave_ = on; }

  Page data_page(const SmartInputs &inputs) const;
  Page threshold_page() const;
  // No pre-failure attribute is at its threshold.
  bool healthy(const SmartInputs &inputs) const;

  void power_cycle() { power_cycles_++; }
  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  struct Attribute;
  static const Attribute kAttributes[];
  struct Reading {
    uint8_t value;
    uint64_t raw;  // 48 bits
  };
  Reading read(const Attribute &attribute, const SmartInputs &inputs) const;

  bool enabled_ = true;
  bool autosave_ = true;
  uint64_t power_cycles_ = 1;
};

}  // namespace revodrive
#endif
