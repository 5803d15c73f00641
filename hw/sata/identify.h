// SPDX-License-Identifier: GPL-2.0-or-later
//
// The 512 bytes of IDENTIFY DEVICE (ATA8-ACS 7.16, ACS-2 7.17 for TRIM). It claims what the drive
// does and nothing else: a host believes every bit.
#ifndef REVODRIVE_SATA_IDENTIFY_H
#define REVODRIVE_SATA_IDENTIFY_H

#include <cstdint>
#include <string>

#include "revodrive/ata_drive.h"
#include "sata/page.h"
#include "sata/security.h"
#include "sata/settings.h"

namespace revodrive {

struct IdentifyFacts {
  const DriveIdentity &identity;
  const std::string &firmware;  // the revision in force
  const Settings &settings;
  uint64_t sectors;
  uint32_t sata_generation;  // 1..3
  bool smart_enabled;
  const Security &security;
  bool max_address_password;
};

Page identify_page(const IdentifyFacts &facts);

}  // namespace revodrive
#endif
