// SPDX-License-Identifier: GPL-2.0-or-later
//
// Between jobs and driver, what an operating system's block layer and libata do: keeps the commands
// of each member in order of arrival, hands out NCQ tags, lets a command that cannot be queued
// (FLUSH, TRIM) run alone on its drive, and puts a request together again from its commands.
#ifndef REVODRIVE_SIM_BLOCK_LAYER_H
#define REVODRIVE_SIM_BLOCK_LAYER_H

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/hba_driver.h"
#include "sim/io_request.h"
#include "sim/placement.h"

namespace revodrive::sim {

// Of each command that went to a drive, when it went and when it came back.
struct CommandRecord {
  AtaRequest ata;
  uint64_t number = 0;  // in order of submission
  int64_t submit_ns = 0;
  int64_t done_ns = 0;
  bool failed = false;
};

// What an operating system counts of a disk (Linux: /proc/diskstats). Ticks sum over commands.
struct DiskUse {
  int64_t read_ns = 0;
  int64_t write_ns = 0;
  int64_t all_ns = 0;
  int64_t busy_ns = 0;  // with at least one command
};

class BlockLayer {
 public:
  // `depth`: tags in use for each drive, 1 to kTags. `any_order`: of a SAS disk, where no command
  // has to run alone.
  BlockLayer(CardHost &host, HbaDriver &driver, unsigned members, unsigned depth, bool any_order);

  void submit(IoRequest &io, Placement &placement);
  // Serves the card's interrupt; done(IoRequest &) for each request that has ended.
  template <typename Done>
  void serve(Done done) {
    driver_.serve([&](unsigned port, unsigned tag, bool failed) {
      IoRequest &io = *release(port, tag, failed);
      if (--io.parts == 0)
        done(io);
    });
    start_waiting();
  }
  // Commands of each member that run or wait.
  const uint32_t *in_flight() const { return in_flight_.data(); }
  const DiskUse &use(unsigned port) const { return members_[port].use; }
  // Called for each command as it ends.
  std::function<void(const CommandRecord &)> on_command;

 private:
  struct Waiting {
    IoRequest *io;
    AtaRequest ata;
  };
  // A first-in, first-out queue that keeps its memory.
  class Queue {
   public:
    bool empty() const { return first_ == items_.size(); }
    const Waiting &front() const { return items_[first_]; }
    void push(const Waiting &item) { items_.push_back(item); }
    void pop();

   private:
    std::vector<Waiting> items_;
    size_t first_ = 0;
  };
  struct Member {
    uint32_t free_tags = 0;
    uint32_t all_tags = 0;
    bool alone = false;  // a command that is not queued is running
    Queue queue;
    std::array<IoRequest *, kTags> running{};
    std::array<CommandRecord, kTags> records;
    DiskUse use;
    int64_t busy_since_ns = 0;
  };

  bool can_start(const Member &member, AtaKind kind) const {
    bool queued = any_order_ || kind == AtaKind::kRead || kind == AtaKind::kWrite;
    return queued ? !member.alone && member.free_tags != 0 : member.free_tags == member.all_tags;
  }
  void start(Member &member, IoRequest *io, AtaRequest &ata);
  void start_waiting();
  IoRequest *release(unsigned port, unsigned tag, bool failed);

  CardHost &host_;
  HbaDriver &driver_;
  bool any_order_;
  std::vector<Member> members_;
  std::array<uint32_t, RD_MAX_PORTS> in_flight_{};
  uint32_t waiting_ = 0;
  uint64_t started_ = 0;
  std::vector<AtaRequest> parts_;
};

}  // namespace revodrive::sim
#endif
