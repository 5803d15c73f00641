// SPDX-License-Identifier: GPL-2.0-or-later
//
// --state: the drives as a run left them, for the next one. A header (what the state is of, so that
// another card is refused by name), then the card's own stream (docs/architecture.md) under zstd.
// Little-endian; the file is replaced whole or not at all.
#ifndef REVODRIVE_SIM_STATE_FILE_H
#define REVODRIVE_SIM_STATE_FILE_H

#include <cstdint>
#include <string>
#include <vector>

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

// False: there is no such file yet. Throws UserError if it is of another card, or damaged.
bool load_state(const std::string &path, Simulation &simulation);
void store_state(const std::string &path, Simulation &simulation);

}  // namespace revodrive::sim
#endif
