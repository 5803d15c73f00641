// SPDX-License-Identifier: GPL-2.0-or-later
//
// Sense data: why a command ended in CHECK CONDITION, and its bytes in both formats (SPC-4 4.5).
#ifndef REVODRIVE_VOLUME_SCSI_SENSE_H
#define REVODRIVE_VOLUME_SCSI_SENSE_H

#include <cstdint>
#include <optional>
#include <span>

namespace revodrive {

namespace scsi {

constexpr uint8_t kGood = 0x00;
constexpr uint8_t kCheckCondition = 0x02;

enum SenseKey : uint8_t {
  kNoSense = 0x0,
  kRecovered = 0x1,
  kNotReady = 0x2,
  kMediumError = 0x3,
  kHardwareError = 0x4,
  kIllegalRequest = 0x5,
  kUnitAttention = 0x6,
  kDataProtect = 0x7,
  kAbortedCommand = 0xB,
  kMiscompare = 0xE,
};

// Additional sense code and qualifier.
enum Code : uint16_t {
  kNothing = 0x0000,
  kAtaInformation = 0x001D,  // ATA pass through information available
  kNotFormed = 0x0400,       // not ready, cause not reportable
  kStopped = 0x0402,         // initializing command required
  kManual = 0x0403,          // manual intervention required
  kFormatting = 0x0404,      // format in progress
  kSanitizing = 0x041B,      // sanitize in progress
  kCommunication = 0x0800,   // logical unit communication failure
  kReadError = 0x1100,
  kListLength = 0x1A00,  // parameter list length error
  kMismatch = 0x1D00,    // miscompare during verify operation
  kBadOpcode = 0x2000,
  kOutOfRange = 0x2100,
  kBadField = 0x2400,
  kBadLun = 0x2500,
  kBadParameter = 0x2600,
  kPowerOn = 0x2900,
  kBusReset = 0x2902,
  kLunReset = 0x2903,
  kNexusLoss = 0x2907,
  kParametersChanged = 0x2A01,
  kFormatFailed = 0x3101,
  kSanitizeFailed = 0x3103,
  kSavingNotSupported = 0x3900,
  kTargetFailure = 0x4400,
  kCrc = 0x4703,
  kDataPhase = 0x4B00,
  kFailurePredicted = 0x5D00,
  kDriveLost = 0x5D10,  // hardware impending failure, general hard drive failure
  kAccessDenied = 0x7471,
};

}  // namespace scsi

struct Sense {
  // Where the byte at fault is: in the CDB or in the parameter list.
  struct Field {
    uint16_t byte = 0;
    int bit = -1;  // highest bit at fault, -1: the byte as a whole
    bool in_cdb = true;
  };

  uint8_t key = 0;
  uint16_t code = 0;
  std::optional<uint64_t> information;
  std::optional<Field> field;
  std::optional<uint16_t> progress = {};  // of 65536; not together with a field
  bool deferred = false;                  // of a command that had ended before

  // Writes it and returns its length, which is at most 64.
  uint8_t encode(std::span<uint8_t> out, bool descriptors) const;

 private:
  bool specific() const { return field || progress; }
  void put_specific(std::span<uint8_t> three) const;
};

}  // namespace revodrive
#endif
