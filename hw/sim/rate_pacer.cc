// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/rate_pacer.h"

#include <algorithm>

namespace revodrive::sim {

RatePacer::RatePacer(const JobOptions &options, const CardHost &host)
    : options_(options), host_(host) {
  for (unsigned i = 0; i < kDirections; i++)
    active_ |= options.rate[i] != 0 || options.rate_iops[i] != 0;
}

// Of a direction without a rate: long ago.
int64_t RatePacer::due_ns(Op direction) const {
  auto i = static_cast<unsigned>(direction);
  auto after = [&](uint64_t amount, uint64_t rate) {
    if (rate == 0)
      return int64_t{0};
    return start_ns_ +
           static_cast<int64_t>(static_cast<unsigned __int128>(amount) * kNsPerSecond / rate);
  };
  return std::max(after(bytes_[i], options_.rate[i]), after(ios_[i], options_.rate_iops[i]));
}

Op RatePacer::choose(Op drawn) const {
  if (!active_)
    return drawn;
  Op other = drawn == Op::kRead ? Op::kWrite : Op::kRead;
  int64_t drawn_ns = due_ns(drawn), other_ns = due_ns(other);
  return drawn_ns <= host_.now_ns() || drawn_ns <= other_ns ? drawn : other;
}

int64_t RatePacer::take(const NextIo &io) {
  if (io.op == Op::kFlush)
    return 0;
  auto i = static_cast<unsigned>(io.op);
  int64_t until_ns = due_ns(io.op);
  bytes_[i] += io.bytes;
  ios_[i]++;
  return until_ns;
}

}  // namespace revodrive::sim
