// SPDX-License-Identifier: GPL-2.0-or-later
//
// EventQueue: order of time, then of arming; moving, cancelling, dying events.
#include <algorithm>
#include <memory>
#include <vector>

#include "revodrive/event_queue.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

struct Probe {
  Probe(EventQueue &queue, std::vector<int> &fired, int number)
      : fired_(fired), number_(number), event(queue, &Probe::fire, this) {}
  static void fire(void *self) {
    auto *probe = static_cast<Probe *>(self);
    probe->fired_.push_back(probe->number_);
    if (probe->next)
      probe->next->event.arm(probe->next_ns);
  }

  std::vector<int> &fired_;
  int number_;
  Probe *next = nullptr;  // armed for next_ns when this one fires
  int64_t next_ns = 0;
  Event event;
};

}  // namespace

START_TEST(order) {
  EventQueue queue;
  std::vector<int> fired;
  Probe a(queue, fired, 1), b(queue, fired, 2), c(queue, fired, 3);
  ck_assert_int_eq(queue.next_ns(), RD_NEVER);
  a.event.arm(20);
  b.event.arm(10);
  c.event.arm(20);
  ck_assert_int_eq(queue.next_ns(), 10);
  queue.run(9);
  ck_assert(fired.empty());
  queue.run(20);
  ck_assert((fired == std::vector<int>{2, 1, 3}));
  ck_assert(!a.event.armed() && a.event.at_ns() == RD_NEVER);
}
END_TEST

START_TEST(rearming_moves) {
  EventQueue queue;
  std::vector<int> fired;
  Probe a(queue, fired, 1), b(queue, fired, 2);
  a.event.arm(10);
  b.event.arm(10);
  a.event.arm(10);  // now behind b
  queue.run(10);
  ck_assert((fired == std::vector<int>{2, 1}));
  a.event.arm(5);
  a.event.arm(50);
  queue.run(49);
  ck_assert_uint_eq(fired.size(), 2);
}
END_TEST

START_TEST(due_events_of_actions_run_too) {
  EventQueue queue;
  std::vector<int> fired;
  Probe a(queue, fired, 1), b(queue, fired, 2), c(queue, fired, 3);
  a.next = &b;
  a.next_ns = 4;  // in the past: still after a
  b.next = &c;
  b.next_ns = 11;
  a.event.arm(10);
  queue.run(10);
  ck_assert((fired == std::vector<int>{1, 2}));
  ck_assert_int_eq(queue.next_ns(), 11);
}
END_TEST

START_TEST(cancel_and_death) {
  EventQueue queue;
  std::vector<int> fired;
  Probe a(queue, fired, 1);
  auto b = std::make_unique<Probe>(queue, fired, 2);
  a.event.arm(1);
  b->event.arm(2);
  a.event.cancel();
  a.event.cancel();
  b.reset();
  queue.run(100);
  ck_assert(fired.empty());
  ck_assert_int_eq(queue.next_ns(), RD_NEVER);
}
END_TEST

START_TEST(restore_keeps_the_order) {
  EventQueue queue;
  std::vector<int> fired;
  Probe a(queue, fired, 1), b(queue, fired, 2);
  b.event.restore(10, 7);
  a.event.restore(10, 3);
  queue.set_next_order(8);
  ck_assert_uint_eq(b.event.order(), 7);
  queue.run(10);
  ck_assert((fired == std::vector<int>{1, 2}));
  ck_assert_uint_eq(queue.next_order(), 8);
}
END_TEST

START_TEST(random_against_sorting) {
  Random random(test::seed());
  for (int round = 0; round < 200; round++) {
    EventQueue queue;
    std::vector<int> fired;
    std::vector<std::unique_ptr<Probe>> probes;
    for (int i = 0; i < 60; i++)
      probes.push_back(std::make_unique<Probe>(queue, fired, i));
    for (int i = 0; i < 400; i++) {
      Probe &probe = *probes[random.below(probes.size())];
      if (random.one_in(4))
        probe.event.cancel();
      else
        probe.event.arm(static_cast<int64_t>(random.below(50)));
    }
    std::vector<int> expected;
    for (auto &probe : probes) {
      if (probe->event.armed())
        expected.push_back(probe->number_);
    }
    std::sort(expected.begin(), expected.end(), [&](int left, int right) {
      const Event &a = probes[static_cast<size_t>(left)]->event;
      const Event &b = probes[static_cast<size_t>(right)]->event;
      return std::pair(a.at_ns(), a.order()) < std::pair(b.at_ns(), b.order());
    });
    for (int64_t now_ns = 0; now_ns < 50; now_ns += 7)
      queue.run(now_ns);
    queue.run(50);
    ck_assert(fired == expected);
  }
}
END_TEST

int main() {
  return test::run_tests("event_queue",
                         {order, rearming_moves, due_events_of_actions_run_too, cancel_and_death,
                          restore_keeps_the_order, random_against_sorting});
}
