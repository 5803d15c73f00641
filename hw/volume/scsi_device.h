// SPDX-License-Identifier: GPL-2.0-or-later
//
// The SCSI device that the bridge shows in mode=vca: logical unit 0 is the volume as a disk (SPC-4,
// SBC-3); logical units 1 and up stand for members 1 and up and answer little more than ATA
// PASS-THROUGH (SAT-2), which unit 0 gives to member 0. A command is looked up in the command table
// (scsi_table.cc), checked against its usage map, and given to its handler, which settles it or
// submits a request to the volume and names the step that follows.
//
// Handlers by theme: scsi_blocks.cc (medium), scsi_claims.cc, scsi_unmap.cc, scsi_inquiry.cc,
// scsi_mode.cc, scsi_log.cc, scsi_unit.cc (state and reports), scsi_ata.cc (pass-through),
// scsi_erase.cc.
#ifndef REVODRIVE_VOLUME_SCSI_DEVICE_H
#define REVODRIVE_VOLUME_SCSI_DEVICE_H

#include <memory>
#include <string>
#include <vector>

#include "revodrive/profile.h"
#include "revodrive/scsi_command.h"
#include "volume/block_volume.h"
#include "volume/scsi_sense.h"

namespace revodrive {

class ScsiDevice;
struct ScsiTask;

struct ScsiOp {
  using Handler = void (ScsiDevice::*)(ScsiTask &);
  static constexpr int kNoAction = -1;
  enum Flag : uint8_t {
    kEveryUnit = 1 << 0,    // also the units of members know it
    kNoAttention = 1 << 1,  // leaves a unit attention pending
    kVolume = 1 << 2,       // needs a volume that is started
    kMap = 1 << 3,          // ... and knows where its blocks are
    kMedium = kVolume | kMap,
    kNotErasing = 1 << 4,  // waits for no erase: refused while one runs
  };

  uint8_t opcode = 0;
  int action = kNoAction;  // service action
  uint8_t bytes = 0;       // of the CDB
  uint8_t flags = 0;
  Handler handler = nullptr;
  // Bits of the CDB that mean something; any other must be 0. Byte 0 is not looked at.
  std::array<uint8_t, 16> usage{};

  bool has(Flag flag) const { return (flags & flag) != 0; }
  bool known_to(unsigned unit) const { return unit == 0 || has(kEveryUnit); }
};

// A command in progress. Made on first use and kept.
struct ScsiTask final : VolumeRequest {
  using Step = void (ScsiDevice::*)(ScsiTask &);
  // What it claims of the medium (scsi_claims.cc).
  enum class Claim : uint8_t { kNone, kShared, kAlone };

  ScsiCommand *command = nullptr;  // null: not in use
  const ScsiOp *operation = nullptr;
  unsigned unit = 0;
  int64_t ready_ns = 0;
  bool settled = false;
  Step then = nullptr;
  BufferWindow buffer;
  PatternWindow pattern;
  size_t position = 0;      // in a parameter list
  unsigned comparison = 0;  // BYTCHK
  Claim claim = Claim::kNone;
  uint64_t claim_lba = 0, claim_end = 0;
  bool erases = false;
  bool immediate = false;  // its status comes before it is done
  VolumeFailure undone = VolumeFailure::kNone;

  const std::array<uint8_t, 16> &cdb() const { return command->cdb; }
  uint8_t cdb(size_t at) const { return command->cdb[at]; }
  uint64_t be(size_t at, size_t count) const;
};

class ScsiDevice final : public ScsiTarget, private VolumeClient {
 public:
  // 4 MiB in one command; what VPD page B0h says.
  static constexpr uint32_t kMaxBlocks = 8192;
  static constexpr uint32_t kMaxUnmapBlocks = 4194240;  // what 64 TRIM ranges hold
  static constexpr uint32_t kMaxUnmapRanges = 64;
  static constexpr uint32_t kMaxSameBlocks = 65535;
  static constexpr uint32_t kMaxCompareBlocks = 128;  // of COMPARE AND WRITE
  static constexpr uint32_t kBlockBytes = RD_SECTOR_BYTES;

  ScsiDevice(BlockVolume &volume, const IdentityProfile &identity);

  void connect(ScsiInitiator *initiator) override { initiator_ = initiator; }
  uint64_t sas_address() const override;
  bool has_lun(uint64_t lun) const override { return unit_of(lun) >= 0; }
  void execute(ScsiCommand &command) override;
  void cancel(ScsiCommand &command) override;
  void cut_short() override;
  void reset(ScsiReset kind) override;
  void save(StreamWriter &out) const override;
  void load(StreamReader &in) override;
  void resume() override;

  static std::span<const ScsiOp> operations();

 private:
  using Bytes = std::vector<uint8_t>;
  using Step = ScsiTask::Step;

  // scsi_device.cc
  int unit_of(uint64_t lun) const;
  ScsiTask &take_task(ScsiCommand &command);
  void release(ScsiTask &task);
  void dispatch(ScsiTask &task);
  static const ScsiOp *find(const std::array<uint8_t, 16> &cdb, bool *opcode_known);
  bool check_cdb(ScsiTask &task);
  bool check_ready(ScsiTask &task);
  Sense take_pending();
  Sense not_ready() const;
  void open(ScsiTask &task);
  void volume_opened(ScsiTask &task);
  void no_unit(ScsiTask &task);
  void volume_done(VolumeRequest &request) override;
  void volume_late(int64_t late_ns) override;
  void submit(ScsiTask &task, Step then);
  void submit_each(ScsiTask &task, const Fis &h2d, Step then);

  // scsi_claims.cc
  bool claim(ScsiTask &task, uint64_t lba, uint64_t blocks, ScsiTask::Claim claim, Step then);
  bool blocked(const ScsiTask &task) const;
  void wake();
  void note_moved(const ScsiTask &task);
  void settled_late(ScsiTask &task);

  // ... the ends of a command
  void good(ScsiTask &task);
  void check(ScsiTask &task, const Sense &sense);
  void bad_field(ScsiTask &task, uint16_t byte, int bit = -1);
  void bad_parameter(ScsiTask &task, uint16_t byte, int bit = -1);
  void reply(ScsiTask &task, std::span<const uint8_t> bytes, uint64_t allocated);
  bool fetch(ScsiTask &task, std::span<uint8_t> to);
  void fail_volume(ScsiTask &task);
  static Sense sense_of(const ScsiTask &task);
  void end_volume(ScsiTask &task);

  // scsi_blocks.cc
  struct Extent {
    uint64_t lba;
    uint32_t blocks;
    uint16_t length_byte;  // where the CDB has the length
  };
  static Extent extent_of(const ScsiTask &task);
  bool check_extent(ScsiTask &task, const Extent &extent, uint32_t most);
  bool needs_data(ScsiTask &task, uint32_t blocks);
  void read(ScsiTask &task);
  void write(ScsiTask &task);
  void verify(ScsiTask &task);
  void write_and_verify(ScsiTask &task);
  void written_for_verify(ScsiTask &task);
  void start_verify(ScsiTask &task);
  void start_write(ScsiTask &task);
  void compare_and_write(ScsiTask &task);
  void start_compare(ScsiTask &task);
  void compared(ScsiTask &task);
  void compare(ScsiTask &task);
  void synchronize(ScsiTask &task);
  void read_capacity10(ScsiTask &task);
  void read_capacity16(ScsiTask &task);

  // scsi_unmap.cc
  void unmap(ScsiTask &task);
  void unmap_next(ScsiTask &task);
  void write_same(ScsiTask &task);
  void start_same(ScsiTask &task);
  void write_same_next(ScsiTask &task);

  // scsi_inquiry.cc
  void inquiry(ScsiTask &task);
  Bytes standard_inquiry(const ScsiTask &task) const;
  bool vital_page(const ScsiTask &task, uint8_t page, Bytes *bytes) const;
  Bytes identification(const ScsiTask &task) const;
  Bytes extended_inquiry() const;
  Bytes ata_information(unsigned member) const;
  Bytes block_limits() const;
  static Bytes block_characteristics();
  Bytes provisioning() const;
  std::string serial(unsigned unit) const;
  uint64_t unit_name(unsigned unit) const;

  // scsi_mode.cc
  void mode_sense(ScsiTask &task);
  void mode_select(ScsiTask &task);
  bool take_page(ScsiTask &task, std::span<const uint8_t> list, size_t at);
  Bytes mode_page(uint8_t page, bool changeable, bool defaults) const;

  // scsi_log.cc
  void log_sense(ScsiTask &task);
  void log_health(ScsiTask &task);
  void log_answer(ScsiTask &task);
  // What was read, or written, for the error counter pages.
  struct Moved {
    uint64_t bytes = 0;
    uint64_t failed = 0;
  };
  static Bytes log_errors(const Moved &moved);
  static bool skip_parameters(uint8_t page, uint64_t first, Bytes *body);
  static Bytes log_self_tests();
  static Bytes log_background();
  Bytes log_temperature(const ScsiTask &task) const;
  Bytes log_solid_state(const ScsiTask &task) const;
  Bytes log_exceptions(const ScsiTask &task) const;
  Bytes log_members() const;
  bool degraded() const;

  // scsi_unit.cc
  void test_unit_ready(ScsiTask &task);
  void request_sense(ScsiTask &task);
  void start_stop(ScsiTask &task);
  void stop_flushed(ScsiTask &task);
  void stopped(ScsiTask &task);
  void report_luns(ScsiTask &task);
  void report_operations(ScsiTask &task);
  void report_functions(ScsiTask &task);
  static Bytes all_operations(unsigned unit, bool timeouts);
  void read_buffer(ScsiTask &task);
  void write_buffer(ScsiTask &task);

  // scsi_ata.cc
  void pass_through(ScsiTask &task);
  void passed_through(ScsiTask &task);

  // scsi_erase.cc
  bool take_format_list(ScsiTask &task);
  void erase(ScsiTask &task);
  void erase_begin(ScsiTask &task);
  void erase_lock(ScsiTask &task);
  void erase_prepare(ScsiTask &task);
  void erase_prepared(ScsiTask &task);
  void erase_detached(ScsiTask &task);
  ScsiTask &take_own(const std::array<uint8_t, 16> &cdb);
  void erase_unit(ScsiTask &task);
  void erase_end(ScsiTask &task);
  void erase_undo(ScsiTask &task);
  void erase_undone(ScsiTask &task);
  void erase_over(ScsiTask &task);
  void erase_cut();
  uint16_t erase_failure() const;
  Sense erase_sense() const;

  BlockVolume &volume_;
  IdentityProfile identity_;
  ScsiInitiator *initiator_ = nullptr;
  std::vector<std::unique_ptr<ScsiTask>> tasks_;
  std::vector<ScsiTask *> free_;
  uint16_t attention_ = scsi::kPowerOn;  // pending unit attention, 0: none
  bool write_cache_ = true;
  bool descriptors_ = false;  // format of sense data
  bool stopped_ = false;
  std::array<Moved, 2> moved_;       // read, written
  std::vector<ScsiTask *> waiting_;  // for what others have claimed
  unsigned alone_ = 0;               // claims of that kind, waiting or not
  bool waking_ = false;
  uint16_t erasing_ = 0;       // what others hear meanwhile, 0: no erase runs
  uint16_t erase_failed_ = 0;  // what they hear until one succeeds
  uint16_t deferred_ = 0;      // why one of the device's own has not even begun, until it was told
  bool resumes_ = false;       // loaded: it goes on when the machine runs
  ScsiCommand own_command_;    // of the device's own, for which nobody waits
  BufferWindow own_window_;
  std::array<uint8_t, kBlockBytes> scratchpad_{};  // READ and WRITE BUFFER
};

// Big-endian fields of answers.
template <typename Container>
void put_be(Container &bytes, size_t at, size_t count, uint64_t value) {
  for (size_t i = 0; i < count; i++)
    bytes[at + i] = static_cast<uint8_t>(value >> (8 * (count - 1 - i)));
}

}  // namespace revodrive
#endif
