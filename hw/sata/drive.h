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
#include <vector>

#include "revodrive/ata_drive.h"
#include "sata/firmware.h"
#include "sata/fis.h"
#include "sata/host_logs.h"
#include "sata/hpa.h"
#include "sata/ncq.h"
#include "sata/phy_counters.h"
#include "sata/power_state.h"
#include "sata/sata_wire.h"
#include "sata/sct.h"
#include "sata/security.h"
#include "sata/self_test.h"
#include "sata/settings.h"
#include "sata/smart.h"
#include "sata/trim_map.h"

namespace revodrive {

class Drive;
struct Request;

struct CommandInfo {
  enum Flag : uint8_t {
    kLba48 = 1 << 0,     // 48-bit LBA and 16-bit count
    kFua = 1 << 1,       // not done before the data is on stable storage
    kMultiple = 1 << 2,  // PIO blocks of the SET MULTIPLE MODE size
    kMedium = 1 << 3,    // accesses the medium: wakes the drive
    // What the security state forbids (ATA8-ACS 4.20, table of security mode command actions).
    kNotLocked = 1 << 4,
    kNotFrozen = 1 << 5,
    kInPanic = 1 << 6,  // works even when the firmware has crashed
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
        Media &media, bool timing, const DriveOptions &options);

  void connect(AtaInitiator *initiator) override {
    initiator_ = initiator;
    if (!initiator)
      rest();
  }
  Fis signature() const override;
  void expect(const Fis &h2d) const override;
  void expect_sector(uint64_t lba) const override { flash_.expect(lba); }
  void execute(AtaCommand &command) override;
  void finish(AtaCommand &command) override;
  void cancel(AtaCommand &command) override;
  void reset(LinkReset kind) override;
  void media_done(AtaCommand &command, int error) override;
  void save_command(const AtaCommand &command, StreamWriter &out) const override;
  void load_command(AtaCommand &command, StreamReader &in) override;
  void query(const Visitor &visit) const override;
  void idle(int64_t now_ns) override { flash_.idle(now_ns); }
  void watch(Observer *observer, const std::string &prefix) override {
    wire_.watch(observer, prefix + "sata");
    flash_.watch(observer, prefix);
  }
  bool set(std::string_view name, uint64_t value, rd_error *error) override;
  void connect_store(DriveStore *store) override { store_ = store; }
  void load_persistent(StreamReader &in) override;
  void power_on(int64_t now_ns) override;
  void save_persistent(StreamWriter &out, int64_t now_ns) override;
  void rest() override { map_open_ = false; }
  void save(StreamWriter &out) const override;
  void load(StreamReader &in) override;

 private:
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
    kUncorrectableReads,
    kSecureErases,
    kTrimmedReads,
    kIcrcErrors,
    kCounters,
  };
  // Where a log page is asked for: General Purpose Logging or SMART.
  enum class LogSpace { kGeneral, kSmart };

  static CommandInfo command_info(uint8_t opcode);

  // ata_drive.cc: the ends of a command, all called from inside execute()
  void dispatch(AtaCommand &command, Request &request);
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

  // gate.cc: what may keep a command from its handler
  bool permitted(const Request &request);
  bool is_soft_reset(const Fis &h2d) const;
  void soft_reset(AtaCommand &command, const Request &request);

  // chain.cc: commands of more than one step on the backend
  bool advance(AtaCommand &command);
  void take_step(AtaCommand &command);
  void submit_chunk(AtaCommand &command, rd_block_op op, uint32_t most);
  void end_chain(AtaCommand &command);

  // trim_reads.cc
  void note_write(AtaCommand &command, SectorRange range);
  void patch_trimmed(const AtaCommand &command);
  void save_trim_map(StreamWriter &out);
  void load_trim_map(StreamReader &in);

  // security_commands.cc
  void security_command(AtaCommand &command, const Request &request);
  void erase_unit(AtaCommand &command, const Request &request, Security::Block block,
                  int64_t at_ns);

  // hpa_commands.cc
  void read_native_max(AtaCommand &command, const Request &request);
  void set_max(AtaCommand &command, const Request &request);
  void set_max_address(AtaCommand &command, const Request &request);

  // firmware_commands.cc
  void download_microcode(AtaCommand &command, const Request &request);

  // persistent.cc
  struct Concern;
  static const Concern kConcerns[];
  void load_flash(StreamReader &in);
  const Concern *find_concern(std::span<const char, 4> mark) const;
  // The state that outlives the power has changed: the command waits until that is durable ...
  void persist(AtaCommand &command);
  // ... or nobody does.
  void note_changed(int64_t now_ns);

  // drive_faults.cc
  bool faulted_on_arrival(AtaCommand &command, const Request &request);
  bool faulted_in_transfer(AtaCommand &command, const Request &request);
  bool meets_fault(FaultStage stage, AtaCommand &command, const Request &request);
  void keep_tag(AtaCommand &command, const Request &request);
  bool rests_at_end(AtaCommand &command);
  void settle_fault(AtaCommand &command);
  void count_fault(AtaCommand &command);
  std::span<const rd_iov> corrupt_write(AtaCommand &command, std::span<const rd_iov> iov);
  static void corrupt_read(AtaCommand &command);

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
  void receive_log(AtaCommand &command, const Request &request, LogSpace space, uint32_t first,
                   uint32_t count);
  static uint32_t log_pages(LogSpace space, uint8_t address);
  bool log_page(LogSpace space, uint8_t address, uint32_t number, Page *page);
  bool write_log_pages(uint8_t address, uint32_t first, std::span<const uint8_t> bytes);
  Page directory_page(LogSpace space) const;
  uint8_t sct_state() const;

  // smart_commands.cc
  void smart(AtaCommand &command, const Request &request);
  void smart_status(AtaCommand &command, const Request &request);
  void smart_offline(AtaCommand &command, const Request &request);
  void enable_smart(AtaCommand &command, const Request &request, bool enable);
  SmartTotals smart_totals() const;
  Page smart_data_page();
  // Lets the drive's own clock catch up: before anything that shows or keeps what depends on it.
  void catch_up(int64_t now_ns);
  // The medium is used: the drive leaves its standby, where the power could have gone.
  void unpark(int64_t now_ns);

  DriveIdentity identity_;
  uint32_t sata_generation_;
  bool timing_;
  DriveOptions options_;
  Media &media_;
  AtaInitiator *initiator_ = nullptr;
  DriveStore *store_ = nullptr;
  SataWire wire_;
  FlashController flash_;
  NcqQueue queue_;
  Settings settings_;
  Smart smart_;
  SelfTest self_test_;
  Sct sct_;
  HostLogs host_logs_;
  PhyCounters phy_counters_;
  PowerState power_;
  Security security_;
  Hpa hpa_;
  Firmware firmware_;
  TrimMap trim_map_;
  // Of the command being executed.
  Hpa::Form max_address_allowed_ = Hpa::Form::kNone;
  int64_t now_ns_ = 0;
  // The store holds bits of trim_map_ that a write has to take back before it ends.
  bool map_stored_ = false;
  bool map_open_ = true;  // writes go on: the map is not for the store
  uint32_t map_generation_ = 0;
  const AtaCommand *eraser_ = nullptr;  // SECURITY ERASE UNIT is running
  bool srst_ = false;                   // the host holds the drive in soft reset
  std::vector<uint8_t> scratch_;        // where READ VERIFY reads to
  bool linked_ = false;                 // a COMRESET came since the power did
  std::array<uint64_t, kCounters> counters_{};
  unsigned executing_ = 0;                  // depth of execute()
  const AtaCommand *cancelling_ = nullptr;  // its transfers end without a word to the initiator
};

}  // namespace revodrive
#endif
