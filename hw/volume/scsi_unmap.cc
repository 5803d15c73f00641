// SPDX-License-Identifier: GPL-2.0-or-later
//
// UNMAP and WRITE SAME (SBC-3 5.28, 5.42, 5.43): ranges go to the members as TRIM, sector by sector
// as they were asked for; one block written over and over goes as writes.
#include <algorithm>

#include "volume/scsi_device.h"

namespace revodrive {

namespace {

constexpr size_t kHeaderBytes = 8;
constexpr size_t kRangeBytes = 16;
constexpr uint8_t kUnmapBit = 0x08;
constexpr uint8_t kNoDataBit = 0x01;  // NDOB, WRITE SAME (16) only

uint64_t load_be(std::span<const uint8_t> bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; i++)
    value = value << 8 | bytes[at + i];
  return value;
}

}  // namespace

void ScsiDevice::unmap(ScsiTask &task) {
  auto length = static_cast<size_t>(task.be(7, 2));
  if (length == 0)
    return good(task);
  if (length < kHeaderBytes)
    return check(task, {scsi::kIllegalRequest, scsi::kListLength, {}, {}});
  std::vector<uint8_t> &list = task.buffer.bytes;
  list.resize(length);
  if (!fetch(task, list))
    return;
  size_t ranges = std::min(load_be(list, 2, 2), uint64_t{length - kHeaderBytes}) / kRangeBytes;
  if (ranges > kMaxUnmapRanges)
    return bad_parameter(task, 2);
  uint64_t total = 0;
  for (size_t i = 0; i < ranges; i++) {
    size_t at = kHeaderBytes + i * kRangeBytes;
    uint64_t lba = load_be(list, at, 8), blocks = load_be(list, at + 8, 4);
    if (lba > volume_.sectors() || blocks > volume_.sectors() - lba)
      return check(task, {scsi::kIllegalRequest, scsi::kOutOfRange, {}, {}});
    total += blocks;
    if (total > kMaxUnmapBlocks)
      return bad_parameter(task, static_cast<uint16_t>(at + 8));
  }
  list.resize(kHeaderBytes + ranges * kRangeBytes);
  task.op = VolumeOp::kTrim;
  task.position = kHeaderBytes;
  uint64_t all = volume_.sectors();
  if (claim(task, 0, all, ScsiTask::Claim::kShared, &ScsiDevice::unmap_next))
    unmap_next(task);
}

// One range after the other.
void ScsiDevice::unmap_next(ScsiTask &task) {
  if (task.failed())
    return fail_volume(task);
  const std::vector<uint8_t> &list = task.buffer.bytes;
  while (task.position < list.size()) {
    task.lba = load_be(list, task.position, 8);
    task.sectors = load_be(list, task.position + 8, 4);
    task.position += kRangeBytes;
    if (task.sectors > 0)
      return submit(task, &ScsiDevice::unmap_next);
  }
  good(task);
}

void ScsiDevice::write_same(ScsiTask &task) {
  Extent extent = extent_of(task);
  if (extent.blocks == 0)
    return bad_field(task, extent.length_byte);  // WSNZ: there is no "up to the end"
  bool no_data = task.operation->bytes == 16 && (task.cdb(1) & kNoDataBit);
  std::array<uint8_t, kBlockBytes> block{};
  if (!check_extent(task, extent, kMaxSameBlocks) || (!no_data && !fetch(task, block)))
    return;
  task.op = task.cdb(1) & kUnmapBit ? VolumeOp::kTrim : VolumeOp::kWrite;
  if (task.op == VolumeOp::kWrite)
    task.pattern.fill(block, std::min(extent.blocks, kMaxBlocks) * kBlockBytes);
  if (claim(task, task.lba, task.sectors, ScsiTask::Claim::kShared, &ScsiDevice::start_same))
    start_same(task);
}

void ScsiDevice::start_same(ScsiTask &task) {
  if (task.op == VolumeOp::kTrim)
    return submit(task, &ScsiDevice::end_volume);
  task.stable = !write_cache_;
  task.data = &task.pattern;
  task.sectors = 0;
  write_same_next(task);
}

// In steps no longer than a write can be.
void ScsiDevice::write_same_next(ScsiTask &task) {
  if (task.failed())
    return fail_volume(task);
  task.lba += task.sectors;
  if (task.lba == task.claim_end)
    return good(task);
  task.sectors = std::min<uint64_t>(task.claim_end - task.lba, kMaxBlocks);
  submit(task, &ScsiDevice::write_same_next);
}

}  // namespace revodrive
