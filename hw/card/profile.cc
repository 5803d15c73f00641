// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/profile.h"

#include <glib.h>

#include <cstring>
#include <memory>
#include <span>

#include "card/builtin_profiles.h"
#include "revodrive/error.h"

namespace revodrive {

namespace {

struct NumberKey {
  const char *section, *key;
  uint32_t *value;
  uint32_t min, max;
};

struct TextKey {
  const char *section, *key;
  std::string *value;
};

struct FreeKeyFile {
  void operator()(GKeyFile *file) const { g_key_file_free(file); }
};
using KeyFile = std::unique_ptr<GKeyFile, FreeKeyFile>;

bool read_number(GKeyFile *file, const char *name, const NumberKey &key, rd_error *error) {
  g_autoptr(GError) problem = nullptr;
  guint64 value = g_key_file_get_uint64(file, key.section, key.key, &problem);
  if (!problem && value >= key.min && value <= key.max) {
    *key.value = static_cast<uint32_t>(value);
    return true;
  }
  g_autofree char *text = g_key_file_get_value(file, key.section, key.key, nullptr);
  set_error(error, "profile %s: [%s] %s=%s: must be a number from %u to %u", name, key.section,
            key.key, text ? text : "(missing)", key.min, key.max);
  return false;
}

bool read_text(GKeyFile *file, const char *name, const TextKey &key, rd_error *error) {
  g_autofree char *text = g_key_file_get_string(file, key.section, key.key, nullptr);
  if (!text) {
    set_error(error, "profile %s: [%s] %s is missing", name, key.section, key.key);
    return false;
  }
  *key.value = text;
  return true;
}

// Whether every key of the file is one of ours: a misspelt key must not be ignored.
template <typename Known>
bool check_keys(GKeyFile *file, const char *name, Known known, rd_error *error) {
  g_auto(GStrv) sections = g_key_file_get_groups(file, nullptr);
  for (char **section = sections; *section; section++) {
    g_auto(GStrv) keys = g_key_file_get_keys(file, *section, nullptr, nullptr);
    for (char **key = keys; key && *key; key++) {
      if (known(*section, *key))
        continue;
      set_error(error, "profile %s: unknown key '%s' in section [%s]", name, *key, *section);
      return false;
    }
  }
  return true;
}

bool parse(const BuiltinProfile &source, Profile *out, rd_error *error) {
  const NumberKey numbers[] = {
      {"pcie", "lanes", &out->pcie.lanes, 1, 16},
      {"pcie", "lane_mb_s", &out->pcie.lane_mb_s, 1, 16000},
      {"pcie", "max_payload_bytes", &out->pcie.max_payload_bytes, 128, 4096},
      {"pcie", "tlp_overhead_bytes", &out->pcie.tlp_overhead_bytes, 0, 256},
      {"pcie", "read_latency_ns", &out->pcie.read_latency_ns, 0, 1000000},
      {"bridge", "command_ns", &out->bridge.command_ns, 0, 10000000},
      {"bridge", "completion_ns", &out->bridge.completion_ns, 0, 10000000},
      {"sata", "speed", &out->sata.speed, 1, 3},
      {"sata", "fis_overhead_bytes", &out->sata.fis_overhead_bytes, 0, 4096},
      {"sata", "link_up_us", &out->sata.link_up_us, 0, 400000},
      {"flash", "command_ns", &out->flash.command_ns, 0, 100000000},
      {"flash", "channels", &out->flash.channels, 1, 16},
      {"flash", "dies_per_channel", &out->flash.dies_per_channel, 1, 16},
      {"flash", "page_bytes", &out->flash.page_bytes, 512, 65536},
      {"flash", "page_spare_bytes", &out->flash.page_spare_bytes, 0, 8192},
      {"flash", "bus_mb_s", &out->flash.bus_mb_s, 1, 4000},
      {"flash", "read_page_us", &out->flash.read_page_us, 0, 100000},
      {"flash", "program_page_us", &out->flash.program_page_us, 0, 1000000},
      {"flash", "block_pages", &out->flash.block_pages, 1, 4096},
      {"flash", "erase_block_us", &out->flash.erase_block_us, 0, 1000000},
      {"flash", "planes", &out->flash.planes, 1, 4},
      {"flash", "store_floor_permille", &out->flash.store_floor_permille, 0, 1000},
      {"flash", "write_buffer_pages", &out->flash.write_buffer_pages, 1, 65536},
      {"flash", "trim_range_ns", &out->flash.trim_range_ns, 0, 1000000000},
  };
  const TextKey texts[] = {
      {"identity", "model", &out->identity.model},
      {"identity", "firmware", &out->identity.firmware},
  };
  KeyFile file(g_key_file_new());
  g_autoptr(GError) problem = nullptr;
  if (!g_key_file_load_from_data(file.get(), source.text, static_cast<gsize>(-1), G_KEY_FILE_NONE,
                                 &problem)) {
    set_error(error, "profile %s: %s", source.name, problem->message);
    return false;
  }
  auto known = [&](const char *section, const char *key) {
    auto same = [&](const auto &entry) {
      return std::strcmp(entry.section, section) == 0 && std::strcmp(entry.key, key) == 0;
    };
    for (const NumberKey &entry : numbers)
      if (same(entry))
        return true;
    for (const TextKey &entry : texts)
      if (same(entry))
        return true;
    return false;
  };
  if (!check_keys(file.get(), source.name, known, error))
    return false;
  for (const NumberKey &key : numbers)
    if (!read_number(file.get(), source.name, key, error))
      return false;
  for (const TextKey &key : texts)
    if (!read_text(file.get(), source.name, key, error))
      return false;
  out->name = source.name;
  return true;
}

}  // namespace

bool Profile::load(const char *name, Profile *out, rd_error *error) {
  std::string names;
  for (const BuiltinProfile &source : std::span(kBuiltinProfiles, kBuiltinProfileCount)) {
    if (!name || std::strcmp(name, source.name) == 0)
      return parse(source, out, error);
    names += names.empty() ? "" : ", ";
    names += source.name;
  }
  set_error(error, "profile '%s' is unknown; there are: %s", name, names.c_str());
  return false;
}

}  // namespace revodrive
