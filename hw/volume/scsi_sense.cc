// SPDX-License-Identifier: GPL-2.0-or-later
#include "volume/scsi_sense.h"

#include <algorithm>

namespace revodrive {

namespace {

constexpr uint8_t kFixed = 0x70;
constexpr uint8_t kDescriptors = 0x72;
constexpr uint8_t kValid = 0x80;
constexpr uint8_t kFixedBytes = 18;

void put_be(std::span<uint8_t> out, uint64_t value) {
  for (size_t i = 0; i < out.size(); i++)
    out[i] = static_cast<uint8_t>(value >> (8 * (out.size() - 1 - i)));
}

}  // namespace

// Sense key specific bytes of a field pointer or of a progress (SPC-4 4.5.2.4.2, 4.5.2.4.4).
void Sense::put_specific(std::span<uint8_t> three) const {
  if (!field) {
    three[0] = 0x80;
    return put_be(three.subspan(1, 2), *progress);
  }
  three[0] = static_cast<uint8_t>(0x80 | (field->in_cdb ? 0x40 : 0));
  if (field->bit >= 0)
    three[0] |= static_cast<uint8_t>(0x08 | field->bit);
  put_be(three.subspan(1, 2), field->byte);
}

uint8_t Sense::encode(std::span<uint8_t> out, bool descriptors) const {
  std::fill(out.begin(), out.end(), uint8_t{0});
  if (!descriptors) {
    out[0] = kFixed | deferred;
    out[2] = key;
    if (information && *information <= UINT32_MAX) {
      out[0] |= kValid;
      put_be(out.subspan(3, 4), *information);
    }
    out[7] = kFixedBytes - 8;
    put_be(out.subspan(12, 2), code);
    if (specific())
      put_specific(out.subspan(15, 3));
    return kFixedBytes;
  }
  out[0] = kDescriptors | deferred;
  out[1] = key;
  put_be(out.subspan(2, 2), code);
  uint8_t at = 8;
  if (information) {
    constexpr uint8_t kBytes = 12;
    out[at] = 0x00;
    out[at + 1] = kBytes - 2;
    out[at + 2] = kValid;
    put_be(out.subspan(at + 4, 8), *information);
    at += kBytes;
  }
  if (specific()) {
    constexpr uint8_t kBytes = 8;
    out[at] = 0x02;
    out[at + 1] = kBytes - 2;
    put_specific(out.subspan(at + 4, 3));
    at += kBytes;
  }
  out[7] = static_cast<uint8_t>(at - 8);
  return at;
}

}  // namespace revodrive
