// SPDX-License-Identifier: GPL-2.0-or-later
#include "card/profile_file.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <span>

#include "card/builtin_profiles.h"
#include "revodrive/error.h"

namespace revodrive {

namespace {

constexpr int kMostLayers = 8;
constexpr const char *kOwnSection = "profile";
constexpr const char *kBase = "base";

std::span<const BuiltinProfile> builtin_profiles() {
  return {kBuiltinProfiles, kBuiltinProfileCount};
}

const BuiltinProfile *find_builtin(const char *name) {
  for (const BuiltinProfile &profile : builtin_profiles())
    if (std::strcmp(profile.name, name) == 0)
      return &profile;
  return nullptr;
}

bool is_path(const char *source) {
  return std::strchr(source, '/') || g_str_has_suffix(source, ".ini");
}

// FNV-1a.
uint64_t mark_of(const char *text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (; *text; text++)
    hash = (hash ^ static_cast<uint8_t>(*text)) * 0x100000001B3;
  return hash;
}

}  // namespace

bool ProfileFile::load(const char *source, rd_error *error) {
  const char *name = source && *source ? source : builtin_profiles().front().name;
  plain_ = !is_path(name);
  name_ = name;
  return load_layer(name, 0, error);
}

bool ProfileFile::load_layer(const char *source, int depth, rd_error *error) {
  if (depth == kMostLayers) {
    set_error(error, "profile %s: more than %d profiles on top of each other", source, kMostLayers);
    return false;
  }
  std::unique_ptr<GKeyFile, Free> layer(g_key_file_new());
  g_autoptr(GError) problem = nullptr;
  const BuiltinProfile *builtin = find_builtin(source);
  if (builtin) {
    g_key_file_load_from_data(layer.get(), builtin->text, static_cast<gsize>(-1), G_KEY_FILE_NONE,
                              &problem);
  } else if (is_path(source)) {
    g_key_file_load_from_file(layer.get(), source, G_KEY_FILE_NONE, &problem);
  } else {
    std::string names;
    for (const BuiltinProfile &profile : builtin_profiles())
      names += std::string(names.empty() ? "" : ", ") + profile.name;
    set_error(error, "profile '%s' is unknown; there are: %s; or name a file ending in .ini",
              source, names.c_str());
    return false;
  }
  if (problem) {
    set_error(error, "profile %s: %s", source, problem->message);
    return false;
  }
  g_autofree char *base = g_key_file_get_string(layer.get(), kOwnSection, kBase, nullptr);
  if (base && !load_layer(base, depth + 1, error))
    return false;
  return overlay(layer.get(), source, error);
}

bool ProfileFile::overlay(GKeyFile *layer, const char *label, rd_error *error) {
  g_auto(GStrv) sections = g_key_file_get_groups(layer, nullptr);
  for (char **section = sections; *section; section++) {
    g_auto(GStrv) keys = g_key_file_get_keys(layer, *section, nullptr, nullptr);
    for (char **key = keys; key && *key; key++) {
      bool own = std::strcmp(*section, kOwnSection) == 0 && std::strcmp(*key, kBase) == 0;
      if (!own && !known_(*section, *key)) {
        set_error(error, "profile %s: unknown key '%s' in section [%s]", label, *key, *section);
        return false;
      }
      g_autofree char *value = g_key_file_get_value(layer, *section, *key, nullptr);
      if (!own)
        g_key_file_set_value(file_.get(), *section, *key, value ? value : "");
    }
  }
  return true;
}

bool ProfileFile::set(const char *overrides, rd_error *error) {
  g_auto(GStrv) parts = g_strsplit(overrides ? overrides : "", ";", -1);
  for (char **part = parts; *part; part++) {
    g_autofree char *text = g_strstrip(g_strdup(*part));
    if (!*text)
      continue;
    char *dot = std::strchr(text, '.');
    char *equals = dot ? std::strchr(dot, '=') : nullptr;
    if (!equals) {
      set_error(error, "profile value '%s': must be section.key=value, as flash.channels=4", text);
      return false;
    }
    *dot = *equals = '\0';
    if (!known_(text, dot + 1)) {
      set_error(error, "profile value: unknown key '%s' in section [%s]", dot + 1, text);
      return false;
    }
    g_key_file_set_value(file_.get(), text, dot + 1, equals + 1);
    plain_ = false;
  }
  return true;
}

std::string ProfileFile::name() const {
  if (plain_)
    return name_;
  g_autofree char *contents = g_key_file_to_data(file_.get(), nullptr, nullptr);
  char mark[32];
  std::snprintf(mark, sizeof(mark), "+%016" PRIx64, mark_of(contents));
  return name_ + mark;
}

bool ProfileFile::has(const char *section, const char *key) const {
  return g_key_file_has_key(file_.get(), section, key, nullptr);
}

std::string ProfileFile::text(const char *section, const char *key) const {
  g_autofree char *value = g_key_file_get_string(file_.get(), section, key, nullptr);
  return value ? value : "";
}

}  // namespace revodrive
