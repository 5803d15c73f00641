// SPDX-License-Identifier: GPL-2.0-or-later
//
// Zeroed memory from the system, in large pages where it has them: what is looked up at random all
// over some hundred MiB is otherwise slowed by the processor's address translation more than by the
// memory. Takes address space at once, and memory piece by piece as it is written.
#ifndef REVODRIVE_SF2281_HUGE_MEMORY_H
#define REVODRIVE_SF2281_HUGE_MEMORY_H

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace revodrive {

class HugeMemory {
 public:
  // A large page: what memory comes in.
  static constexpr size_t kPiece = size_t{2} << 20;

  HugeMemory() = default;
  explicit HugeMemory(size_t bytes) : bytes_((bytes + kPiece - 1) / kPiece * kPiece) {
    if (bytes_ == 0)
      return;
    // One more, as the system aligns to small pages.
    void *all = mmap(nullptr, bytes_ + kPiece, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
      throw std::bad_alloc();
    all_ = static_cast<uint8_t *>(all);
    data_ = all_ + (kPiece - reinterpret_cast<uintptr_t>(all_) % kPiece) % kPiece;
    madvise(data_, bytes_, MADV_HUGEPAGE);  // a wish: without it all works, only slower
  }
  ~HugeMemory() {
    if (all_)
      munmap(all_, bytes_ + kPiece);
  }
  HugeMemory(HugeMemory &&other) noexcept { *this = std::move(other); }
  HugeMemory &operator=(HugeMemory &&other) noexcept {
    std::swap(all_, other.all_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  uint8_t *data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Zero again, and the memory is given back.
  void clear() {
    if (data_)
      madvise(data_, bytes_, MADV_DONTNEED);
  }

 private:
  uint8_t *all_ = nullptr;
  uint8_t *data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace revodrive
#endif
