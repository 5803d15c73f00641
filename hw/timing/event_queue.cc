// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/event_queue.h"

namespace revodrive {

void Event::arm(int64_t at_ns) {
  restore(at_ns, queue_.next_order_++);
}

void Event::restore(int64_t at_ns, uint64_t order) {
  cancel();
  at_ns_ = at_ns;
  order_ = order;
  queue_.insert(*this);
}

void Event::cancel() {
  if (armed())
    queue_.remove(*this);
}

void EventQueue::run(int64_t now_ns) {
  while (next_ns() <= now_ns) {
    Event &event = *heap_.front().event;
    remove(event);
    event.action_(event.context_);
  }
}

void EventQueue::insert(Event &event) {
  Entry entry{event.at_ns_, event.order_, &event};
  heap_.push_back(entry);
  sift_up(heap_.size() - 1, entry);
}

void EventQueue::remove(Event &event) {
  size_t hole = event.index_;
  Entry last = heap_.back();
  heap_.pop_back();
  event.index_ = Event::kIdle;
  if (last.event == &event)
    return;
  if (hole > 0 && last.before(heap_[(hole - 1) / 2]))
    sift_up(hole, last);
  else
    sift_down(hole, last);
}

void EventQueue::place(size_t index, const Entry &entry) {
  heap_[index] = entry;
  entry.event->index_ = index;
}

void EventQueue::sift_up(size_t index, Entry moving) {
  while (index > 0) {
    size_t parent = (index - 1) / 2;
    if (!moving.before(heap_[parent]))
      break;
    place(index, heap_[parent]);
    index = parent;
  }
  place(index, moving);
}

void EventQueue::sift_down(size_t index, Entry moving) {
  for (;;) {
    size_t child = 2 * index + 1;
    if (child >= heap_.size())
      break;
    child += child + 1 < heap_.size() && heap_[child + 1].before(heap_[child]);
    if (!heap_[child].before(moving))
      break;
    place(index, heap_[child]);
    index = child;
  }
  place(index, moving);
}

}  // namespace revodrive
