// SPDX-License-Identifier: GPL-2.0-or-later
//
// One drive on the bench: a fake backend below it, a fake initiator above it, and short ways to
// write commands. Each bench of a test starts in the power-on state.
#ifndef REVODRIVE_TESTS_DRIVE_BENCH_H
#define REVODRIVE_TESTS_DRIVE_BENCH_H

#include <map>
#include <string>

#include "fake_initiator.h"
#include "fake_media.h"
#include "revodrive/ata_drive.h"

namespace revodrive {

// Round numbers; no parity, no journal, no engine that takes time, the whole map at hand.
inline FlashProfile test_flash() {
  FlashProfile flash;
  flash.command_ns = 2000;
  flash.trim_range_ns = 1000;
  flash.write_buffer_bytes = 256 * 1024;
  flash.channels = 8;
  flash.dies_per_channel = 2;
  flash.planes = 2;
  flash.page_bytes = 8192;
  flash.page_spare_bytes = 448;
  flash.codeword_bytes = 1024;
  flash.block_pages = 256;
  flash.bus_mb_s = 166;
  flash.read_page_us = 75;
  flash.program_page_us = 1300;
  flash.erase_block_us = 3800;
  flash.raw_permille = 1145;
  flash.map_unit_bytes = 4096;
  flash.map_page_units = 1024;
  flash.gc_free_permille = 5;
  flash.endurance_cycles = 3000;
  return flash;
}

inline SataProfile test_sata() {
  return {.speed = 3, .efficiency_permille = 1000, .fis_overhead_bytes = 32, .link_up_us = 1000};
}

// Fields of an H2D register FIS; count and features are 16 bits wide.
struct Command {
  uint8_t opcode = 0;
  uint64_t lba = 0;
  uint16_t count = 0;
  uint16_t features = 0;
  uint8_t device = 0x40;

  Fis fis() const {
    Fis fis{0x27, 0x80, opcode};
    fis[3] = static_cast<uint8_t>(features);
    fis[11] = static_cast<uint8_t>(features >> 8);
    for (unsigned i = 0; i < 3; i++) {
      fis[4 + i] = static_cast<uint8_t>(lba >> (8 * i));
      fis[8 + i] = static_cast<uint8_t>(lba >> (24 + 8 * i));
    }
    fis[7] = device;
    fis[12] = static_cast<uint8_t>(count);
    fis[13] = static_cast<uint8_t>(count >> 8);
    return fis;
  }
};

inline Command queued(bool write, uint8_t tag, uint64_t lba, uint16_t sectors, bool fua = false) {
  return {.opcode = static_cast<uint8_t>(write ? 0x61 : 0x60),
          .lba = lba,
          .count = static_cast<uint16_t>(tag << 3),
          .features = sectors,
          .device = static_cast<uint8_t>(fua ? 0xC0 : 0x40)};
}

class DriveBench {
 public:
  explicit DriveBench(uint64_t sectors = 1 << 20, bool timing = true,
                      const DriveIdentity &identity = {.model = "OCZ-REVODRIVE3 X2",
                                                       .serial = "OCZ-0123456789ABCDEF",
                                                       .firmware = "2.25",
                                                       .wwn = 0x5E83A97123456789},
                      const DriveOptions &options = {}, const FlashProfile &flash = test_flash())
      : media(sectors),
        drive(AtaDrive::create(identity, test_sata(), flash, media, timing, options)),
        initiator(*drive) {}

  FakeMedia media;
  std::unique_ptr<AtaDrive> drive;
  FakeInitiator initiator;

  FakeCommand &issue(const Command &command, uint32_t bytes = 0, const void *out = nullptr) {
    return initiator.issue(command.fis(), bytes, out);
  }
  // Issues, and lets time pass until it has ended.
  FakeCommand &run(const Command &command, uint32_t bytes = 0, const void *out = nullptr) {
    FakeCommand &done = issue(command, bytes, out);
    initiator.run();
    return done;
  }
  FakeCommand &read_log(uint8_t address, uint16_t pages = 1, uint8_t opcode = 0x2F) {
    return run({.opcode = opcode, .lba = address, .count = pages}, pages * 512u);
  }
  uint64_t counter(const std::string &name) const {
    std::map<std::string, uint64_t> values;
    drive->query([&](std::string_view key, uint64_t value) { values[std::string(key)] = value; });
    return values.at(name);
  }
  bool rules_kept() const { return !initiator.broken_rule && !media.broken_rule; }
};

inline bool sums_to_zero(const uint8_t *page) {
  uint8_t sum = 0;
  for (size_t i = 0; i < 512; i++)
    sum = static_cast<uint8_t>(sum + page[i]);
  return sum == 0;
}

inline uint16_t word_at(const uint8_t *page, size_t index) {
  return static_cast<uint16_t>(page[2 * index] | page[2 * index + 1] << 8);
}

}  // namespace revodrive
#endif
