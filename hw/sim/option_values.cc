// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/option_values.h"

#include <algorithm>
#include <charconv>

#include "revodrive/host.h"

namespace revodrive::sim {

namespace {

constexpr uint64_t kMostBlock = uint64_t{1} << 30;

std::string between(uint64_t min, uint64_t max) {
  return "a number from " + std::to_string(min) + " to " + std::to_string(max);
}

uint64_t block_bytes(std::string_view text) {
  uint64_t bytes = bytes_in(text, RD_SECTOR_BYTES, kMostBlock);
  if (bytes % RD_SECTOR_BYTES != 0)
    throw BadValue{"a multiple of the 512 bytes of a sector"};
  return bytes;
}

// "a,b,c" for read, write, trim; what is missing is as the one before.
template <typename Set>
void each_direction(std::string_view text, Set set) {
  std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() > kDirections)
    throw BadValue{"at most three values: reads, writes, trims"};
  std::string_view last = parts[0];
  for (unsigned i = 0; i < kDirections; i++) {
    last = i < parts.size() ? parts[i] : last;
    if (!last.empty())
      set(i, last);
  }
}

std::vector<BlockSize> split_value(std::string_view text) {
  std::vector<BlockSize> sizes;
  unsigned sum = 0;
  unsigned open = 0;
  for (std::string_view entry : split(text, ':')) {
    std::vector<std::string_view> parts = split(entry, '/');
    if (parts.size() > 2)
      throw BadValue{"SIZE/PERCENT:SIZE/PERCENT:..."};
    BlockSize size{block_bytes(parts[0]), 0};
    if (parts.size() == 2 && !parts[1].empty())
      size.percent = static_cast<unsigned>(number_in(parts[1], 1, 100));
    sum += size.percent;
    open += size.percent == 0;
    sizes.push_back(size);
  }
  if (sum > 100 || (open == 0 && sum != 100))
    throw BadValue{"percentages that add up to 100"};
  // Sizes without a percentage share what is left.
  for (BlockSize &size : sizes) {
    if (size.percent == 0) {
      size.percent = (100 - sum) / open;
      sum += size.percent;
      open--;
    }
  }
  return sizes;
}

std::vector<Zone> zones_value(std::string_view text) {
  std::vector<Zone> zones;
  unsigned access = 0;
  unsigned size = 0;
  for (std::string_view entry : split(text, ':')) {
    std::vector<std::string_view> parts = split(entry, '/');
    if (parts.size() != 2)
      throw BadValue{"zoned:ACCESS/SIZE:ACCESS/SIZE:..., in percent"};
    zones.push_back({static_cast<unsigned>(number_in(parts[0], 0, 100)),
                     static_cast<unsigned>(number_in(parts[1], 1, 100))});
    access += zones.back().access;
    size += zones.back().size;
  }
  if (access != 100 || size > 100)
    throw BadValue{"zones whose accesses add up to 100 % and sizes to at most 100 %"};
  return zones;
}

Distribution distribution_value(std::string_view text) {
  std::string_view kind = text.substr(0, text.find(':'));
  std::string_view rest = kind.size() < text.size() ? text.substr(kind.size() + 1) : "";
  Distribution result;
  if (kind == "random" && rest.empty())
    return result;
  if (kind == "zoned") {
    result.spread = Spread::kZoned;
    result.zones = zones_value(rest);
    return result;
  }
  if (kind != "zipf" && kind != "pareto")
    throw BadValue{"random, zipf:THETA, pareto:POWER or zoned:ACCESS/SIZE:..."};
  bool zipf = kind == "zipf";
  result.spread = zipf ? Spread::kZipf : Spread::kPareto;
  auto parameter = parse_real(rest.empty() ? (zipf ? "1.1" : "0.2") : rest);
  double most = zipf ? 100 : 0.999;
  if (!parameter || *parameter < 0.01 || *parameter > most || (zipf && *parameter == 1))
    throw BadValue{zipf ? "zipf:THETA with 0.01 to 100, but not 1" : "pareto:POWER, 0.01 to 0.999"};
  result.parameter = *parameter;
  return result;
}

}  // namespace

uint64_t number_in(std::string_view text, uint64_t min, uint64_t max) {
  auto value = parse_number(text);
  if (!value || *value < min || *value > max)
    throw BadValue{between(min, max)};
  return *value;
}

uint64_t bytes_in(std::string_view text, uint64_t min, uint64_t max) {
  auto value = parse_bytes(text);
  if (!value || *value < min || *value > max)
    throw BadValue{between(min, max) + ", with k, m, g or t"};
  return *value;
}

bool boolean(std::string_view text) {
  auto value = parse_bool(text.empty() ? "1" : text);
  if (!value)
    throw BadValue{"0 or 1"};
  return *value;
}

int64_t time_value(std::string_view text, int64_t unit_ns) {
  auto value = parse_time_ns(text, unit_ns);
  if (!value)
    throw BadValue{"a number with d, h, m, s, ms or us"};
  return *value;
}

SizeOrShare size_value(std::string_view text) {
  auto value = parse_size(text);
  if (!value)
    throw BadValue{"bytes with k, m, g or t, or 1% to 100%"};
  return *value;
}

PerDirection<uint64_t> by_direction(std::string_view text, PerDirection<uint64_t> values,
                                    uint64_t min, uint64_t max, bool sizes) {
  each_direction(text, [&](unsigned i, std::string_view part) {
    values[i] = sizes ? bytes_in(part, min, max) : number_in(part, min, max);
  });
  return values;
}

Direction direction_value(std::string_view text) {
  struct Kind {
    std::string_view name;
    Direction direction;  // reads, writes, trims, random, trim then write
  };
  constexpr Kind kKinds[] = {
      {"read", {true, false, false, false, false}},
      {"write", {false, true, false, false, false}},
      {"trim", {false, false, true, false, false}},
      {"randread", {true, false, false, true, false}},
      {"randwrite", {false, true, false, true, false}},
      {"randtrim", {false, false, true, true, false}},
      {"rw", {true, true, false, false, false}},
      {"readwrite", {true, true, false, false, false}},
      {"randrw", {true, true, false, true, false}},
      {"trimwrite", {false, true, true, false, true}},
      {"randtrimwrite", {false, true, true, true, true}},
  };
  for (const Kind &kind : kKinds) {
    if (kind.name == text)
      return kind.direction;
  }
  throw BadValue{
      "read, write, randread, randwrite, rw, randrw, trim, randtrim, trimwrite or randtrimwrite, "
      "without a sequence number"};
}

void set_block_size(JobOptions &job, std::string_view text) {
  each_direction(text, [&](unsigned i, std::string_view part) {
    job.block_min[i] = job.block_max[i] = block_bytes(part);
    job.block_split[i].clear();
  });
}

void set_block_range(JobOptions &job, std::string_view text) {
  each_direction(text, [&](unsigned i, std::string_view part) {
    size_t dash = part.find('-');
    if (dash == std::string_view::npos)
      throw BadValue{"MIN-MAX"};
    job.block_min[i] = block_bytes(part.substr(0, dash));
    job.block_max[i] = block_bytes(part.substr(dash + 1));
    job.block_split[i].clear();
    if (job.block_min[i] > job.block_max[i])
      throw BadValue{"MIN-MAX with MIN not above MAX"};
  });
}

void set_block_split(JobOptions &job, std::string_view text) {
  each_direction(text, [&](unsigned i, std::string_view part) {
    job.block_split[i] = split_value(part);
    auto [least, most] = std::minmax_element(
        job.block_split[i].begin(), job.block_split[i].end(),
        [](const BlockSize &a, const BlockSize &b) { return a.bytes < b.bytes; });
    job.block_min[i] = least->bytes;
    job.block_max[i] = most->bytes;
  });
}

void set_distribution(JobOptions &job, std::string_view text) {
  each_direction(text, [&](unsigned i, std::string_view part) {
    job.distribution[i] = distribution_value(part);
  });
}

// 0x… is bytes in order, "…" a string, a number its bytes, lowest first.
std::vector<uint8_t> pattern_value(std::string_view text) {
  constexpr const char *kAllowed = "0x with hexadecimal digits, or a string in double quotes";
  std::vector<uint8_t> pattern;
  if (text.size() > 2 && text.front() == '"' && text.back() == '"') {
    text = text.substr(1, text.size() - 2);
    return {text.begin(), text.end()};
  }
  if (text.substr(0, 2) != "0x" || text.size() == 2)
    throw BadValue{kAllowed};
  std::string digits(text.substr(2));
  if (digits.size() % 2 != 0)
    digits.insert(digits.begin(), '0');
  for (size_t i = 0; i < digits.size(); i += 2) {
    uint8_t byte = 0;
    auto [end, problem] = std::from_chars(&digits[i], &digits[i] + 2, byte, 16);
    if (problem != std::errc() || end != &digits[i] + 2)
      throw BadValue{kAllowed};
    pattern.push_back(byte);
  }
  return pattern;
}

}  // namespace revodrive::sim
