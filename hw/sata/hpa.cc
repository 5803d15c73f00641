// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/hpa.h"

#include <algorithm>

namespace revodrive {

Hpa::Password Hpa::password_of(Block block) {
  constexpr size_t kPasswordAt = 2;
  Password password;
  std::copy_n(block.begin() + kPasswordAt, password.size(), password.begin());
  return password;
}

// A limit set by the long form is not for the short one, which may be unable to name it; and one
// non-volatile change is all that a power cycle takes (ATA8-ACS 7.50.2).
Hpa::Outcome Hpa::set_max(Form form, Form allowed, uint64_t max_lba, bool keep) {
  if (locked_ || frozen_ || allowed != form || max_lba >= native_)
    return Outcome::kAborted;
  if (form == Form::kShort && set_by_ == Form::kExt)
    return Outcome::kAborted;
  if (keep && kept_once_)
    return Outcome::kIdNotFound;
  sectors_ = max_lba + 1;
  set_by_ = sectors_ == native_ ? Form::kNone : form;
  if (keep) {
    kept_ = sectors_ == native_ ? 0 : sectors_;
    kept_once_ = true;
  }
  return Outcome::kDone;
}

bool Hpa::set_password(Block block) {
  if (locked_ || frozen_)
    return false;
  password_ = password_of(block);
  has_password_ = true;
  return true;
}

bool Hpa::lock() {
  if (!has_password_ || frozen_)
    return false;
  locked_ = true;
  return true;
}

bool Hpa::unlock(Block block) {
  if (!locked_ || frozen_ || attempts_ == 0)
    return false;
  if (password_of(block) != password_) {
    attempts_--;
    return false;
  }
  locked_ = false;
  attempts_ = kAttempts;
  return true;
}

bool Hpa::freeze() {
  if (!has_password_ || locked_)
    return false;
  frozen_ = true;
  return true;
}

void Hpa::power_on() {
  uint64_t native = native_;
  uint64_t kept = kept_;
  *this = Hpa(native);
  kept_ = kept;
  if (kept_ != 0)
    sectors_ = kept_;
}

void Hpa::save_persistent(StreamWriter &out) const {
  out.put(kept_);
}

void Hpa::load_persistent(StreamReader &in) {
  auto kept = in.get<uint64_t>();
  if (kept >= native_)
    kept = 0;  // the drive has another size now
  if (!in.ok())
    return;
  kept_ = kept;
  sectors_ = kept_ != 0 ? kept_ : native_;
}

void Hpa::save(StreamWriter &out) const {
  out.section("HPA ");
  out.put(sectors_);
  out.put(kept_);
  out.put(kept_once_);
  out.put(set_by_);
  out.put(allowed_);
  out.put_bytes(password_);
  out.put(has_password_);
  out.put(locked_);
  out.put(frozen_);
  out.put(attempts_);
}

void Hpa::load(StreamReader &in) {
  Hpa loaded(native_);
  in.section("HPA ");
  in.get(loaded.sectors_);
  in.get(loaded.kept_);
  in.get(loaded.kept_once_);
  in.get(loaded.set_by_);
  in.get(loaded.allowed_);
  in.get_bytes(loaded.password_);
  in.get(loaded.has_password_);
  in.get(loaded.locked_);
  in.get(loaded.frozen_);
  in.get(loaded.attempts_);
  bool sane = loaded.sectors_ >= 1 && loaded.sectors_ <= native_ && loaded.kept_ < native_ &&
              loaded.set_by_ <= Form::kExt && loaded.allowed_ <= Form::kExt &&
              loaded.attempts_ <= kAttempts;
  if (!sane)
    in.fail();
  if (in.ok())
    *this = loaded;
}

}  // namespace revodrive
