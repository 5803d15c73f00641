// SPDX-License-Identifier: GPL-2.0-or-later
//
// A volume of policy=dispatch over drives whose power can be cut, driven by hand. Each sector that
// is written says whose it is: its block of the volume and a version. So a block of another one is
// recognized wherever it turns up.
#ifndef REVODRIVE_TESTS_DISPATCH_BENCH_H
#define REVODRIVE_TESTS_DISPATCH_BENCH_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cut_media.h"
#include "drive_bench.h"
#include "volume/volume.h"

namespace revodrive {

struct DispatchJob final : VolumeRequest {
  DispatchJob(uint32_t bytes, Timeline *host) : window(bytes, host) {}
  FakeWindow window;
  unsigned ends = 0;
};

class DispatchBench final : public VolumeClient {
 public:
  static constexpr unsigned kMembers = 4;
  static constexpr uint64_t kMemberSectors = 32768;
  using Contents = std::vector<CutMedia::Content>;

  explicit DispatchBench(const Contents &contents = Contents(kMembers), bool timing = true,
                         rd_policy policy = RD_POLICY_DISPATCH)
      : port(kOps, this),
        volume({port,
                queue,
                {.command_ns = 1000, .part_ns = 500, .dispatch_ns = 300, .map_ns = 100},
                timing,
                policy},
               kMembers, 65536) {
    volume.set_client(this);
    for (unsigned i = 0; i < kMembers; i++) {
      media.push_back(std::make_unique<CutMedia>(kMemberSectors, contents[i]));
      drives.push_back(AtaDrive::create(
          {.model = "M", .serial = "SERIAL-" + std::to_string(i), .firmware = "F", .wwn = 5},
          test_sata(), test_flash(), *media[i], timing));
      volume.plug(i, *drives[i]);
    }
  }
  ~DispatchBench() {
    volume.drop_all();
    for (unsigned i = 0; i < kMembers; i++)
      volume.unplug(i);
  }

  DispatchJob &submit(VolumeOp op, uint64_t lba = 0, uint64_t sectors = 0, uint32_t version = 0,
                      bool stable = false) {
    bool moves = op == VolumeOp::kRead || op == VolumeOp::kWrite;
    jobs.push_back(std::make_unique<DispatchJob>(
        moves ? static_cast<uint32_t>(sectors * RD_SECTOR_BYTES) : 1, &host));
    DispatchJob &job = *jobs.back();
    job.op = op;
    job.lba = lba;
    job.sectors = sectors;
    job.stable = stable;
    job.data = moves ? &job.window : nullptr;
    for (uint64_t i = 0; op == VolumeOp::kWrite && i < sectors; i++)
      stamp(job.window.data() + i * RD_SECTOR_BYTES, lba + i, version);
    job.start_ns = volume.accept(now_ns);
    if (volume.submit(job))
      job.ends++;
    return job;
  }
  // One that has to have ended.
  DispatchJob &run(VolumeOp op, uint64_t lba = 0, uint64_t sectors = 0, uint32_t version = 0,
                   bool stable = false) {
    DispatchJob &job = submit(op, lba, sectors, version, stable);
    run_all();
    return job;
  }
  void run_all() {
    while (queue.next_ns() != RD_NEVER)
      step();
  }
  void step() {
    now_ns = std::max(now_ns, queue.next_ns());
    queue.run(now_ns);
  }
  bool open() { return !run(VolumeOp::kOpen).failed(); }

  static void stamp(uint8_t *bytes, uint64_t lba, uint32_t version) {
    for (size_t i = 0; i < 16; i++)
      bytes[i] = static_cast<uint8_t>((i < 8 ? lba : version) >> (8 * (i % 8)));
    std::memset(bytes + 16, static_cast<int>(lba + version) | 1, RD_SECTOR_BYTES - 16);
  }
  // The version in a sector, 0 for zeroes, -1 if it is not of this block.
  static int64_t version_in(const uint8_t *bytes, uint64_t lba) {
    if (std::all_of(bytes, bytes + RD_SECTOR_BYTES, [](uint8_t byte) { return byte == 0; }))
      return 0;
    uint32_t version = bytes[8] | bytes[9] << 8 | bytes[10] << 16;
    uint8_t want[RD_SECTOR_BYTES];
    stamp(want, lba, version);
    return std::memcmp(bytes, want, RD_SECTOR_BYTES) == 0 ? int64_t{version} : -1;
  }
  std::vector<int64_t> versions(uint64_t lba, uint64_t sectors) {
    DispatchJob &job = run(VolumeOp::kRead, lba, sectors);
    std::vector<int64_t> found;
    for (uint64_t i = 0; i < sectors; i++)
      found.push_back(job.failed() ? -2
                                   : version_in(job.window.data() + i * RD_SECTOR_BYTES, lba + i));
    return found;
  }

  uint64_t counter(const std::string &name) const {
    std::map<std::string, uint64_t> values;
    volume.query([&](std::string_view key, uint64_t value) { values[std::string(key)] = value; });
    return values.at(name);
  }
  Contents contents() const {
    Contents all;
    for (const auto &one : media)
      all.push_back(one->content);
    return all;
  }
  Contents after_cut(Random &random) const {
    Contents all;
    for (const auto &one : media)
      all.push_back(one->after_cut(random));
    return all;
  }

  std::function<void(DispatchJob &)> on_done = [](DispatchJob &) {};
  void volume_done(VolumeRequest &request) override {
    auto &job = static_cast<DispatchJob &>(request);
    job.ends++;
    on_done(job);
  }
  void volume_late(int64_t) override {}

  int64_t now_ns = 1000;
  Timeline host;
  EventQueue queue;
  HostPort port;
  std::vector<std::unique_ptr<CutMedia>> media;
  std::vector<std::unique_ptr<AtaDrive>> drives;
  Volume volume;
  std::vector<std::unique_ptr<DispatchJob>> jobs;
  std::vector<std::string> warnings;

 private:
  static const rd_host_ops kOps;
};

inline const rd_host_ops DispatchBench::kOps = [] {
  rd_host_ops ops{};
  ops.now_ns = [](void *bench) { return static_cast<DispatchBench *>(bench)->now_ns; };
  ops.block_wait = [](void *, unsigned) {};
  ops.log = [](void *bench, rd_log_level, const char *text) {
    static_cast<DispatchBench *>(bench)->warnings.push_back(text);
  };
  return ops;
}();

}  // namespace revodrive
#endif
