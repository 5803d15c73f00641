// SPDX-License-Identifier: GPL-2.0-or-later
//
// MODE SENSE and MODE SELECT, 6 and 10 (SPC-4 6.11 to 6.14, 7.5; SBC-3 6.5). What can be changed is
// the write cache and the format of sense data. Nothing is saved.
#include <algorithm>

#include "revodrive/ata.h"
#include "volume/scsi_device.h"

namespace revodrive {

namespace {

enum ModePage : uint8_t {
  kErrorRecovery = 0x01,
  kCaching = 0x08,
  kControl = 0x0A,
  kPort = 0x19,
  kExceptions = 0x1C,
  kAll = 0x3F,
};
constexpr uint8_t kPages[] = {kErrorRecovery, kCaching, kControl, kPort, kExceptions};
constexpr uint8_t kAllSubpages = 0xFF;
constexpr uint8_t kWriteCacheBit = 0x04;
constexpr uint8_t kDescriptorBit = 0x04;
constexpr uint8_t kDpoFua = 0x10;  // device-specific parameter of a disk
constexpr size_t kBlockDescriptor = 8;

}  // namespace

ScsiDevice::Bytes ScsiDevice::mode_page(uint8_t page, bool changeable, bool defaults) const {
  constexpr uint8_t kSasProtocol = 0x06;
  Bytes bytes;
  switch (page) {
    case kErrorRecovery:
      bytes = {page, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
      break;
    case kCaching: {
      bool on = changeable || defaults || write_cache_;
      bytes = {page, 18, static_cast<uint8_t>(on ? kWriteCacheBit : 0)};
      bytes.resize(20);
      break;
    }
    case kControl: {
      bool on = changeable || (!defaults && descriptors_);
      // Tasks in any order; a busy timeout without end, and self-tests are unknown.
      bytes = {
          page, 10, static_cast<uint8_t>(on ? kDescriptorBit : 0), 0x10, 0, 0, 0, 0, 0xFF, 0xFF,
          0,    0};
      break;
    }
    case kPort:
      bytes = {page, 6, kSasProtocol, 0, 0x07, 0xD0, 0, 0};  // I_T nexus loss after 2 s
      break;
    case kExceptions:
      bytes = {page, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
      break;
  }
  if (changeable && page != kCaching && page != kControl)
    std::fill(bytes.begin() + 2, bytes.end(), uint8_t{0});
  if (changeable && page == kControl)
    std::fill(bytes.begin() + 3, bytes.end(), uint8_t{0});
  return bytes;
}

void ScsiDevice::mode_sense(ScsiTask &task) {
  constexpr uint8_t kNoDescriptors = 0x08;
  constexpr unsigned kChangeable = 1, kDefault = 2, kSaved = 3;
  bool short_form = task.operation->bytes == 6;
  uint8_t page = task.cdb(2) & kAll, subpage = task.cdb(3);
  unsigned control = task.cdb(2) >> 6;
  bool known =
      page == kAll || std::find(std::begin(kPages), std::end(kPages), page) != std::end(kPages);
  if (!known)
    return bad_field(task, 2, 5);
  if (subpage != 0 && !(subpage == kAllSubpages))
    return bad_field(task, 3);
  if (control == kSaved)
    return check(task, {scsi::kIllegalRequest, scsi::kSavingNotSupported, {}, {}});
  size_t header = short_form ? 4 : 8;
  Bytes bytes(header);
  bytes[short_form ? 2 : 3] = kDpoFua;
  if (!(task.cdb(1) & kNoDescriptors) && volume_.formed()) {
    bytes[header - 1] = kBlockDescriptor;
    bytes.resize(header + kBlockDescriptor);
    put_be(bytes, header, 4, std::min<uint64_t>(volume_.sectors(), UINT32_MAX));
    put_be(bytes, header + 5, 3, kBlockBytes);
  }
  for (uint8_t one : kPages) {
    if (page != kAll && page != one)
      continue;
    Bytes body = mode_page(one, control == kChangeable, control == kDefault);
    bytes.insert(bytes.end(), body.begin(), body.end());
  }
  if (short_form)
    bytes[0] = static_cast<uint8_t>(bytes.size() - 1);
  else
    put_be(bytes, 0, 2, bytes.size() - 2);
  reply(task, bytes, short_form ? task.cdb(4) : task.be(7, 2));
}

// The whole list is looked at before the first page counts.
void ScsiDevice::mode_select(ScsiTask &task) {
  constexpr uint8_t kPageFormat = 0x10, kSave = 0x01;
  if (task.cdb(1) & kSave)
    return bad_field(task, 1, 0);
  if (!(task.cdb(1) & kPageFormat))
    return bad_field(task, 1, 4);
  bool short_form = task.operation->bytes == 6;
  size_t header = short_form ? 4 : 8;
  size_t length = short_form ? task.cdb(4) : static_cast<size_t>(task.be(7, 2));
  if (length == 0)
    return good(task);
  if (length < header)
    return check(task, {scsi::kIllegalRequest, scsi::kListLength, {}, {}});
  Bytes list(length);
  if (!fetch(task, list))
    return;
  size_t descriptors = short_form ? list[3] : size_t{list[6]} << 8 | list[7];
  if (descriptors != 0 && descriptors != kBlockDescriptor)
    return bad_parameter(task, short_form ? 3 : 6);
  size_t at = header + descriptors;
  if (at > length)
    return check(task, {scsi::kIllegalRequest, scsi::kListLength, {}, {}});
  if (descriptors != 0) {
    uint32_t size = uint32_t{list[header + 5]} << 16 | uint32_t{list[header + 6]} << 8 |
                    uint32_t{list[header + 7]};
    if (size != kBlockBytes)
      return bad_parameter(task, static_cast<uint16_t>(header + 5));
  }
  for (size_t i = at; i < length; i += size_t{list[i + 1]} + 2) {
    if (!take_page(task, list, i))
      return;
  }
  for (size_t i = at; i < length; i += size_t{list[i + 1]} + 2) {
    uint8_t page = list[i] & kAll;
    if (page == kCaching)
      write_cache_ = list[i + 2] & kWriteCacheBit;
    if (page == kControl)
      descriptors_ = list[i + 2] & kDescriptorBit;
  }
  // What was in the cache before goes to the members' flash: without a cache nothing waits there.
  if (write_cache_ || !volume_.opened())
    return good(task);
  task.op = VolumeOp::kFlush;
  submit(task, &ScsiDevice::end_volume);
}

// Whether the page at `at` may be set as it is. False: the command is settled.
bool ScsiDevice::take_page(ScsiTask &task, std::span<const uint8_t> list, size_t at) {
  constexpr uint8_t kSubpageFormat = 0x40;
  auto byte = static_cast<uint16_t>(at);
  bool known = std::find(std::begin(kPages), std::end(kPages), list[at] & kAll) != std::end(kPages);
  bool subpage = list[at] & kSubpageFormat;
  if (!known || subpage) {
    bad_parameter(task, byte, subpage ? 6 : 5);
    return false;
  }
  Bytes now = mode_page(list[at] & kAll, false, false);
  Bytes mask = mode_page(list[at] & kAll, true, false);
  if (at + 1 >= list.size() || list.size() - at < now.size()) {
    check(task, {scsi::kIllegalRequest, scsi::kListLength, {}, {}});
    return false;
  }
  if (list[at + 1] != now[1]) {
    bad_parameter(task, static_cast<uint16_t>(byte + 1));
    return false;
  }
  for (size_t i = 2; i < now.size(); i++) {
    if (((list[at + i] ^ now[i]) & ~mask[i]) == 0)
      continue;
    bad_parameter(task, static_cast<uint16_t>(at + i));
    return false;
  }
  return true;
}

}  // namespace revodrive
