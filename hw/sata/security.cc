// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/security.h"

#include <algorithm>

namespace revodrive {

namespace {

// Word 0 of each block that carries a password (ATA8-ACS tables of 7.44, 7.45, 7.48, 7.49).
constexpr uint8_t kMaster = 1 << 0;        // byte 0: which password
constexpr uint8_t kLevelMaximum = 1 << 0;  // byte 1, SET PASSWORD
constexpr size_t kPasswordAt = 2;
constexpr size_t kMasterIdAt = 34;  // word 17

bool names_master(Security::Block block) {
  return (block[0] & kMaster) != 0;
}

}  // namespace

Security::Password Security::password_of(Block block) {
  Password password;
  std::copy_n(block.begin() + kPasswordAt, password.size(), password.begin());
  return password;
}

uint16_t Security::identify_word() const {
  constexpr uint16_t kSupported = 1 << 0;
  constexpr uint16_t kEnabled = 1 << 1;
  constexpr uint16_t kLocked = 1 << 2;
  constexpr uint16_t kFrozen = 1 << 3;
  constexpr uint16_t kExpired = 1 << 4;
  constexpr uint16_t kEnhancedErase = 1 << 5;
  constexpr uint16_t kMaximum = 1 << 8;
  return static_cast<uint16_t>(kSupported | kEnhancedErase | (enabled_ ? kEnabled : 0) |
                               (locked_ ? kLocked : 0) | (frozen_ ? kFrozen : 0) |
                               (expired() ? kExpired : 0) | (maximum_ ? kMaximum : 0));
}

// The master password is there without being set; a user password exists only while enabled.
bool Security::matches(Block block) const {
  if (names_master(block))
    return password_of(block) == master_;
  return enabled_ && password_of(block) == user_;
}

bool Security::set_password(Block block) {
  if (names_master(block)) {
    uint16_t id = static_cast<uint16_t>(block[kMasterIdAt] | block[kMasterIdAt + 1] << 8);
    master_ = password_of(block);
    if (id != 0x0000 && id != 0xFFFF)
      master_id_ = id;
    return true;
  }
  user_ = password_of(block);
  maximum_ = (block[1] & kLevelMaximum) != 0;
  enabled_ = true;
  return true;
}

bool Security::unlock(Block block) {
  if (erasing_ || (locked_ && expired()))
    return false;
  bool barred = names_master(block) && maximum_;
  if (!barred && matches(block)) {
    locked_ = false;
    return true;
  }
  if (locked_)
    attempts_--;
  return false;
}

bool Security::disable_password(Block block) {
  bool barred = names_master(block) && maximum_;
  if (barred || !matches(block))
    return false;
  enabled_ = maximum_ = false;
  user_ = {};
  return true;
}

bool Security::freeze() {
  frozen_ = true;
  return true;
}

bool Security::begin_erase(Block block) {
  bool allowed = prepared_ && !(locked_ && expired()) && matches(block);
  prepared_ = allowed;  // a command that is started again after a load finds it set
  erasing_ |= allowed;
  return allowed;
}

void Security::stop_erase() {
  prepared_ = false;
  locked_ = enabled_;
}

void Security::end_erase() {
  prepared_ = erasing_ = false;
  enabled_ = maximum_ = locked_ = false;
  user_ = {};
  attempts_ = kAttempts;
}

void Security::power_on(bool frozen) {
  locked_ = enabled_;
  frozen_ = frozen;
  prepared_ = false;
  attempts_ = kAttempts;
}

void Security::save_persistent(StreamWriter &out) const {
  out.put(enabled_);
  out.put(maximum_);
  out.put(erasing_);
  out.put(master_id_);
  out.put_bytes(user_);
  out.put_bytes(master_);
}

void Security::load_persistent(StreamReader &in) {
  Security loaded;
  in.get(loaded.enabled_);
  in.get(loaded.maximum_);
  in.get(loaded.erasing_);
  in.get(loaded.master_id_);
  in.get_bytes(loaded.user_);
  in.get_bytes(loaded.master_);
  if (loaded.maximum_ && !loaded.enabled_)
    in.fail();
  if (in.ok())
    *this = loaded;
}

void Security::save(StreamWriter &out) const {
  out.section("SECU");
  save_persistent(out);
  out.put(locked_);
  out.put(frozen_);
  out.put(prepared_);
  out.put(attempts_);
}

void Security::load(StreamReader &in) {
  in.section("SECU");
  load_persistent(in);
  in.get(locked_);
  in.get(frozen_);
  in.get(prepared_);
  in.get(attempts_);
  if (attempts_ > kAttempts || (locked_ && !enabled_))
    in.fail();
  if (!in.ok())
    *this = {};
}

}  // namespace revodrive
