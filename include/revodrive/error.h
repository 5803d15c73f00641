// SPDX-License-Identifier: GPL-2.0-or-later
//
// Writes the message of an rd_error, printf style. A null error is allowed: nobody wants to know.
#ifndef REVODRIVE_ERROR_H
#define REVODRIVE_ERROR_H

#include <cstdarg>
#include <cstdio>

#include "revodrive/host.h"

namespace revodrive {

__attribute__((format(printf, 2, 3))) inline void set_error(rd_error *error, const char *format,
                                                            ...) {
  if (!error)
    return;
  va_list args;
  va_start(args, format);
  std::vsnprintf(error->text, sizeof(error->text), format, args);
  va_end(args);
}

}  // namespace revodrive
#endif
