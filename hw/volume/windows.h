// SPDX-License-Identifier: GPL-2.0-or-later
//
// Data windows that the volume puts between its members and the guest: a slice of a request's
// window, memory of the volume's own, and one block repeated (WRITE SAME). The window of a request
// is mapped once, as a whole, by the first of its slices that needs that (SharedMap).
#ifndef REVODRIVE_VOLUME_WINDOWS_H
#define REVODRIVE_VOLUME_WINDOWS_H

#include <array>
#include <vector>

#include "revodrive/ata_command.h"

namespace revodrive {

// The window of a request, in use by several member commands.
class SharedMap {
 public:
  // `bytes` is all that the request moves; it may be null and 0.
  void open(DataWindow *window, uint32_t bytes) {
    window_ = window;
    bytes_ = bytes;
    iov_ = {};
  }
  // No slice is mapped any more. `done`: all data was moved.
  void close(bool done) {
    if (!iov_.empty())
      window_->unmap(done);
    iov_ = {};
    window_ = nullptr;
  }
  DataWindow *window() const { return window_; }
  std::span<const rd_iov> map(DataDirection direction) {
    if (iov_.empty() && window_ && bytes_ > 0)
      iov_ = window_->map(direction, bytes_);
    return iov_;
  }

 private:
  DataWindow *window_ = nullptr;
  uint32_t bytes_ = 0;
  std::span<const rd_iov> iov_;
};

// `bytes` of a request's window from `offset` on.
class SliceWindow final : public DataWindow {
 public:
  void open(SharedMap &map, uint32_t offset, uint32_t bytes) {
    map_ = &map;
    offset_ = offset;
    bytes_ = bytes;
  }
  uint32_t size() const override;
  bool copy_to_guest(uint32_t offset, std::span<const uint8_t> from) override;
  bool copy_from_guest(uint32_t offset, std::span<uint8_t> to) override;
  std::span<const rd_iov> map(DataDirection direction, uint32_t bytes) override;
  void unmap(bool) override { iov_.clear(); }
  Span reserve(DataDirection direction, int64_t earliest_ns, uint32_t bytes) override;

 private:
  bool holds(uint32_t offset, size_t bytes) const {
    return offset <= size() && bytes <= size() - offset;
  }

  SharedMap *map_ = nullptr;
  uint32_t offset_ = 0;
  uint32_t bytes_ = 0;
  std::vector<rd_iov> iov_;
};

// Memory of the volume: no way to the host, no time.
class BufferWindow final : public DataWindow {
 public:
  std::vector<uint8_t> bytes;

  uint32_t size() const override { return static_cast<uint32_t>(bytes.size()); }
  bool copy_to_guest(uint32_t offset, std::span<const uint8_t> from) override;
  bool copy_from_guest(uint32_t offset, std::span<uint8_t> to) override;
  std::span<const rd_iov> map(DataDirection direction, uint32_t count) override;
  void unmap(bool) override {}
  Span reserve(DataDirection, int64_t earliest_ns, uint32_t) override {
    return {earliest_ns, earliest_ns};
  }

 private:
  rd_iov iov_{};
};

// One block, as often as asked for; only for writing.
class PatternWindow final : public DataWindow {
 public:
  static constexpr uint32_t kBlockBytes = RD_SECTOR_BYTES;
  void fill(std::span<const uint8_t, kBlockBytes> block, uint32_t bytes);
  uint32_t size() const override { return bytes_; }
  bool copy_to_guest(uint32_t, std::span<const uint8_t>) override { return false; }
  bool copy_from_guest(uint32_t offset, std::span<uint8_t> to) override;
  std::span<const rd_iov> map(DataDirection direction, uint32_t bytes) override;
  void unmap(bool) override { iov_.clear(); }
  Span reserve(DataDirection, int64_t earliest_ns, uint32_t) override {
    return {earliest_ns, earliest_ns};
  }

 private:
  static constexpr uint32_t kRepeats = 128;
  std::vector<uint8_t> blocks_;  // kRepeats of them, once it was used
  uint32_t bytes_ = 0;
  std::vector<rd_iov> iov_;
};

}  // namespace revodrive
#endif
