// SPDX-License-Identifier: GPL-2.0-or-later
//
// The Host Protected Area of a drive with its password extension (ATA8-ACS 4.11, 7.33, 7.34, 7.50
// to 7.52): how many of the native sectors the host reaches. SET MAX ADDRESS is taken only right
// after the READ NATIVE MAX ADDRESS of the same form; the drive reports each command it sees.
//
// A limit that was set as non-volatile outlives a power cycle, all else is of the power cycle.
#ifndef REVODRIVE_SATA_HPA_H
#define REVODRIVE_SATA_HPA_H

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "revodrive/stream.h"
#include "revodrive/ata.h"

namespace revodrive {

class Hpa {
 public:
  enum class Form : uint8_t { kNone, kShort, kExt };
  enum class Outcome { kDone, kAborted, kIdNotFound };
  using Block = std::span<const uint8_t, ata::kSectorBytes>;

  explicit Hpa(uint64_t native_sectors) : native_(native_sectors), sectors_(native_sectors) {}

  uint64_t native_sectors() const { return native_; }
  uint64_t sectors() const { return sectors_; }  // the host reaches
  bool has_password() const { return has_password_; }

  // The permission that READ NATIVE MAX ADDRESS gives to the command right behind it.
  void allow(Form form) { allowed_ = form; }
  Form take_allowed() { return std::exchange(allowed_, Form::kNone); }

  // `allowed`: what take_allowed() said when the command came.
  Outcome set_max(Form form, Form allowed, uint64_t max_lba, bool keep);
  bool set_password(Block block);
  bool lock();
  bool unlock(Block block);
  bool freeze();

  void power_on();
  void save(StreamWriter &out) const;
  void load(StreamReader &in);
  void save_persistent(StreamWriter &out) const;
  void load_persistent(StreamReader &in);

 private:
  static constexpr uint8_t kAttempts = 5;
  using Password = std::array<uint8_t, 32>;
  static Password password_of(Block block);

  uint64_t native_;
  uint64_t sectors_;
  uint64_t kept_ = 0;       // the non-volatile limit in sectors; 0: none
  bool kept_once_ = false;  // a non-volatile limit was set since power-on
  Form set_by_ = Form::kNone;
  Form allowed_ = Form::kNone;
  Password password_{};
  bool has_password_ = false;
  bool locked_ = false;
  bool frozen_ = false;
  uint8_t attempts_ = kAttempts;
};

}  // namespace revodrive
#endif
