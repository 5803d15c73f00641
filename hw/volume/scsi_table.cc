// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which CDB means what, and which of its bits: what is not in here is refused with a pointer to the
// first bit at fault. REPORT SUPPORTED OPERATION CODES shows this table.
#include "volume/scsi_device.h"

namespace revodrive {

std::span<const ScsiOp> ScsiDevice::operations() {
  using D = ScsiDevice;
  constexpr int kNone = ScsiOp::kNoAction;
  constexpr uint8_t kEvery = ScsiOp::kEveryUnit;
  constexpr uint8_t kQuiet = ScsiOp::kNoAttention;
  constexpr uint8_t kMedium = ScsiOp::kMedium;
  constexpr uint8_t kVolume = ScsiOp::kVolume;
  constexpr uint8_t kMap = ScsiOp::kMap;
  constexpr uint8_t kAway = ScsiOp::kNotErasing;
  // DPO and FUA; BYTCHK. There are no groups, so no group number but 0.
  constexpr uint8_t kDf = 0x18, kBc = 0x12, FF = 0xFF;
  static constexpr ScsiOp kTable[] = {
      {0x00, kNone, 6, kEvery | kMap, &D::test_unit_ready, {}},
      {0x03, kNone, 6, kEvery | kQuiet, &D::request_sense, {0, 0x01, 0, 0, FF}},
      {0x04, kNone, 6, kVolume, &D::erase, {0, 0x38}},
      {0x08, kNone, 6, kMedium, &D::read, {0, 0x1F, FF, FF, FF}},
      {0x0A, kNone, 6, kMedium, &D::write, {0, 0x1F, FF, FF, FF}},
      {0x12, kNone, 6, kEvery | kQuiet, &D::inquiry, {0, 0x01, FF, FF, FF}},
      {0x15, kNone, 6, kAway, &D::mode_select, {0, 0x11, 0, 0, FF}},
      {0x1A, kNone, 6, 0, &D::mode_sense, {0, 0x08, FF, FF, FF}},
      {0x1B, kNone, 6, kAway, &D::start_stop, {0, 0x01, 0, 0, 0x05}},
      {0x25, kNone, 10, kMedium, &D::read_capacity10, {}},
      {0x28, kNone, 10, kMedium, &D::read, {0, kDf, FF, FF, FF, FF, 0, FF, FF}},
      {0x2A, kNone, 10, kMedium, &D::write, {0, kDf, FF, FF, FF, FF, 0, FF, FF}},
      {0x2E, kNone, 10, kMedium, &D::write_and_verify, {0, kBc, FF, FF, FF, FF, 0, FF, FF}},
      {0x2F, kNone, 10, kMedium, &D::verify, {0, kBc, FF, FF, FF, FF, 0, FF, FF}},
      {0x35, kNone, 10, kMedium, &D::synchronize, {0, 0x00, FF, FF, FF, FF, 0, FF, FF}},
      {0x3B, kNone, 10, 0, &D::write_buffer, {0, 0x1F, 0, FF, FF, FF, FF, FF, FF}},
      {0x3C, kNone, 10, 0, &D::read_buffer, {0, 0x1F, 0, FF, FF, FF, FF, FF, FF}},
      {0x41, kNone, 10, kMedium, &D::write_same, {0, 0x08, FF, FF, FF, FF, 0, FF, FF}},
      {0x42, kNone, 10, kMedium, &D::unmap, {0, 0, 0, 0, 0, 0, 0, FF, FF}},
      {0x48, 0x02, 10, kVolume, &D::erase, {0, 0x9F}},
      {0x4D, kNone, 10, 0, &D::log_sense, {0, 0, FF, FF, 0, FF, FF, FF, FF}},
      {0x55, kNone, 10, kAway, &D::mode_select, {0, 0x11, 0, 0, 0, 0, 0, FF, FF}},
      {0x5A, kNone, 10, 0, &D::mode_sense, {0, 0x18, FF, FF, 0, 0, 0, FF, FF}},
      {0x85,
       kNone,
       16,
       kEvery | kAway,
       &D::pass_through,
       {0, 0x1F, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF}},
      {0x88,
       kNone,
       16,
       kMedium,
       &D::read,
       {0, kDf, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF}},
      {0x8A,
       kNone,
       16,
       kMedium,
       &D::write,
       {0, kDf, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF}},
      {0x89,
       kNone,
       16,
       kMedium,
       &D::compare_and_write,
       {0, kDf, FF, FF, FF, FF, FF, FF, FF, FF, 0, 0, 0, FF}},
      {0x8E,
       kNone,
       16,
       kMedium,
       &D::write_and_verify,
       {0, kBc, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF}},
      {0x8F,
       kNone,
       16,
       kMedium,
       &D::verify,
       {0, kBc, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF}},
      {0x91,
       kNone,
       16,
       kMedium,
       &D::synchronize,
       {0, 0x00, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF}},
      {0x93,
       kNone,
       16,
       kMedium,
       &D::write_same,
       {0, 0x09, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF, FF}},
      {0x9E,
       0x10,
       16,
       kMedium,
       &D::read_capacity16,
       {0, 0x1F, 0, 0, 0, 0, 0, 0, 0, 0, FF, FF, FF, FF}},
      {0xA0, kNone, 12, kEvery | kQuiet, &D::report_luns, {0, 0, FF, 0, 0, 0, FF, FF, FF, FF}},
      {0xA1,
       kNone,
       12,
       kEvery | kAway,
       &D::pass_through,
       {0, 0x1F, FF, FF, FF, FF, FF, FF, FF, FF}},
      {0xA3, 0x0C, 12, kEvery, &D::report_operations, {0, 0x1F, 0x87, FF, FF, FF, FF, FF, FF, FF}},
      {0xA3, 0x0D, 12, kEvery, &D::report_functions, {0, 0x1F, 0, 0, 0, 0, FF, FF, FF, FF}},
      {0xA8, kNone, 12, kMedium, &D::read, {0, kDf, FF, FF, FF, FF, FF, FF, FF, FF}},
      {0xAA, kNone, 12, kMedium, &D::write, {0, kDf, FF, FF, FF, FF, FF, FF, FF, FF}},
      {0xAE, kNone, 12, kMedium, &D::write_and_verify, {0, kBc, FF, FF, FF, FF, FF, FF, FF, FF}},
      {0xAF, kNone, 12, kMedium, &D::verify, {0, kBc, FF, FF, FF, FF, FF, FF, FF, FF}},
  };
  return kTable;
}

}  // namespace revodrive
