// SPDX-License-Identifier: GPL-2.0-or-later
//
// The drive's controller and flash as a matter of time: given when a command reaches it, it says
// when the data is ready or safe, booking channels and dies on the way. It holds no user data. This
// is the seam that a full SF-2281 model fills; the arithmetic behind it today is fixed NAND
// latencies with a bounded write buffer, and compression of what is written.
#ifndef REVODRIVE_FLASH_CONTROLLER_H
#define REVODRIVE_FLASH_CONTROLLER_H

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "revodrive/host.h"
#include "revodrive/journey.h"
#include "revodrive/profile.h"
#include "revodrive/stream.h"
#include "revodrive/timeline.h"

namespace revodrive {

class Compressor;

class FlashController {
 public:
  // `timing` false: every answer is "at once".
  FlashController(const FlashProfile &profile, bool timing);
  ~FlashController();

  // All times in ns of virtual time; each call moves the command's journey to the time it answers.
  // lba and sectors in 512-byte sectors, inside the drive. Decodes a command that arrived at
  // `at_ns`: every command passes here once, and what follows below starts at the answer or later.
  int64_t command(int64_t at_ns, Journey &journey);
  // When the first and the last byte of the read data are ready to leave the drive.
  Span read(int64_t at_ns, uint64_t lba, uint32_t sectors, Journey &journey);
  // The data is in the drive at `at_ns`: when it is accepted. `data` is what is written (it decides
  // the stored size).
  int64_t write(int64_t at_ns, uint64_t lba, uint32_t sectors, std::span<const rd_iov> data,
                Journey &journey);
  // When everything accepted so far is in flash.
  int64_t flush(int64_t at_ns, Journey &journey);
  // One range of a DATA SET MANAGEMENT.
  int64_t trim(int64_t at_ns, uint64_t lba, uint64_t sectors, Journey &journey);
  // Erases every block of a drive of `sectors`, which is fresh then. Returns when the last one is.
  int64_t erase_all(int64_t at_ns, uint64_t sectors, Journey &journey);

  // What was programmed into the flash since the controller was created: whole pages, of data as it
  // is stored.
  uint64_t nand_bytes_written() const { return programs_ * profile_.page_bytes; }

  // Names of the resources: "core", "channel 3", "die 12", after `prefix`.
  void watch(Observer *observer, const std::string &prefix);

  void power_cycle();
  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  int64_t page_transfer_ns() const;
  int64_t read_page(int64_t at_ns, uint64_t page);
  int64_t program_page(int64_t at_ns);

  FlashProfile profile_;
  bool timing_;
  std::unique_ptr<Compressor> compressor_;
  Timeline core_;
  std::vector<Timeline> channels_;
  std::vector<Timeline> dies_;
  std::vector<int64_t> buffer_;  // ring: when each of the last write_buffer_pages programs ends
  uint64_t programs_ = 0;        // pages ever programmed: picks the die and the ring entry
  uint32_t open_bytes_ = 0;      // accepted, but not yet a whole page
  int64_t last_program_ns_ = 0;
};

}  // namespace revodrive
#endif
