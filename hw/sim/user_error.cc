// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/user_error.h"

#include <cstdarg>
#include <cstdio>

namespace revodrive::sim {

void refuse(const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  throw UserError(text);
}

}  // namespace revodrive::sim
