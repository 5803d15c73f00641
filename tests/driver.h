// SPDX-License-Identifier: GPL-2.0-or-later
//
// The life of the Linux driver on a ScriptedHost, in the order mvsas does things: bring the chip
// up, issue ATA commands, take completions out of the ring, serve interrupts.
#ifndef REVODRIVE_TESTS_DRIVER_H
#define REVODRIVE_TESTS_DRIVER_H

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "bridge/registers.h"
#include "scripted_host.h"

namespace revodrive::test {

// An entry of the guest's scatter list.
struct Segment {
  uint64_t addr;
  uint32_t len;
};

struct Request {
  std::array<uint8_t, 20> fis{};
  std::vector<Segment> segments;
  uint32_t data_bytes = 0;
  uint16_t prd_count = 0;  // as stated in the header
  uint8_t phy = 0;
  uint8_t register_set = 0;
  uint8_t tag = 0;  // NCQ
};

// FIS of an LBA48 command; `count` and `lba` as the command means them.
std::array<uint8_t, 20> lba48_fis(uint8_t opcode, uint64_t lba, uint16_t count);
// READ or WRITE FPDMA QUEUED.
std::array<uint8_t, 20> ncq_fis(uint8_t opcode, uint64_t lba, uint16_t sectors, uint8_t tag);

// A frame for a SAS target.
struct SspRequest {
  std::array<uint8_t, 52> table{};  // frame header and information unit
  bool task = false;                // task management
  std::vector<Segment> segments;
  uint32_t data_bytes = 0;
  uint8_t phy = 0;
};
SspRequest ssp_command(std::span<const uint8_t> cdb, uint64_t addr = 0, uint32_t bytes = 0,
                       uint8_t unit = 0);
SspRequest ssp_task(uint8_t function, uint16_t tag, uint8_t unit = 0);

class Driver {
 public:
  // `core` 0 or 1; each takes 8 MiB of guest memory: rings, slot buffers, then data.
  explicit Driver(ScriptedHost &host, unsigned core = 0);

  // The same driver, indices and all, after its guest moved to another host.
  Driver moved_to(ScriptedHost &host) const {
    Driver moved = *this;
    moved.host_ = &host;
    return moved;
  }

  // chip_init and interrupt_enable; the clock moves past the links' coming up.
  void probe();
  uint32_t reg(uint32_t offset) { return host_->readl(base_ + offset); }
  void set_reg(uint32_t offset, uint32_t value) { host_->writel(base_ + offset, value); }
  void write_cmd_space(uint32_t addr, uint32_t value);
  uint32_t read_cmd_space(uint32_t addr);

  // Fills ring entry, header, table and PRDs of the slot and rings the doorbell.
  void issue(uint16_t slot, const Request &request);
  void issue(uint16_t slot, const SspRequest &request);
  // Completions taken so far, as raw RX entries, in ring order.
  const std::vector<uint32_t> &completions() const { return completions_; }
  // The driver's ring walk: takes what is new.
  void take_completions();
  // One interrupt as mvs_interrupt handles it; false: not ours. Phy events are acknowledged.
  bool interrupt();
  // Issues, waits for the interrupt, returns the RX entry (0: nothing came) of this slot.
  uint32_t run(uint16_t slot, const Request &request) { return run_any(slot, request); }
  uint32_t run(uint16_t slot, const SspRequest &request) { return run_any(slot, request); }

  // Bytes 2 and 3 of the D2H FIS of a register set: status, error.
  uint8_t status(unsigned register_set) { return d2h(register_set)[2]; }
  uint8_t error(unsigned register_set) { return d2h(register_set)[3]; }
  std::span<uint8_t> d2h(unsigned register_set);
  uint32_t error_info(uint16_t slot) { return host_->load32(buffer(slot) + kStatusOffset); }

  // The response frame of an SSP command.
  std::span<uint8_t> response(uint16_t slot) {
    return {host_->memory(buffer(slot) + kStatusOffset + 8, 96), 96};
  }

  uint64_t data_addr(size_t offset = 0) const { return area_ + kDataOffset + offset; }
  uint64_t tx_ring() const { return area_ + kTxOffset; }
  uint64_t rx_ring() const { return area_ + kRxOffset; }
  uint64_t rx_fis() const { return area_ + kFisOffset; }
  uint64_t command_list() const { return area_; }

  // A one-segment request on phy 0, register set 0.
  Request read_request(uint64_t lba, uint16_t sectors, uint64_t addr) const;
  Request write_request(uint64_t lba, uint16_t sectors, uint64_t addr) const;
  Request plain(uint8_t opcode) const;
  Request identify(uint64_t addr) const;

 private:
  template <typename Any>
  uint32_t run_any(uint16_t slot, const Any &request) {
    size_t before = completions_.size();
    issue(slot, request);
    return wait(slot, before);
  }
  uint32_t wait(uint16_t slot, size_t before);
  void put_header(uint16_t slot, uint32_t flags, uint32_t tag, uint32_t bytes,
                  std::span<const Segment> segments);
  void ring(uint32_t entry);
  static constexpr uint64_t kAreaBytes = 8 << 20;
  static constexpr uint64_t kFisOffset = 0x20000;
  static constexpr uint64_t kTxOffset = 0x24000;
  static constexpr uint64_t kRxOffset = 0x28000;
  static constexpr uint64_t kBufferOffset = 0x30000;  // 64 slot buffers of 8 KiB, then data
  static constexpr uint64_t kDataOffset = 0x200000;
  static constexpr uint32_t kStatusOffset = 0xC94;
  uint64_t buffer(uint16_t slot) const { return area_ + kBufferOffset + 0x2000 * (slot % 64); }

  ScriptedHost *host_;
  unsigned core_;
  uint32_t base_;
  uint64_t area_;
  uint32_t tx_next_ = 0;
  uint32_t rx_last_ = 0xFFF;
  std::vector<uint32_t> completions_;
};

}  // namespace revodrive::test
#endif
