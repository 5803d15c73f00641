// SPDX-License-Identifier: GPL-2.0-or-later
//
// The queued commands of a drive: which command has which tag, and what an error does to all of
// them (Serial ATA 3.0, 13.6.5 and log 10h, ATA8-ACS A.7). After stop() every outstanding command
// is aborted and new ones are refused until resume(). The queue owns no command; each leaves by
// remove().
#ifndef REVODRIVE_SATA_NCQ_H
#define REVODRIVE_SATA_NCQ_H

#include <array>
#include <cstdint>

#include "revodrive/ata_command.h"
#include "revodrive/stream.h"
#include "sata/fis.h"
#include "sata/page.h"

namespace revodrive {

struct NcqError {
  bool queued = false;  // false: a command that was not queued came in between
  uint8_t tag = 0;
  uint8_t status = 0;
  uint8_t error = 0;
  Outputs outputs;
};

class NcqQueue {
 public:
  static constexpr unsigned kTags = 32;

  bool busy(uint8_t tag) const { return commands_[tag] != nullptr; }
  // There are commands that an error could still abort.
  bool live() const { return (used_ & ~aborted_) != 0; }
  bool empty() const { return used_ == 0; }
  bool stopped() const { return stopped_; }

  // The tag must not be busy.
  void add(uint8_t tag, AtaCommand &command);
  void remove(const AtaCommand &command);  // of no effect for a command that is not here
  bool holds(const AtaCommand &command) const;
  bool aborted(const AtaCommand &command) const;
  // An aborted command whose backend transfers have ended, or null.
  AtaCommand *idle_aborted() const;

  void stop(const NcqError &error);
  void resume() { stopped_ = false; }  // the error page stays readable
  Page error_page() const;

  // Power-on or link reset; the commands are gone already.
  void reset();
  void save(StreamWriter &out) const;  // without commands
  void load(StreamReader &in);
  void mark_aborted(uint8_t tag) { aborted_ |= 1u << tag; }

 private:
  uint32_t bit_of(const AtaCommand &command) const;

  std::array<AtaCommand *, kTags> commands_{};
  uint32_t used_ = 0;
  uint32_t aborted_ = 0;
  bool stopped_ = false;
  NcqError error_;
};

}  // namespace revodrive
#endif
