// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/progress.h"

#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace revodrive::sim {

namespace {

volatile std::sig_atomic_t interrupts = 0;

// A second one ends the program on the spot.
void on_interrupt(int) {
  interrupts = interrupts + 1;
  if (interrupts > 1)
    _exit(128 + SIGINT);
}

}  // namespace

Progress::Progress(const Simulation &simulation)
    : simulation_(simulation), terminal_(isatty(STDERR_FILENO) != 0) {
  interrupts = 0;
  std::signal(SIGINT, on_interrupt);
}

Progress::~Progress() {
  std::signal(SIGINT, SIG_DFL);
  if (shown_ && terminal_)
    std::fputs("\r\033[K", stderr);
}

bool Progress::interrupted() const {
  return interrupts > 0;
}

bool Progress::tick() {
  double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  if (elapsed >= next_)
    show(elapsed);
  return !interrupted();
}

void Progress::show(double elapsed) {
  next_ = elapsed + (terminal_ ? 1 : 5);
  shown_ = true;
  double share = simulation_.done_share();
  double seconds = static_cast<double>(simulation_.now_ns() - simulation_.start_ns()) / 1e9;
  double ios = static_cast<double>(simulation_.done_ios());
  std::fprintf(stderr,
               "%srevosim: %.1f%% done, virtual time %.1fs, %.0f IOPS, %.0fk I/Os per real second",
               terminal_ ? "\r\033[K" : "", 100 * share, seconds, seconds > 0 ? ios / seconds : 0,
               ios / elapsed / 1000);
  if (share > 0.001)
    std::fprintf(stderr, ", %.0fs left", elapsed / share - elapsed);
  std::fputs(terminal_ ? "" : "\n", stderr);
  std::fflush(stderr);
}

}  // namespace revodrive::sim
