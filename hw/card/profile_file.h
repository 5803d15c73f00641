// SPDX-License-Identifier: GPL-2.0-or-later
//
// The text of a profile before it becomes numbers: a built-in profile or a file, laid over the one
// that its "[profile] base=NAME" names, with single values laid over both. Every layer is checked
// by itself for keys that nobody knows, so that a misspelt one is reported where it stands.
#ifndef REVODRIVE_CARD_PROFILE_FILE_H
#define REVODRIVE_CARD_PROFILE_FILE_H

#include <glib.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "revodrive/host.h"

namespace revodrive {

class ProfileFile {
 public:
  struct Key {
    const char *section, *key;
  };
  using Known = std::vector<Key>;

  explicit ProfileFile(Known known) : file_(g_key_file_new()), known_(std::move(known)) {}

  // `source`: NULL for the first built-in profile, the name of one, or (with a '/' or ending in
  // ".ini") a file. False: *error names the layer and what is wrong with it.
  bool load(const char *source, rd_error *error);
  // "section.key=value", several separated by ';'. NULL: nothing.
  bool set(const char *overrides, rd_error *error);

  // What the numbers belong to, for messages and to tell saved states apart: the built-in profile's
  // name, with a mark of the contents when they are not just that.
  std::string name() const;
  bool has(const char *section, const char *key) const;
  // Empty: missing.
  std::string text(const char *section, const char *key) const;
  // Where the value stands: "file:line", or the profile's name.
  std::string where(const char *section, const char *key) const;

 private:
  struct Free {
    void operator()(GKeyFile *file) const { g_key_file_free(file); }
  };
  bool load_layer(const char *source, int depth, rd_error *error);
  bool overlay(GKeyFile *layer, const char *label, std::string text, rd_error *error);
  bool knows(std::string_view section, std::string_view key) const;
  // Of a key that nobody knows; `where` begins the message. False.
  bool refuse(const char *section, const char *key, const std::string &where,
              rd_error *error) const;

  std::unique_ptr<GKeyFile, Free> file_;
  Known known_;
  std::string name_;
  struct Layer {
    std::string label, text;
  };
  std::vector<Layer> layers_;             // the lowest first
  std::map<std::string, size_t> places_;  // the layer of "section.key"
  bool plain_ = true;                     // nothing but a built-in profile
};

}  // namespace revodrive
#endif
