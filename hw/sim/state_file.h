// SPDX-License-Identifier: GPL-2.0-or-later
//
// --state: the drives as a run left them, for the next one. A header (what the state is of, so that
// another card is refused by name), then the card's own stream (docs/architecture.md) under zstd.
// Little-endian; the file is replaced whole or not at all.
#ifndef REVODRIVE_SIM_STATE_FILE_H
#define REVODRIVE_SIM_STATE_FILE_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/output_file.h"
#include "sim/simulation.h"

namespace revodrive::sim {

struct SavedState {
  std::string profile;
  uint32_t members = 0;
  uint64_t member_bytes = 0;
  int64_t now_ns = 0;
  std::vector<uint8_t> card;
};

std::string encode_state(const SavedState &state);
// Throws UserError that names the file.
SavedState decode_state(const std::string &bytes, const std::string &path);

// The file of one run. A symbolic link stays one: what it points to is replaced.
class StateFile {
 public:
  // Finds out whether it can be written. Throws UserError.
  StateFile(const std::string &path, OutputFiles &all);
  // False: there is no such file yet. Throws UserError if it is of another card, or damaged.
  bool load(Simulation &simulation) const;
  void store(Simulation &simulation);

 private:
  std::string path_;    // as the user has it
  std::string target_;  // what it is
  bool there_ = false;
  mode_t mode_ = 0;  // of the file, if it is there
  std::unique_ptr<OutputFile> fresh_;
};

}  // namespace revodrive::sim
#endif
