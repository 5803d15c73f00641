// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/sct.h"

#include <algorithm>

namespace revodrive {

namespace {

constexpr int64_t kIntervalNs = 60'000'000'000;
constexpr uint16_t kIntervalMinutes = 1;

// Limits shown with the temperatures: the commercial range 0 to 70 degrees of the data sheets.
constexpr int8_t kLowest = 0;
constexpr int8_t kHighest = 70;

constexpr uint16_t kDataTable = 5;  // action code
constexpr uint16_t kReadTable = 1;  // function code
constexpr uint16_t kTemperatureTable = 2;

// Extended status codes (ATA8-ACS 8.2.4).
enum Status : uint16_t {
  kOk = 0x0000,
  kInvalidFunction = 0x0001,
  kNoCommand = 0x000B,
  kInvalidAction = 0x0010,
  kInvalidTable = 0x0011,
};

}  // namespace

bool Sct::command(std::span<const uint8_t, ata::kSectorBytes> bytes) {
  auto word = [&](size_t i) { return static_cast<uint16_t>(bytes[2 * i] | bytes[2 * i + 1] << 8); };
  action_ = word(0);
  function_ = word(1);
  if (action_ != kDataTable)
    extended_status_ = kInvalidAction;
  else if (function_ != kReadTable)
    extended_status_ = kInvalidFunction;
  else if (word(2) != kTemperatureTable)
    extended_status_ = kInvalidTable;
  else
    extended_status_ = kOk;
  table_ready_ = extended_status_ == kOk;
  return table_ready_;
}

// ATA8-ACS 8.2.
Page Sct::status_page(uint8_t device_state) const {
  Page page;
  page.put(0, 2, 2);  // format version
  page.put(2, 1, 2);  // version of the vendor
  page.put(4, 1, 2);  // version of SCT
  page[10] = device_state;
  page.put(14, extended_status_, 2);
  page.put(16, action_, 2);
  page.put(18, function_, 2);
  for (size_t at = 200; at < 205; at++)
    page[at] = kTemperature;  // now; lowest and highest of this power cycle and ever
  return page;
}

// ATA8-ACS 8.4.3.
bool Sct::table_page(Page &page) {
  if (!table_ready_) {
    extended_status_ = kNoCommand;
    return false;
  }
  table_ready_ = false;
  page.put(0, 2, 2);                 // format version
  page.put(2, kIntervalMinutes, 2);  // between samples ...
  page.put(4, kIntervalMinutes, 2);  // ... and between those that are kept
  page[6] = page[7] = static_cast<uint8_t>(kHighest);
  page[8] = page[9] = static_cast<uint8_t>(kLowest);
  page.put(30, kSamples, 2);
  page.put(32, newest_, 2);
  for (size_t i = 0; i < kSamples; i++)
    page[34 + i] = history_[i];
  return true;
}

void Sct::sample(uint8_t value) {
  newest_ = static_cast<uint16_t>((newest_ + 1) % kSamples);
  history_[newest_] = value;
}

void Sct::advance(int64_t power_on_ns) {
  if (power_on_ns < next_ns_)
    return;
  int64_t due = (power_on_ns - next_ns_) / kIntervalNs + 1;
  next_ns_ += due * kIntervalNs;
  // More than a whole round looks like one round, but for where it ends.
  int64_t shown = std::min<int64_t>(due, kSamples);
  newest_ = static_cast<uint16_t>((newest_ + (due - shown) % kSamples) % kSamples);
  for (int64_t i = 0; i < shown; i++)
    sample(kTemperature);
}

void Sct::power_cycle() {
  reset();
  action_ = function_ = extended_status_ = 0;
  sample(kNoSample);
}

void Sct::save(StreamWriter &out) const {
  out.section("SCT ");
  out.put(table_ready_);
  out.put(action_);
  out.put(function_);
  out.put(extended_status_);
  save_persistent(out);
}

void Sct::load(StreamReader &in) {
  in.section("SCT ");
  in.get(table_ready_);
  in.get(action_);
  in.get(function_);
  in.get(extended_status_);
  load_persistent(in);
}

void Sct::save_persistent(StreamWriter &out) const {
  out.put_bytes(history_);
  out.put(newest_);
  out.put(next_ns_);
}

void Sct::load_persistent(StreamReader &in) {
  in.get_bytes(history_);
  in.get(newest_);
  in.get(next_ns_);
  if (newest_ < kSamples && next_ns_ >= 0 && next_ns_ <= INT64_MAX / 2)
    return;
  newest_ = 0;
  in.fail();
}

}  // namespace revodrive
