// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace revodrive::sim {

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// The digits at the start; *rest is what follows.
std::optional<uint64_t> leading_number(std::string_view text, std::string_view *rest) {
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text.remove_prefix(2);
  }
  uint64_t value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (problem != std::errc())
    return std::nullopt;
  *rest = text.substr(static_cast<size_t>(end - text.data()));
  return value;
}

std::optional<uint64_t> product(uint64_t a, uint64_t b) {
  uint64_t result;
  if (__builtin_mul_overflow(a, b, &result))
    return std::nullopt;
  return result;
}

// What a suffix of a size multiplies with; 0 if it is none.
uint64_t size_factor(std::string suffix) {
  if (!suffix.empty() && suffix.back() == 'b')
    suffix.pop_back();
  if (suffix.empty())
    return 1;
  size_t power = std::string_view("kmgtp").find(suffix[0]);
  bool decimal = suffix.size() == 2 && suffix[1] == 'i';
  if (power == std::string_view::npos || (suffix.size() > 1 && !decimal))
    return 0;
  uint64_t factor = 1;
  for (size_t i = 0; i <= power; i++)
    factor *= decimal ? 1000 : 1024;
  return factor;
}

std::string scaled(double value, double base, const std::array<const char *, 6> &units) {
  size_t unit = 0;
  while (value >= base && unit + 1 < units.size()) {
    value /= base;
    unit++;
  }
  char text[64];
  int digits = unit == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  std::snprintf(text, sizeof(text), "%.*f%s", digits, value, units[unit]);
  return text;
}

}  // namespace

std::optional<uint64_t> parse_number(std::string_view text) {
  std::string_view rest;
  auto value = leading_number(text, &rest);
  return value && rest.empty() ? value : std::nullopt;
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  std::string_view rest;
  auto value = leading_number(text, &rest);
  uint64_t factor = value ? size_factor(lower(rest)) : 0;
  return factor ? product(*value, factor) : std::nullopt;
}

std::optional<int64_t> parse_time_ns(std::string_view text, int64_t unit_ns) {
  struct Unit {
    std::string_view name;
    int64_t ns;
  };
  constexpr Unit kUnits[] = {
      {"d", 86400 * kNsPerSecond},
      {"h", 3600 * kNsPerSecond},
      {"m", 60 * kNsPerSecond},
      {"s", kNsPerSecond},
      {"sec", kNsPerSecond},
      {"ms", kNsPerMs},
      {"msec", kNsPerMs},
      {"us", kNsPerUs},
      {"usec", kNsPerUs},
      {"ns", 1},
      {"nsec", 1},
  };
  std::string_view rest;
  auto value = leading_number(text, &rest);
  if (!value)
    return std::nullopt;
  std::string suffix = lower(rest);
  int64_t factor = suffix.empty() ? unit_ns : 0;
  for (const Unit &unit : kUnits) {
    if (suffix == unit.name)
      factor = unit.ns;
  }
  // Half of what fits, so that sums of times stay inside.
  auto ns = factor ? product(*value, static_cast<uint64_t>(factor)) : std::nullopt;
  return ns && *ns <= INT64_MAX / 4 ? std::optional(static_cast<int64_t>(*ns)) : std::nullopt;
}

std::optional<double> parse_real(std::string_view text) {
  double value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool whole = problem == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "1" || text == "true" || text == "yes")
    return true;
  if (text == "0" || text == "false" || text == "no")
    return false;
  return std::nullopt;
}

std::optional<SizeOrShare> parse_size(std::string_view text) {
  if (text.empty() || text.back() != '%') {
    auto bytes = parse_bytes(text);
    return bytes ? std::optional(SizeOrShare{*bytes, 0}) : std::nullopt;
  }
  auto percent = parse_number(text.substr(0, text.size() - 1));
  return percent && *percent >= 1 && *percent <= 100 ? std::optional(SizeOrShare{0, *percent})
                                                     : std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    size_t at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos)
      return pieces;
    text.remove_prefix(at + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string binary_size(double bytes) {
  return scaled(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"});
}

std::string decimal_size(double bytes) {
  return scaled(bytes, 1000, {"B", "kB", "MB", "GB", "TB", "PB"});
}

}  // namespace revodrive::sim
