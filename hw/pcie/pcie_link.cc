// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/pcie_link.h"

namespace revodrive {

int64_t PcieLink::transfer_ns(uint32_t bytes, uint32_t payload_bytes) const {
  return known_.of(uint64_t{bytes} << 32 | payload_bytes,
                   [&] { return work_out(bytes, payload_bytes); });
}

int64_t PcieLink::work_out(uint32_t bytes, uint32_t payload_bytes) const {
  uint64_t tlps = (uint64_t{bytes} + payload_bytes - 1) / payload_bytes;
  uint64_t wire_bytes = bytes + tlps * profile_.tlp_overhead_bytes;
  // bytes / (MB/s) is microseconds; rounded up so that nothing is free.
  uint64_t mb_s = uint64_t{profile_.lanes} * profile_.lane_mb_s;
  return static_cast<int64_t>((wire_bytes * 1000 + mb_s - 1) / mb_s);
}

Span PcieLink::to_host(int64_t earliest_ns, uint32_t bytes) {
  if (!timing_)
    return {earliest_ns, earliest_ns};
  return up_.reserve_pieces(earliest_ns, transfer_ns(bytes, profile_.max_payload_bytes), "write");
}

Span PcieLink::from_host(int64_t earliest_ns, uint32_t bytes) {
  if (!timing_)
    return {earliest_ns, earliest_ns};
  return down_.reserve_pieces(earliest_ns + profile_.read_latency_ns,
                              transfer_ns(bytes, profile_.completion_bytes), "read");
}

void PcieLink::clear() {
  up_.clear();
  down_.clear();
}

void PcieLink::save(StreamWriter &out) const {
  up_.save(out);
  down_.save(out);
}

void PcieLink::load(StreamReader &in) {
  up_.load(in);
  down_.load(in);
}

}  // namespace revodrive
