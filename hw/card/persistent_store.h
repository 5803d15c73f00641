// SPDX-License-Identifier: GPL-2.0-or-later
//
// What outlives the power of the card's members, by serial number: of drives that are plugged in
// and of drives that were. It is handed to the host as one block of bytes (format: docs/smart.md)
// and comes back from there when the card is built.
#ifndef REVODRIVE_CARD_PERSISTENT_STORE_H
#define REVODRIVE_CARD_PERSISTENT_STORE_H

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "revodrive/host.h"
#include "revodrive/stream.h"

namespace revodrive {

class PersistentStore {
 public:
  // False with a message: not a store, or of an unknown version.
  bool decode(std::span<const uint8_t> bytes, rd_error *error);
  std::vector<uint8_t> encode() const;

  // Null: nothing is known of that drive.
  const std::vector<uint8_t> *find(const std::string &serial) const;
  void put(const std::string &serial, std::vector<uint8_t> bytes);

 private:
  static constexpr uint32_t kVersion = 1;
  // Drives that come and go under ever new names must not fill the host's memory.
  static constexpr size_t kMaxDrives = 256;

  std::map<std::string, std::vector<uint8_t>> drives_;
};

}  // namespace revodrive
#endif
