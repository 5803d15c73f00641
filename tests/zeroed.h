// SPDX-License-Identifier: GPL-2.0-or-later
//
// Bytes that are zero at first and cost nothing until they are written: memory and disks of which a
// test touches little.
#ifndef REVODRIVE_TESTS_ZEROED_H
#define REVODRIVE_TESTS_ZEROED_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace revodrive::test {

class Zeroed {
 public:
  explicit Zeroed(size_t size = 0)
      : bytes_(static_cast<uint8_t *>(std::calloc(size ? size : 1, 1))), size_(size) {}
  Zeroed(const Zeroed &other) : Zeroed(other.size_) {
    std::memcpy(data(), other.bytes_.get(), size_);
  }
  Zeroed &operator=(Zeroed other) {
    std::swap(bytes_, other.bytes_);
    std::swap(size_, other.size_);
    return *this;
  }

  uint8_t *data() { return bytes_.get(); }
  size_t size() const { return size_; }
  uint8_t &operator[](size_t at) { return bytes_.get()[at]; }

 private:
  struct Free {
    void operator()(uint8_t *bytes) const { std::free(bytes); }
  };
  std::unique_ptr<uint8_t, Free> bytes_;
  size_t size_;
};

}  // namespace revodrive::test
#endif
