// SPDX-License-Identifier: GPL-2.0-or-later
//
// The seam between a drive and whoever keeps what outlives its power: SMART, security, settings.
// The drive says that something changed; the keeper fetches the bytes by save_persistent() when it
// stores them.
#ifndef REVODRIVE_DRIVE_STORE_H
#define REVODRIVE_DRIVE_STORE_H

#include <cstdint>

#include "revodrive/media.h"

namespace revodrive {

class DriveStore {
 public:
  // Something changed that may be lost with the last minute: stored when a minute of virtual time
  // has passed since the last time.
  virtual void changed(int64_t now_ns) = 0;
  // Stores now. `waiter` (may be null) hears media_done() once, when it is durable or has failed;
  // that may be from inside.
  virtual void store(MediaTransfer *waiter, int64_t now_ns) = 0;

 protected:
  ~DriveStore() = default;
};

}  // namespace revodrive
#endif
