// SPDX-License-Identifier: GPL-2.0-or-later
//
// A volume over real drives with fake media, without a bridge: requests are submitted by hand and
// time passes when the bench is told to run.
#ifndef REVODRIVE_TESTS_VOLUME_BENCH_H
#define REVODRIVE_TESTS_VOLUME_BENCH_H

#include <memory>

#include "volume_rig.h"

namespace revodrive {

class VolumeBench final : public VolumeRig<FakeMedia> {
 public:
  static constexpr uint32_t kChunk = 128;

  explicit VolumeBench(uint64_t member_sectors = 8192, bool timing = true,
                       uint32_t chunk_sectors = kChunk)
      : VolumeRig({.command_ns = 1000, .part_ns = 500}, timing, RD_POLICY_STRIPE,
                  chunk_sectors * RD_SECTOR_BYTES) {
    for (unsigned i = 0; i < kMembers; i++)
      add(std::make_unique<FakeMedia>(member_sectors));
  }

  // A request of any kind that addresses the medium; the window holds `fill` in each byte.
  VolumeJob &submit(VolumeOp op, uint64_t lba, uint64_t sectors, uint8_t fill = 0) {
    VolumeJob &job = new_job(op, lba, sectors);
    if (job.data)
      std::fill_n(job.window.data(), sectors * RD_SECTOR_BYTES, fill);
    start(job);
    return job;
  }
  VolumeJob &submit_each(uint8_t opcode) {
    VolumeJob &job = new_job(VolumeOp::kEach);
    job.h2d = Command{.opcode = opcode}.fis();
    start(job);
    return job;
  }
  void run() { run_all(); }
};

}  // namespace revodrive
#endif
