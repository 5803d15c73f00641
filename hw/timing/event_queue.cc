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

bool EventQueue::before(const Event &a, const Event &b) {
  return a.at_ns_ != b.at_ns_ ? a.at_ns_ < b.at_ns_ : a.order_ < b.order_;
}

void EventQueue::run(int64_t now_ns) {
  while (next_ns() <= now_ns) {
    Event &event = *heap_.front();
    remove(event);
    event.action_(event.context_);
  }
}

void EventQueue::insert(Event &event) {
  heap_.push_back(&event);
  event.index_ = heap_.size() - 1;
  sift_up(event.index_);
}

void EventQueue::remove(Event &event) {
  size_t hole = event.index_;
  Event *last = heap_.back();
  heap_.pop_back();
  event.index_ = Event::kIdle;
  if (last == &event)
    return;
  place(hole, last);
  sift_up(hole);
  sift_down(last->index_);
}

void EventQueue::place(size_t index, Event *event) {
  heap_[index] = event;
  event->index_ = index;
}

void EventQueue::sift_up(size_t index) {
  Event *moving = heap_[index];
  while (index > 0) {
    size_t parent = (index - 1) / 2;
    if (!before(*moving, *heap_[parent]))
      break;
    place(index, heap_[parent]);
    index = parent;
  }
  place(index, moving);
}

void EventQueue::sift_down(size_t index) {
  Event *moving = heap_[index];
  for (;;) {
    size_t child = 2 * index + 1;
    if (child >= heap_.size())
      break;
    if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child]))
      child++;
    if (!before(*heap_[child], *moving))
      break;
    place(index, heap_[child]);
    index = child;
  }
  place(index, moving);
}

}  // namespace revodrive
