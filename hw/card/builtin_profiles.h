// SPDX-License-Identifier: GPL-2.0-or-later
//
// The profile files of hw/profiles as text, in the order meson.build lists them; generated at build
// time by hw/profiles/embed.py.
#ifndef REVODRIVE_CARD_BUILTIN_PROFILES_H
#define REVODRIVE_CARD_BUILTIN_PROFILES_H

#include <cstddef>

namespace revodrive {

struct BuiltinProfile {
  const char *name;
  const char *text;
};

extern const BuiltinProfile kBuiltinProfiles[];
extern const size_t kBuiltinProfileCount;

}  // namespace revodrive
#endif
