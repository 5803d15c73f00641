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
  struct Entry {
    uint8_t opcode;
    CommandInfo info;
  };
  static constexpr Entry kEntries[] = {
      {ata::kDataSetManagement, {&Drive::data_set_management, kDmaOut, kExt}},
      {ata::kReadSectors, {&Drive::read_write, kPioIn, 0}},
      {ata::kReadSectorsNoRetry, {&Drive::read_write, kPioIn, 0}},
      {ata::kReadSectorsExt, {&Drive::read_write, kPioIn, kExt}},
      {ata::kReadDmaExt, {&Drive::read_write, kDmaIn, kExt}},
      {ata::kReadMultipleExt, {&Drive::read_write, kPioIn, kExt | kMultiple}},
      {ata::kReadLogExt, {&Drive::read_log, kPioIn, kExt}},
      {ata::kWriteSectors, {&Drive::read_write, kPioOut, 0}},
      {ata::kWriteSectorsNoRetry, {&Drive::read_write, kPioOut, 0}},
      {ata::kWriteSectorsExt, {&Drive::read_write, kPioOut, kExt}},
      {ata::kWriteDmaExt, {&Drive::read_write, kDmaOut, kExt}},
      {ata::kWriteMultipleExt, {&Drive::read_write, kPioOut, kExt | kMultiple}},
      {ata::kWriteDmaFuaExt, {&Drive::read_write, kDmaOut, kExt | kFua}},
      {ata::kWriteLogExt, {&Drive::write_log, kPioOut, kExt}},
      {ata::kReadVerify, {&Drive::verify, kNonData, 0}},
      {ata::kReadVerifyNoRetry, {&Drive::verify, kNonData, 0}},
      {ata::kReadVerifyExt, {&Drive::verify, kNonData, kExt}},
      {ata::kReadLogDmaExt, {&Drive::read_log, kDmaIn, kExt}},
      {ata::kWriteLogDmaExt, {&Drive::write_log, kDmaOut, kExt}},
      {ata::kReadFpdmaQueued, {&Drive::read_write_queued, kQueuedIn, kExt}},
      {ata::kWriteFpdmaQueued, {&Drive::read_write_queued, kQueuedOut, kExt}},
      {ata::kExecuteDeviceDiagnostic, {&Drive::diagnose, kNonData, 0}},
      {ata::kSmart, {&Drive::smart, kNonData, 0}},  // the subcommand decides
      {ata::kReadMultiple, {&Drive::read_write, kPioIn, kMultiple}},
      {ata::kWriteMultiple, {&Drive::read_write, kPioOut, kMultiple}},
      {ata::kSetMultipleMode, {&Drive::set_multiple, kNonData, 0}},
      {ata::kReadDma, {&Drive::read_write, kDmaIn, 0}},
      {ata::kReadDmaNoRetry, {&Drive::read_write, kDmaIn, 0}},
      {ata::kWriteDma, {&Drive::read_write, kDmaOut, 0}},
      {ata::kWriteDmaNoRetry, {&Drive::read_write, kDmaOut, 0}},
      {ata::kWriteMultipleFuaExt, {&Drive::read_write, kPioOut, kExt | kMultiple | kFua}},
      {ata::kStandbyImmediate, {&Drive::power, kNonData, 0}},
      {ata::kIdleImmediate, {&Drive::power, kNonData, 0}},
      {ata::kStandby, {&Drive::power, kNonData, 0}},
      {ata::kIdle, {&Drive::power, kNonData, 0}},
      {ata::kCheckPowerMode, {&Drive::check_power_mode, kNonData, 0}},
      {ata::kSleep, {&Drive::power, kNonData, 0}},
      {ata::kFlushCache, {&Drive::flush, kNonData, 0}},
      {ata::kFlushCacheExt, {&Drive::flush, kNonData, kExt}},
      {ata::kIdentifyDevice, {&Drive::identify, kPioIn, 0}},
      {ata::kSetFeatures, {&Drive::set_features, kNonData, 0}},
      {ata::kSecurityFreezeLock, {&Drive::freeze_security, kNonData, 0}},
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
