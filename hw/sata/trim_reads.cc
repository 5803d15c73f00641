// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a trimmed sector reads as: one fixed pattern until it is written again, as IDENTIFY says
// (deterministic, not zero). The backend has discarded the sector and gives zeroes, or keeps what
// was there if it does not discard; the map of trimmed sectors turns zeroes into the pattern after
// the transfer. Data that the backend does return is never replaced.
//
// The map is also in the persistent store, while no command changes the drive. A bit in there that
// outlives the write which cleared it would hide data, so that write first takes the map out of the
// store, and ends when that is durable. After a crash the map may be lost: then sectors read as the
// backend has them.
#include <algorithm>
#include <cstring>

#include "sata/drive.h"

namespace revodrive {

namespace {

constexpr uint8_t kTrimmedByte = 0xFF;  // assumed: flash without anything in it
constexpr size_t kStoreBytes = 32 << 10;

// A walk over the bytes of a vector, sector by sector; a sector may lie in several pieces.
class SectorWalk {
 public:
  explicit SectorWalk(std::span<const rd_iov> iov) : iov_(iov) {}

  template <typename Function>
  void next(Function &&piece) {
    for (size_t left = ata::kSectorBytes; left > 0 && at_ < iov_.size();) {
      size_t len = std::min(left, iov_[at_].len - within_);
      piece(static_cast<uint8_t *>(iov_[at_].base) + within_, len);
      left -= len;
      within_ += len;
      if (within_ == iov_[at_].len) {
        at_++;
        within_ = 0;
      }
    }
  }

 private:
  std::span<const rd_iov> iov_;
  size_t at_ = 0;
  size_t within_ = 0;
};

bool is_zero(const uint8_t *bytes, size_t len) {
  return std::all_of(bytes, bytes + len, [](uint8_t byte) { return byte == 0; });
}

}  // namespace

// Before the data goes to the backend.
void Drive::note_write(AtaCommand &command, SectorRange range) {
  if (!trim_map_.any(range.lba, range.sectors))
    return;
  trim_map_.clear(range.lba, range.sectors);
  if (!map_stored_)
    return;
  map_open_ = true;
  command.map_generation = map_generation_;
  persist(command);
}

// The data of a read has come.
void Drive::patch_trimmed(const AtaCommand &command) {
  if (!options_.trim_pattern || !trim_map_.any(command.lba, command.sectors))
    return;
  SectorWalk look(command.iov);
  SectorWalk fill(command.iov);
  for (uint64_t lba = command.lba; lba < command.lba + command.sectors; lba++) {
    bool zero = true;
    look.next([&](const uint8_t *bytes, size_t len) { zero = zero && is_zero(bytes, len); });
    bool patch = zero && trim_map_.test(lba);
    counters_[kTrimmedReads] += patch;
    fill.next([&](uint8_t *bytes, size_t len) {
      if (patch)
        std::memset(bytes, kTrimmedByte, len);
    });
  }
}

void Drive::save_trim_map(StreamWriter &out) {
  TrimMap nothing(0);
  if (map_open_) {
    nothing.save_runs(out, kStoreBytes);
    return;
  }
  trim_map_.save_runs(out, kStoreBytes);
  map_stored_ = true;
  map_generation_++;
}

void Drive::load_trim_map(StreamReader &in) {
  trim_map_.load_runs(in);
  map_open_ = false;
  map_stored_ = true;
  map_generation_++;
}

}  // namespace revodrive
