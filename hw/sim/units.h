// SPDX-License-Identifier: GPL-2.0-or-later
//
// Numbers as fio writes them (fio 3.33, "Parameter types", kb_base=1024): 4k and 4kB are 4096, 4ki
// is 4000, 0x10 is hexadecimal, 20% is a share. Parsers answer nullopt for what they cannot read;
// who asked knows the option and says so.
#ifndef REVODRIVE_SIM_UNITS_H
#define REVODRIVE_SIM_UNITS_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace revodrive::sim {

constexpr int64_t kNsPerUs = 1000;
constexpr int64_t kNsPerMs = 1000 * kNsPerUs;
constexpr int64_t kNsPerSecond = 1000 * kNsPerMs;

std::optional<uint64_t> parse_number(std::string_view text);
std::optional<uint64_t> parse_bytes(std::string_view text);
// Suffixes d h m s ms us ns; without one the number counts `unit_ns`.
std::optional<int64_t> parse_time_ns(std::string_view text, int64_t unit_ns);
std::optional<double> parse_real(std::string_view text);
std::optional<bool> parse_bool(std::string_view text);

// A size in bytes or a share of something, in percent.
struct SizeOrShare {
  uint64_t bytes = 0;
  uint64_t percent = 0;  // not 0: this counts
  bool given() const { return bytes != 0 || percent != 0; }
  uint64_t of(uint64_t whole) const {
    return percent ? whole / 100 * percent + whole % 100 * percent / 100 : bytes;
  }
};
std::optional<SizeOrShare> parse_size(std::string_view text);

// Pieces between separators; "a,,b" has an empty one in the middle.
std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trimmed(std::string_view text);

// "4096" or "4KiB", "1.5MiB/s", as fio's summary prints them.
std::string binary_size(double bytes);
std::string decimal_size(double bytes);

}  // namespace revodrive::sim
#endif
