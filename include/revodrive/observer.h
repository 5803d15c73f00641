// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who wants to see what the card's resources do: an observer hears of each span of time for which a
// resource is booked. A resource keeps a Track, its line to the observer; without one it costs a
// branch. Spans come in the order they are booked, not in order of time, and may lie in the future.
#ifndef REVODRIVE_OBSERVER_H
#define REVODRIVE_OBSERVER_H

#include <cstdint>
#include <string>
#include <utility>

namespace revodrive {

class Observer {
 public:
  // `track` names the resource ("port0 die 3"): the same pointer each time, valid as long as the
  // resource. `label` says what it does ("read"): a literal. [start_ns, end_ns) of virtual time.
  virtual void span(const char *track, const char *label, int64_t start_ns, int64_t end_ns) = 0;

 protected:
  ~Observer() = default;
};

class Track {
 public:
  // The observer outlives the resource; null: nobody looks.
  void watch(Observer *observer, std::string name) {
    observer_ = observer;
    name_ = std::move(name);
  }
  void mark(const char *label, int64_t start_ns, int64_t end_ns) const {
    if (observer_) [[unlikely]]
      observer_->span(name_.c_str(), label, start_ns, end_ns);
  }

 private:
  Observer *observer_ = nullptr;
  std::string name_;
};

}  // namespace revodrive
#endif
