// SPDX-License-Identifier: GPL-2.0-or-later
//
// Power modes of a drive (ATA8-ACS 4.18): which one it is in at a given time, and what waking
// costs. Nothing runs in the background: the standby timer and Advanced Power Management are a time
// of the last activity, looked at when somebody asks. Times are ns of virtual time.
#ifndef REVODRIVE_SATA_POWER_STATE_H
#define REVODRIVE_SATA_POWER_STATE_H

#include <cstdint>

#include "revodrive/stream.h"
#include "sata/settings.h"

namespace revodrive {

enum class PowerMode : uint8_t { kActive, kIdle, kStandby, kSleep };

class PowerState {
 public:
  // What the first access to the medium waits for. Assumed: no figure of a real drive is known.
  static constexpr int64_t kIdleWakeNs = 100'000;
  static constexpr int64_t kStandbyWakeNs = 10'000'000;
  static constexpr int64_t kSleepWakeNs = 100'000'000;
  // Advanced Power Management: with a level below 254 the drive idles by itself after a second,
  // with one below 128 it goes to standby after five minutes. Assumed as well.
  static constexpr int64_t kApmIdleNs = 1'000'000'000;
  static constexpr int64_t kApmStandbyNs = 300 * int64_t{1'000'000'000};

  PowerMode mode(const Settings &settings, int64_t now_ns) const;
  void enter(PowerMode mode) { mode_ = mode; }
  // STANDBY and IDLE: the count register (ATA8-ACS 7.18, table of standby timer periods).
  void set_timer(uint8_t count, int64_t now_ns);
  // An access to the medium at `now_ns` that keeps it busy until `end_ns` or longer: what it costs.
  int64_t wake(const Settings &settings, int64_t now_ns);
  // A reset, or a command to a drive asleep.
  void rouse(PowerMode mode, int64_t now_ns);

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  PowerMode mode_ = PowerMode::kActive;
  int64_t timer_ns_ = 0;  // 0: off
  int64_t active_ns_ = 0;
};

}  // namespace revodrive
#endif
