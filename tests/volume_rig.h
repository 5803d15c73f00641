// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the benches of a volume have in common: four drives over media of the bench's kind, the
// volume over them, a clock that moves when the bench is told to run, and the requests so far.
#ifndef REVODRIVE_TESTS_VOLUME_RIG_H
#define REVODRIVE_TESTS_VOLUME_RIG_H

#include <functional>
#include <memory>
#include <string>
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

template <typename Medium>
class VolumeRig : public VolumeClient {
 public:
  static constexpr unsigned kMembers = 4;

  VolumeRig(const VolumeProfile &profile, bool timing, rd_policy policy, uint32_t chunk_bytes)
      : port(kOps, this),
        volume({port, queue, profile, timing, policy}, kMembers, chunk_bytes),
        timing_(timing) {
    volume.set_client(this);
  }
  ~VolumeRig() {
    volume.drop_all();
    for (unsigned i = 0; i < kMembers; i++)
      volume.unplug(i);
  }

  std::unique_ptr<AtaDrive> make_drive(unsigned member, const std::string &serial) {
    return AtaDrive::create({.model = "M", .serial = serial, .firmware = "F", .wwn = 5},
                            test_sata(), test_flash(), *media[member], timing_);
  }
  // The next member.
  void add(std::unique_ptr<Medium> medium) {
    auto member = static_cast<unsigned>(media.size());
    media.push_back(std::move(medium));
    drives.push_back(make_drive(member, "SERIAL-" + std::to_string(member)));
    volume.plug(member, *drives[member]);
  }

  // A request that was not submitted yet.
  VolumeJob &new_job(VolumeOp op, uint64_t lba = 0, uint64_t sectors = 0) {
    bool moves = op == VolumeOp::kRead || op == VolumeOp::kWrite;
    jobs.push_back(std::make_unique<VolumeJob>(
        moves ? static_cast<uint32_t>(sectors * RD_SECTOR_BYTES) : 1, &host));
    VolumeJob &job = *jobs.back();
    job.op = op;
    job.lba = lba;
    job.sectors = sectors;
    job.data = moves ? &job.window : nullptr;
    return job;
  }
  void start(VolumeJob &job) {
    job.start_ns = volume.accept(now_ns);
    if (volume.submit(job))
      job.ends++;
  }
  // Until nothing more happens.
  void run_all() {
    while (queue.next_ns() != RD_NEVER)
      step();
  }
  void step() {
    now_ns = std::max(now_ns, queue.next_ns());
    queue.run(now_ns);
  }

  std::function<void(VolumeJob &)> on_done = [](VolumeJob &) {};
  void volume_done(VolumeRequest &request) override {
    auto &job = static_cast<VolumeJob &>(request);
    job.ends++;
    on_done(job);
  }
  void volume_late(int64_t) override { late++; }

  int64_t now_ns = 1000;
  unsigned late = 0;
  Timeline host;
  EventQueue queue;
  HostPort port;
  std::vector<std::unique_ptr<Medium>> media;
  std::vector<std::unique_ptr<AtaDrive>> drives;
  Volume volume;
  std::vector<std::unique_ptr<VolumeJob>> jobs;
  std::vector<std::string> warnings;

 private:
  static const rd_host_ops kOps;

  bool timing_;
};

template <typename Medium>
inline const rd_host_ops VolumeRig<Medium>::kOps = [] {
  rd_host_ops ops{};
  ops.now_ns = [](void *rig) { return static_cast<VolumeRig *>(rig)->now_ns; };
  ops.block_wait = [](void *, unsigned) {};
  ops.log = [](void *rig, rd_log_level, const char *text) {
    static_cast<VolumeRig *>(rig)->warnings.push_back(text);
  };
  return ops;
}();

}  // namespace revodrive
#endif
