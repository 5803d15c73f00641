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
#include "volume_rig.h"

namespace revodrive {

class DispatchBench final : public VolumeRig<CutMedia> {
 public:
  static constexpr uint64_t kMemberSectors = 32768;
  using Contents = std::vector<CutMedia::Content>;

  explicit DispatchBench(const Contents &contents = Contents(kMembers), bool timing = true,
                         rd_policy policy = RD_POLICY_DISPATCH)
      : VolumeRig({.command_ns = 1000, .part_ns = 500, .dispatch_ns = 300, .map_ns = 100}, timing,
                  policy, 65536) {
    for (const CutMedia::Content &content : contents)
      add(std::make_unique<CutMedia>(kMemberSectors, content));
  }

  VolumeJob &submit(VolumeOp op, uint64_t lba = 0, uint64_t sectors = 0, uint32_t version = 0,
                    bool stable = false) {
    VolumeJob &job = new_job(op, lba, sectors);
    job.stable = stable;
    for (uint64_t i = 0; op == VolumeOp::kWrite && i < sectors; i++)
      stamp(job.window.data() + i * RD_SECTOR_BYTES, lba + i, version);
    start(job);
    return job;
  }
  // One that has to have ended.
  VolumeJob &run(VolumeOp op, uint64_t lba = 0, uint64_t sectors = 0, uint32_t version = 0,
                 bool stable = false) {
    VolumeJob &job = submit(op, lba, sectors, version, stable);
    run_all();
    return job;
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
    VolumeJob &job = run(VolumeOp::kRead, lba, sectors);
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
};

}  // namespace revodrive
#endif
