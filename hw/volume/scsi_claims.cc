// SPDX-License-Identifier: GPL-2.0-or-later
//
// COMPARE AND WRITE is one operation to all others: no write comes between its read and its write
// (SBC-3 5.2). So it claims its blocks for itself, and writes share theirs; who meets a claim that
// does not fit waits in line. Without such a command nobody is asked.
#include <algorithm>

#include "volume/scsi_device.h"

namespace revodrive {

using Claim = ScsiTask::Claim;

// True: go on. False: `then` comes later.
bool ScsiDevice::claim(ScsiTask &task, uint64_t lba, uint64_t blocks, Claim claim, Step then) {
  task.claim = claim;
  task.claim_lba = lba;
  task.claim_end = lba + blocks;
  alone_ += claim == Claim::kAlone;
  if (!blocked(task))
    return true;
  task.then = then;
  waiting_.push_back(&task);
  return false;
}

bool ScsiDevice::blocked(const ScsiTask &task) const {
  if (alone_ == 0)
    return false;
  auto meets = [&](const ScsiTask &other) {
    bool overlap = other.claim != Claim::kNone && other.claim_lba < task.claim_end &&
                   task.claim_lba < other.claim_end;
    return overlap && (task.claim == Claim::kAlone || other.claim == Claim::kAlone);
  };
  for (const ScsiTask *before : waiting_) {
    if (before == &task)
      break;
    if (meets(*before))
      return true;
  }
  auto waits = [&](const ScsiTask *other) {
    return std::find(waiting_.begin(), waiting_.end(), other) != waiting_.end();
  };
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto &other) {
    return other.get() != &task && other->command && meets(*other) && !waits(other.get());
  });
}

// Somebody has gone.
void ScsiDevice::wake() {
  if (waking_)
    return;  // whoever wakes looks again
  waking_ = true;
  for (size_t i = 0; i < waiting_.size();) {
    ScsiTask &task = *waiting_[i];
    if (blocked(task)) {
      i++;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    task.ready_ns = std::max(task.ready_ns, volume_.now_ns());
    (this->*task.then)(task);
    settled_late(task);
    i = 0;
  }
  waking_ = false;
}

}  // namespace revodrive
