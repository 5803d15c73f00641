// SPDX-License-Identifier: GPL-2.0-or-later
//
// revosim as a host of the card: flat guest memory, a virtual clock that jumps from deadline to
// deadline, and a backend that keeps no data (every transfer is done at once; what a drive reads is
// of no interest to a simulation of time, what it writes is measured in guest memory on the way).
// Owns the card. Times in ns of virtual time; bus addresses start at kMemoryBase.
#ifndef REVODRIVE_SIM_CARD_HOST_H
#define REVODRIVE_SIM_CARD_HOST_H

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "revodrive/host.h"
#include "sim/observers.h"

namespace revodrive::sim {

class CardHost {
 public:
  static constexpr uint64_t kMemoryBase = 0x1000'0000;

  // `spans`: watch() will be used. Throws UserError with the card's words.
  CardHost(const rd_card_config &config, size_t memory_bytes, bool spans = false);
  ~CardHost();
  CardHost(const CardHost &) = delete;
  CardHost &operator=(const CardHost &) = delete;

  // `preset`: what the drive holds (rd_member_config).
  void attach(unsigned port, uint64_t bytes, const std::string &preset = "fresh");
  unsigned members() const { return members_; }
  uint64_t member_bytes(unsigned port) const { return member_bytes_[port]; }

  int64_t now_ns() const { return now_ns_; }
  // When the card wants to run next, RD_NEVER if it has nothing to do.
  int64_t deadline_ns() const { return deadline_ns_; }
  // Moves the clock to a time that is not before now; fires the card's timer if it is due.
  void move_to(int64_t ns) {
    now_ns_ = ns;
    while (deadline_ns_ <= ns) {
      deadline_ns_ = RD_NEVER;
      rd_card_timer_fired(card_);
    }
  }
  // The same over a span in which the card may have deadlines of its own.
  void advance(int64_t ns);

  // A command for this sector comes soon.
  void expect(unsigned port, uint64_t lba) { rd_card_expect(card_, port, lba); }

  bool irq() const { return irq_; }
  uint32_t readl(uint32_t offset) { return rd_card_mmio_read(card_, offset); }
  void writel(uint32_t offset, uint32_t value) { rd_card_mmio_write(card_, offset, value); }

  uint8_t *memory(uint64_t addr) { return memory_.get() + (addr - kMemoryBase); }
  uint32_t load32(uint64_t addr);
  void store32(uint64_t addr, uint32_t value);
  void store64(uint64_t addr, uint64_t value);

  const StageSums &stages() const { return stages_; }
  // From now on the trace (not owned; null: nothing) hears of every booking.
  void watch(TimelineTrace *trace) { trace_ = trace; }

  using Visitor = std::function<void(const std::string &name, uint64_t value)>;
  void query(const Visitor &visit);
  uint64_t counter(const std::string &name);

  std::vector<uint8_t> save();
  // The clock goes on where it was when the state was saved.
  void load(std::span<const uint8_t> bytes, int64_t now_ns);

 private:
  static const rd_host_ops kOps;
  rd_host_ops ops_ = kOps;
  static CardHost &self(void *host) { return *static_cast<CardHost *>(host); }
  bool inside(uint64_t addr, size_t len) const {
    return addr >= kMemoryBase && len <= memory_bytes_ && addr - kMemoryBase <= memory_bytes_ - len;
  }

  struct Free {
    void operator()(uint8_t *memory) const { std::free(memory); }
  };
  std::unique_ptr<uint8_t, Free> memory_;
  size_t memory_bytes_;
  rd_card *card_ = nullptr;
  int64_t now_ns_ = 0;
  int64_t deadline_ns_ = RD_NEVER;
  bool irq_ = false;
  StageSums stages_;
  TimelineTrace *trace_ = nullptr;
  unsigned members_ = 0;
  uint64_t member_bytes_[RD_MAX_PORTS] = {};
};

}  // namespace revodrive::sim
#endif
