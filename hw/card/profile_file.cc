// SPDX-License-Identifier: GPL-2.0-or-later
#include "card/profile_file.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

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

// The text of a built-in profile, or of a file. Nothing else than a regular file: a pipe might
// never end.
bool layer_text(const char *source, std::string *text, rd_error *error) {
  if (const BuiltinProfile *builtin = find_builtin(source)) {
    *text = builtin->text;
    return true;
  }
  if (!is_path(source)) {
    std::string names;
    for (const BuiltinProfile &profile : builtin_profiles())
      names += std::string(names.empty() ? "" : ", ") + profile.name;
    set_error(error, "profile '%s' is unknown; there are: %s; or name a file ending in .ini",
              source, names.c_str());
    return false;
  }
  if (g_file_test(source, G_FILE_TEST_EXISTS) && !g_file_test(source, G_FILE_TEST_IS_REGULAR)) {
    set_error(error, "profile %s: must be a regular file", source);
    return false;
  }
  g_autofree char *contents = nullptr;
  gsize length = 0;
  g_autoptr(GError) problem = nullptr;
  if (!g_file_get_contents(source, &contents, &length, &problem)) {
    set_error(error, "profile %s: %s", source, problem->message);
    return false;
  }
  text->assign(contents, length);
  size_t nul = text->find('\0');
  if (nul == std::string::npos)
    return true;
  auto line = 1 + std::count(text->begin(), text->begin() + static_cast<std::ptrdiff_t>(nul), '\n');
  set_error(error, "profile %s:%lld: a NUL byte: a profile is text", source,
            static_cast<long long>(line));
  return false;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  size_t first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// "file:line" of a key: GKeyFile does not tell. The last counts, as it does for GKeyFile.
std::string place_of(const char *label, std::string_view text, std::string_view section,
                     std::string_view key) {
  std::string place = label;
  std::string_view here;
  for (unsigned number = 1; !text.empty(); number++) {
    std::string_view line = trimmed(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), text.find('\n') + size_t{1}));
    if (line.starts_with('['))
      here = line.substr(1, line.find(']') - 1);
    else if (here == section && trimmed(line.substr(0, line.find('='))) == key)
      place = std::string(label) + ":" + std::to_string(number);
  }
  return place;
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
  std::string text;
  if (!layer_text(source, &text, error))
    return false;
  std::unique_ptr<GKeyFile, Free> layer(g_key_file_new());
  g_autoptr(GError) problem = nullptr;
  if (!g_key_file_load_from_data(layer.get(), text.data(), text.size(), G_KEY_FILE_NONE,
                                 &problem)) {
    set_error(error, "profile %s: %s", source, problem->message);
    return false;
  }
  g_autofree char *base = g_key_file_get_string(layer.get(), kOwnSection, kBase, nullptr);
  if (base && !load_layer(base, depth + 1, error))
    return false;
  return overlay(layer.get(), source, std::move(text), error);
}

bool ProfileFile::overlay(GKeyFile *layer, const char *label, std::string text, rd_error *error) {
  g_auto(GStrv) sections = g_key_file_get_groups(layer, nullptr);
  for (char **section = sections; *section; section++) {
    g_auto(GStrv) keys = g_key_file_get_keys(layer, *section, nullptr, nullptr);
    for (char **key = keys; key && *key; key++) {
      if (std::strcmp(*section, kOwnSection) == 0 && std::strcmp(*key, kBase) == 0)
        continue;
      if (!knows(*section, *key))
        return refuse(*section, *key, place_of(label, text, *section, *key), error);
      g_autofree char *value = g_key_file_get_value(layer, *section, *key, nullptr);
      g_key_file_set_value(file_.get(), *section, *key, value ? value : "");
      places_[std::string(*section) + "." + *key] = layers_.size();
    }
  }
  layers_.push_back({label, std::move(text)});
  return true;
}

bool ProfileFile::knows(std::string_view section, std::string_view key) const {
  return std::any_of(known_.begin(), known_.end(), [&](const Key &known) {
    return section == known.section && key == known.key;
  });
}

bool ProfileFile::refuse(const char *section, const char *key, const std::string &where,
                         rd_error *error) const {
  std::string sections;
  bool section_known = std::strcmp(section, kOwnSection) == 0;
  for (const Key &known : known_) {
    section_known |= std::strcmp(known.section, section) == 0;
    std::string word = std::string("[") + known.section + "]";
    if (sections.find(word) == std::string::npos)
      sections += (sections.empty() ? "" : ", ") + word;
  }
  if (section_known)
    set_error(error, "profile %s: unknown key '%s' in section [%s]", where.c_str(), key, section);
  else
    set_error(error, "profile %s: unknown section [%s] (of key '%s'); there are %s", where.c_str(),
              section, key, sections.c_str());
  return false;
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
    std::string where = std::string("value '") + text + "'";
    *dot = *equals = '\0';
    if (!knows(text, dot + 1))
      return refuse(text, dot + 1, where, error);
    g_key_file_set_value(file_.get(), text, dot + 1, equals + 1);
    places_.erase(std::string(text) + "." + (dot + 1));
    plain_ = false;
  }
  return true;
}

std::string ProfileFile::where(const char *section, const char *key) const {
  auto found = places_.find(std::string(section) + "." + key);
  if (found == places_.end())
    return name_;
  const Layer &layer = layers_[found->second];
  return place_of(layer.label.c_str(), layer.text, section, key);
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
