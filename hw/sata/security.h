// SPDX-License-Identifier: GPL-2.0-or-later
//
// The Security feature set of a drive (ATA8-ACS 4.20, 7.43 to 7.49): passwords, lock, freeze and
// what an erase does to them. It decides and keeps state; moving data, time and storing are the
// drive's. Each request answers true (done) or false (the command is aborted).
//
// Passwords, level, master password identifier and an erase that was begun outlive a power cycle.
// Lock, freeze and the count of wrong passwords are of the power cycle.
#ifndef REVODRIVE_SATA_SECURITY_H
#define REVODRIVE_SATA_SECURITY_H

#include <array>
#include <cstdint>
#include <span>

#include "revodrive/stream.h"
#include "revodrive/ata.h"

namespace revodrive {

class Security {
 public:
  static constexpr uint8_t kAttempts = 5;
  static constexpr uint16_t kFactoryMasterId = 0xFFFE;
  using Block = std::span<const uint8_t, ata::kSectorBytes>;

  bool enabled() const { return enabled_; }
  bool locked() const { return locked_; }
  bool frozen() const { return frozen_; }
  bool expired() const { return attempts_ == 0; }
  // An erase was begun and has not ended: the data is partly gone.
  bool erasing() const { return erasing_; }
  uint16_t master_id() const { return master_id_; }
  uint16_t identify_word() const;  // IDENTIFY word 128

  // Gates (command_table.cc) have refused what a locked or frozen drive does not take.
  bool set_password(Block block);
  bool unlock(Block block);
  bool disable_password(Block block);
  bool freeze();
  void prepare_erase() { prepared_ = true; }
  // Any command but the erase itself ends the permission.
  void forget_prepared() { prepared_ = false; }
  // True: the erase is allowed and has begun.
  bool begin_erase(Block block);
  // All data is gone: the user password with it.
  void end_erase();
  // The erase ended early. With a user password the drive is locked then, and stays so until
  // another erase has ended.
  void stop_erase();

  // `frozen`: as firmware leaves it behind that freezes each drive it finds.
  void power_on(bool frozen);
  void save(StreamWriter &out) const;
  void load(StreamReader &in);
  void save_persistent(StreamWriter &out) const;
  void load_persistent(StreamReader &in);

 private:
  using Password = std::array<uint8_t, 32>;
  static Password password_of(Block block);
  bool matches(Block block) const;

  Password user_{};
  Password master_{};  // as shipped: 32 zero bytes
  uint16_t master_id_ = kFactoryMasterId;
  bool enabled_ = false;
  bool maximum_ = false;  // level: the master password erases, but does not unlock
  bool erasing_ = false;
  bool locked_ = false;
  bool frozen_ = false;
  bool prepared_ = false;
  uint8_t attempts_ = kAttempts;
};

}  // namespace revodrive
#endif
