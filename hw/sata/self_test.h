// SPDX-License-Identifier: GPL-2.0-or-later
//
// Off-line data collection and self-tests of SMART (ATA8-ACS 7.53.5), with their logs: 06h, its
// extended form 07h and the selective log 09h. All times are the drive's power-on time in ns, which
// stands still while it has no power. A test is a start and a duration: whoever looks calls
// advance() first. There is nothing that a test of this model could find, so a test that is not
// stopped passes.
#ifndef REVODRIVE_SATA_SELF_TEST_H
#define REVODRIVE_SATA_SELF_TEST_H

#include <array>
#include <cstdint>
#include <span>

#include "revodrive/stream.h"
#include "sata/page.h"

namespace revodrive {

class SelfTest {
 public:
  enum class Result : uint8_t { kPassed = 0, kAborted = 1, kInterrupted = 2, kRunning = 15 };

  explicit SelfTest(uint64_t sectors);

  // EXECUTE OFF-LINE IMMEDIATE: stops what runs and starts what the subcommand names. False: there
  // is no such subcommand, or the selective log has no span to test.
  bool start(uint8_t subcommand, int64_t power_on_ns);
  static bool is_captive(uint8_t subcommand) { return subcommand & kCaptive; }
  // How long the running test takes yet; 0 if none runs.
  int64_t remaining_ns(int64_t power_on_ns) const;
  void advance(int64_t power_on_ns);
  // Ends the running test before its time.
  void stop(Result result, int64_t power_on_ns);
  bool running() const { return running_ != kNone; }
  bool captive() const { return is_captive(running_); }
  void set_auto_offline(bool on) { auto_offline_ = on; }

  // The bytes of the SMART data page from 362 on that are about tests.
  void fill_status(Page &page, int64_t power_on_ns) const;
  Page log_page() const;
  Page extended_log_page() const;
  Page selective_page(int64_t power_on_ns) const;
  // False: not a selective log, or a selective test runs.
  bool write_selective(std::span<const uint8_t, ata::kSectorBytes> bytes);

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  static constexpr uint8_t kCaptive = 0x80;
  static constexpr uint8_t kNone = 0;
  static constexpr size_t kHistory = 21;  // what log 06h holds
  static constexpr size_t kSpans = 5;

  struct Entry {
    uint8_t subcommand = 0;
    uint8_t status = 0;
    uint16_t hours = 0;
  };
  struct SelectedSpan {
    uint64_t first = 0, last = 0;
    bool operator==(const SelectedSpan &) const = default;
  };

  int64_t duration_ns(uint8_t subcommand) const;
  uint64_t span_sectors(const SelectedSpan &span) const;
  uint64_t selected_sectors() const;
  uint8_t tenths_left(int64_t power_on_ns) const;
  void log(Result result, uint8_t tenths_left, int64_t at_ns);
  const Entry &entry(uint64_t number) const { return history_[number % kHistory]; }
  void put_entries(Page &page, size_t first, size_t bytes, size_t slots) const;

  uint64_t sectors_;
  uint8_t running_ = kNone;  // subcommand, with kCaptive
  int64_t start_ns_ = 0, end_ns_ = 0;
  uint8_t last_status_ = 0;  // byte 363 when nothing runs
  bool collected_ = false;   // off-line data has been collected
  bool auto_offline_ = false;
  uint64_t logged_ = 0;                    // tests ever
  std::array<Entry, kHistory> history_{};  // test n is entry n modulo kHistory
  std::array<SelectedSpan, kSpans> spans_{};
  uint16_t selective_flags_ = 0;
  uint16_t pending_minutes_ = 0;
};

}  // namespace revodrive
#endif
