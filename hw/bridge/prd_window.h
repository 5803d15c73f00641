// SPDX-License-Identifier: GPL-2.0-or-later
//
// The guest memory of one command: the PRD list, read once, and from then on a window of at most
// the stated length. Backend transfers get host pointers to it; where the host cannot map a piece
// (DMA into a device, say), the whole transfer goes through a bounce buffer, of which all commands
// together may hold kBounceLimit bytes.
#ifndef REVODRIVE_BRIDGE_PRD_WINDOW_H
#define REVODRIVE_BRIDGE_PRD_WINDOW_H

#include <memory>
#include <vector>

#include "bridge/layout.h"
#include "revodrive/ata_command.h"
#include "revodrive/host_port.h"
#include "revodrive/pcie_link.h"

namespace revodrive {

class PrdWindow final : public DataWindow {
 public:
  // Longest list that is looked at; the driver builds at most 255 entries.
  static constexpr unsigned kMaxPrds = 1024;
  static constexpr size_t kBounceLimit = 64 << 20;

  // `bounce_bytes` counts the bounce memory of all windows of a card.
  PrdWindow(HostPort &host, PcieLink &link, size_t &bounce_bytes)
      : host_(host), link_(link), bounce_bytes_(bounce_bytes) {}
  ~PrdWindow() { release_bounce(); }

  // Reads the list: ends at `data_bytes`, at an entry of length 0, at prd_count or kMaxPrds
  // entries. False: the list could not be read; the window is then empty.
  bool read_list(uint64_t prd_addr, uint16_t prd_count, uint32_t data_bytes);
  // Bytes of the list that were read, for the link's timing.
  uint32_t list_bytes() const { return static_cast<uint32_t>(prds_.size() * Prd::kBytes); }
  // A DMA of this window's data failed since read_list().
  bool dma_failed() const { return dma_failed_; }

  uint32_t size() const override { return size_; }
  bool copy_to_guest(uint32_t offset, std::span<const uint8_t> from) override;
  bool copy_from_guest(uint32_t offset, std::span<uint8_t> to) override;
  std::span<const rd_iov> map(DataDirection direction, uint32_t bytes) override;
  void unmap(bool done) override;
  Span reserve(DataDirection direction, int64_t earliest_ns, uint32_t bytes) override;

 private:
  template <typename Move>
  bool for_each_piece(uint32_t offset, size_t bytes, Move move);
  bool map_direct(uint32_t bytes);
  std::span<const rd_iov> map_bounce(uint32_t bytes);
  void unmap_direct(bool done);
  void release_bounce();

  HostPort &host_;
  PcieLink &link_;
  size_t &bounce_bytes_;
  std::vector<Prd> prds_;
  std::vector<rd_iov> iov_;
  std::unique_ptr<uint8_t[]> bounce_;
  uint32_t bounce_size_ = 0;
  uint32_t size_ = 0;
  DataDirection mapped_ = DataDirection::kNone;
  bool dma_failed_ = false;
};

}  // namespace revodrive
#endif
