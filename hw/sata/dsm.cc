// SPDX-License-Identifier: GPL-2.0-or-later
//
// DATA SET MANAGEMENT with TRIM (ACS-2 7.10): one block of 64 ranges, each a 48-bit LBA and a
// 16-bit count. All ranges are checked before the first sector is discarded.

#include <utility>

#include "sata/drive.h"

namespace revodrive {

namespace {

constexpr uint16_t kTrim = 1 << 0;
constexpr uint16_t kBlocks = 1;  // IDENTIFY word 105
constexpr size_t kRangeBytes = 8;
constexpr size_t kRanges = ata::kSectorBytes / kRangeBytes;

// The used entries of a payload.
struct TrimList {
  std::array<SectorRange, kRanges> ranges;
  size_t count = 0;
};

SectorRange range_at(std::span<const uint8_t> block, size_t index) {
  uint64_t raw = 0;
  for (size_t i = 0; i < kRangeBytes; i++)
    raw |= uint64_t{block[index * kRangeBytes + i]} << (8 * i);
  return {raw & 0xFFFF'FFFF'FFFF, static_cast<uint32_t>(raw >> 48)};
}

// False: a range leaves the drive; *bad is its LBA. A count of 0 marks an unused entry.
bool parse_ranges(std::span<const uint8_t> block, uint64_t limit, TrimList *list, uint64_t *bad) {
  for (size_t i = 0; i < kRanges; i++) {
    SectorRange range = range_at(block, i);
    if (range.sectors == 0)
      continue;
    if (!range.inside(limit)) {
      *bad = range.lba;
      return false;
    }
    list->ranges[list->count++] = range;
  }
  return true;
}

}  // namespace

void Drive::data_set_management(AtaCommand &command, const Request &request) {
  if (request.task.features != kTrim || request.task.count == 0 || request.task.count > kBlocks)
    return fail(command, request, ata::kAbort);
  std::array<uint8_t, ata::kSectorBytes> block;
  if (command.data->size() < block.size() || !command.data->copy_from_guest(0, block))
    return fail_short(command, request);
  TrimList list;
  uint64_t bad = 0;
  if (!parse_ranges(block, limit(request), &list, &bad))
    return fail(command, request, ata::kIdNotFound, bad);

  counters_[kTrims]++;
  counters_[kTrimRanges] += list.count;

  int64_t at_ns = wire_.receive(*command.data, request.info.protocol, ata::kSectorBytes,
                                request.ready_ns, ata::kSectorBytes, command.journey);
  SectorRange joined;  // neighbours become one discard
  for (const SectorRange &range : std::span(list.ranges).first(list.count)) {
    counters_[kTrimSectors] += range.sectors;
    if (faults())
      faults_.written(range.lba, range.sectors);
    if (options_.trim_pattern)
      trim_map_.mark(range.lba, range.sectors);
    at_ns = flash_.trim(at_ns, range.lba, range.sectors, command.journey);
    if (range.lba != joined.end() && joined.sectors > 0)
      submit(command, RD_BLOCK_DISCARD, std::exchange(joined, {}));
    if (joined.sectors == 0)
      joined.lba = range.lba;
    joined.sectors += range.sectors;
  }
  if (joined.sectors > 0)
    submit(command, RD_BLOCK_DISCARD, joined);
  succeed(command, request, at_ns);
}

}  // namespace revodrive
