// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a pure function said of arguments that come again and again: how long so many bytes take on
// a wire, say. Looked up in less time than a division takes; what is not there is computed anew, so
// it changes no result and is no state.
#ifndef REVODRIVE_MEMO_H
#define REVODRIVE_MEMO_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace revodrive {

template <typename Value>
class Memo {
 public:
  // `key` stands for the argument, and is not UINT64_MAX.
  template <typename Compute>
  const Value &of(uint64_t key, Compute compute) const {
    Known &known = places_[key * 0x9E3779B97F4A7C15 >> (64 - kBits)];
    if (known.key != key) [[unlikely]]
      known = {key, compute()};
    return known.value;
  }

 private:
  static constexpr unsigned kBits = 4;
  struct Known {
    uint64_t key = UINT64_MAX;
    Value value{};
  };
  mutable std::array<Known, size_t{1} << kBits> places_;
};

}  // namespace revodrive
#endif
