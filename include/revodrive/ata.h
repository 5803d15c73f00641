// SPDX-License-Identifier: GPL-2.0-or-later
//
// Numbers of the ATA command set, as far as the drive and those who talk to it use
// them. Section numbers: ATA8-ACS
// (T13/1699-D r6) for commands, ACS-2 (T13/2015-D r7) for what came later, Serial ATA 3.0 for
// FISes.
#ifndef REVODRIVE_ATA_H
#define REVODRIVE_ATA_H

#include <cstdint>

#include "revodrive/host.h"

namespace revodrive::ata {

constexpr uint32_t kSectorBytes = RD_SECTOR_BYTES;
constexpr uint64_t kLba28Sectors = 0x0FFFFFFF;  // largest value of IDENTIFY words 60-61 (7.16.7.22)

// Status register (ATA8-ACS 6.2). Bit 4 is obsolete there; drives of the time keep it set.
constexpr uint8_t kStatusError = 0x01;
constexpr uint8_t kStatusSeekComplete = 0x10;
constexpr uint8_t kStatusFault = 0x20;
constexpr uint8_t kStatusReady = 0x40;
constexpr uint8_t kStatusBusy = 0x80;
constexpr uint8_t kGood = kStatusReady | kStatusSeekComplete;
constexpr uint8_t kFailed = kGood | kStatusError;
// What ends queued commands: without bit 4, as the queued error log shows it.
constexpr uint8_t kQueueFailed = kStatusReady | kStatusError;

// Error register (ATA8-ACS 6.3).
constexpr uint8_t kAbort = 0x04;
constexpr uint8_t kIdNotFound = 0x10;
constexpr uint8_t kUncorrectable = 0x40;
constexpr uint8_t kInterfaceCrc = 0x80;
constexpr uint8_t kDiagnosticsPassed = 0x01;  // of EXECUTE DEVICE DIAGNOSTIC and after a reset

// Device register.
constexpr uint8_t kDeviceLba = 0x40;
constexpr uint8_t kDeviceFua = 0x80;  // FPDMA QUEUED only (Serial ATA 3.0, 13.6.4)

enum Opcode : uint8_t {
  kDataSetManagement = 0x06,  // ACS-2 7.10
  kReadSectors = 0x20,
  kReadSectorsNoRetry = 0x21,
  kReadSectorsExt = 0x24,
  kReadDmaExt = 0x25,
  kReadMultipleExt = 0x29,
  kReadNativeMaxAddressExt = 0x27,
  kReadLogExt = 0x2F,
  kWriteSectors = 0x30,
  kWriteSectorsNoRetry = 0x31,
  kWriteSectorsExt = 0x34,
  kWriteDmaExt = 0x35,
  kSetMaxAddressExt = 0x37,
  kWriteMultipleExt = 0x39,
  kWriteDmaFuaExt = 0x3D,
  kWriteLogExt = 0x3F,
  kReadVerify = 0x40,
  kReadVerifyNoRetry = 0x41,
  kReadVerifyExt = 0x42,
  kReadLogDmaExt = 0x47,
  kWriteLogDmaExt = 0x57,
  kReadFpdmaQueued = 0x60,
  kWriteFpdmaQueued = 0x61,
  kExecuteDeviceDiagnostic = 0x90,
  kDownloadMicrocode = 0x92,
  kDownloadMicrocodeDma = 0x93,  // ACS-2 7.14
  kSmart = 0xB0,
  kReadMultiple = 0xC4,
  kWriteMultiple = 0xC5,
  kSetMultipleMode = 0xC6,
  kReadDma = 0xC8,
  kReadDmaNoRetry = 0xC9,
  kWriteDma = 0xCA,
  kWriteDmaNoRetry = 0xCB,
  kWriteMultipleFuaExt = 0xCE,
  kStandbyImmediate = 0xE0,
  kIdleImmediate = 0xE1,
  kStandby = 0xE2,
  kIdle = 0xE3,
  kCheckPowerMode = 0xE5,
  kSleep = 0xE6,
  kFlushCache = 0xE7,
  kFlushCacheExt = 0xEA,
  kIdentifyDevice = 0xEC,
  kSetFeatures = 0xEF,
  kSecuritySetPassword = 0xF1,
  kSecurityUnlock = 0xF2,
  kSecurityErasePrepare = 0xF3,
  kSecurityEraseUnit = 0xF4,
  kSecurityFreezeLock = 0xF5,
  kSecurityDisablePassword = 0xF6,
  kReadNativeMaxAddress = 0xF8,
  kSetMax = 0xF9,
};

// SET MAX subcommands (ATA8-ACS 7.50).
enum SetMaxFeature : uint8_t {
  kSetMaxAddress = 0x00,
  kSetMaxPassword = 0x01,
  kSetMaxLock = 0x02,
  kSetMaxUnlock = 0x03,
  kSetMaxFreezeLock = 0x04,
};

// SET FEATURES subcommands (ATA8-ACS 7.48).
enum Feature : uint8_t {
  kEnableWriteCache = 0x02,
  kSetTransferMode = 0x03,
  kEnableApm = 0x05,
  kEnableSataFeature = 0x10,
  kDisableLookAhead = 0x55,
  kKeepSettings = 0x66,  // disable reverting to power-on defaults
  kDisableWriteCache = 0x82,
  kDisableApm = 0x85,
  kDisableSataFeature = 0x90,
  kEnableLookAhead = 0xAA,
  kRevertSettings = 0xCC,
};
constexpr uint16_t kSataSettingsPreservation = 0x06;  // Serial ATA 3.0, 13.3.5

// SMART subcommands (ATA8-ACS 7.53) and the key every SMART command carries in LBA 23:8.
enum SmartFeature : uint8_t {
  kSmartReadData = 0xD0,
  kSmartReadThresholds = 0xD1,
  kSmartAutosave = 0xD2,
  kSmartSaveAttributes = 0xD3,
  kSmartExecuteOffline = 0xD4,
  kSmartReadLog = 0xD5,
  kSmartWriteLog = 0xD6,
  kSmartEnable = 0xD8,
  kSmartDisable = 0xD9,
  kSmartReturnStatus = 0xDA,
  kSmartAutoOffline = 0xDB,
};
constexpr uint16_t kSmartKey = 0xC24F;
constexpr uint16_t kSmartFailing = 0x2CF4;

// Log addresses (ATA8-ACS annex A).
constexpr uint8_t kLogDirectory = 0x00;
constexpr uint8_t kLogSelfTest = 0x06;          // SMART only
constexpr uint8_t kLogExtendedSelfTest = 0x07;  // General Purpose Logging only
constexpr uint8_t kLogSelective = 0x09;         // SMART only
constexpr uint8_t kLogQueuedError = 0x10;
constexpr uint8_t kLogPhyCounters = 0x11;
constexpr uint8_t kLogHostFirst = 0x80;
constexpr uint8_t kLogHostLast = 0x9F;
constexpr uint8_t kLogVendor = 0xB7;
constexpr uint8_t kLogSctStatus = 0xE0;
constexpr uint8_t kLogSctData = 0xE1;

}  // namespace revodrive::ata
#endif
