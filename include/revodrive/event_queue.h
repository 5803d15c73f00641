// SPDX-License-Identifier: GPL-2.0-or-later
//
// Future events of one card in virtual time. An Event belongs to whoever acts on it and is armed in
// the queue's heap without allocation once the heap has grown; events of the same nanosecond fire
// in the order they were armed, so the same input always gives the same order.
#ifndef REVODRIVE_EVENT_QUEUE_H
#define REVODRIVE_EVENT_QUEUE_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "revodrive/host.h"

namespace revodrive {

class EventQueue;

// Not copyable and not movable: the queue keeps its address. Disarms itself when destroyed.
class Event {
 public:
  using Action = void (*)(void *context);
  Event(EventQueue &queue, Action action, void *context)
      : queue_(queue), action_(action), context_(context) {}
  ~Event() { cancel(); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  // Fires once at `at_ns` (or as soon after as the host calls run()). Re-arming moves it.
  void arm(int64_t at_ns);
  void cancel();
  bool armed() const { return index_ != kIdle; }
  // Deadline, RD_NEVER when not armed.
  int64_t at_ns() const { return armed() ? at_ns_ : RD_NEVER; }
  // Position among events of the same nanosecond; saved so that a restored card keeps the order.
  uint64_t order() const { return armed() ? order_ : 0; }
  void restore(int64_t at_ns, uint64_t order);

 private:
  friend class EventQueue;
  static constexpr size_t kIdle = SIZE_MAX;

  EventQueue &queue_;
  Action action_;
  void *context_;
  int64_t at_ns_ = 0;
  uint64_t order_ = 0;
  size_t index_ = kIdle;
};

class EventQueue {
 public:
  // Fires everything due at or before `now_ns`, also what that arms in turn. An event that re-arms
  // itself for a time that is due already is a bug of its owner; owners keep that bounded.
  void run(int64_t now_ns);
  // Earliest deadline, RD_NEVER if there is none.
  int64_t next_ns() const { return heap_.empty() ? RD_NEVER : heap_.front().at_ns; }

  uint64_t next_order() const { return next_order_; }
  void set_next_order(uint64_t order) { next_order_ = order; }

 private:
  friend class Event;
  // What decides is here, so that to compare two is not to visit both.
  struct Entry {
    int64_t at_ns;
    uint64_t order;
    Event *event;
    bool before(const Entry &other) const {
      return at_ns != other.at_ns ? at_ns < other.at_ns : order < other.order;
    }
  };
  void insert(Event &event);
  void remove(Event &event);
  void place(size_t index, const Entry &entry);
  // Puts an entry where it belongs, at or above a place that is free, or at or below.
  void sift_up(size_t index, Entry moving);
  void sift_down(size_t index, Entry moving);

  std::vector<Entry> heap_;
  uint64_t next_order_ = 0;
};

}  // namespace revodrive
#endif
