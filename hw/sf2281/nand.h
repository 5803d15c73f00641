// SPDX-License-Identifier: GPL-2.0-or-later
//
// Dies and channels as a matter of time. A die does one thing at a time: it reads a page of each
// plane (tR), programs them (tPROG) or erases a block of each (tBERS). A channel moves the bytes of
// one die at a time.
//
// Reads are booked when they come. Programs and erasures wait in the die's queue and are booked
// only when time has reached their start: so a read that comes meanwhile waits for no more than
// what the die is doing (there is no program suspend), then goes first, and what waits moves back.
// That holds for the reads of garbage collection too: if they queued up, a program whose data is
// still to be read would hold up the reads that the next one waits for, and most dies would idle. A
// program's end is known as a forecast until then.
//
// Times are ns; "pages" are those of one die that lie side by side in its planes.
#ifndef REVODRIVE_SF2281_NAND_H
#define REVODRIVE_SF2281_NAND_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "revodrive/memo.h"
#include "revodrive/stream.h"
#include "sf2281/geometry.h"
#include "revodrive/timeline.h"

namespace revodrive {

class Nand {
 public:
  struct Read {
    int64_t sensed_ns = 0;  // off the die
    int64_t first_ns = 0;   // the first of it over the channel
    int64_t end_ns = 0;     // all of it
  };
  // One operation of a die's queue, to ask for its end later.
  struct Ticket {
    uint32_t die = 0;
    uint32_t number = 0;
    int64_t end_ns = 0;       // as forecast when it was queued
    bool background = false;  // it waits behind work that the host did not ask for
  };
  struct Counts {
    uint64_t read_ops = 0, program_ops = 0, erase_ops = 0;  // of dies
    uint64_t read_bytes = 0;     // moved to the controller, without spare
    uint64_t program_bytes = 0;  // whole pages, without spare
    uint64_t bus_bytes = 0;      // with spare, both ways
  };

  Nand(const FlashGeometry &geometry, const FlashProfile &profile, bool timing);

  // `bytes`: what is moved of the pages, in whole code words.
  Read read(int64_t at_ns, uint32_t die, uint32_t pages, uint32_t bytes, uint32_t first_bytes,
            const char *label = "read");
  Ticket program(int64_t at_ns, uint32_t die, uint32_t pages, bool background);
  Ticket erase(int64_t at_ns, uint32_t die);
  // When it ends, as far as is known now.
  int64_t end_ns(const Ticket &ticket) const;
  // When all programs for the host that are queued have ended.
  int64_t host_end_ns() const;
  // When a die, or the last of them, has done all that was planned.
  int64_t busy_until_ns(uint32_t die) const;
  int64_t busy_until_ns() const;
  // All dies erase so many blocks of each plane, from `at_ns` on, for `duration_ns`.
  void erase_all(int64_t at_ns, int64_t duration_ns, uint32_t blocks);
  // When the erasure of a superblock that begins now will reach a die: block by block if the
  // firmware goes so, else at once.
  int64_t erase_turn_ns(uint32_t die) const {
    return dies_at_once_ == 0 ? 0 : die / dies_at_once_ * work_ns(Kind::kErase);
  }
  // tBERS of one block, which shrinks with its pages.
  int64_t erase_ns() const { return erase_ns_; }

  const Counts &counts() const { return counts_; }
  int64_t die_busy_ns() const;
  int64_t channel_busy_ns() const;

  // The power went: nothing is going on.
  void clear();
  void watch(Observer *observer, const std::string &prefix);
  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  static constexpr uint32_t kOps = 64;  // a power of two; more are booked at once
  enum class Kind : uint8_t { kProgram, kErase };
  struct Op {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    int64_t move_ns = 0;  // on the channel, before a program
    Kind kind = Kind::kProgram;
    bool background = false;
  };
  // ops[number % kOps] keeps an operation until kOps more have come.
  struct Die {
    Timeline time;
    std::array<Op, kOps> ops;
    uint32_t first = 0;  // number of the oldest that waits
    uint32_t end = 0;    // ... and after the newest
    int64_t host_end_ns = 0;
    uint32_t background = 0;  // how many of those that wait
  };
  struct Channel {
    Timeline time;
    int64_t queued_ns = 0;  // when it would have moved all that was ever queued
  };

  Channel &channel_of(uint32_t die) { return channels_[die % channels_.size()]; }
  // What it is to move so much off a die: with spare, and how long it takes.
  struct Move {
    uint64_t bus_bytes = 0;
    int64_t ns = 0;
  };
  const Move &read_move(uint32_t pages, uint32_t bytes) const;
  int64_t move_ns(uint32_t pages, uint32_t bytes) const;
  Ticket queue(int64_t at_ns, uint32_t die, Kind kind, int64_t move_ns, bool background);
  void settle(uint32_t die, int64_t at_ns);
  void begin_oldest(uint32_t die);
  void push_back(Die &die, int64_t until_ns);
  int64_t work_ns(Kind kind) const;
  void load_ops(StreamReader &in, Die &die);

  bool timing_;
  uint32_t page_bytes_;
  uint32_t page_total_bytes_;  // with spare
  uint32_t bus_mb_s_;
  int64_t bus_command_ns_;
  uint32_t decode_mb_s_;
  int64_t read_ns_;
  int64_t program_ns_;
  int64_t erase_ns_;
  Memo<Move> known_;
  uint32_t dies_at_once_;  // that erase; 0: all
  uint32_t erase_rounds_;  // of a die, until all its planes are erased
  std::vector<Die> dies_;
  std::vector<Channel> channels_;
  Counts counts_;
};

}  // namespace revodrive
#endif
