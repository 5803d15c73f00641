// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/profile.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <span>

#include "card/builtin_profiles.h"
#include "card/profile_file.h"
#include "revodrive/error.h"

namespace revodrive {

namespace {

struct NumberKey {
  const char *section, *key;
  uint32_t *value;
  uint32_t min, max;
  bool power_of_two = false;
};

// These may be missing: the value stays as it is.
struct OptionalKey {
  const char *section, *key;
  uint64_t *value;
  uint64_t min, max;
};

struct TextKey {
  const char *section, *key;
  std::string *value;
};

bool parse_number(const ProfileFile &file, const char *section, const char *key, uint64_t min,
                  uint64_t max, uint64_t *value, rd_error *error) {
  std::string text = file.text(section, key);
  const char *end = text.data() + text.size();
  auto [stopped, problem] = std::from_chars(text.data(), end, *value);
  bool number = problem == std::errc() && stopped == end;
  if (number && *value >= min && *value <= max)
    return true;
  bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  set_error(error, "profile %s: [%s] %s=%s: must be a number from %llu to %llu%s",
            file.where(section, key).c_str(), section, key,
            text.empty() ? "(missing)" : text.c_str(), static_cast<unsigned long long>(min),
            static_cast<unsigned long long>(max), digits ? "" : ", in digits without a unit");
  return false;
}

bool read(const ProfileFile &file, const NumberKey &key, rd_error *error) {
  uint64_t value = 0;
  if (!parse_number(file, key.section, key.key, key.min, key.max, &value, error))
    return false;
  *key.value = static_cast<uint32_t>(value);
  if (!key.power_of_two || std::has_single_bit(value))
    return true;
  set_error(error, "profile %s: [%s] %s=%u: must be a power of two from %u to %u",
            file.where(key.section, key.key).c_str(), key.section, key.key, *key.value, key.min,
            key.max);
  return false;
}

bool read(const ProfileFile &file, const OptionalKey &key, rd_error *error) {
  return !file.has(key.section, key.key) ||
         parse_number(file, key.section, key.key, key.min, key.max, key.value, error);
}

bool read(const ProfileFile &file, const TextKey &key, rd_error *error) {
  *key.value = file.text(key.section, key.key);
  if (!key.value->empty())
    return true;
  set_error(error, "profile %s: [%s] %s is missing", file.where(key.section, key.key).c_str(),
            key.section, key.key);
  return false;
}

std::string text_of(uint64_t value) {
  return std::to_string(value);
}
std::string text_of(const std::string &value) {
  return value;
}

// A page is a whole number of codewords.
bool check_codewords(const ProfileFile &file, const FlashProfile &flash, rd_error *error) {
  if (flash.page_bytes % flash.codeword_bytes == 0)
    return true;
  set_error(error, "profile %s: [flash] codeword_bytes=%u: must divide page_bytes=%u",
            file.where("flash", "codeword_bytes").c_str(), flash.codeword_bytes, flash.page_bytes);
  return false;
}

}  // namespace

std::vector<std::string> Profile::builtin_names() {
  std::vector<std::string> names;
  for (const BuiltinProfile &profile : std::span(kBuiltinProfiles, kBuiltinProfileCount))
    names.push_back(profile.name);
  return names;
}

bool Profile::load(const char *source, const char *overrides, Profile *out, rd_error *error) {
  return load(source, overrides, out, error, [](const char *, const char *, const char *) {});
}

bool Profile::load(const char *source, const char *overrides, Profile *out, rd_error *error,
                   const Visitor &visit) {
  const NumberKey numbers[] = {
      {"pcie", "lanes", &out->pcie.lanes, 1, 16, true},
      {"pcie", "lane_mb_s", &out->pcie.lane_mb_s, 1, 16000},
      {"pcie", "max_payload_bytes", &out->pcie.max_payload_bytes, 128, 4096, true},
      {"pcie", "completion_bytes", &out->pcie.completion_bytes, 64, 4096},
      {"pcie", "tlp_overhead_bytes", &out->pcie.tlp_overhead_bytes, 0, 256},
      {"pcie", "read_latency_ns", &out->pcie.read_latency_ns, 0, 1000000},
      {"bridge", "command_ns", &out->bridge.command_ns, 0, 10000000},
      {"bridge", "completion_ns", &out->bridge.completion_ns, 0, 10000000},
      {"sata", "speed", &out->sata.speed, 1, 3},
      {"sata", "efficiency_permille", &out->sata.efficiency_permille, 100, 1000},
      {"sata", "fis_overhead_bytes", &out->sata.fis_overhead_bytes, 0, 4096},
      {"sata", "link_up_us", &out->sata.link_up_us, 0, 400000},
      {"flash", "command_ns", &out->flash.command_ns, 0, 100000000},
      {"flash", "read_unit_ns", &out->flash.read_unit_ns, 0, 10000000},
      {"flash", "write_unit_ns", &out->flash.write_unit_ns, 0, 10000000},
      {"flash", "write_command_ns", &out->flash.write_command_ns, 0, 10000000},
      {"flash", "read_latency_ns", &out->flash.read_latency_ns, 0, 10000000},
      {"flash", "write_latency_ns", &out->flash.write_latency_ns, 0, 10000000},
      {"flash", "trim_range_ns", &out->flash.trim_range_ns, 0, 1000000000},
      {"flash", "compress_mb_s", &out->flash.compress_mb_s, 0, 100000},
      {"flash", "compress_segment_bytes", &out->flash.compress_segment_bytes, 512, 1048576},
      {"flash", "decompress_mb_s", &out->flash.decompress_mb_s, 0, 100000},
      {"flash", "store_mb_s", &out->flash.store_mb_s, 0, 100000},
      {"flash", "store_floor_permille", &out->flash.store_floor_permille, 0, 1000},
      {"flash", "write_buffer_bytes", &out->flash.write_buffer_bytes, 16384, 1073741824},
      {"flash", "read_ahead_bytes", &out->flash.read_ahead_bytes, 0, 1048576},
      {"flash", "channels", &out->flash.channels, 1, 16},
      {"flash", "dies_per_channel", &out->flash.dies_per_channel, 1, 16},
      {"flash", "planes", &out->flash.planes, 1, 4, true},
      {"flash", "page_bytes", &out->flash.page_bytes, 2048, 65536, true},
      {"flash", "page_spare_bytes", &out->flash.page_spare_bytes, 0, 8192},
      {"flash", "codeword_bytes", &out->flash.codeword_bytes, 512, 65536},
      {"flash", "decode_mb_s", &out->flash.decode_mb_s, 0, 100000},
      {"flash", "block_pages", &out->flash.block_pages, 16, 4096},
      {"flash", "blocks_per_plane", &out->flash.blocks_per_plane, 0, 65536},
      {"flash", "bus_mb_s", &out->flash.bus_mb_s, 1, 4000},
      {"flash", "bus_command_ns", &out->flash.bus_command_ns, 0, 1000000},
      {"flash", "read_page_us", &out->flash.read_page_us, 0, 100000},
      {"flash", "program_page_us", &out->flash.program_page_us, 0, 1000000},
      {"flash", "erase_block_us", &out->flash.erase_block_us, 0, 1000000},
      {"flash", "raw_permille", &out->flash.raw_permille, 1010, 8000},
      {"flash", "raise", &out->flash.raise, 0, 1},
      {"flash", "journal_permille", &out->flash.journal_permille, 0, 500},
      {"flash", "map_unit_bytes", &out->flash.map_unit_bytes, 4096, 65536, true},
      {"flash", "map_cache_units", &out->flash.map_cache_units, 0, 4294967295},
      {"flash", "map_miss_ns", &out->flash.map_miss_ns, 0, 10000000},
      {"flash", "map_page_units", &out->flash.map_page_units, 1, 1048576},
      {"flash", "gc_cost_benefit", &out->flash.gc_cost_benefit, 0, 1},
      {"flash", "gc_free_permille", &out->flash.gc_free_permille, 1, 500},
      {"flash", "wear_delta", &out->flash.wear_delta, 0, 1000000},
      {"flash", "endurance_cycles", &out->flash.endurance_cycles, 1, 10000000},
      {"flash", "block_fail_ppb", &out->flash.block_fail_ppb, 0, 1000000000},
      {"flash", "spare_blocks_permille", &out->flash.spare_blocks_permille, 0, 200},
      {"flash", "throttle_iops", &out->flash.throttle_iops, 0, 10000000},
      {"flash", "throttle_burst_ios", &out->flash.throttle_burst_ios, 1, 4294967295},
      {"flash", "throttle_kb_s", &out->flash.throttle_kb_s, 0, 10000000},
      {"flash", "throttle_burst_kb", &out->flash.throttle_burst_kb, 1, 4294967295},
      {"flash", "idle_mw", &out->flash.idle_mw, 0, 100000},
      {"flash", "active_mw", &out->flash.active_mw, 0, 100000},
      {"flash", "read_nj", &out->flash.read_nj, 0, 100000000},
      {"flash", "program_nj", &out->flash.program_nj, 0, 1000000000},
      {"flash", "erase_nj", &out->flash.erase_nj, 0, 2000000000},
      {"flash", "bus_pj_byte", &out->flash.bus_pj_byte, 0, 1000000},
  };
  const TextKey texts[] = {
      {"identity", "model", &out->identity.model},
      {"identity", "firmware", &out->identity.firmware},
  };
  const OptionalKey options[] = {
      {"card", "members", &out->card.members, 1, 8},
      {"card", "member_bytes", &out->card.member_bytes, 1048576, 1125899906842624},
      {"flash", "erase_at_once", &out->flash.erase_at_once, 0, 1024},
      {"flash", "idle_gc_ms", &out->flash.idle_gc_ms, 0, 86400000},
      {"flash", "idle_gc_free_permille", &out->flash.idle_gc_free_permille, 1, 500},
      {"flash", "compress_measure", &out->flash.compress_measure, 0, 1},
      {"flash", "dedupe_window_chunks", &out->flash.dedupe_window_chunks, 0, 65536},
      {"flash", "dedupe_reference_bytes", &out->flash.dedupe_reference_bytes, 1, 512},
      {"host", "submit_ns", &out->host.submit_ns, 0, 1000000000},
      {"host", "complete_ns", &out->host.complete_ns, 0, 1000000000},
      {"volume", "command_ns", &out->volume.command_ns, 0, 10000000},
      {"volume", "part_ns", &out->volume.part_ns, 0, 10000000},
      {"volume", "dispatch_ns", &out->volume.dispatch_ns, 0, 10000000},
      {"volume", "map_ns", &out->volume.map_ns, 0, 10000000},
      {"volume", "balance_kib", &out->volume.balance_kib, 0, 1073741824},
      {"host", "coalesce_count", &out->host.coalesce_count, 0, 511},
      {"host", "coalesce_us", &out->host.coalesce_us, 0, 65535},
      {"host", "queue_depth", &out->host.queue_depth, 1, 32},
      {"host", "max_transfer_kib", &out->host.max_transfer_kib, 4, 16384},
  };
  auto each = [&](auto &&visit) {
    bool good = true;
    for (const NumberKey &key : numbers)
      good = good && visit(key);
    for (const OptionalKey &key : options)
      good = good && visit(key);
    for (const TextKey &key : texts)
      good = good && visit(key);
    return good;
  };
  ProfileFile::Known known;
  each([&](const auto &entry) {
    known.push_back({entry.section, entry.key});
    return true;
  });
  ProfileFile file(std::move(known));
  if (!file.load(source, error) || !file.set(overrides, error))
    return false;
  if (!each([&](const auto &key) { return read(file, key, error); }) ||
      !check_codewords(file, out->flash, error))
    return false;
  out->name = file.name();
  visit("profile", "name", out->name.c_str());
  each([&](const auto &key) {
    visit(key.section, key.key, text_of(*key.value).c_str());
    return true;
  });
  return true;
}

}  // namespace revodrive
