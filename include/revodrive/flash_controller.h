// SPDX-License-Identifier: GPL-2.0-or-later
//
// The seam between a drive and its SSD controller with the flash behind it: a model of an SF-2281
// (and, with other numbers, of its peers) that says when a command's data is ready or safe, and
// keeps the books of the flash on the way: what is mapped where and how large it is stored, what
// has to be collected, how worn the blocks are. It holds no user data. How it works: docs/model.md.
//
// All times are ns of virtual time; lba and sectors are in 512-byte sectors, inside the drive. The
// calls come in the order of the commands; their times may overlap.
#ifndef REVODRIVE_FLASH_CONTROLLER_H
#define REVODRIVE_FLASH_CONTROLLER_H

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "revodrive/host.h"
#include "revodrive/journey.h"
#include "revodrive/memory_hint.h"
#include "revodrive/observer.h"
#include "revodrive/profile.h"
#include "revodrive/stream.h"
#include "revodrive/timeline.h"

namespace revodrive {

class FlashModel;

// What SMART wants to know of the flash, of its whole life.
struct FlashHealth {
  uint64_t program_fails = 0;
  uint64_t erase_fails = 0;
  uint64_t retired_blocks = 0;
  uint64_t spare_blocks = 0;            // when it was new
  uint32_t wear_range_percent = 0;      // of the rated cycles, between most and least worn
  uint32_t endurance_used_percent = 0;  // mean wear of the rated cycles
};

// What the flash holds when the drive is new to the host.
enum class FlashPreset : uint8_t {
  kFresh,   // nothing
  kFull,    // everything, written once in order, not compressible
  kSteady,  // ... and at random since, until garbage collection was in balance
  kImage,   // what the image holds, written once in order of address, not compressible
};

class FlashController {
 public:
  // False: the profile makes no drive of that size; *error has the arithmetic.
  static bool check(const FlashProfile &profile, uint64_t sectors, rd_error *error);

  // What check() accepts. `timing` false: every answer is "at once", the books are the same.
  // `memory` is told of the map.
  FlashController(const FlashProfile &profile, uint64_t sectors, bool timing,
                  const MemoryHint &memory = {});
  ~FlashController();

  // Each call moves the command's journey to the time it answers. Decodes a command that arrived
  // at `at_ns`: every command passes here once, and what follows below starts at the answer or
  // later.
  int64_t command(int64_t at_ns, Journey &journey);
  // No command has come until `now_ns` (since the last one, which may have been long ago): catches
  // up with what the firmware has done by itself meanwhile. For those who look at counters or store
  // the state; command() does it too, and how often it is called makes no difference.
  void idle(int64_t now_ns);
  // In standby and asleep the firmware does nothing by itself.
  void rest(bool resting);
  // A command for this sector follows soon: no more than a hint to the processor's cache.
  void expect(uint64_t lba) const;
  // When the first and the last byte of the read data are ready to leave the drive; the journey is
  // moved to the first, as the others overlap with what comes next.
  Span read(int64_t at_ns, uint64_t lba, uint32_t sectors, Journey &journey);
  // The data is in the drive at `at_ns`: when it is accepted. `data` is what is written (it decides
  // the stored size); what it lacks counts as not compressible.
  int64_t write(int64_t at_ns, uint64_t lba, uint32_t sectors, std::span<const rd_iov> data,
                Journey &journey);
  // When everything accepted so far is in flash.
  int64_t flush(int64_t at_ns, Journey &journey);
  // One range of a DATA SET MANAGEMENT: whole mapping units of it are free afterwards.
  int64_t trim(int64_t at_ns, uint64_t lba, uint64_t sectors, Journey &journey);
  // Erases every block; the drive is fresh then. Returns when the last one is.
  int64_t erase_all(int64_t at_ns, Journey &journey);

  // A new drive, without wear, filled by bookkeeping in no time. The seed says where what is;
  // `data` is what the image holds, for kImage, in any order.
  void renew(FlashPreset kind, uint64_t seed, std::span<const rd_extent> data = {});

  // Bytes of whole pages, parity and garbage collection included; since the object was created.
  uint64_t nand_bytes_written() const;
  FlashHealth health() const;
  // Counters by name, see docs/counters.md.
  using Visitor = std::function<void(std::string_view name, uint64_t value)>;
  void query(const Visitor &visit) const;

  // Names of the resources: "core", "channel 3", "die 12", after `prefix`.
  void watch(Observer *observer, const std::string &prefix);

  // What was accepted and not flushed is taken as written; nothing is going on any more.
  void power_cycle();
  void save(StreamWriter &out) const;
  void load(StreamReader &in);
  // What outlives the power: the map, or a summary of it where that takes more than `most_bytes`.
  // A drive that comes back from a summary has the same wear, and as much mapped in each part of
  // the drive and each superblock as before, but not the same units. True: it is a summary.
  bool save_persistent(StreamWriter &out, size_t most_bytes) const;
  void load_persistent(StreamReader &in);

  // Null, or which rule of the books is broken: for tests.
  const char *check_books() const;

 private:
  std::unique_ptr<FlashModel> model_;
};

}  // namespace revodrive
#endif
