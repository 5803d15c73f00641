// SPDX-License-Identifier: GPL-2.0-or-later
//
// rd_host_ops::table_memory of hosts that are after speed, and touch most of a table soon. A system
// that has no large pages goes on with small ones.
#ifndef REVODRIVE_SIM_LARGE_PAGES_H
#define REVODRIVE_SIM_LARGE_PAGES_H

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace revodrive::sim {

inline void ask_for_large_pages(void *, void *memory, size_t bytes) {
  constexpr uintptr_t kPage = 2 << 20;
  auto first = (reinterpret_cast<uintptr_t>(memory) + kPage - 1) / kPage * kPage;
  auto end = (reinterpret_cast<uintptr_t>(memory) + bytes) / kPage * kPage;
  if (first < end)
    madvise(reinterpret_cast<void *>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace revodrive::sim
#endif
