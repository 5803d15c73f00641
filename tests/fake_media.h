// SPDX-License-Identifier: GPL-2.0-or-later
//
// A Media in memory that does what a test says. Data moves at submit(); the answer comes at once
// or, with `hold` set, when the test calls answer() or drain(). Every submit is recorded. `fail` is
// asked for each transfer and returns its error; a failed transfer moves no data. Only written
// sectors take memory, so a fake may be as large as a real drive.
#ifndef REVODRIVE_TESTS_FAKE_MEDIA_H
#define REVODRIVE_TESTS_FAKE_MEDIA_H

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "revodrive/media.h"

namespace revodrive {

class FakeMedia final : public Media {
 public:
  using Sector = std::array<uint8_t, RD_SECTOR_BYTES>;
  struct Record {
    rd_block_op op;
    uint64_t offset;
    uint64_t bytes;
    bool operator==(const Record &) const = default;
  };

  explicit FakeMedia(uint64_t sectors) : sectors_(sectors) {}

  bool hold = false;
  int drain_error = 0;  // what held transfers end with at drain()
  std::function<int(const Record &)> fail = [](const Record &) { return 0; };
  std::vector<Record> records;
  bool broken_rule = false;  // a transfer outside the member or of odd size was submitted

  uint64_t sectors() const override { return sectors_; }

  void submit(rd_block_op op, uint64_t offset, uint64_t bytes, std::span<const rd_iov> iov,
              MediaTransfer &transfer) override {
    Record record{op, offset, bytes};
    records.push_back(record);
    check(record, iov);
    int error = broken_rule ? -EINVAL : fail(record);
    if (error == 0)
      move(record, iov);
    if (hold)
      held_.push_back({&transfer, error});
    else
      transfer.media_done(error);
  }

  void drain() override {
    while (!held_.empty()) {
      if (drain_error != 0)
        held_.front().error = drain_error;
      answer();
    }
  }

  size_t held() const { return held_.size(); }
  // Answers the n-th held transfer.
  void answer(size_t n = 0) {
    Held held = held_.at(n);
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(n));
    held.transfer->media_done(held.error);
  }

  Sector sector(uint64_t lba) const {
    auto found = content_.find(lba);
    return found == content_.end() ? Sector{} : found->second;
  }
  void set_sector(uint64_t lba, const Sector &bytes) { content_[lba] = bytes; }

 private:
  struct Held {
    MediaTransfer *transfer;
    int error;
  };

  void check(const Record &record, std::span<const rd_iov> iov) {
    size_t sum = 0;
    for (const rd_iov &piece : iov)
      sum += piece.len;
    bool data = record.op == RD_BLOCK_READ || record.op == RD_BLOCK_WRITE ||
                record.op == RD_BLOCK_WRITE_FUA;
    uint64_t end = sectors_ * RD_SECTOR_BYTES;
    if (record.offset % RD_SECTOR_BYTES || record.bytes % RD_SECTOR_BYTES || record.offset > end ||
        record.bytes > end - record.offset || (data && sum != record.bytes))
      broken_rule = true;
  }

  void move(const Record &record, std::span<const rd_iov> iov) {
    uint64_t lba = record.offset / RD_SECTOR_BYTES;
    if (record.op == RD_BLOCK_FLUSH)
      return;
    if (record.op == RD_BLOCK_DISCARD || record.op == RD_BLOCK_WRITE_ZEROES) {
      uint64_t end = lba + record.bytes / RD_SECTOR_BYTES;
      content_.erase(content_.lower_bound(lba), content_.lower_bound(end));
      return;
    }
    uint64_t done = 0;
    for (const rd_iov &piece : iov) {
      for (size_t at = 0; at < piece.len;) {
        size_t within = done % RD_SECTOR_BYTES;
        size_t len = std::min<size_t>(RD_SECTOR_BYTES - within, piece.len - at);
        move_piece(record.op, lba + done / RD_SECTOR_BYTES, within,
                   static_cast<uint8_t *>(piece.base) + at, len);
        at += len;
        done += len;
      }
    }
  }

  void move_piece(rd_block_op op, uint64_t lba, size_t within, uint8_t *guest, size_t len) {
    if (op != RD_BLOCK_READ) {
      std::memcpy(content_[lba].data() + within, guest, len);
      return;
    }
    auto found = content_.find(lba);
    if (found == content_.end())
      std::memset(guest, 0, len);
    else
      std::memcpy(guest, found->second.data() + within, len);
  }

  uint64_t sectors_;
  std::map<uint64_t, Sector> content_;
  std::deque<Held> held_;
};

}  // namespace revodrive
#endif
