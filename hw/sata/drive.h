// SPDX-License-Identifier: GPL-2.0-or-later
//
// The drive behind AtaDrive::create(). A command is parsed (fis.h), looked up in the command table
// (command_table.cc) and given to its handler, which checks it, starts what it needs, plans its
// time and sets d2h and finish_ns; nothing is left half decided. Handlers live in files by theme:
// rw.cc, queued.cc (with ncq.h), dsm.cc, log.cc, power.cc, features.cc, smart_commands.cc. How
// commands end is in ata_drive.cc.
//
// The drive trusts neither the FIS nor the window: sizes are checked before the first byte moves.
#ifndef REVODRIVE_SATA_DRIVE_H
#define REVODRIVE_SATA_DRIVE_H

#include <array>
#include <cstdint>
#include <span>

#include "revodrive/ata_drive.h"
#include "sata/fis.h"
#include "sata/host_logs.h"
#include "sata/ncq.h"
#include "sata/sata_wire.h"
#include "sata/settings.h"
#include "sata/smart.h"

namespace revodrive {

class Drive;
struct Request;

struct CommandInfo {
  enum Flag : uint8_t {
    kLba48 = 1 << 0,     // 48-bit LBA and 16-bit count
    kFua = 1 << 1,       // not done before the data is on stable storage
    kMultiple = 1 << 2,  // PIO blocks of the SET MULTIPLE MODE size
  };
  using Handler = void (Drive::*)(AtaCommand &, const Request &);

  Handler handler = nullptr;
  Protocol protocol = Protocol::kNonData;
  uint8_t flags = 0;

  bool has(Flag flag) const { return flags & flag; }
};

// A command being executed. Lives as long as the call of its handler.
struct Request {
  TaskFile task;
  CommandInfo info;
  int64_t ready_ns = 0;  // decoded: the drive may answer or move data from now on
};

class Drive final : public AtaDrive {
 public:
  Drive(const DriveIdentity &identity, const SataProfile &sata, const FlashProfile &flash,
        Media &media, bool timing);

  void connect(AtaInitiator *initiator) override { initiator_ = initiator; }
  Fis signature() const override;
  void execute(AtaCommand &command) override;
  void finish(AtaCommand &command) override;
  void cancel(AtaCommand &command) override;
  void reset(LinkReset kind) override;
  void media_done(AtaCommand &command, int error) override;
  void save_command(const AtaCommand &command, StreamWriter &out) const override;
  void load_command(AtaCommand &command, StreamReader &in) override;
  void query(const Visitor &visit) const override;
  void save(StreamWriter &out) const override;
  void load(StreamReader &in) override;

 private:
  enum class PowerMode : uint8_t { kActive, kIdle, kStandby, kSleep };
  enum Counter {
    kReads,
    kWrites,
    kReadSectors,
    kWriteSectors,
    kFlushes,
    kTrims,
    kTrimRanges,
    kTrimSectors,
    kNcqCommands,
    kMediaErrors,
    kAborted,
    kMixedNcq,
    kLinkResets,
    kCounters,
  };
  // Where a log page is asked for: General Purpose Logging or SMART.
  enum class LogSpace { kGeneral, kSmart };

  static CommandInfo command_info(uint8_t opcode);

  // ata_drive.cc: the ends of a command, all called from inside execute()
  void succeed(AtaCommand &command, const Request &request, int64_t at_ns, uint64_t lba = 0,
               uint16_t count = 0);
  void fail(AtaCommand &command, const Request &request, uint8_t error, uint64_t lba = 0);
  void fail_short(AtaCommand &command, const Request &request);
  void submit(AtaCommand &command, rd_block_op op, SectorRange range,
              std::span<const rd_iov> iov = {});
  void reply(AtaCommand &command, const Request &request, const Page &page);
  // ... and after it
  void settle(AtaCommand &command);
  void settle_media_error(AtaCommand &command);
  void hand_back_aborted();
  void unmap(AtaCommand &command, bool done);

  // rw.cc
  void read_write(AtaCommand &command, const Request &request);
  void verify(AtaCommand &command, const Request &request);
  void flush(AtaCommand &command, const Request &request);
  void transfer(AtaCommand &command, const Request &request, SectorRange range, bool fua);
  void plan_read(AtaCommand &command, const Request &request, SectorRange range);
  void plan_write(AtaCommand &command, const Request &request, SectorRange range,
                  std::span<const rd_iov> iov, bool stable);
  bool decode_range(const Request &request, SectorRange *range) const;
  uint64_t limit(const Request &request) const;
  uint32_t block_bytes(const Request &request) const;
  void submit_flush(AtaCommand &command, const Request &request);

  // queued.cc
  void read_write_queued(AtaCommand &command, const Request &request);
  void interrupt_queue(AtaCommand &command, const Request &request);

  // dsm.cc
  void data_set_management(AtaCommand &command, const Request &request);

  // features.cc
  void identify(AtaCommand &command, const Request &request);
  void set_features(AtaCommand &command, const Request &request);
  void set_multiple(AtaCommand &command, const Request &request);
  void freeze_security(AtaCommand &command, const Request &request);
  void diagnose(AtaCommand &command, const Request &request);
  void unsupported(AtaCommand &command, const Request &request);

  // power.cc
  void power(AtaCommand &command, const Request &request);
  void check_power_mode(AtaCommand &command, const Request &request);

  // log.cc
  void read_log(AtaCommand &command, const Request &request);
  void write_log(AtaCommand &command, const Request &request);
  void send_log(AtaCommand &command, const Request &request, LogSpace space, uint32_t first,
                uint32_t count);
  void receive_log(AtaCommand &command, const Request &request, uint32_t first, uint32_t count);
  static uint32_t log_pages(LogSpace space, uint8_t address);
  Page log_page(LogSpace space, uint8_t address, uint32_t page) const;
  Page directory_page(LogSpace space) const;
  Page phy_counters_page() const;

  // smart_commands.cc
  void smart(AtaCommand &command, const Request &request);
  SmartInputs smart_inputs(int64_t now_ns) const;

  DriveIdentity identity_;
  uint32_t sata_generation_;
  Media &media_;
  AtaInitiator *initiator_ = nullptr;
  SataWire wire_;
  FlashController flash_;
  NcqQueue queue_;
  Settings settings_;
  Smart smart_;
  HostLogs host_logs_;
  PowerMode power_ = PowerMode::kActive;
  bool security_frozen_ = false;
  uint16_t comresets_ = 0;  // phy counter 00Ah
  std::array<uint64_t, kCounters> counters_{};
  unsigned executing_ = 0;                  // depth of execute()
  const AtaCommand *cancelling_ = nullptr;  // its transfers end without a word to the initiator
};

}  // namespace revodrive
#endif
