// SPDX-License-Identifier: GPL-2.0-or-later
//
// The SATA link between initiator and drive as a matter of time: one Timeline, since the link
// carries one FIS at a time in either direction. A FIS takes its bytes plus the profile's overhead
// at the line's payload rate; data goes in FISes of at most 8 KiB, and each is on its way through
// host memory while it is on the wire (cut-through).
#ifndef REVODRIVE_SATA_SATA_WIRE_H
#define REVODRIVE_SATA_SATA_WIRE_H

#include <cstdint>

#include "revodrive/ata_command.h"
#include "revodrive/memo.h"
#include "revodrive/profile.h"
#include "revodrive/stream.h"
#include "revodrive/timeline.h"

namespace revodrive {

// How a command moves over the link (Serial ATA 3.0, clause 11).
enum class Protocol : uint8_t {
  kNonData,
  kPioIn,
  kPioOut,
  kDmaIn,
  kDmaOut,
  kQueuedIn,
  kQueuedOut,
};

constexpr bool is_queued(Protocol protocol) {
  return protocol == Protocol::kQueuedIn || protocol == Protocol::kQueuedOut;
}
constexpr bool is_pio(Protocol protocol) {
  return protocol == Protocol::kPioIn || protocol == Protocol::kPioOut;
}

// All times are ns of virtual time. A journey is moved along to the time that is returned.
class SataWire {
 public:
  static constexpr uint32_t kMaxDataBytes = 8192;  // Serial ATA 3.0, 10.3.11

  // `timing` false: nothing takes time and no way to host memory is booked.
  SataWire(const SataProfile &profile, bool timing);

  // H2D register FIS sent at or after `at_ns`: when the drive has it.
  int64_t command(int64_t at_ns, Journey &journey);
  // The D2H FIS that clears BSY once a queued command was taken. Nobody waits for it.
  void release(int64_t at_ns);
  // The FIS that ends a command whose last data moved at `at_ns`.
  int64_t end(Protocol protocol, int64_t at_ns, Journey &journey);
  // A D2H register FIS with an error.
  int64_t error(int64_t at_ns, Journey &journey);

  // Data to the guest: `ready` is when its first and its last byte can leave the drive.
  // `block_bytes` is the unit of PIO data. Returns when the last byte is in host memory.
  int64_t send(DataWindow &data, Protocol protocol, uint32_t block_bytes, Span ready,
               uint32_t bytes, Journey &journey);
  // Data from the guest, asked for from `at_ns` on. Returns when the last byte is in the drive.
  int64_t receive(DataWindow &data, Protocol protocol, uint32_t block_bytes, int64_t at_ns,
                  uint32_t bytes, Journey &journey);

  void watch(Observer *observer, std::string name) { wire_.watch(observer, std::move(name)); }
  int64_t busy_ns() const { return wire_.busy_ns(); }
  void clear() { wire_.clear(); }
  void save(StreamWriter &out) const { wire_.save(out); }
  void load(StreamReader &in) { wire_.load(in); }

 private:
  int64_t bytes_ns(uint64_t bytes) const;
  int64_t fis_ns(uint32_t bytes) const;
  int64_t data_ns(Protocol protocol, uint32_t block_bytes, uint32_t bytes) const;
  Span reserve(int64_t at_ns, int64_t duration_ns, const char *label);
  int64_t fis(int64_t at_ns, uint32_t bytes, const char *label, Journey &journey);

  SataProfile profile_;
  bool timing_;
  Memo<int64_t> known_;
  Timeline wire_;
};

}  // namespace revodrive
#endif
