// SPDX-License-Identifier: GPL-2.0-or-later
//
// DOWNLOAD MICROCODE and its DMA form (ATA8-ACS 7.15, ACS-2 7.13): subcommands 3 and 7.
#include <vector>

#include "sata/drive.h"

namespace revodrive {

namespace {

constexpr uint8_t kSegments = 0x03;
constexpr uint8_t kWhole = 0x07;
// Count of the answer to subcommand 3.
constexpr uint16_t kExpectingMore = 1;
constexpr uint16_t kApplied = 2;

}  // namespace

void Drive::download_microcode(AtaCommand &command, const Request &request) {
  const TaskFile &task = request.task;
  auto blocks = static_cast<uint32_t>(task.count8() | (task.lba & 0xFF) << 8);
  auto offset = static_cast<uint32_t>(task.lba >> 8 & 0xFFFF) * ata::kSectorBytes;
  bool segments = task.feature() == kSegments;
  if ((!segments && task.feature() != kWhole) || blocks == 0 ||
      blocks > Firmware::kMaxBytes / ata::kSectorBytes)
    return fail(command, request, ata::kAbort);
  std::vector<uint8_t> data(size_t{blocks} * ata::kSectorBytes);
  if (command.data->size() < data.size() || !command.data->copy_from_guest(0, data))
    return fail_short(command, request);
  int64_t at_ns =
      wire_.receive(*command.data, request.info.protocol, ata::kSectorBytes, request.ready_ns,
                    static_cast<uint32_t>(data.size()), command.journey);
  auto outcome = segments ? firmware_.segment(offset, data) : firmware_.whole(data);
  if (outcome == Firmware::Outcome::kRefused)
    return fail(command, request, ata::kAbort);
  bool activated = outcome == Firmware::Outcome::kActivated;
  if (activated)
    persist(command);
  uint16_t count = activated ? kApplied : kExpectingMore;
  succeed(command, request, at_ns, 0, segments ? count : 0);
}

}  // namespace revodrive
