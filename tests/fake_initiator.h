// SPDX-License-Identifier: GPL-2.0-or-later
//
// The bridge's part of the ATA seam, as small as it can be: guest memory with guard bytes around
// it, commands that complete in order of their time, and a check of each rule of ata_command.h.
#ifndef REVODRIVE_TESTS_FAKE_INITIATOR_H
#define REVODRIVE_TESTS_FAKE_INITIATOR_H

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "revodrive/ata_command.h"
#include "revodrive/timeline.h"

namespace revodrive {

class FakeWindow final : public DataWindow {
 public:
  static constexpr size_t kGuard = 64;
  static constexpr uint8_t kGuardByte = 0xA7;

  // `pieces`: how many parts a mapping has.
  FakeWindow(uint32_t bytes, Timeline *host, unsigned pieces = 3)
      : memory_(bytes + 2 * kGuard, kGuardByte), size_(bytes), host_(host), pieces_(pieces) {
    std::memset(data(), 0, bytes);
  }

  bool dma_fails = false;
  unsigned maps = 0, unmaps = 0;
  bool moved = false;  // the last unmap() said so

  uint8_t *data() { return memory_.data() + kGuard; }
  bool guards_intact() const {
    auto guard = [](uint8_t byte) { return byte == kGuardByte; };
    return std::all_of(memory_.begin(), memory_.begin() + kGuard, guard) &&
           std::all_of(memory_.end() - kGuard, memory_.end(), guard);
  }

  uint32_t size() const override { return size_; }
  bool copy_to_guest(uint32_t offset, std::span<const uint8_t> from) override {
    if (dma_fails || offset > size_ || from.size() > size_ - offset)
      return false;
    std::copy(from.begin(), from.end(), data() + offset);
    return true;
  }
  bool copy_from_guest(uint32_t offset, std::span<uint8_t> to) override {
    if (dma_fails || offset > size_ || to.size() > size_ - offset)
      return false;
    std::copy_n(data() + offset, to.size(), to.begin());
    return true;
  }
  std::span<const rd_iov> map(DataDirection, uint32_t bytes) override {
    if (dma_fails || bytes == 0 || bytes > size_)
      return {};
    maps++;
    iov_.clear();
    uint32_t step = std::max(bytes / pieces_, 1u);
    for (uint32_t at = 0; at < bytes; at += step)
      iov_.push_back({data() + at, std::min(step, bytes - at)});
    return iov_;
  }
  void unmap(bool done) override {
    unmaps++;
    moved = done;
    iov_.clear();
  }
  Span reserve(DataDirection, int64_t earliest_ns, uint32_t bytes) override {
    constexpr int64_t kMbS = 1600;
    return host_->reserve(earliest_ns, int64_t{bytes} * 1000 / kMbS);
  }

 private:
  std::vector<uint8_t> memory_;
  uint32_t size_;
  Timeline *host_;
  unsigned pieces_;
  std::vector<rd_iov> iov_;
};

// A command in the initiator's hands. `state` follows the life described in ata_command.h.
struct FakeCommand {
  enum State { kRunning, kDone, kCanceled };

  FakeCommand(uint32_t bytes, Timeline *host) : window(bytes, host) { ata.data = &window; }

  FakeWindow window;
  AtaCommand ata;
  State state = kRunning;
  bool late = false;   // its time has come and the backend has not answered
  bool early = false;  // ended by complete_now()
  int64_t done_ns = 0;

  bool done() const { return state == kDone; }
  uint8_t status() const { return ata.d2h[2]; }
  uint8_t error() const { return ata.d2h[3]; }
  bool good() const { return done() && !ata.failed && status() == 0x50 && error() == 0; }
};

class FakeInitiator final : public AtaInitiator {
 public:
  explicit FakeInitiator(AtaTarget &target) : target_(target) { target_.connect(this); }
  ~FakeInitiator() { target_.connect(nullptr); }

  int64_t now_ns = 0;
  Timeline host;
  bool broken_rule = false;  // the target broke the seam's rules

  FakeCommand &issue(const Fis &h2d, uint32_t window_bytes, const void *out = nullptr) {
    commands_.push_back(std::make_unique<FakeCommand>(window_bytes, &host));
    FakeCommand &command = *commands_.back();
    if (out)
      std::memcpy(command.window.data(), out, window_bytes);
    command.ata.owner = &command;
    start(command, h2d);
    return command;
  }
  void start(FakeCommand &command, const Fis &h2d) {
    command.ata.h2d = h2d;
    command.ata.issue_ns = now_ns;
    command.ata.journey.start(now_ns);
    executing_ = &command;
    target_.execute(command.ata);
    executing_ = nullptr;
    broken_rule |= command.done() || command.ata.finish_ns < now_ns;
    broken_rule |=
        command.ata.finish_ns != RD_NEVER && command.ata.journey.at_ns() != command.ata.finish_ns;
  }

  // Lets time pass until the next command's has come. False: nothing can end without the backend.
  bool run_one() {
    FakeCommand *next = first_due();
    if (!next)
      return false;
    now_ns = std::max(now_ns, next->ata.finish_ns);
    if (next->ata.media_pending > 0)
      next->late = true;
    else
      finish(*next);
    return true;
  }
  void run() {
    while (run_one()) {
    }
  }
  void cancel(FakeCommand &command) {
    target_.cancel(command.ata);
    broken_rule |= command.ata.media_pending != 0 || command.window.maps != command.window.unmaps;
    command.state = FakeCommand::kCanceled;
  }
  void cancel_all() {
    for (auto &command : commands_) {
      if (command->state == FakeCommand::kRunning)
        cancel(*command);
    }
  }

  void media_ready(AtaCommand &ata) override {
    FakeCommand &command = *static_cast<FakeCommand *>(ata.owner);
    broken_rule |= &command == executing_ || ata.media_pending != 0;
    if (command.late)
      finish(command);
  }
  void complete_now(AtaCommand &ata) override {
    broken_rule |= executing_ != nullptr;
    FakeCommand &command = *static_cast<FakeCommand *>(ata.owner);
    command.early = true;
    retire(command);
  }

  // Everything that was issued, oldest first; forget() drops what has ended.
  const std::vector<std::unique_ptr<FakeCommand>> &commands() const { return commands_; }
  void forget() {
    std::erase_if(commands_, [](auto &it) { return it->state != FakeCommand::kRunning; });
  }
  std::vector<const FakeCommand *> order;  // of completion

 private:
  FakeCommand *first_due() {
    FakeCommand *first = nullptr;
    for (auto &it : commands_) {
      if (it->state != FakeCommand::kRunning || it->late)
        continue;
      if (!first || it->ata.finish_ns < first->ata.finish_ns)
        first = it.get();
    }
    return first;
  }
  void finish(FakeCommand &command) {
    target_.finish(command.ata);
    retire(command);
  }
  void retire(FakeCommand &command) {
    broken_rule |= command.state != FakeCommand::kRunning || command.ata.media_pending != 0 ||
                   command.window.maps != command.window.unmaps || !command.window.guards_intact();
    command.state = FakeCommand::kDone;
    command.done_ns = now_ns;
    order.push_back(&command);
  }

  AtaTarget &target_;
  FakeCommand *executing_ = nullptr;
  std::vector<std::unique_ptr<FakeCommand>> commands_;
};

}  // namespace revodrive
#endif
