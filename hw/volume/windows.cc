// SPDX-License-Identifier: GPL-2.0-or-later
#include "volume/windows.h"

#include <algorithm>

namespace revodrive {

uint32_t SliceWindow::size() const {
  uint32_t all = map_->window()->size();
  return offset_ < all ? std::min(bytes_, all - offset_) : 0;
}

bool SliceWindow::copy_to_guest(uint32_t offset, std::span<const uint8_t> from) {
  return holds(offset, from.size()) && map_->window()->copy_to_guest(offset_ + offset, from);
}

bool SliceWindow::copy_from_guest(uint32_t offset, std::span<uint8_t> to) {
  return holds(offset, to.size()) && map_->window()->copy_from_guest(offset_ + offset, to);
}

std::span<const rd_iov> SliceWindow::map(DataDirection direction, uint32_t bytes) {
  iov_.clear();
  if (bytes == 0 || bytes > size())
    return {};
  size_t skip = offset_, left = bytes;
  for (const rd_iov &piece : map_->map(direction)) {
    if (left == 0)
      break;
    if (skip >= piece.len) {
      skip -= piece.len;
      continue;
    }
    size_t len = std::min(piece.len - skip, left);
    iov_.push_back({static_cast<uint8_t *>(piece.base) + skip, len});
    left -= len;
    skip = 0;
  }
  if (left > 0)
    iov_.clear();
  return iov_;
}

Span SliceWindow::reserve(DataDirection direction, int64_t earliest_ns, uint32_t bytes) {
  return map_->window()->reserve(direction, earliest_ns, bytes);
}

bool BufferWindow::copy_to_guest(uint32_t offset, std::span<const uint8_t> from) {
  if (offset > bytes.size() || from.size() > bytes.size() - offset)
    return false;
  std::copy(from.begin(), from.end(), bytes.begin() + offset);
  return true;
}

bool BufferWindow::copy_from_guest(uint32_t offset, std::span<uint8_t> to) {
  if (offset > bytes.size() || to.size() > bytes.size() - offset)
    return false;
  std::copy_n(bytes.begin() + offset, to.size(), to.begin());
  return true;
}

std::span<const rd_iov> BufferWindow::map(DataDirection, uint32_t count) {
  if (count == 0 || count > bytes.size())
    return {};
  iov_ = {bytes.data(), count};
  return {&iov_, 1};
}

void PatternWindow::fill(std::span<const uint8_t, kBlockBytes> block, uint32_t bytes) {
  blocks_.resize(size_t{kRepeats} * kBlockBytes);
  for (uint32_t i = 0; i < kRepeats; i++)
    std::copy(block.begin(), block.end(), blocks_.begin() + i * kBlockBytes);
  bytes_ = bytes;
}

bool PatternWindow::copy_from_guest(uint32_t offset, std::span<uint8_t> to) {
  if (offset > bytes_ || to.size() > bytes_ - offset)
    return false;
  for (size_t i = 0; i < to.size(); i++)
    to[i] = blocks_[(offset + i) % kBlockBytes];
  return true;
}

std::span<const rd_iov> PatternWindow::map(DataDirection direction, uint32_t bytes) {
  if (direction != DataDirection::kFromGuest || bytes == 0 || bytes > bytes_)
    return {};
  iov_.clear();
  for (uint32_t at = 0; at < bytes;) {
    auto len = static_cast<uint32_t>(std::min<size_t>(bytes - at, blocks_.size()));
    iov_.push_back({blocks_.data(), len});
    at += len;
  }
  return iov_;
}

}  // namespace revodrive
