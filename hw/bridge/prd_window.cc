// SPDX-License-Identifier: GPL-2.0-or-later
#include "bridge/prd_window.h"

#include <algorithm>
#include <new>

namespace revodrive {

bool PrdWindow::read_list(uint64_t prd_addr, uint16_t prd_count, uint32_t data_bytes) {
  constexpr unsigned kBatch = 32;
  std::array<uint8_t, kBatch * Prd::kBytes> raw;
  unsigned limit = std::min<unsigned>(prd_count, kMaxPrds);
  prds_.clear();
  size_ = 0;
  dma_failed_ = false;
  while (prds_.size() < limit && size_ < data_bytes) {
    unsigned batch = std::min<unsigned>(kBatch, limit - static_cast<unsigned>(prds_.size()));
    std::span<uint8_t> bytes(raw.data(), batch * Prd::kBytes);
    if (!host_.dma_read(prd_addr + prds_.size() * Prd::kBytes, bytes)) {
      prds_.clear();
      size_ = 0;
      dma_failed_ = true;
      return false;
    }
    for (unsigned i = 0; i < batch && size_ < data_bytes; i++) {
      Prd prd = Prd::parse(bytes.subspan(i * Prd::kBytes));
      if (prd.len == 0)
        return true;
      prd.len = std::min(prd.len, data_bytes - size_);
      prds_.push_back(prd);
      size_ += prd.len;
    }
  }
  return true;
}

template <typename Move>
bool PrdWindow::for_each_piece(uint32_t offset, size_t bytes, Move move) {
  if (offset > size_ || bytes > size_ - offset)
    return false;
  size_t done = 0;
  for (const Prd &prd : prds_) {
    if (done == bytes)
      break;
    if (offset >= prd.len) {
      offset -= prd.len;
      continue;
    }
    size_t len = std::min<size_t>(prd.len - offset, bytes - done);
    if (!move(prd.addr + offset, done, len)) {
      dma_failed_ = true;
      return false;
    }
    done += len;
    offset = 0;
  }
  return true;
}

bool PrdWindow::copy_to_guest(uint32_t offset, std::span<const uint8_t> from) {
  return for_each_piece(offset, from.size(), [&](uint64_t addr, size_t at, size_t len) {
    return host_.dma_write(addr, from.subspan(at, len));
  });
}

bool PrdWindow::copy_from_guest(uint32_t offset, std::span<uint8_t> to) {
  return for_each_piece(offset, to.size(), [&](uint64_t addr, size_t at, size_t len) {
    return host_.dma_read(addr, to.subspan(at, len));
  });
}

std::span<const rd_iov> PrdWindow::map(DataDirection direction, uint32_t bytes) {
  if (bytes == 0 || bytes > size_ || direction == DataDirection::kNone)
    return {};
  mapped_ = direction;
  if (map_direct(bytes))
    return iov_;
  return map_bounce(bytes);
}

bool PrdWindow::map_direct(uint32_t bytes) {
  // A host may split an entry (at an IOMMU page, say); more pieces than this are not worth mapping.
  constexpr size_t kMaxPieces = 4 * kMaxPrds;
  bool to_guest = mapped_ == DataDirection::kToGuest;
  iov_.clear();
  return for_each_piece(0, bytes, [&](uint64_t addr, size_t, size_t len) {
    while (len > 0) {
      size_t piece = len;
      void *ptr = iov_.size() < kMaxPieces ? host_.dma_map(addr, &piece, to_guest) : nullptr;
      if (!ptr) {
        unmap_direct(false);
        return false;
      }
      iov_.push_back({ptr, piece});
      addr += piece;
      len -= piece;
    }
    return true;
  });
}

std::span<const rd_iov> PrdWindow::map_bounce(uint32_t bytes) {
  DataDirection direction = mapped_;
  mapped_ = DataDirection::kNone;
  dma_failed_ = true;
  if (bytes > kBounceLimit - bounce_bytes_)
    return {};
  bounce_.reset(new (std::nothrow) uint8_t[bytes]());
  if (!bounce_)
    return {};
  bounce_size_ = bytes;
  bounce_bytes_ += bytes;
  if (direction == DataDirection::kFromGuest && !copy_from_guest(0, {bounce_.get(), bytes})) {
    release_bounce();
    return {};
  }
  dma_failed_ = false;
  mapped_ = direction;
  iov_.assign(1, {bounce_.get(), bytes});
  return iov_;
}

void PrdWindow::unmap(bool done) {
  if (bounce_) {
    if (done && mapped_ == DataDirection::kToGuest)
      copy_to_guest(0, {bounce_.get(), bounce_size_});
    release_bounce();
  } else {
    unmap_direct(done);
  }
  mapped_ = DataDirection::kNone;
}

void PrdWindow::unmap_direct(bool done) {
  for (const rd_iov &piece : iov_)
    host_.dma_unmap(piece.base, piece.len, mapped_ == DataDirection::kToGuest,
                    done ? piece.len : 0);
  iov_.clear();
}

void PrdWindow::release_bounce() {
  bounce_.reset();
  bounce_bytes_ -= bounce_size_;
  bounce_size_ = 0;
  iov_.clear();
}

Span PrdWindow::reserve(DataDirection direction, int64_t earliest_ns, uint32_t bytes) {
  if (direction == DataDirection::kToGuest)
    return link_.to_host(earliest_ns, bytes);
  return link_.from_host(earliest_ns, bytes);
}

}  // namespace revodrive
