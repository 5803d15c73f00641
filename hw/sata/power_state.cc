// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/power_state.h"

#include <algorithm>

#include "revodrive/timeline.h"

namespace revodrive {

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kMinuteNs = 60 * kSecondNs;

int64_t timer_period_ns(uint8_t count) {
  if (count <= 240)
    return count * 5 * kSecondNs;
  if (count <= 251)
    return (count - 240) * 30 * kMinuteNs;
  if (count == 252)
    return 21 * kMinuteNs;
  if (count == 255)
    return 21 * kMinuteNs + 15 * kSecondNs;
  return 8 * 60 * kMinuteNs;  // 253: 8 to 12 hours; 254: reserved
}

}  // namespace

PowerMode PowerState::mode(const Settings &settings, int64_t now_ns) const {
  if (mode_ >= PowerMode::kStandby)
    return mode_;
  int64_t quiet_ns = now_ns - active_ns_;
  uint8_t level = settings.apm ? settings.apm_level : 254;
  bool timer_ran = timer_ns_ > 0 && quiet_ns >= timer_ns_;
  if (timer_ran || (level < 128 && quiet_ns >= kApmStandbyNs))
    return PowerMode::kStandby;
  if (level < 254 && quiet_ns >= kApmIdleNs)
    return PowerMode::kIdle;
  return mode_;
}

void PowerState::set_timer(uint8_t count, int64_t now_ns) {
  timer_ns_ = timer_period_ns(count);
  active_ns_ = std::max(active_ns_, now_ns);
}

int64_t PowerState::wake(const Settings &settings, int64_t now_ns) {
  PowerMode was = mode(settings, now_ns);
  mode_ = PowerMode::kActive;
  active_ns_ = std::max(active_ns_, now_ns);
  switch (was) {
    case PowerMode::kActive:
      return 0;
    case PowerMode::kIdle:
      return kIdleWakeNs;
    case PowerMode::kStandby:
      return kStandbyWakeNs;
    default:
      return kSleepWakeNs;
  }
}

void PowerState::rouse(PowerMode mode, int64_t now_ns) {
  mode_ = mode;
  active_ns_ = std::max(active_ns_, now_ns);
}

void PowerState::save(StreamWriter &out) const {
  out.section("POWR");
  out.put(mode_);
  out.put(timer_ns_);
  out.put(active_ns_);
}

void PowerState::load(StreamReader &in) {
  PowerState loaded;
  in.section("POWR");
  in.get(loaded.mode_);
  in.get(loaded.timer_ns_);
  in.get(loaded.active_ns_);
  bool sane = loaded.mode_ <= PowerMode::kSleep && loaded.timer_ns_ >= 0 &&
              loaded.timer_ns_ <= kLatestNs && loaded.active_ns_ >= 0 &&
              loaded.active_ns_ <= kLatestNs;
  if (!sane)
    in.fail();
  if (in.ok())
    *this = loaded;
}

}  // namespace revodrive
