// SPDX-License-Identifier: GPL-2.0-or-later
//
// The PCI Express link between host memory and the card as a matter of time. Each direction is a
// Timeline: memory writes by the card go up, the completions of its reads come down. A transfer
// takes its payload plus one overhead per TLP; a read first waits for the round trip.
#ifndef REVODRIVE_PCIE_LINK_H
#define REVODRIVE_PCIE_LINK_H

#include <cstdint>

#include "revodrive/memo.h"
#include "revodrive/profile.h"
#include "revodrive/stream.h"
#include "revodrive/timeline.h"

namespace revodrive {

class PcieLink {
 public:
  // `timing` false: nothing takes time.
  PcieLink(const PcieProfile &profile, bool timing) : profile_(profile), timing_(timing) {}

  // Books a memory write of the card / a read of host memory by it, at or after `earliest_ns`.
  Span to_host(int64_t earliest_ns, uint32_t bytes);
  Span from_host(int64_t earliest_ns, uint32_t bytes);

  void watch(Observer *observer) {
    up_.watch(observer, "pcie up");
    down_.watch(observer, "pcie down");
  }

  int64_t busy_up_ns() const { return up_.busy_ns(); }
  int64_t busy_down_ns() const { return down_.busy_ns(); }

  void clear();
  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  int64_t transfer_ns(uint32_t bytes, uint32_t payload_bytes) const;
  int64_t work_out(uint32_t bytes, uint32_t payload_bytes) const;

  PcieProfile profile_;
  bool timing_;
  Memo<int64_t> known_;
  Timeline up_;
  Timeline down_;
};

}  // namespace revodrive
#endif
