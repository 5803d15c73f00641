// SPDX-License-Identifier: GPL-2.0-or-later
//
// How a part of the card tells the host of a table that is large and used all over (the map of an
// SSD's flash): each access of it may cost the processor a walk through the host's page tables, and
// the first of each page a fault. What the host does about it is its business.
#ifndef REVODRIVE_MEMORY_HINT_H
#define REVODRIVE_MEMORY_HINT_H

#include <cstddef>

namespace revodrive {

struct MemoryHint {
  // See rd_host_ops::table_memory. Null: nobody wants to know.
  void (*tell)(void *opaque, void *memory, size_t bytes) = nullptr;
  void *opaque = nullptr;

  void operator()(void *memory, size_t bytes) const {
    if (tell)
      tell(opaque, memory, bytes);
  }
};

}  // namespace revodrive
#endif
