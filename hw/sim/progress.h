// SPDX-License-Identifier: GPL-2.0-or-later
//
// Signs of life of a long run, on standard error: after a second of real time, then once a second
// on a terminal and each five seconds in a log. Also where SIGINT ends up. This is the only place
// in revosim that reads a real clock; nothing of the results depends on it.
#ifndef REVODRIVE_SIM_PROGRESS_H
#define REVODRIVE_SIM_PROGRESS_H

#include <chrono>

#include "sim/simulation.h"

namespace revodrive::sim {

class Progress {
 public:
  // Takes over SIGINT for its lifetime.
  explicit Progress(const Simulation &simulation);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  // False: the user wants the run to end.
  bool tick();
  bool interrupted() const;

 private:
  using Clock = std::chrono::steady_clock;
  void show(double elapsed);

  const Simulation &simulation_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  double next_ = 1;  // seconds after the start
};

}  // namespace revodrive::sim
#endif
