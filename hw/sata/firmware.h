// SPDX-License-Identifier: GPL-2.0-or-later
//
// The drive's firmware as DOWNLOAD MICROCODE (ATA8-ACS 7.15) sees it: an image comes in whole or in
// segments at rising offsets, is checked, and its revision is the drive's from then on, also after
// a power cycle. Nothing in an image is executed. The format is in docs/security.md and
// scripts/make-firmware writes it:
//
//   byte  0   8   "SF2281FW"
//   byte  8   4   bytes of the whole image, little-endian, a multiple of 512
//   byte 12   4   CRC-32 (as in zlib) of the whole image with this field as zero
//   byte 16   8   revision: printable ASCII, padded with spaces
//   byte 24       anything
#ifndef REVODRIVE_SATA_FIRMWARE_H
#define REVODRIVE_SATA_FIRMWARE_H

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "revodrive/stream.h"

namespace revodrive {

class Firmware {
 public:
  static constexpr uint32_t kMaxBytes = 2u << 20;
  enum class Outcome {
    kRefused,   // the image or its place in it; what came before is dropped
    kMore,      // a segment was taken, more are needed
    kActivated  // revision() is new
  };

  // `shipped`: the revision that the drive has without any download.
  explicit Firmware(const std::string &shipped) : shipped_(shipped), revision_(shipped) {}

  const std::string &revision() const { return revision_; }

  // Subcommand 3: a segment at `offset` bytes. Offset 0 begins anew.
  Outcome segment(uint32_t offset, std::span<const uint8_t> bytes);
  // Subcommand 7: the whole image.
  Outcome whole(std::span<const uint8_t> image);
  // A reset: an image that was not whole is gone.
  void drop() { staged_ = {}; }

  void save(StreamWriter &out) const;
  void load(StreamReader &in);
  void save_persistent(StreamWriter &out) const;
  // Of no effect when the user has given the drive another shipped revision since.
  void load_persistent(StreamReader &in);

 private:
  static constexpr size_t kRevisionChars = 8;
  static uint32_t stated_bytes(std::span<const uint8_t> image);  // 0: not an image
  Outcome activate(std::span<const uint8_t> image);

  std::string shipped_;
  std::string revision_;
  std::vector<uint8_t> staged_;
};

}  // namespace revodrive
#endif
