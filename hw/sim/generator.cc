// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>

#include "revodrive/host.h"
#include "sim/io_source.h"
#include "sim/rate_pacer.h"

namespace revodrive::sim {

Generator::Generator(const JobOptions &job, const std::vector<Region> &regions,
                     uint64_t total_bytes, uint64_t seed, const RatePacer *pacer)
    : job_(job), pacer_(pacer), regions_(regions), total_bytes_(total_bytes), seed_(seed), rng_(0) {
  rewind();
}

void Generator::rewind() {
  rng_ = Rng(seed_);
  addresses_.clear();
  for (const Region &region : regions_)
    addresses_.emplace_back(job_, region, rng_.next());
  done_bytes_ = 0;
  file_ = 0;
  write_again_ = false;
  seed_ = mix64(seed_);  // another loop goes another way
}

unsigned Generator::pick_direction() {
  const Direction &direction = job_.direction;
  if (direction.trim_then_write || direction.trims)
    return static_cast<unsigned>(Op::kTrim);
  if (direction.reads && direction.writes) {
    Op drawn = rng_.chance(job_.mix_read) ? Op::kRead : Op::kWrite;
    bool open = pacer_ && job_.mix_read % 100 != 0;
    return static_cast<unsigned>(open ? pacer_->choose(drawn) : drawn);
  }
  return static_cast<unsigned>(direction.reads ? Op::kRead : Op::kWrite);
}

uint64_t Generator::pick_bytes(unsigned direction) {
  uint64_t least = job_.block_min[direction];
  const std::vector<BlockSize> &sizes = job_.block_split[direction];
  if (!sizes.empty()) {
    uint64_t roll = rng_.below(100);
    for (const BlockSize &size : sizes) {
      if (roll < size.percent)
        return size.bytes;
      roll -= size.percent;
    }
    return sizes.back().bytes;
  }
  if (least == job_.block_max[direction])
    return least;
  // fio: multiples of the smallest.
  return least * (1 + rng_.below(job_.block_max[direction] / least));
}

bool Generator::next(NextIo &io) {
  if (write_again_) {
    write_again_ = false;
    io = last_;
    io.op = Op::kWrite;
    return true;
  }
  if (total_bytes_ != 0 && done_bytes_ >= total_bytes_)
    return false;
  unsigned direction = pick_direction();
  const Region &region = regions_[file_];
  uint64_t bytes = std::min(pick_bytes(direction), region.bytes());
  io.op = static_cast<Op>(direction);
  io.target = file_;
  io.bytes = static_cast<uint32_t>(bytes);
  io.offset = addresses_[file_].next(direction, bytes);
  io.not_before_ns = 0;
  io.recorded = false;
  done_bytes_ += bytes;
  file_ = file_ + 1u == regions_.size() ? 0 : static_cast<uint8_t>(file_ + 1);
  if (job_.direction.trim_then_write) {
    write_again_ = true;
    last_ = io;
  }
  return true;
}

}  // namespace revodrive::sim
