// SPDX-License-Identifier: GPL-2.0-or-later
//
// One member of the card: an SF-2281 SSD as its SATA link shows it. It speaks the ATA command set
// (ATA8-ACS with what ACS-2 added and the drive claims), keeps up to 32 NCQ tags, moves data
// between the initiator's window and its Media, and asks its FlashController how long flash takes.
// The SATA wire is part of it: one Timeline, since the link carries one FIS at a time in either
// direction.
#ifndef REVODRIVE_ATA_DRIVE_H
#define REVODRIVE_ATA_DRIVE_H

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "revodrive/ata_command.h"
#include "revodrive/drive_store.h"
#include "revodrive/flash_controller.h"
#include "revodrive/media.h"
#include "revodrive/profile.h"
#include "revodrive/stream.h"

namespace revodrive {

struct DriveIdentity {
  std::string model;     // printable ASCII, up to 40 characters
  std::string serial;    // up to 20
  std::string firmware;  // up to 8
  uint64_t wwn = 0;      // NAA 5
};

struct DriveOptions {
  bool panicked = false;     // the firmware has crashed (hw/sata/panic.cc)
  bool frozen = false;       // security is frozen at each power-on, as some firmware does
  bool trim_pattern = true;  // trimmed sectors read as a pattern; false: as the backend has them
  FlashPreset preset = FlashPreset::kFresh;  // of a drive that nothing was stored of
  std::vector<rd_extent> image_data = {};    // what the image holds, for FlashPreset::kImage
  MemoryHint memory = {};                    // told of the flash's map
};

class AtaDrive : public AtaTarget {
 public:
  // Size of a drive whose firmware has crashed: the media of one.
  static constexpr uint64_t kPanicSectors = 64;

  // `media` must outlive the drive. `timing` false: finish_ns is the command's issue_ns.
  static std::unique_ptr<AtaDrive> create(const DriveIdentity &identity, const SataProfile &sata,
                                          const FlashProfile &flash, Media &media, bool timing,
                                          const DriveOptions &options = {});

  // Counters by name ("reads", "read_sectors", ...), see docs/counters.md.
  using Visitor = std::function<void(std::string_view name, uint64_t value)>;
  virtual void query(const Visitor &visit) const = 0;

  // Before query(): catches up with what the flash has done by itself until now.
  virtual void idle(int64_t now_ns) = 0;

  // Bookings of the drive's resources are told to the observer (may be null), each under a name
  // that begins with `prefix`.
  virtual void watch(Observer *observer, const std::string &prefix) = 0;

  // Sets a named value of the drive ("smart_life_left"), see docs/device.md. False: there is no
  // such name (*error is set), or the value is not allowed.
  virtual bool set(std::string_view name, uint64_t value, rd_error *error) = 0;

  // A command for this sector comes soon (AtaTarget::expect).
  virtual void expect_sector(uint64_t lba) const = 0;

  // What outlives the power. A new drive is as it left the factory; load_persistent() makes it one
  // that was stored before and now has its power back, and goes before anything else. The store may
  // be null and must outlive the drive or its connection. `now_ns` is when the power came on.
  virtual void connect_store(DriveStore *store) = 0;
  virtual void load_persistent(StreamReader &in) = 0;
  virtual void power_on(int64_t now_ns) = 0;
  virtual void save_persistent(StreamWriter &out, int64_t now_ns) = 0;
  // No command comes for a while (the machine stops): the next save_persistent() may hold what the
  // next write would have to take back.
  virtual void rest() = 0;

  // Everything but commands in flight (see AtaTarget::save_command).
  virtual void save(StreamWriter &out) const = 0;
  virtual void load(StreamReader &in) = 0;
};

}  // namespace revodrive
#endif
