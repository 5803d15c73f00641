// SPDX-License-Identifier: GPL-2.0-or-later
//
// The identity of a drive whose firmware has crashed (panic-mode=on).
#ifndef REVODRIVE_SATA_PANIC_H
#define REVODRIVE_SATA_PANIC_H

#include <cstdint>

#include "sata/page.h"

namespace revodrive {

// `sata_generation` 1..3.
Page panic_identify_page(uint32_t sata_generation);

}  // namespace revodrive
#endif
