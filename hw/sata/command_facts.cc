// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/command_facts.h"

#include <array>

#include "revodrive/ata.h"
#include "sata/fis.h"

namespace revodrive {

namespace {

// How a command states its address and count.
enum class Form : uint8_t { kNone, k28, k48, kQueued };

struct Class {
  rd_command_kind kind;
  Form form;
};

constexpr auto kClasses = [] {
  std::array<Class, 256> table{};
  table.fill({RD_OTHER, Form::kNone});
  for (uint8_t opcode : {ata::kReadSectors, ata::kReadSectorsNoRetry, ata::kReadMultiple,
                         ata::kReadDma, ata::kReadDmaNoRetry})
    table[opcode] = {RD_READ, Form::k28};
  for (uint8_t opcode : {ata::kReadSectorsExt, ata::kReadDmaExt, ata::kReadMultipleExt})
    table[opcode] = {RD_READ, Form::k48};
  for (uint8_t opcode : {ata::kWriteSectors, ata::kWriteSectorsNoRetry, ata::kWriteMultiple,
                         ata::kWriteDma, ata::kWriteDmaNoRetry})
    table[opcode] = {RD_WRITE, Form::k28};
  for (uint8_t opcode : {ata::kWriteSectorsExt, ata::kWriteDmaExt, ata::kWriteMultipleExt,
                         ata::kWriteDmaFuaExt, ata::kWriteMultipleFuaExt})
    table[opcode] = {RD_WRITE, Form::k48};
  table[ata::kReadFpdmaQueued] = {RD_READ, Form::kQueued};
  table[ata::kWriteFpdmaQueued] = {RD_WRITE, Form::kQueued};
  table[ata::kFlushCache] = table[ata::kFlushCacheExt] = {RD_FLUSH, Form::kNone};
  table[ata::kDataSetManagement] = {RD_TRIM, Form::kNone};
  return table;
}();

SectorRange range_of(Form form, const TaskFile &task) {
  switch (form) {
    case Form::k28:
      return range28(task);
    case Form::k48:
      return range48(task);
    case Form::kQueued:
      return range_queued(task);
    case Form::kNone:
      break;
  }
  return {};
}

}  // namespace

CommandFacts command_facts(const Fis &h2d) {
  TaskFile task = TaskFile::parse(h2d);
  if (!task.valid)
    return {};
  const Class &what = kClasses[task.opcode];
  SectorRange range = range_of(what.form, task);
  return {.kind = what.kind,
          .opcode = task.opcode,
          .tag = what.form == Form::kQueued ? task.tag() : uint8_t{0},
          .lba = range.lba,
          .bytes = range.sectors * uint32_t{RD_SECTOR_BYTES}};
}

}  // namespace revodrive
