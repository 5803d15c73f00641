// SPDX-License-Identifier: GPL-2.0-or-later
//
// libFuzzer's way in; scripts/fuzz builds it.
#include <cstddef>
#include <cstdint>

#include "play.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  revodrive::test::play({bytes, size});
  return 0;
}
