// SPDX-License-Identifier: GPL-2.0-or-later
//
// Placement by load, as OCZ described its volume: a write goes whole to the member with the fewest
// commands, a read to where its data was written. The map (4 bytes a granule of the target, touched
// as it is written) is the host's; it costs no time. Also the pieces that placements share.
#ifndef REVODRIVE_SIM_DISPATCH_H
#define REVODRIVE_SIM_DISPATCH_H

#include <memory>
#include <vector>

#include "sim/placement.h"

namespace revodrive::sim {

constexpr uint64_t kDispatchGranule = 4096;

std::unique_ptr<Placement> dispatch(const Members &members, uint32_t granule);

// A command of the request's kind for bytes at `start` of a member; without data.
AtaRequest command_of(const IoRequest &io, unsigned port, uint64_t start, uint64_t bytes);
void append_flush(unsigned port, std::vector<AtaRequest> &out);
void append_flushes(const Members &members, std::vector<AtaRequest> &out);
// The commands for one contiguous range of one member.
void append_range(const Members &members, const IoRequest &io, unsigned port, uint64_t start,
                  uint64_t bytes, std::vector<AtaRequest> &out);

}  // namespace revodrive::sim
#endif
