// SPDX-License-Identifier: GPL-2.0-or-later
//
// Something that the person at the keyboard got wrong, or that their machine refuses: the message
// names the thing, the value and what is allowed. Thrown anywhere in revosim, but never through the
// card; caught in main(), where it ends the program.
#ifndef REVODRIVE_SIM_USER_ERROR_H
#define REVODRIVE_SIM_USER_ERROR_H

#include <stdexcept>

namespace revodrive::sim {

class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The same with printf's conversions.
[[noreturn]] void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace revodrive::sim
#endif
