// SPDX-License-Identifier: GPL-2.0-or-later
//
// The SCSI device over a volume that is a piece of memory: requests end when the bench says so, and
// every one is recorded.
#ifndef REVODRIVE_TESTS_SCSI_BENCH_H
#define REVODRIVE_TESTS_SCSI_BENCH_H

#include <initializer_list>
#include <memory>
#include <vector>

#include "fake_initiator.h"
#include "volume/scsi_device.h"

namespace revodrive {

class FakeVolume final : public BlockVolume {
 public:
  struct Record {
    VolumeOp op;
    uint64_t lba, sectors;
    bool stable;
    uint8_t opcode;
    bool operator==(const Record &) const = default;
  };
  static constexpr uint64_t kSectors = 65536;

  std::vector<uint8_t> bytes = std::vector<uint8_t>(kSectors * RD_SECTOR_BYTES);
  std::vector<Record> records;
  std::vector<VolumeRequest *> held;
  bool hold = false;
  bool is_formed = true;
  bool is_open = true;
  bool is_damaged = false;
  uint32_t unit = 1;
  unsigned erasures = 0;
  VolumeFailure failure = VolumeFailure::kNone;  // of every request to come
  uint64_t failed_lba = 0;
  bool refuses = false;  // the members have said so
  MemberState states[4] = {};
  std::array<uint8_t, RD_SECTOR_BYTES> page{};  // what data-in commands of members give

  bool submit(VolumeRequest &request) override {
    bool addressed = request.addressed();
    records.push_back({request.op, addressed ? request.lba : 0, addressed ? request.sectors : 0,
                       request.stable,
                       addressed                        ? uint8_t{0}
                       : request.op == VolumeOp::kFlush ? uint8_t{0xEA}
                                                        : request.h2d[2]});
    request.failure = VolumeFailure::kNone;
    request.answers = {};
    if (hold) {
      held.push_back(&request);
      return false;
    }
    perform(request);
    return true;
  }
  void cancel(VolumeRequest &request) override { std::erase(held, &request); }
  unsigned link_resets = 0;
  void reset_links() override { link_resets++; }
  void answer() {
    VolumeRequest &request = *held.front();
    held.erase(held.begin());
    perform(request);
    client->volume_done(request);
  }
  void set_client(VolumeClient *it) override { client = it; }
  bool opened() const override { return is_open; }
  bool damaged() const override { return is_damaged; }
  void erased(bool completely) override { erasures += completely ? 1 : 100; }
  uint16_t done_share = 0;
  uint16_t progress(const VolumeRequest &) const override { return done_share; }
  bool zeroes() const override { return unit > 1; }
  uint32_t map_unit_sectors() const override { return unit; }
  bool formed() const override { return is_formed; }
  uint64_t sectors() const override { return is_formed ? kSectors : 0; }
  unsigned members() const override { return 4; }
  uint32_t chunk_sectors() const override { return 128; }
  MemberState state(unsigned member) const override { return states[member]; }
  const std::array<uint8_t, RD_SECTOR_BYTES> *identity(unsigned) const override { return &page; }
  uint64_t fingerprint() const override { return 0x123456789ABCDEF; }
  int64_t accept(int64_t at_ns) override { return at_ns + 1000; }
  int64_t now_ns() const override { return 5000; }

 private:
  void perform(VolumeRequest &request) {
    if (refuses)
      request.answers.fill({0x34, 0x40, 0x51, 0x04});
    if (failure != VolumeFailure::kNone)
      return request.note_failure(failure, failed_lba);
    uint8_t *at = bytes.data() + request.lba * RD_SECTOR_BYTES;
    size_t count = request.sectors * RD_SECTOR_BYTES;
    bool member = request.op == VolumeOp::kEach || request.op == VolumeOp::kMember;
    if (request.op == VolumeOp::kRead)
      request.data->copy_to_guest(0, {at, count});
    else if (request.op == VolumeOp::kWrite)
      request.data->copy_from_guest(0, {at, count});
    else if (request.op == VolumeOp::kTrim)
      std::fill_n(at, count, uint8_t{0xFF});
    else if (member && request.data && request.h2d[2] != 0xF1 && request.h2d[2] != 0xF4)
      request.data->copy_to_guest(0, page);
    for (Fis &answer : request.answers)
      answer = {0x34, 0x40, 0x50, 0, 1, 2, 3, 0x40, 4, 5, 6, 0, 7, 8};
  }

  VolumeClient *client = nullptr;
};

// One command and its guest memory.
struct ScsiJob {
  ScsiJob(uint32_t bytes, Timeline *host) : window(bytes, host) { command.data = &window; }
  FakeWindow window;
  ScsiCommand command;
  bool done = false;

  uint8_t key() const { return command.sense[0] == 0x72 ? command.sense[1] : command.sense[2]; }
  unsigned code() const {
    size_t at = command.sense[0] == 0x72 ? 2 : 12;
    return static_cast<unsigned>(command.sense[at] << 8 | command.sense[at + 1]);
  }
  // Of the field pointer, -1 without one.
  int field() const {
    return command.sense[15] & 0x80 ? command.sense[16] << 8 | command.sense[17] : -1;
  }
  int bit() const { return command.sense[15] & 0x08 ? command.sense[15] & 7 : -1; }
  bool in_cdb() const { return command.sense[15] & 0x40; }
};

class ScsiBench final : public ScsiInitiator {
 public:
  ScsiBench() {
    device.connect(this);
    run({0x00});  // takes the unit attention of the power-on
  }

  ScsiJob &start(std::initializer_list<uint8_t> cdb, uint32_t bytes = 0,
                 const std::vector<uint8_t> &out = {}, unsigned unit = 0) {
    jobs.push_back(std::make_unique<ScsiJob>(bytes, &host));
    ScsiJob &job = *jobs.back();
    std::copy(cdb.begin(), cdb.end(), job.command.cdb.begin());
    std::copy(out.begin(), out.end(), job.window.data());
    job.command.lun = uint64_t{unit} << 48;
    job.command.owner = &job;
    job.command.issue_ns = 1000;
    device.execute(job.command);
    job.done = job.command.finish_ns != RD_NEVER;
    return job;
  }
  // One that has to have ended.
  ScsiJob &run(std::initializer_list<uint8_t> cdb, uint32_t bytes = 0,
               const std::vector<uint8_t> &out = {}, unsigned unit = 0) {
    ScsiJob &job = start(cdb, bytes, out, unit);
    broken_rule |= !job.done || !job.window.guards_intact();
    return job;
  }
  void scsi_done(ScsiCommand &command) override {
    static_cast<ScsiJob *>(command.owner)->done = true;
  }
  void scsi_late(int64_t) override {}

  bool broken_rule = false;  // a command did not end, or wrote where it may not
  Timeline host;
  FakeVolume volume;
  ScsiDevice device{volume, {.model = "OCZ-REVODRIVE3 X2", .firmware = "2.25"}};
  std::vector<std::unique_ptr<ScsiJob>> jobs;
};

}  // namespace revodrive
#endif
