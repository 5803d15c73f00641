// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/settings.h"

#include <bit>

#include "revodrive/ata.h"

namespace revodrive {

// ATA8-ACS 7.48.3: PIO default 00h and 01h, PIO 0-4 from 08h, multiword DMA 0-2 from 20h, Ultra DMA
// 0-6 from 40h.
bool Settings::known_mode(uint8_t mode) {
  return mode <= 0x01 || (mode >= 0x08 && mode <= 0x0C) || (mode >= 0x20 && mode <= 0x22) ||
         (mode >= 0x40 && mode <= 0x46);
}

bool Settings::set_feature(uint8_t feature, uint16_t count) {
  uint8_t value = static_cast<uint8_t>(count);
  switch (feature) {
    case ata::kEnableWriteCache:
    case ata::kDisableWriteCache:
      write_cache = feature == ata::kEnableWriteCache;
      return true;
    case ata::kEnableLookAhead:
    case ata::kDisableLookAhead:
      look_ahead = feature == ata::kEnableLookAhead;
      return true;
    case ata::kSetTransferMode:
      if (!known_mode(value))
        return false;
      // PIO modes leave the DMA mode that IDENTIFY shows as it is.
      if (value >= 0x20)
        transfer_mode = value;
      return true;
    case ata::kEnableApm:
      if (value == 0x00 || value == 0xFF)
        return false;
      apm = true;
      apm_level = value;
      return true;
    case ata::kDisableApm:
      apm = false;
      return true;
    case ata::kEnableSataFeature:
    case ata::kDisableSataFeature:
      if (count != ata::kSataSettingsPreservation)
        return false;
      preserved = feature == ata::kEnableSataFeature;
      return true;
    case ata::kKeepSettings:
    case ata::kRevertSettings:
      return true;  // about a soft reset, which keeps the settings either way
    default:
      return false;
  }
}

bool Settings::set_multiple(uint8_t sectors) {
  if (sectors > kMaxMultiple || (sectors != 0 && !std::has_single_bit(sectors)))
    return false;
  multiple = sectors;
  return true;
}

void Settings::save(StreamWriter &out) const {
  out.section("SETT");
  out.put(write_cache);
  out.put(look_ahead);
  out.put(apm);
  out.put(apm_level);
  out.put(transfer_mode);
  out.put(multiple);
  out.put(preserved);
}

void Settings::load(StreamReader &in) {
  Settings loaded;
  in.section("SETT");
  in.get(loaded.write_cache);
  in.get(loaded.look_ahead);
  in.get(loaded.apm);
  in.get(loaded.apm_level);
  in.get(loaded.transfer_mode);
  auto sectors = in.get<uint8_t>();
  in.get(loaded.preserved);
  bool sane = loaded.transfer_mode >= 0x20 && known_mode(loaded.transfer_mode) &&
              loaded.apm_level != 0 && loaded.apm_level != 0xFF && loaded.set_multiple(sectors);
  if (!sane)
    in.fail();
  if (in.ok())
    *this = loaded;
}

}  // namespace revodrive
