// SPDX-License-Identifier: GPL-2.0-or-later
//
// The composition root: builds link, bridge and members from a profile and ties them to one host.
// It owns everything; every call of the C interface (card_abi.cc) is one method here. Each call
// that may have changed something ends in settle(): events due now are run, the host's timer is
// armed for the next one.
#ifndef REVODRIVE_CARD_CARD_H
#define REVODRIVE_CARD_CARD_H

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "bridge/bridge.h"
#include "card/member.h"
#include "card/persistent_store.h"
#include "revodrive/event_queue.h"
#include "revodrive/host_port.h"
#include "revodrive/latency_stats.h"
#include "revodrive/pcie_link.h"
#include "revodrive/profile.h"
#include "volume/volume.h"

namespace revodrive {

class Card final : private DriveStore {
 public:
  // `stored`: what the host kept of an earlier life.
  Card(const Profile &profile, const rd_card_config &config, const PersistentStore &stored,
       const rd_host_ops &ops, void *host);
  ~Card();

  // 0 or a negative errno with a message.
  int attach(unsigned port, const rd_member_config &config, rd_error *error);
  void detach(unsigned port);

  uint32_t mmio_read(uint32_t offset);
  void mmio_write(uint32_t offset, uint32_t value);
  void timer_fired() { settle(); }
  void expect(unsigned port, uint64_t lba) const {
    if (port < ports_ && members_[port])
      members_[port]->drive().expect_sector(lba);
  }
  void block_done(uint64_t token, int error);
  void reset(rd_reset kind);
  // False with a message: the configuration makes no volume.
  static bool check(const rd_card_config &config, rd_error *error);
  // Has the host store what outlives the power, as it is now.
  void store_now() { store(nullptr, host_.now_ns()); }
  void store_at_rest();
  int set(unsigned port, std::string_view name, uint64_t value, rd_error *error);

  std::vector<uint8_t> save() const;
  int load(std::span<const uint8_t> bytes, rd_error *error);
  void resume();

  using Visitor = std::function<void(const std::string &name, uint64_t value)>;
  void query(const Visitor &visit);

  // Fault injection (card_faults.cc).
  int fault(unsigned port, const char *text, rd_error *error);
  using FaultVisitor = std::function<void(const std::string &line)>;
  void list_faults(unsigned port, const FaultVisitor &visit);

 private:
  // Marks the card as inside a call; the outermost one settles at its end.
  class Entry;
  void settle();
  int set_own(std::string_view name, rd_error *error);
  void load_body(StreamReader &in);
  uint8_t mode() const;  // as saved states know it
  bool faults_are_sane();
  void drop_faults();
  bool add_fault(unsigned port, FaultRule rule, rd_error *error);
  bool end_faults(unsigned port, const FaultOrder &order, rd_error *error);
  // Fault injection of a member, wherever its link is.
  void release(unsigned port, const FaultChoice &choice);
  void lose_link(unsigned port, uint32_t rule, int64_t for_ns);
  unsigned resting(unsigned port, uint32_t rule);
  uint32_t link_lost_by(unsigned port);
  // DriveStore
  void changed(int64_t now_ns) override;
  void store(MediaTransfer *waiter, int64_t now_ns) override;
  bool revive(Member &member, rd_error *error);
  void keep(Member &member, int64_t now_ns);

  Profile profile_;
  bool timing_;
  unsigned ports_;
  HostPort host_;
  EventQueue queue_;
  PcieLink link_;
  LatencyStats latency_;
  Bridge bridge_;
  std::array<std::unique_ptr<Member>, RD_MAX_PORTS> members_;
  // mode=vca: the members are behind these, which are on the first phy; otherwise null.
  std::unique_ptr<Volume> volume_;
  std::unique_ptr<ScsiTarget> scsi_;
  PersistentStore store_;
  int64_t stored_ns_ = 0;  // when the host was last given the store
  unsigned depth_ = 0;
  int64_t armed_ns_ = RD_NEVER;
  uint64_t register_reads_ = 0;
  uint64_t register_writes_ = 0;
};

}  // namespace revodrive
#endif
