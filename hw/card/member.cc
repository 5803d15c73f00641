// SPDX-License-Identifier: GPL-2.0-or-later
#include "card/member.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "revodrive/error.h"

namespace revodrive {

namespace {

// IDENTIFY words 100-103 hold 48 bits.
constexpr uint64_t kMaxSectors = (uint64_t{1} << 48) - 1;
constexpr size_t kModelChars = 40;
constexpr size_t kSerialChars = 20;
constexpr size_t kFirmwareChars = 8;

bool check_string(const char *what, const std::string &text, size_t max, rd_error *error) {
  bool printable =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!text.empty() && text.size() <= max && printable)
    return true;
  set_error(error, "%s '%s': must be 1 to %zu printable ASCII characters", what, text.c_str(), max);
  return false;
}

bool check_size(const rd_member_config &config, rd_error *error) {
  auto bytes = static_cast<unsigned long long>(config.bytes);
  if (config.bytes % RD_SECTOR_BYTES != 0) {
    set_error(error, "image of %llu bytes: must be a multiple of %d bytes (one sector)", bytes,
              RD_SECTOR_BYTES);
    return false;
  }
  if (config.bytes < Member::kMinBytes || config.bytes / RD_SECTOR_BYTES > kMaxSectors) {
    set_error(error, "image of %llu bytes: must be %llu bytes (1 MiB) to 2^48 - 1 sectors", bytes,
              static_cast<unsigned long long>(Member::kMinBytes));
    return false;
  }
  return true;
}

// NAA 5, OUI e83a97 (OCZ), and 36 bits of FNV-1a over the serial: stable, and different per drive.
uint64_t wwn_from_serial(const std::string &serial) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : serial)
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return uint64_t{0x5e83a97} << 36 | (hash ^ hash >> 28) >> 28;
}

constexpr const char *kImagePreset = "image";

bool parse_preset(const rd_member_config &config, FlashPreset *out, rd_error *error) {
  const char *text = config.preset ? config.preset : "fresh";
  static constexpr std::pair<std::string_view, FlashPreset> kPresets[] = {
      {"fresh", FlashPreset::kFresh},
      {"full", FlashPreset::kFull},
      {"steady", FlashPreset::kSteady},
      {kImagePreset, FlashPreset::kImage}};
  for (auto [name, preset] : kPresets) {
    if (name != text)
      continue;
    *out = preset;
    return true;
  }
  set_error(error, "preset '%s': must be fresh, full, steady or image", text);
  return false;
}

// Whether the host said what is in the image.
bool check_data(const rd_member_config &config, rd_error *error) {
  if (!config.data) {
    set_error(error,
              "preset '%s': there is no image here that tells what was written; must be fresh, "
              "full or steady",
              kImagePreset);
    return false;
  }
  if (config.data_count > RD_MAX_EXTENTS) {
    set_error(error, "preset '%s': the image holds data in %zu places; must be at most %u",
              kImagePreset, config.data_count, RD_MAX_EXTENTS);
    return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<Member> Member::create(HostPort &host, unsigned port, const Profile &profile,
                                       const rd_member_config &config, bool timing,
                                       rd_error *error) {
  if (config.read_only) {
    set_error(error,
              "image is read-only: a member must be writable, an ATA disk has no write "
              "protection");
    return nullptr;
  }
  DriveIdentity identity;
  identity.model = config.model ? config.model : profile.identity.model;
  identity.serial = config.serial ? config.serial : "";
  identity.firmware = config.firmware ? config.firmware : profile.identity.firmware;
  identity.wwn = config.wwn ? config.wwn : wwn_from_serial(identity.serial);
  if (!check_size(config, error) || !check_string("model", identity.model, kModelChars, error) ||
      !check_string("serial", identity.serial, kSerialChars, error) ||
      !check_string("firmware", identity.firmware, kFirmwareChars, error))
    return nullptr;
  if (identity.wwn >> 60 != 5) {
    set_error(error, "wwn 0x%016llx: must be an NAA 5 name (0x5...)",
              static_cast<unsigned long long>(identity.wwn));
    return nullptr;
  }
  uint64_t sectors = config.panic ? AtaDrive::kPanicSectors : config.bytes / RD_SECTOR_BYTES;
  if (!FlashController::check(profile.flash, sectors, error))
    return nullptr;
  std::unique_ptr<Member> member(new Member(host, port, sectors));
  member->serial_ = identity.serial;
  DriveOptions options{.panicked = config.panic,
                       .frozen = config.frozen,
                       .trim_pattern = !config.trim_backend,
                       .memory = host.memory_hint()};
  if (!parse_preset(config, &options.preset, error))
    return nullptr;
  if (options.preset == FlashPreset::kImage) {
    if (!check_data(config, error))
      return nullptr;
    options.image_data.assign(config.data, config.data + config.data_count);
  }
  member->drive_ =
      AtaDrive::create(identity, profile.sata, profile.flash, member->media_, timing, options);
  member->drive_->watch(host.observer(), "port" + std::to_string(port) + " ");
  return member;
}

}  // namespace revodrive
