// SPDX-License-Identifier: GPL-2.0-or-later
//
// One stretch of zeroed memory: address space at once, memory piece by piece as it is written.
#ifndef REVODRIVE_SF2281_ZERO_MEMORY_H
#define REVODRIVE_SF2281_ZERO_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "revodrive/memory_hint.h"

namespace revodrive {

class ZeroMemory {
 public:
  ZeroMemory(size_t bytes, const MemoryHint &hint) : bytes_(bytes), hint_(hint) { clear(); }

  uint8_t *data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }
  // Zero again, and the memory is given back. The system zeroes it: what nobody touches takes none.
  void clear() {
    data_.reset();
    data_.reset(static_cast<uint8_t *>(std::calloc(bytes_ + 1, 1)));
    if (!data_)
      throw std::bad_alloc();
    hint_(data(), bytes_);
  }

 private:
  struct Free {
    void operator()(uint8_t *memory) const { std::free(memory); }
  };

  size_t bytes_;
  MemoryHint hint_;
  std::unique_ptr<uint8_t, Free> data_;
};

}  // namespace revodrive
#endif
