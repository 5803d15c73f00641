// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where the bytes of a target lie on the members: a single SSD, a RAID 0 of all, or (dispatch) each
// request whole on the member that has least to do. Turns a request into commands for members.
#ifndef REVODRIVE_SIM_PLACEMENT_H
#define REVODRIVE_SIM_PLACEMENT_H

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/hba_driver.h"
#include "sim/io_request.h"

namespace revodrive::sim {

// What the members look like to a placement.
struct Members {
  unsigned count = 0;
  uint64_t bytes = 0;                   // of each
  uint32_t max_command_bytes = 0;       // the longest read or write
  const uint32_t *in_flight = nullptr;  // commands of each member, running or waiting
  uint64_t volume_bytes = 0;            // of the card's own volume, 0: there is none
};

// The card makes the volume itself (mode=vca): "vca-stripe", "vca-dispatch", with a chunk or not.
struct CardVolume {
  rd_policy policy = RD_POLICY_STRIPE;
  uint32_t chunk_bytes = 0;  // 0: the card's default

  // Nothing: the text does not ask for one. Throws UserError.
  static std::optional<CardVolume> parse(std::string_view text);
};

class Placement {
 public:
  virtual ~Placement() = default;
  virtual uint64_t bytes() const = 0;
  // Appends the commands of a request that lies inside bytes(). Tags are not set.
  virtual void place(const IoRequest &io, std::vector<AtaRequest> &out) = 0;
  // Where this byte lies, if that is known before the request comes.
  struct Sector {
    unsigned port = 0;
    uint64_t lba = 0;
  };
  virtual std::optional<Sector> sector(uint64_t) const { return {}; }
  // All commands of this request have come back.
  virtual void settled(const IoRequest &) {}

  static std::unique_ptr<Placement> single(const Members &members, unsigned port);
  // `text`: "stripe", "stripe:64k", "dispatch", "vca-stripe". Throws UserError.
  static std::unique_ptr<Placement> volume(const Members &members, std::string_view text);
};

}  // namespace revodrive::sim
#endif
