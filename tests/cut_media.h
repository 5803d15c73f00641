// SPDX-License-Identifier: GPL-2.0-or-later
//
// A Media whose power can be cut: what was not flushed may be lost then, sector by sector, in any
// order, and a write that was under way may be there in part.
#ifndef REVODRIVE_TESTS_CUT_MEDIA_H
#define REVODRIVE_TESTS_CUT_MEDIA_H

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "random.h"
#include "revodrive/media.h"

namespace revodrive {

class CutMedia final : public Media {
 public:
  using Sector = std::array<uint8_t, RD_SECTOR_BYTES>;
  using Content = std::map<uint64_t, Sector>;

  explicit CutMedia(uint64_t sectors, Content content = {})
      : content(std::move(content)), sectors_(sectors) {}

  Content content;  // as it is read
  // Asked before each transfer that changes something: its error, 0 for none.
  std::function<int(rd_block_op op)> gate = [](rd_block_op) { return 0; };
  uint64_t changes = 0;

  uint64_t sectors() const override { return sectors_; }
  void drain() override {}
  void submit(rd_block_op op, uint64_t offset, uint64_t, std::span<const rd_iov> iov,
              MediaTransfer &transfer) override {
    uint64_t lba = offset / RD_SECTOR_BYTES;
    int error = op == RD_BLOCK_READ ? 0 : gate(op);
    changes += op != RD_BLOCK_READ;
    if (error == 0 && op == RD_BLOCK_FLUSH)
      unsafe_.clear();
    else if (error == 0)
      move(op, lba, iov);
    transfer.media_done(error);
  }

  // What is there after a loss of power now.
  Content after_cut(Random &random) const {
    Content left = content;
    for (const auto &[lba, versions] : unsafe_) {
      size_t kept = random.below(versions.size() + 1);  // the last one is what is read
      if (kept < versions.size())
        left[lba] = versions[kept];
    }
    return left;
  }

 private:
  // Pieces of guest memory end anywhere.
  void move(rd_block_op op, uint64_t lba, std::span<const rd_iov> iov) {
    size_t done = 0;
    for (const rd_iov &piece : iov) {
      for (size_t at = 0; at < piece.len;) {
        size_t within = done % RD_SECTOR_BYTES;
        size_t len = std::min<size_t>(RD_SECTOR_BYTES - within, piece.len - at);
        uint8_t *guest = static_cast<uint8_t *>(piece.base) + at;
        uint64_t sector = lba + done / RD_SECTOR_BYTES;
        if (op == RD_BLOCK_READ)
          read(sector, within, guest, len);
        else
          write(op, sector, within, guest, len);
        at += len;
        done += len;
      }
    }
  }
  void read(uint64_t lba, size_t within, uint8_t *guest, size_t len) const {
    auto found = content.find(lba);
    if (found == content.end())
      std::memset(guest, 0, len);
    else
      std::memcpy(guest, found->second.data() + within, len);
  }
  void write(rd_block_op op, uint64_t lba, size_t within, const uint8_t *guest, size_t len) {
    Sector &sector = content[lba];
    if (op == RD_BLOCK_WRITE_FUA)
      unsafe_.erase(lba);
    else if (within == 0)
      unsafe_[lba].push_back(sector);
    std::memcpy(sector.data() + within, guest, len);
  }

  uint64_t sectors_;
  std::map<uint64_t, std::vector<Sector>> unsafe_;  // older versions that may come back
};

}  // namespace revodrive
#endif
