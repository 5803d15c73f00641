// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which opcode means what. An opcode without an entry is aborted. New commands are entered here and
// claimed in identify.cc.
#include "sata/drive.h"

namespace revodrive {

CommandInfo Drive::command_info(uint8_t opcode) {
  using enum Protocol;
  constexpr uint8_t kExt = CommandInfo::kLba48;
  constexpr uint8_t kFua = CommandInfo::kFua;
  constexpr uint8_t kMultiple = CommandInfo::kMultiple;
  constexpr uint8_t kMedium = CommandInfo::kMedium | CommandInfo::kNotLocked;
  constexpr uint8_t kNotLocked = CommandInfo::kNotLocked;
  constexpr uint8_t kNotFrozen = CommandInfo::kNotFrozen;
  constexpr uint8_t kInPanic = CommandInfo::kInPanic;
  struct Entry {
    uint8_t opcode;
    CommandInfo info;
  };
  static constexpr Entry kEntries[] = {
      {ata::kDataSetManagement, {&Drive::data_set_management, kDmaOut, kExt | kMedium}},
      {ata::kReadSectors, {&Drive::read_write, kPioIn, kMedium}},
      {ata::kReadSectorsNoRetry, {&Drive::read_write, kPioIn, kMedium}},
      {ata::kReadSectorsExt, {&Drive::read_write, kPioIn, kExt | kMedium}},
      {ata::kReadDmaExt, {&Drive::read_write, kDmaIn, kExt | kMedium}},
      {ata::kReadMultipleExt, {&Drive::read_write, kPioIn, kExt | kMultiple | kMedium}},
      {ata::kReadNativeMaxAddressExt, {&Drive::read_native_max, kNonData, kExt}},
      {ata::kReadLogExt, {&Drive::read_log, kPioIn, kExt}},
      {ata::kWriteSectors, {&Drive::read_write, kPioOut, kMedium}},
      {ata::kWriteSectorsNoRetry, {&Drive::read_write, kPioOut, kMedium}},
      {ata::kWriteSectorsExt, {&Drive::read_write, kPioOut, kExt | kMedium}},
      {ata::kWriteDmaExt, {&Drive::read_write, kDmaOut, kExt | kMedium}},
      {ata::kSetMaxAddressExt, {&Drive::set_max_address, kNonData, kExt | kNotLocked}},
      {ata::kWriteMultipleExt, {&Drive::read_write, kPioOut, kExt | kMultiple | kMedium}},
      {ata::kWriteDmaFuaExt, {&Drive::read_write, kDmaOut, kExt | kFua | kMedium}},
      {ata::kWriteLogExt, {&Drive::write_log, kPioOut, kExt | kNotLocked}},
      {ata::kReadVerify, {&Drive::verify, kNonData, kMedium}},
      {ata::kReadVerifyNoRetry, {&Drive::verify, kNonData, kMedium}},
      {ata::kReadVerifyExt, {&Drive::verify, kNonData, kExt | kMedium}},
      {ata::kReadLogDmaExt, {&Drive::read_log, kDmaIn, kExt}},
      {ata::kWriteLogDmaExt, {&Drive::write_log, kDmaOut, kExt | kNotLocked}},
      {ata::kReadFpdmaQueued, {&Drive::read_write_queued, kQueuedIn, kExt | kMedium}},
      {ata::kWriteFpdmaQueued, {&Drive::read_write_queued, kQueuedOut, kExt | kMedium}},
      {ata::kExecuteDeviceDiagnostic, {&Drive::diagnose, kNonData, kInPanic}},
      {ata::kDownloadMicrocode, {&Drive::download_microcode, kPioOut, 0}},
      {ata::kDownloadMicrocodeDma, {&Drive::download_microcode, kDmaOut, 0}},
      {ata::kSmart, {&Drive::smart, kNonData, 0}},  // the subcommand decides
      {ata::kReadMultiple, {&Drive::read_write, kPioIn, kMultiple | kMedium}},
      {ata::kWriteMultiple, {&Drive::read_write, kPioOut, kMultiple | kMedium}},
      {ata::kSetMultipleMode, {&Drive::set_multiple, kNonData, 0}},
      {ata::kReadDma, {&Drive::read_write, kDmaIn, kMedium}},
      {ata::kReadDmaNoRetry, {&Drive::read_write, kDmaIn, kMedium}},
      {ata::kWriteDma, {&Drive::read_write, kDmaOut, kMedium}},
      {ata::kWriteDmaNoRetry, {&Drive::read_write, kDmaOut, kMedium}},
      {ata::kWriteMultipleFuaExt, {&Drive::read_write, kPioOut, kExt | kMultiple | kFua | kMedium}},
      {ata::kStandbyImmediate, {&Drive::power, kNonData, kInPanic}},
      {ata::kIdleImmediate, {&Drive::power, kNonData, kInPanic}},
      {ata::kStandby, {&Drive::power, kNonData, kInPanic}},
      {ata::kIdle, {&Drive::power, kNonData, kInPanic}},
      {ata::kCheckPowerMode, {&Drive::check_power_mode, kNonData, kInPanic}},
      {ata::kSleep, {&Drive::power, kNonData, 0}},
      {ata::kFlushCache, {&Drive::flush, kNonData, kNotLocked}},
      {ata::kFlushCacheExt, {&Drive::flush, kNonData, kExt | kNotLocked}},
      {ata::kIdentifyDevice, {&Drive::identify, kPioIn, kInPanic}},
      {ata::kSetFeatures, {&Drive::set_features, kNonData, kInPanic}},
      {ata::kSecuritySetPassword, {&Drive::security_command, kPioOut, kNotLocked | kNotFrozen}},
      {ata::kSecurityUnlock, {&Drive::security_command, kPioOut, kNotFrozen}},
      {ata::kSecurityErasePrepare, {&Drive::security_command, kNonData, kNotFrozen}},
      {ata::kSecurityEraseUnit, {&Drive::security_command, kPioOut, kNotFrozen}},
      {ata::kSecurityFreezeLock, {&Drive::security_command, kNonData, kNotLocked}},
      {ata::kSecurityDisablePassword, {&Drive::security_command, kPioOut, kNotLocked | kNotFrozen}},
      {ata::kReadNativeMaxAddress, {&Drive::read_native_max, kNonData, 0}},
      {ata::kSetMax, {&Drive::set_max, kNonData, kNotLocked}},  // the subcommand decides
  };
  static constexpr auto kTable = [] {
    std::array<CommandInfo, 256> table{};
    for (CommandInfo &info : table)
      info.handler = &Drive::unsupported;
    for (const Entry &entry : kEntries)
      table[entry.opcode] = entry.info;
    return table;
  }();
  return kTable[opcode];
}

}  // namespace revodrive
