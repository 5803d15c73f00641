// SPDX-License-Identifier: GPL-2.0-or-later
//
// A drive on the bench with short ways to ask for its SMART data.
#ifndef REVODRIVE_TESTS_SMART_BENCH_H
#define REVODRIVE_TESTS_SMART_BENCH_H

#include <cstring>
#include <vector>

#include "drive_bench.h"
#include "runner.h"

namespace revodrive {

constexpr uint32_t kSmartKey = 0xC24F00;

struct Attribute {
  uint16_t flags;
  uint8_t value, worst;
  uint64_t raw;
};

class SmartBench : public DriveBench {
 public:
  using DriveBench::DriveBench;
  FakeCommand &smart(uint8_t feature, uint8_t low = 0, uint16_t count = 0,
                     const void *out = nullptr) {
    return run({.opcode = 0xB0, .lba = kSmartKey | low, .count = count, .features = feature},
               feature == 0xD0 || feature == 0xD1 ? 512u : count * 512u, out);
  }
  const uint8_t *data_page() {
    FakeCommand &done = smart(0xD0);
    ck_assert(done.good());
    ck_assert(sums_to_zero(done.window.data()));
    return done.window.data();
  }
  const uint8_t *log(uint8_t address) {
    FakeCommand &done = smart(0xD5, address, 1);
    ck_assert(done.good());
    return done.window.data();
  }
  Attribute attribute(uint8_t id) {
    const uint8_t *page = data_page();
    for (size_t at = 2; at < 362; at += 12) {
      if (page[at] != id)
        continue;
      uint64_t raw = 0;
      std::memcpy(&raw, page + at + 5, 7);
      return {static_cast<uint16_t>(page[at + 1] | page[at + 2] << 8), page[at + 3], page[at + 4],
              raw};
    }
    ck_abort_msg("attribute %u is missing", id);
  }
  void pass(int64_t ns) { initiator.now_ns += ns; }
  uint8_t test_status() { return data_page()[363]; }
  // LBA 23:8 of SMART RETURN STATUS.
  uint16_t verdict() {
    FakeCommand &done = smart(0xDA);
    ck_assert(done.good());
    return static_cast<uint16_t>(done.ata.d2h[5] | done.ata.d2h[6] << 8);
  }
  std::vector<uint8_t> stored() {
    StreamWriter out;
    drive->save_persistent(out, initiator.now_ns);
    return out.bytes();
  }
};

}  // namespace revodrive
#endif
