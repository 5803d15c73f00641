// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the host can set in a drive by SET FEATURES and SET MULTIPLE MODE, with the power-on values
// that reports of the real drives show (write cache on, look-ahead off, APM 254, UDMA/133).
#ifndef REVODRIVE_SATA_SETTINGS_H
#define REVODRIVE_SATA_SETTINGS_H

#include <cstdint>

#include "revodrive/stream.h"

namespace revodrive {

struct Settings {
  static constexpr uint8_t kMaxMultiple = 16;

  bool write_cache = true;
  bool look_ahead = false;
  bool apm = true;
  uint8_t apm_level = 254;
  uint8_t transfer_mode = 0x46;  // as in SET FEATURES 03h: UDMA mode 6
  uint8_t multiple = 1;          // sectors per READ/WRITE MULTIPLE block; 0: those commands abort
  bool preserved = true;         // Serial ATA software settings preservation: survive a COMRESET

  // SET FEATURES, but for what needs more than a setting. False: abort.
  bool set_feature(uint8_t feature, uint16_t count);
  bool set_multiple(uint8_t sectors);

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  static bool known_mode(uint8_t mode);
};

}  // namespace revodrive
#endif
