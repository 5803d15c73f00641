// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/firmware.h"

#include <algorithm>
#include <string_view>

#include "revodrive/ata.h"

namespace revodrive {

namespace {

constexpr std::string_view kMagic = "SF2281FW";
constexpr size_t kBytesAt = 8;
constexpr size_t kCrcAt = 12;
constexpr size_t kRevisionAt = 16;

uint32_t load_u32(std::span<const uint8_t> bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; i++)
    value |= static_cast<uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}

// CRC-32 of IEEE 802.3, reflected, as zlib has it; bytes of the checksum field count as zero.
uint32_t image_crc(std::span<const uint8_t> image) {
  constexpr uint32_t kPolynomial = 0xEDB88320;
  uint32_t crc = 0xFFFFFFFF;
  for (size_t i = 0; i < image.size(); i++) {
    crc ^= i >= kCrcAt && i < kCrcAt + 4 ? 0 : image[i];
    for (int bit = 0; bit < 8; bit++)
      crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
  }
  return ~crc;
}

void put_text(StreamWriter &out, const std::string &text) {
  out.put(static_cast<uint8_t>(text.size()));
  out.put_bytes({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
}

std::string get_text(StreamReader &in, size_t max) {
  auto size = in.get<uint8_t>();
  if (size > max)
    in.fail();
  std::string text(in.ok() ? size : 0, ' ');
  in.get_bytes({reinterpret_cast<uint8_t *>(text.data()), text.size()});
  auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (!std::all_of(text.begin(), text.end(), printable))
    in.fail();
  return text;
}

}  // namespace

uint32_t Firmware::stated_bytes(std::span<const uint8_t> image) {
  if (image.size() < ata::kSectorBytes || !std::equal(kMagic.begin(), kMagic.end(), image.begin()))
    return 0;
  uint32_t bytes = load_u32(image, kBytesAt);
  return bytes <= kMaxBytes && bytes % ata::kSectorBytes == 0 ? bytes : 0;
}

Firmware::Outcome Firmware::activate(std::span<const uint8_t> image) {
  auto text = image.subspan(kRevisionAt, kRevisionChars);
  auto printable = [](uint8_t c) { return c >= ' ' && c <= '~'; };
  if (image_crc(image) != load_u32(image, kCrcAt) ||
      !std::all_of(text.begin(), text.end(), printable))
    return Outcome::kRefused;
  std::string revision(text.begin(), text.end());
  revision.erase(revision.find_last_not_of(' ') + 1);
  if (revision.empty())
    return Outcome::kRefused;
  revision_ = revision;
  return Outcome::kActivated;
}

Firmware::Outcome Firmware::whole(std::span<const uint8_t> image) {
  drop();
  if (stated_bytes(image) != image.size())
    return Outcome::kRefused;
  return activate(image);
}

Firmware::Outcome Firmware::segment(uint32_t offset, std::span<const uint8_t> bytes) {
  if (offset == 0)
    staged_.clear();
  bool fits = offset == staged_.size() && bytes.size() <= kMaxBytes - staged_.size();
  if (fits)
    staged_.insert(staged_.end(), bytes.begin(), bytes.end());
  uint32_t stated = fits ? stated_bytes(staged_) : 0;
  if (stated == 0 || staged_.size() > stated) {
    drop();
    return Outcome::kRefused;
  }
  if (staged_.size() < stated)
    return Outcome::kMore;
  std::vector<uint8_t> image = std::move(staged_);
  drop();
  return activate(image);
}

void Firmware::save_persistent(StreamWriter &out) const {
  put_text(out, shipped_);
  put_text(out, revision_);
}

void Firmware::load_persistent(StreamReader &in) {
  std::string shipped = get_text(in, kRevisionChars);
  std::string revision = get_text(in, kRevisionChars);
  if (revision.empty())
    in.fail();
  if (in.ok() && shipped == shipped_)
    revision_ = revision;
}

void Firmware::save(StreamWriter &out) const {
  out.section("FWRV");
  put_text(out, revision_);
  out.put(static_cast<uint32_t>(staged_.size()));
  out.put_bytes(staged_);
}

void Firmware::load(StreamReader &in) {
  in.section("FWRV");
  std::string revision = get_text(in, kRevisionChars);
  auto staged = in.get<uint32_t>();
  if (revision.empty() || staged > kMaxBytes || staged % ata::kSectorBytes != 0)
    in.fail();
  if (!in.ok())
    return;
  staged_.resize(staged);
  in.get_bytes(staged_);
  revision_ = revision;
}

}  // namespace revodrive
