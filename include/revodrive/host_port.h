// SPDX-License-Identifier: GPL-2.0-or-later
//
// The card's only door to its host: the C call table as a C++ object, plus what has to hold for
// every access through it. While a DMA runs, entered() is true and the card ignores register
// accesses: a guest that aims DMA at the card's own registers gets nothing done and cannot recurse.
// Failed DMA is counted here.
#ifndef REVODRIVE_HOST_PORT_H
#define REVODRIVE_HOST_PORT_H

#include <cstdint>
#include <span>

#include "revodrive/host.h"
#include "revodrive/memory_hint.h"
#include "revodrive/observer.h"

namespace revodrive {

class HostPort final : public Observer {
 public:
  HostPort(const rd_host_ops &ops, void *opaque) : ops_(ops), opaque_(opaque) {}
  HostPort(const HostPort &) = delete;
  HostPort &operator=(const HostPort &) = delete;

  int64_t now_ns() const { return ops_.now_ns(opaque_); }

  // True on success; on failure the content of `to` is zeroed.
  bool dma_read(uint64_t addr, std::span<uint8_t> to);
  bool dma_write(uint64_t addr, std::span<const uint8_t> from);
  bool dma_write_u32(uint64_t addr, uint32_t value);
  // See rd_host_ops::dma_map.
  void *dma_map(uint64_t addr, size_t *len, bool to_guest);
  void dma_unmap(void *ptr, size_t len, bool to_guest, size_t accessed);
  // A DMA is running: register accesses come from it and must have no effect.
  bool in_dma() const { return dma_depth_ > 0; }
  uint64_t dma_errors() const { return dma_errors_; }

  void set_irq(bool level) { ops_.set_irq(opaque_, level); }
  void msi_notify() { ops_.msi_notify(opaque_); }
  void arm_timer(int64_t deadline_ns) { ops_.arm_timer(opaque_, deadline_ns); }

  void block_submit(unsigned port, rd_block_op op, uint64_t offset, uint64_t bytes,
                    std::span<const rd_iov> iov, uint64_t token) {
    ops_.block_submit(opaque_, port, op, offset, bytes, iov.data(),
                      static_cast<unsigned>(iov.size()), token);
  }
  void block_drain(unsigned port) { ops_.block_drain(opaque_, port); }
  void block_wait(unsigned port) { ops_.block_wait(opaque_, port); }
  // The host keeps what it is given to persist.
  bool keeps() const { return ops_.persist != nullptr; }
  void persist(std::span<const uint8_t> bytes, uint64_t token) {
    ops_.persist(opaque_, bytes.data(), bytes.size(), token);
  }

  // Null unless the host wants to see bookings.
  Observer *observer() { return ops_.span ? this : nullptr; }
  void span(const char *track, const char *label, int64_t start_ns, int64_t end_ns) override {
    ops_.span(opaque_, track, label, start_ns, end_ns);
  }
  MemoryHint memory_hint() const { return {ops_.table_memory, opaque_}; }
  bool wants_commands() const { return ops_.command_done != nullptr; }
  void command_done(const rd_command_record &record) { ops_.command_done(opaque_, &record); }

  void log(rd_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

 private:
  bool count_error(bool failed);

  const rd_host_ops &ops_;
  void *opaque_;
  unsigned dma_depth_ = 0;
  uint64_t dma_errors_ = 0;
};

}  // namespace revodrive
#endif
