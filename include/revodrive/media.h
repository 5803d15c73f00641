// SPDX-License-Identifier: GPL-2.0-or-later
//
// The bytes of one member as its drive sees them: transfers to and from the host's backend, without
// any timing. Offsets and lengths are multiples of RD_SECTOR_BYTES and inside the member; the drive
// has checked that.
#ifndef REVODRIVE_MEDIA_H
#define REVODRIVE_MEDIA_H

#include <cstdint>
#include <span>

#include "revodrive/host.h"

namespace revodrive {

// Whoever started a transfer. Must stay alive until media_done() was called once per submit().
class MediaTransfer {
 public:
  // `error` is 0 or a negative errno. May come from inside submit() or drain().
  virtual void media_done(int error) = 0;

 protected:
  ~MediaTransfer() = default;
};

class Media {
 public:
  virtual ~Media() = default;
  virtual uint64_t sectors() const = 0;
  // The iov array is not copied: it and its memory stay valid until media_done().
  virtual void submit(rd_block_op op, uint64_t offset, uint64_t bytes, std::span<const rd_iov> iov,
                      MediaTransfer &transfer) = 0;
  // Returns when every transfer of this member has ended.
  virtual void drain() = 0;
};

}  // namespace revodrive
#endif
