// SPDX-License-Identifier: GPL-2.0-or-later
//
// One member of the card: a drive and the host's backend behind it, checked and built from what the
// host says of it.
#ifndef REVODRIVE_CARD_MEMBER_H
#define REVODRIVE_CARD_MEMBER_H

#include <memory>
#include <string>

#include "revodrive/ata_drive.h"
#include "revodrive/host_port.h"
#include "revodrive/profile.h"

namespace revodrive {

// The backend of one port as the drive sees it. The token of a transfer is its address.
class MemberMedia final : public Media {
 public:
  MemberMedia(HostPort &host, unsigned port, uint64_t sectors)
      : host_(host), port_(port), sectors_(sectors) {}
  uint64_t sectors() const override { return sectors_; }
  void submit(rd_block_op op, uint64_t offset, uint64_t bytes, std::span<const rd_iov> iov,
              MediaTransfer &transfer) override {
    host_.block_submit(port_, op, offset, bytes, iov, token(&transfer));
  }
  void drain() override { host_.block_drain(port_); }
  static uint64_t token(MediaTransfer *transfer) { return reinterpret_cast<uintptr_t>(transfer); }
  static void done(uint64_t token, int error) {
    reinterpret_cast<MediaTransfer *>(token)->media_done(error);
  }

 private:
  HostPort &host_;
  unsigned port_;
  uint64_t sectors_;
};

class Member {
 public:
  // Smallest member: below this no partition table and file system fits.
  static constexpr uint64_t kMinBytes = 1 << 20;

  // Null with a message: the configuration makes no drive.
  static std::unique_ptr<Member> create(HostPort &host, unsigned port, const Profile &profile,
                                        const rd_member_config &config, bool timing,
                                        rd_error *error);

  AtaDrive &drive() { return *drive_; }
  const AtaDrive &drive() const { return *drive_; }
  uint64_t sectors() const { return media_.sectors(); }
  // The name under which its persistent state is kept.
  const std::string &serial() const { return serial_; }

 private:
  Member(HostPort &host, unsigned port, uint64_t sectors) : media_(host, port, sectors) {}

  std::string serial_;
  MemberMedia media_;
  std::unique_ptr<AtaDrive> drive_;
};

}  // namespace revodrive
#endif
