// SPDX-License-Identifier: GPL-2.0-or-later
//
// A limit on sustained work that lets bursts through: a bucket that fills at a fixed rate, as the
// time at which it would be full again (the generic cell rate algorithm).
#ifndef REVODRIVE_SF2281_TOKEN_BUCKET_H
#define REVODRIVE_SF2281_TOKEN_BUCKET_H

#include <algorithm>
#include <cstdint>

#include "revodrive/stream.h"

namespace revodrive {

class TokenBucket {
 public:
  // `per_second` 0: no limit.
  TokenBucket(uint64_t per_second, uint64_t burst)
      : per_second_(per_second), burst_ns_(per_second ? to_ns(burst) : 0) {}

  // When `amount` may go that comes at `at_ns`; it is taken.
  int64_t take(int64_t at_ns, uint64_t amount) {
    if (per_second_ == 0)
      return at_ns;
    full_ns_ = std::max(full_ns_, at_ns) + to_ns(amount);
    return std::max(at_ns, full_ns_ - burst_ns_);
  }
  void clear() { full_ns_ = 0; }
  void save(StreamWriter &out) const { out.put(full_ns_); }
  void load(StreamReader &in) {
    in.get(full_ns_);
    if (full_ns_ < 0 || full_ns_ > INT64_MAX / 4)
      in.fail();
  }

 private:
  int64_t to_ns(uint64_t amount) const {
    constexpr uint64_t kSecond = 1'000'000'000;
    // Apart, so that no burst overflows.
    return static_cast<int64_t>(amount / per_second_ * kSecond +
                                amount % per_second_ * kSecond / per_second_);
  }

  uint64_t per_second_;
  int64_t burst_ns_;
  int64_t full_ns_ = 0;
};

}  // namespace revodrive
#endif
