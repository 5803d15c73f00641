// SPDX-License-Identifier: GPL-2.0-or-later
//
// The least a host of the card can be, so that a benchmark measures the card: flat guest memory,
// a clock that jumps to the next deadline, a backend that is done at once and moves no data. With
// it a driver that keeps 32 commands on each member and does no more than it must.
#ifndef REVODRIVE_BENCH_FAST_HOST_H
#define REVODRIVE_BENCH_FAST_HOST_H

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "../random.h"
#include "bridge/registers.h"
#include "revodrive/host.h"

namespace revodrive::bench {

// What the driver keeps asking for.
struct Load {
  const char *name;
  bool write = false;
  uint32_t bytes = 4096;
  bool sequential = false;
  unsigned compressible_percent = 0;  // of what is written; each buffer stays as it is
  bool timing = true;
  bool coalescing = false;  // as the Linux driver sets it up; otherwise an interrupt each
  bool watched = false;     // the host takes every record and every span
  uint64_t member_bytes = uint64_t{1} << 30;
  const char *preset = nullptr;  // how members begin; null: every sector is written once
};

class FastHost {
 public:
  static constexpr unsigned kMembers = 4;
  static constexpr unsigned kDepth = 32;

  // Builds the card. Every sector of it holds something then, so that reads find data.
  explicit FastHost(const Load &load);
  ~FastHost();
  FastHost(const FastHost &) = delete;
  FastHost &operator=(const FastHost &) = delete;

  // Completes so many commands.
  void run(uint64_t commands);
  int64_t now_ns() const { return now_ns_; }
  uint64_t spans() const { return spans_; }

 private:
  static constexpr uint32_t kTxEntries = 2048;
  static constexpr uint32_t kRxEntries = 1024;
  static constexpr uint64_t kTxRing = 0x10000;
  static constexpr uint64_t kRxRing = 0x20000;
  static constexpr uint64_t kRxFis = 0x30000;
  static constexpr uint64_t kCommandList = 0x40000;
  static constexpr uint64_t kTables = 0x80000;  // 1 KiB a slot: FIS, PRD list, status
  static constexpr uint64_t kData = 0x100000;   // one buffer a slot

  static const rd_host_ops kOps;
  static FastHost &self(void *host) { return *static_cast<FastHost *>(host); }
  bool inside(uint64_t addr, size_t len) const {
    return addr <= memory_.size() && len <= memory_.size() - addr;
  }
  uint8_t *at(uint64_t addr) { return memory_.data() + addr; }
  void put32(uint64_t addr, uint32_t value);
  uint32_t get32(uint64_t addr) const;
  void put64(uint64_t addr, uint64_t value);
  void writel(uint32_t offset, uint32_t value) { rd_card_mmio_write(card_, offset, value); }
  void set(uint32_t offset, uint32_t value) { writel(regs::kCore0 + offset, value); }

  void probe();
  void fill_buffers();
  void fill_members();
  void prepare_all();
  void prepare(unsigned slot);
  void issue(unsigned slot);
  void choose(unsigned slot);
  void serve_interrupt();
  void jump();

  Load load_;
  std::vector<uint8_t> memory_;
  Random random_{1};
  rd_card *card_ = nullptr;
  int64_t now_ns_ = 0;
  int64_t deadline_ns_ = RD_NEVER;
  bool irq_ = false;
  uint32_t tx_next_ = 0;
  uint32_t rx_last_ = 0xFFF;
  uint64_t done_ = 0;
  uint64_t spans_ = 0;
  std::array<uint64_t, kMembers> next_lba_{};
  std::array<uint64_t, kMembers * kDepth> chosen_{};
  static constexpr unsigned kAhead = 8;
  std::array<unsigned, kAhead> ahead_{};
  unsigned ahead_count_ = 0;
};

}  // namespace revodrive::bench
#endif
