// SPDX-License-Identifier: GPL-2.0-or-later
//
// Between a source of I/Os and its job: takes some from the source before the job asks for them,
// and tells of each, so that the card can bring near what it keeps of the place. A map of hundreds
// of megabytes is in no cache of the processor; several ways to memory at once take hardly longer
// than one. The job gets the same I/Os in the same order. Not for sources that count what they
// gave.
#ifndef REVODRIVE_SIM_LOOK_AHEAD_H
#define REVODRIVE_SIM_LOOK_AHEAD_H

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "sim/card_host.h"
#include "sim/io_source.h"
#include "sim/placement.h"

namespace revodrive::sim {

class LookAhead final : public IoSource {
 public:
  // `targets`: of each of the job's files.
  LookAhead(std::unique_ptr<IoSource> source, CardHost &host, std::vector<Placement *> targets)
      : source_(std::move(source)), host_(host), targets_(std::move(targets)) {}

  bool next(NextIo &io) override {
    if (end_ - first_ <= kLow)
      fill();
    if (first_ == end_)
      return false;
    io = taken_[first_++ % kMost];
    return true;
  }
  void rewind() override {
    first_ = end_ = 0;
    source_->rewind();
  }

 private:
  static constexpr unsigned kMost = 16;  // a power of two
  static constexpr unsigned kLow = 4;    // what was told of last needs so many others' time

  // In two turns: the ways to memory of the second overlap only if nothing else is between them.
  void fill() {
    std::array<Placement::Sector, kMost> sectors;
    unsigned count = 0;
    NextIo io;
    while (end_ - first_ < kMost && source_->next(io)) {
      taken_[end_++ % kMost] = io;
      if (auto sector = targets_[io.target]->sector(io.offset))
        sectors[count++] = *sector;
    }
    for (unsigned i = 0; i < count; i++)
      host_.expect(sectors[i].port, sectors[i].lba);
  }

  std::unique_ptr<IoSource> source_;
  CardHost &host_;
  std::vector<Placement *> targets_;
  std::array<NextIo, kMost> taken_;
  unsigned first_ = 0, end_ = 0;
};

}  // namespace revodrive::sim
#endif
