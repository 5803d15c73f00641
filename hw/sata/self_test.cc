// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/self_test.h"

#include <algorithm>

namespace revodrive {

namespace {

constexpr int64_t kNsPerMinute = 60'000'000'000;
constexpr uint64_t kNsPerHour = 3'600'000'000'000;

// Subcommands (ATA8-ACS table 60), without the captive bit.
enum Subcommand : uint8_t {
  kOffline = 0x00,
  kShort = 0x01,
  kExtended = 0x02,
  kConveyance = 0x03,
  kSelective = 0x04,
  kAbortTest = 0x7F,
};

// As reports of real drives show them.
constexpr uint8_t kShortMinutes = 1;
constexpr uint8_t kExtendedMinutes = 48;
constexpr uint8_t kConveyanceMinutes = 2;
constexpr uint8_t kCapability = 0x7B;  // all of it, but new commands suspend a collection

constexpr uint16_t kSelectiveVersion = 1;
constexpr size_t kSelectiveFlagsAt = 502;
constexpr uint16_t kScanAfterwards = 1 << 1;  // of the selective log's flags

uint64_t get(std::span<const uint8_t> bytes, size_t at, unsigned count) {
  uint64_t value = 0;
  for (unsigned i = 0; i < count; i++)
    value |= uint64_t{bytes[at + i]} << (8 * i);
  return value;
}

bool sealed(std::span<const uint8_t> bytes) {
  uint8_t sum = 0;
  for (uint8_t byte : bytes)
    sum = static_cast<uint8_t>(sum + byte);
  return sum == 0;
}

}  // namespace

SelfTest::SelfTest(uint64_t sectors) : sectors_(sectors) {
}

// 0 when nothing of the drive is in it: an empty span is 0 to 0.
uint64_t SelfTest::span_sectors(const SelectedSpan &span) const {
  if (span == SelectedSpan{} || span.first > span.last || span.last >= sectors_)
    return 0;
  return span.last - span.first + 1;
}

uint64_t SelfTest::selected_sectors() const {
  uint64_t sum = 0;
  for (const SelectedSpan &span : spans_)
    sum += span_sectors(span);
  return sum;
}

// A selective test takes its share of the extended one, for at most the whole drive in each span.
int64_t SelfTest::duration_ns(uint8_t subcommand) const {
  switch (subcommand) {
    case kShort:
      return kShortMinutes * kNsPerMinute;
    case kExtended:
      return kExtendedMinutes * kNsPerMinute;
    case kConveyance:
      return kConveyanceMinutes * kNsPerMinute;
    default: {
      double share = static_cast<double>(selected_sectors()) / static_cast<double>(sectors_);
      return 1 + static_cast<int64_t>(share * kExtendedMinutes * kNsPerMinute);
    }
  }
}

bool SelfTest::start(uint8_t subcommand, int64_t power_on_ns) {
  advance(power_on_ns);
  uint8_t test = subcommand & ~kCaptive;
  if (subcommand == kAbortTest) {
    stop(Result::kAborted, power_on_ns);
    return true;
  }
  if (test > kSelective || subcommand == kCaptive || (test == kSelective && !selected_sectors()))
    return false;
  stop(Result::kAborted, power_on_ns);
  if (test == kOffline) {  // takes no time: there is nothing to scan for
    collected_ = true;
    return true;
  }
  running_ = subcommand;
  start_ns_ = power_on_ns;
  end_ns_ = power_on_ns + duration_ns(test);
  return true;
}

int64_t SelfTest::remaining_ns(int64_t power_on_ns) const {
  return running() ? std::max<int64_t>(end_ns_ - power_on_ns, 0) : 0;
}

void SelfTest::advance(int64_t power_on_ns) {
  if (!running() || power_on_ns < end_ns_)
    return;
  log(Result::kPassed, 0, end_ns_);
}

void SelfTest::stop(Result result, int64_t power_on_ns) {
  if (running())
    log(result, tenths_left(power_on_ns), power_on_ns);
}

void SelfTest::log(Result result, uint8_t tenths_left, int64_t at_ns) {
  last_status_ = static_cast<uint8_t>(static_cast<uint8_t>(result) << 4 | tenths_left);
  uint64_t hours = static_cast<uint64_t>(at_ns) / kNsPerHour;
  history_[logged_++ % kHistory] = {running_, last_status_, static_cast<uint16_t>(hours)};
  running_ = kNone;
}

// 9 in the first tenth to 0 in the last one.
uint8_t SelfTest::tenths_left(int64_t power_on_ns) const {
  int64_t left_ns = std::clamp<int64_t>(end_ns_ - power_on_ns, 0, end_ns_ - start_ns_);
  double share = static_cast<double>(left_ns) / static_cast<double>(end_ns_ - start_ns_);
  return static_cast<uint8_t>(std::clamp(static_cast<int>(share * 10), 0, 9));
}

// ATA8-ACS table 62.
void SelfTest::fill_status(Page &page, int64_t power_on_ns) const {
  constexpr uint8_t kCollected = 0x02;
  constexpr uint8_t kAutoOffline = 0x80;
  constexpr uint8_t kInProgress = static_cast<uint8_t>(Result::kRunning) << 4;
  page[362] =
      static_cast<uint8_t>((collected_ ? kCollected : 0) | (auto_offline_ ? kAutoOffline : 0));
  page[363] = running() ? kInProgress | tenths_left(power_on_ns) : last_status_;
  page.put(364, 0, 2);  // seconds that a collection takes
  page[367] = kCapability;
  page[372] = kShortMinutes;
  page[373] = kExtendedMinutes;
  page[374] = kConveyanceMinutes;
}

// The newest tests, each where its number says: the logs are rings.
void SelfTest::put_entries(Page &page, size_t first, size_t bytes, size_t slots) const {
  uint64_t count = std::min<uint64_t>(logged_, slots);
  for (uint64_t number = logged_ - count; number < logged_; number++) {
    size_t at = first + number % slots * bytes;
    const Entry &test = entry(number);
    page[at] = test.subcommand;
    page[at + 1] = test.status;
    page.put(at + 2, test.hours, 2);
  }
}

// ATA8-ACS A.13.
Page SelfTest::log_page() const {
  constexpr size_t kEntryBytes = 24;
  Page page;
  page.put(0, 1, 2);  // revision
  put_entries(page, 2, kEntryBytes, kHistory);
  page[508] = static_cast<uint8_t>(logged_ ? (logged_ - 1) % kHistory + 1 : 0);
  page.seal();
  return page;
}

// ATA8-ACS A.5.
Page SelfTest::extended_log_page() const {
  constexpr size_t kEntryBytes = 26;
  constexpr size_t kEntries = 19;
  static_assert(kEntries <= kHistory);
  Page page;
  page[0] = 1;  // revision
  page.put(2, logged_ ? (logged_ - 1) % kEntries + 1 : 0, 2);
  put_entries(page, 4, kEntryBytes, kEntries);
  page.seal();
  return page;
}

// ATA8-ACS A.11. While a selective test runs it says where.
Page SelfTest::selective_page(int64_t power_on_ns) const {
  Page page;
  page.put(0, kSelectiveVersion, 2);
  for (size_t i = 0; i < kSpans; i++) {
    page.put(2 + 16 * i, spans_[i].first, 8);
    page.put(10 + 16 * i, spans_[i].last, 8);
  }
  if ((running_ & ~kCaptive) == kSelective) {
    double share = static_cast<double>(power_on_ns - start_ns_) /
                   static_cast<double>(std::max<int64_t>(end_ns_ - start_ns_, 1));
    auto done = static_cast<uint64_t>(std::clamp(share, 0.0, 1.0) *
                                      static_cast<double>(selected_sectors()));
    for (size_t i = 0; i < kSpans; i++) {
      uint64_t sectors = span_sectors(spans_[i]);
      if (sectors == 0)
        continue;
      page.put(492, spans_[i].first + std::min(done, sectors - 1), 8);
      page.put(500, i + 1, 2);
      if (done < sectors)
        break;
      done -= sectors;
    }
  }
  page.put(kSelectiveFlagsAt, selective_flags_, 2);
  page.put(508, pending_minutes_, 2);
  page.seal();
  return page;
}

bool SelfTest::write_selective(std::span<const uint8_t, ata::kSectorBytes> bytes) {
  bool busy = (running_ & ~kCaptive) == kSelective;
  if (busy || get(bytes, 0, 2) != kSelectiveVersion || !sealed(bytes))
    return false;
  for (size_t i = 0; i < kSpans; i++)
    spans_[i] = {get(bytes, 2 + 16 * i, 8), get(bytes, 10 + 16 * i, 8)};
  selective_flags_ = static_cast<uint16_t>(get(bytes, kSelectiveFlagsAt, 2)) & kScanAfterwards;
  pending_minutes_ = static_cast<uint16_t>(get(bytes, 508, 2));
  return true;
}

void SelfTest::save(StreamWriter &out) const {
  out.put(running_);
  out.put(start_ns_);
  out.put(end_ns_);
  out.put(last_status_);
  out.put(collected_);
  out.put(auto_offline_);
  out.put(logged_);
  for (const Entry &test : history_) {
    out.put(test.subcommand);
    out.put(test.status);
    out.put(test.hours);
  }
  for (const SelectedSpan &span : spans_) {
    out.put(span.first);
    out.put(span.last);
  }
  out.put(selective_flags_);
  out.put(pending_minutes_);
}

void SelfTest::load(StreamReader &in) {
  in.get(running_);
  in.get(start_ns_);
  in.get(end_ns_);
  in.get(last_status_);
  in.get(collected_);
  in.get(auto_offline_);
  in.get(logged_);
  for (Entry &test : history_) {
    in.get(test.subcommand);
    in.get(test.status);
    in.get(test.hours);
  }
  for (SelectedSpan &span : spans_) {
    in.get(span.first);
    in.get(span.last);
  }
  in.get(selective_flags_);
  in.get(pending_minutes_);
  uint8_t test = running_ & ~kCaptive;
  bool sane = test <= kSelective && running_ != kCaptive && start_ns_ >= 0;
  sane &= running() ? end_ns_ > start_ns_ : end_ns_ >= 0;
  if (!sane)
    in.fail();
  if (!in.ok())
    running_ = kNone;
}

}  // namespace revodrive
