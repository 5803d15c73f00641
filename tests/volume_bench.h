// SPDX-License-Identifier: GPL-2.0-or-later
//
// A volume over real drives with fake media, without a bridge: requests are submitted by hand and
// time passes when the bench is told to run.
#ifndef REVODRIVE_TESTS_VOLUME_BENCH_H
#define REVODRIVE_TESTS_VOLUME_BENCH_H

#include <memory>
#include <vector>

#include "drive_bench.h"
#include "volume/volume.h"

namespace revodrive {

// Guest memory of one request, and how the request ended.
struct VolumeJob final : VolumeRequest {
  VolumeJob(uint32_t bytes, Timeline *host) : window(bytes, host) {}
  FakeWindow window;
  unsigned ends = 0;
};

class VolumeBench final : public VolumeClient {
 public:
  static constexpr unsigned kMembers = 4;
  static constexpr uint32_t kChunk = 128;

  explicit VolumeBench(uint64_t member_sectors = 8192, bool timing = true,
                       uint32_t chunk_sectors = kChunk)
      : port(kOps, this),
        volume({port, queue, {.command_ns = 1000, .part_ns = 500}, timing}, kMembers,
               chunk_sectors * RD_SECTOR_BYTES) {
    volume.set_client(this);
    for (unsigned i = 0; i < kMembers; i++) {
      media.push_back(std::make_unique<FakeMedia>(member_sectors));
      drives.push_back(make_drive(i, "SERIAL-" + std::to_string(i), timing));
      volume.plug(i, *drives[i]);
    }
  }
  ~VolumeBench() {
    volume.drop_all();
    for (unsigned i = 0; i < kMembers; i++)
      volume.unplug(i);
  }

  std::unique_ptr<AtaDrive> make_drive(unsigned member, const std::string &serial,
                                       bool timing = true) {
    return AtaDrive::create({.model = "M", .serial = serial, .firmware = "F", .wwn = 5},
                            test_sata(), test_flash(), *media[member], timing);
  }

  // A request of any kind that addresses the medium; the window holds `fill` in each byte.
  VolumeJob &submit(VolumeOp op, uint64_t lba, uint64_t sectors, uint8_t fill = 0) {
    bool moves = op == VolumeOp::kRead || op == VolumeOp::kWrite;
    uint32_t bytes = moves ? static_cast<uint32_t>(sectors * RD_SECTOR_BYTES) : 1;
    jobs.push_back(std::make_unique<VolumeJob>(bytes, &host));
    VolumeJob &job = *jobs.back();
    job.op = op;
    job.lba = lba;
    job.sectors = sectors;
    job.data = moves ? &job.window : nullptr;
    std::fill_n(job.window.data(), bytes, fill);
    start(job);
    return job;
  }
  VolumeJob &submit_each(uint8_t opcode) {
    jobs.push_back(std::make_unique<VolumeJob>(1, &host));
    VolumeJob &job = *jobs.back();
    job.op = VolumeOp::kEach;
    job.h2d = Command{.opcode = opcode}.fis();
    start(job);
    return job;
  }
  void start(VolumeJob &job) {
    job.start_ns = volume.accept(now_ns);
    if (volume.submit(job))
      job.ends++;
  }
  // Until nothing more happens.
  void run() {
    while (queue.next_ns() != RD_NEVER)
      step();
  }
  void step() {
    now_ns = std::max(now_ns, queue.next_ns());
    queue.run(now_ns);
  }

  void volume_done(VolumeRequest &request) override { static_cast<VolumeJob &>(request).ends++; }
  void volume_late(int64_t) override { late++; }

  int64_t now_ns = 1000;
  unsigned late = 0;
  Timeline host;
  EventQueue queue;
  HostPort port;
  std::vector<std::unique_ptr<FakeMedia>> media;
  std::vector<std::unique_ptr<AtaDrive>> drives;
  Volume volume;
  std::vector<std::unique_ptr<VolumeJob>> jobs;

 private:
  static const rd_host_ops kOps;
};

inline const rd_host_ops VolumeBench::kOps = [] {
  rd_host_ops ops{};
  ops.now_ns = [](void *bench) { return static_cast<VolumeBench *>(bench)->now_ns; };
  ops.block_wait = [](void *, unsigned) {};
  ops.log = [](void *, rd_log_level, const char *) {};
  return ops;
}();

}  // namespace revodrive
#endif
