// SPDX-License-Identifier: GPL-2.0-or-later
//
// Commands that read, write, verify or size the medium (SBC-3 5.7 to 5.45).
#include <algorithm>
#include <bit>

#include "revodrive/ata.h"
#include "volume/scsi_device.h"

namespace revodrive {

namespace {

constexpr uint8_t kForceUnitAccess = 0x08;
constexpr uint8_t kByteCheck = 0x02;

}  // namespace

ScsiDevice::Extent ScsiDevice::extent_of(const ScsiTask &task) {
  switch (task.operation->bytes) {
    case 6: {
      auto blocks = static_cast<uint32_t>(task.cdb(4));
      return {task.be(1, 3) & 0x1FFFFF, blocks ? blocks : 256, 4};
    }
    case 10:
      return {task.be(2, 4), static_cast<uint32_t>(task.be(7, 2)), 7};
    case 12:
      return {task.be(2, 4), static_cast<uint32_t>(task.be(6, 4)), 6};
    default:
      return {task.be(2, 8), static_cast<uint32_t>(task.be(10, 4)), 10};
  }
}

// False: the command is settled.
bool ScsiDevice::check_extent(ScsiTask &task, const Extent &extent, uint32_t most) {
  uint64_t sectors = volume_.sectors();
  if (extent.lba > sectors || extent.blocks > sectors - extent.lba) {
    check(task, {scsi::kIllegalRequest, scsi::kOutOfRange, {}, {}});
    return false;
  }
  if (extent.blocks > most) {
    bad_field(task, extent.length_byte);
    return false;
  }
  task.lba = extent.lba;
  task.sectors = extent.blocks;
  return true;
}

// False: the guest has less memory for it than the command says, and it is settled.
bool ScsiDevice::needs_data(ScsiTask &task, uint32_t blocks) {
  if (task.command->data->size() >= uint64_t{blocks} * kBlockBytes)
    return true;
  check(task, {scsi::kAbortedCommand, scsi::kDataPhase, {}, {}});
  return false;
}

void ScsiDevice::read(ScsiTask &task) {
  Extent extent = extent_of(task);
  if (!check_extent(task, extent, kMaxBlocks) || !needs_data(task, extent.blocks))
    return;
  if (extent.blocks == 0)
    return good(task);
  task.op = VolumeOp::kRead;
  task.data = task.command->data;
  submit(task, &ScsiDevice::end_volume);
}

// Without a write cache every write is on stable storage when it ends.
void ScsiDevice::write(ScsiTask &task) {
  Extent extent = extent_of(task);
  if (!check_extent(task, extent, kMaxBlocks) || !needs_data(task, extent.blocks))
    return;
  if (extent.blocks == 0)
    return good(task);
  bool forced = task.operation->bytes > 6 && (task.cdb(1) & kForceUnitAccess);
  task.op = VolumeOp::kWrite;
  task.stable = forced || !write_cache_;
  if (claim(task, task.lba, task.sectors, ScsiTask::Claim::kShared, &ScsiDevice::start_write))
    start_write(task);
}

void ScsiDevice::start_write(ScsiTask &task) {
  task.data = task.command->data;
  bool verifies = task.operation->handler == &ScsiDevice::write_and_verify;
  submit(task, verifies ? &ScsiDevice::written_for_verify : &ScsiDevice::end_volume);
}

// SBC-3 5.2: the blocks are compared with the first half of the data, and if they are equal, the
// second half is written.
void ScsiDevice::compare_and_write(ScsiTask &task) {
  constexpr uint16_t kLengthByte = 13;
  Extent extent{task.be(2, 8), task.cdb(kLengthByte), kLengthByte};
  if (!check_extent(task, extent, kMaxCompareBlocks) || !needs_data(task, 2 * extent.blocks))
    return;
  if (extent.blocks == 0)
    return good(task);
  if (claim(task, task.lba, task.sectors, ScsiTask::Claim::kAlone, &ScsiDevice::start_compare))
    start_compare(task);
}

void ScsiDevice::start_compare(ScsiTask &task) {
  task.buffer.bytes.resize(task.sectors * kBlockBytes);
  task.op = VolumeOp::kRead;
  task.data = &task.buffer;
  submit(task, &ScsiDevice::compared);
}

// A difference is told by its byte.
void ScsiDevice::compared(ScsiTask &task) {
  if (task.failed())
    return fail_volume(task);
  std::vector<uint8_t> &bytes = task.buffer.bytes;
  Bytes wanted(2 * bytes.size());
  if (!fetch(task, wanted))
    return;
  auto [at, unused] = std::mismatch(bytes.begin(), bytes.end(), wanted.begin());
  if (at != bytes.end()) {
    auto offset = static_cast<uint64_t>(at - bytes.begin());
    return check(task, {scsi::kMiscompare, scsi::kMismatch, offset, {}});
  }
  std::copy(wanted.begin() + static_cast<ptrdiff_t>(bytes.size()), wanted.end(), bytes.begin());
  task.op = VolumeOp::kWrite;
  task.stable = (task.cdb(1) & kForceUnitAccess) || !write_cache_;
  submit(task, &ScsiDevice::end_volume);
}

void ScsiDevice::verify(ScsiTask &task) {
  Extent extent = extent_of(task);
  bool with_data = task.cdb(1) & kByteCheck;
  if (!check_extent(task, extent, with_data ? kMaxBlocks : UINT32_MAX))
    return;
  if (with_data && !needs_data(task, extent.blocks))
    return;
  if (extent.blocks == 0)
    return good(task);
  task.comparison = with_data;
  start_verify(task);
}

void ScsiDevice::write_and_verify(ScsiTask &task) {
  Extent extent = extent_of(task);
  if (!check_extent(task, extent, kMaxBlocks) || !needs_data(task, extent.blocks))
    return;
  if (extent.blocks == 0)
    return good(task);
  task.op = VolumeOp::kWrite;
  task.stable = true;
  task.comparison = task.cdb(1) & kByteCheck ? 1 : 0;
  if (claim(task, task.lba, task.sectors, ScsiTask::Claim::kShared, &ScsiDevice::start_write))
    start_write(task);
}

void ScsiDevice::written_for_verify(ScsiTask &task) {
  if (task.failed())
    return fail_volume(task);
  start_verify(task);
}

// With data: the medium is read into a buffer of our own, and compared there.
void ScsiDevice::start_verify(ScsiTask &task) {
  if (task.comparison == 0) {
    task.op = VolumeOp::kVerify;
    task.data = nullptr;
    return submit(task, &ScsiDevice::end_volume);
  }
  task.buffer.bytes.resize(task.sectors * kBlockBytes);
  task.op = VolumeOp::kRead;
  task.data = &task.buffer;
  submit(task, &ScsiDevice::compare);
}

void ScsiDevice::compare(ScsiTask &task) {
  if (task.failed())
    return fail_volume(task);
  std::array<uint8_t, kBlockBytes> block;
  DataWindow &window = *task.command->data;
  auto bytes = static_cast<uint32_t>(task.sectors * kBlockBytes);
  task.ready_ns = window.reserve(DataDirection::kFromGuest, task.ready_ns, bytes).end_ns;
  for (uint32_t at = 0; at < bytes; at += kBlockBytes) {
    if (!window.copy_from_guest(at, block))
      return check(task, {scsi::kAbortedCommand, scsi::kDataPhase, {}, {}});
    if (!std::equal(block.begin(), block.end(), task.buffer.bytes.begin() + at))
      return check(task, {scsi::kMiscompare, scsi::kMismatch, task.lba + at / kBlockBytes, {}});
  }
  good(task);
}

// Whatever range is named: the volume can only flush all it has.
void ScsiDevice::synchronize(ScsiTask &task) {
  Extent extent = extent_of(task);
  uint64_t sectors = volume_.sectors();
  if (extent.lba > sectors || extent.blocks > sectors - extent.lba)
    return check(task, {scsi::kIllegalRequest, scsi::kOutOfRange, {}, {}});
  task.op = VolumeOp::kFlush;
  submit(task, &ScsiDevice::end_volume);
}

void ScsiDevice::read_capacity10(ScsiTask &task) {
  Bytes bytes(8);
  put_be(bytes, 0, 4, std::min<uint64_t>(volume_.sectors() - 1, UINT32_MAX));
  put_be(bytes, 4, 4, kBlockBytes);
  reply(task, bytes, bytes.size());
}

// LBPRZ is promised only where the volume itself makes the zeroes; else the members decide.
void ScsiDevice::read_capacity16(ScsiTask &task) {
  constexpr uint8_t kProvisioned = 0x80, kReadsZeroes = 0x40;  // LBPME, LBPRZ
  Bytes bytes(32);
  put_be(bytes, 0, 8, volume_.sectors() - 1);
  put_be(bytes, 8, 4, kBlockBytes);
  bytes[13] = static_cast<uint8_t>(std::countr_zero(volume_.map_unit_sectors()));
  bytes[14] = kProvisioned | (volume_.zeroes() ? kReadsZeroes : 0);
  reply(task, bytes, task.be(10, 4));
}

}  // namespace revodrive
