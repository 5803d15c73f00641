// SPDX-License-Identifier: GPL-2.0-or-later
//
// INQUIRY and its vital product data (SPC-4 6.4, 7.8; SBC-3 6.6; SAT-2 12.4.2 for page 89h).
#include <algorithm>
#include <cstdio>
#include <string_view>

#include "revodrive/ata.h"
#include "volume/scsi_device.h"

namespace revodrive {

namespace {

constexpr uint8_t kDisk = 0x00;
constexpr uint8_t kArrayController = 0x0C;  // a member's unit: no driver takes it for a disk
constexpr uint8_t kSpc4 = 0x06;
constexpr std::string_view kVendor = "OCZ";
constexpr std::string_view kModelPrefix = "OCZ-";

enum Page : uint8_t {
  kSupported = 0x00,
  kSerial = 0x80,
  kIdentification = 0x83,
  kExtended = 0x86,
  kAta = 0x89,
  kLimits = 0xB0,
  kCharacteristics = 0xB1,
  kProvisioning = 0xB2,
};
constexpr uint8_t kDiskPages[] = {kSupported, kSerial, kIdentification,  kExtended,
                                  kAta,       kLimits, kCharacteristics, kProvisioning};
constexpr uint8_t kMemberPages[] = {kSupported, kSerial, kIdentification, kAta};

// Left-aligned, padded with blanks.
void put_text(std::span<uint8_t> out, std::string_view text) {
  std::fill(out.begin(), out.end(), uint8_t{' '});
  std::copy_n(text.begin(), std::min(text.size(), out.size()), out.begin());
}

}  // namespace

std::string ScsiDevice::serial(unsigned unit) const {
  char text[20];
  std::snprintf(text, sizeof(text), "VCA%012llX%X",
                static_cast<unsigned long long>(unit_name(0) & 0xFFFF'FFFF'FFFF), unit);
  return text;
}

void ScsiDevice::inquiry(ScsiTask &task) {
  bool vital = task.cdb(1) & 1;
  uint8_t page = task.cdb(2);
  if (!vital && page != 0)
    return bad_field(task, 2);
  Bytes bytes;
  if (!vital)
    bytes = standard_inquiry(task);
  else if (!vital_page(task, page, &bytes))
    return bad_field(task, 2);
  reply(task, bytes, task.be(3, 2));
}

ScsiDevice::Bytes ScsiDevice::standard_inquiry(const ScsiTask &task) const {
  constexpr uint8_t kHierarchical = 0x12;  // HiSup, response data format 2
  constexpr uint8_t kQueuing = 0x02;
  constexpr uint16_t kStandards[] = {0x0080, 0x0C20, 0x0460, 0x04C0};  // SAM-4 SAS-2 SPC-4 SBC-3
  Bytes bytes(74);
  bytes[0] = task.unit == 0 ? kDisk : kArrayController;
  bytes[2] = kSpc4;
  bytes[3] = kHierarchical;
  bytes[4] = static_cast<uint8_t>(bytes.size() - 5);
  bytes[7] = kQueuing;
  std::string_view model = identity_.model;
  if (model.starts_with(kModelPrefix))
    model.remove_prefix(kModelPrefix.size());
  put_text(std::span(bytes).subspan(8, 8), kVendor);
  put_text(std::span(bytes).subspan(16, 16), model);
  put_text(std::span(bytes).subspan(32, 4), identity_.firmware);
  for (size_t i = 0; i < std::size(kStandards); i++)
    put_be(bytes, 58 + 2 * i, 2, kStandards[i]);
  return bytes;
}

// False: there is no such page.
bool ScsiDevice::vital_page(const ScsiTask &task, uint8_t page, Bytes *bytes) const {
  std::span<const uint8_t> pages = kDiskPages;
  if (task.unit != 0)
    pages = kMemberPages;
  if (std::find(pages.begin(), pages.end(), page) == pages.end())
    return false;
  Bytes body;
  std::string text = serial(task.unit);
  switch (page) {
    case kSupported:
      body.assign(pages.begin(), pages.end());
      break;
    case kSerial:
      body.assign(text.begin(), text.end());
      break;
    case kIdentification:
      body = identification(task);
      break;
    case kExtended:
      body = extended_inquiry();
      break;
    case kAta:
      if (!volume_.identity(task.unit))
        return false;
      body = ata_information(task.unit);
      break;
    case kLimits:
      body = block_limits();
      break;
    case kCharacteristics:
      body = block_characteristics();
      break;
    case kProvisioning:
      body = provisioning();
      break;
  }
  bytes->assign({task.unit == 0 ? kDisk : kArrayController, page, 0, 0});
  put_be(*bytes, 2, 2, body.size());
  bytes->insert(bytes->end(), body.begin(), body.end());
  return true;
}

// The logical unit by name and by text, then the port it was asked through.
ScsiDevice::Bytes ScsiDevice::identification(const ScsiTask &task) const {
  constexpr uint8_t kBinary = 0x01, kAscii = 0x02, kNaa = 0x03, kT10 = 0x01, kRelative = 0x04;
  constexpr uint8_t kPort = 0x90, kSas = 0x60;  // PIV and association 1; protocol identifier
  std::string text(kVendor);
  text.resize(8, ' ');
  text += serial(task.unit);
  Bytes bytes{kBinary, kNaa, 0, 8};
  bytes.resize(12);
  put_be(bytes, 4, 8, unit_name(task.unit));
  bytes.insert(bytes.end(), {kAscii, kT10, 0, static_cast<uint8_t>(text.size())});
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.insert(bytes.end(), {kSas | kBinary, kPort | kNaa, 0, 8});
  bytes.resize(bytes.size() + 8);
  put_be(bytes, bytes.size() - 8, 8, sas_address());
  bytes.insert(bytes.end(), {kSas | kBinary, kPort | kRelative, 0, 4, 0, 0, 0, 1});
  return bytes;
}

ScsiDevice::Bytes ScsiDevice::extended_inquiry() const {
  constexpr uint8_t kSimpleTasks = 0x01, kVolatileCache = 0x01;
  Bytes bytes(60);
  bytes[1] = kSimpleTasks;
  bytes[2] = kVolatileCache;
  return bytes;
}

ScsiDevice::Bytes ScsiDevice::ata_information(unsigned member) const {
  constexpr uint8_t kSignature[] = {0x34, 0x40, 0x50, 0x01, 0x01, 0, 0, 0, 0, 0, 0, 0, 0x01};
  Bytes bytes(568);
  put_text(std::span(bytes).subspan(4, 8), kVendor);
  put_text(std::span(bytes).subspan(12, 16), "VCA");
  put_text(std::span(bytes).subspan(28, 4), identity_.firmware);
  std::copy(std::begin(kSignature), std::end(kSignature), bytes.begin() + 32);
  bytes[52] = ata::kIdentifyDevice;
  const auto &identity = *volume_.identity(member);
  std::copy(identity.begin(), identity.end(), bytes.begin() + 56);
  return bytes;
}

ScsiDevice::Bytes ScsiDevice::block_limits() const {
  constexpr uint8_t kSameNonZero = 0x01;
  Bytes bytes(60);
  bytes[0] = kSameNonZero;
  bytes[1] = kMaxCompareBlocks;
  put_be(bytes, 2, 2, 8);  // a page of the flash translation: 4 KiB
  put_be(bytes, 4, 4, kMaxBlocks);
  put_be(bytes, 8, 4, std::min(volume_.chunk_sectors() * volume_.members(), kMaxBlocks));
  put_be(bytes, 16, 4, kMaxUnmapBlocks);
  put_be(bytes, 20, 4, kMaxUnmapRanges);
  put_be(bytes, 24, 4, volume_.map_unit_sectors());
  put_be(bytes, 32, 8, kMaxSameBlocks);
  return bytes;
}

ScsiDevice::Bytes ScsiDevice::block_characteristics() {
  constexpr uint8_t kSolidState = 1;
  Bytes bytes(60);
  put_be(bytes, 0, 2, kSolidState);
  return bytes;
}

// UNMAP, WRITE SAME (16) and (10) unmap.
ScsiDevice::Bytes ScsiDevice::provisioning() const {
  constexpr uint8_t kUnmaps = 0xE0, kReadsZeroes = 0x04, kResource = 1;
  return {0, static_cast<uint8_t>(kUnmaps | (volume_.zeroes() ? kReadsZeroes : 0)), kResource, 0};
}

}  // namespace revodrive
