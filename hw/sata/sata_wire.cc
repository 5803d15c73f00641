// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/sata_wire.h"

#include <algorithm>

namespace revodrive {

namespace {

// FIS sizes in bytes between SOF and CRC (Serial ATA 3.0, 10.3).
constexpr uint32_t kDmaActivateBytes = 4;
constexpr uint32_t kDmaSetupBytes = 28;
constexpr uint32_t kPioSetupBytes = 20;
constexpr uint32_t kSetDeviceBitsBytes = 8;
constexpr uint32_t kDataHeaderBytes = 4;

// Payload rate after 8b/10b.
uint32_t line_mb_s(uint32_t generation) {
  return 150u << (std::clamp(generation, 1u, 3u) - 1);
}

}  // namespace

SataWire::SataWire(const SataProfile &profile, bool timing) : profile_(profile), timing_(timing) {
}

int64_t SataWire::bytes_ns(uint64_t bytes) const {
  // bytes / (MB/s) is microseconds; rounded up so that nothing is free.
  uint64_t kb_s = uint64_t{line_mb_s(profile_.speed)} * profile_.efficiency_permille;
  return static_cast<int64_t>((bytes * 1'000'000 + kb_s - 1) / kb_s);
}

int64_t SataWire::fis_ns(uint32_t bytes) const {
  return known_.of(bytes, [&] { return bytes_ns(uint64_t{bytes} + profile_.fis_overhead_bytes); });
}

// A piece of data with what announces it. PIO blocks smaller than the piece each have a FIS pair.
int64_t SataWire::data_ns(Protocol protocol, uint32_t block_bytes, uint32_t bytes) const {
  if (is_pio(protocol)) {
    uint32_t blocks = (bytes + block_bytes - 1) / block_bytes;
    return blocks * (fis_ns(kPioSetupBytes) + fis_ns(kDataHeaderBytes)) + bytes_ns(bytes);
  }
  bool asked_for = protocol == Protocol::kDmaOut || protocol == Protocol::kQueuedOut;
  return fis_ns(kDataHeaderBytes + bytes) + (asked_for ? fis_ns(kDmaActivateBytes) : 0);
}

Span SataWire::reserve(int64_t at_ns, int64_t duration_ns, const char *label) {
  return timing_ ? wire_.reserve(at_ns, duration_ns, label) : Span{at_ns, at_ns};
}

int64_t SataWire::fis(int64_t at_ns, uint32_t bytes, const char *label, Journey &journey) {
  int64_t end_ns = reserve(at_ns, fis_ns(bytes), label).end_ns;
  journey.reach(Stage::kSata, end_ns);
  return end_ns;
}

int64_t SataWire::command(int64_t at_ns, Journey &journey) {
  return fis(at_ns, kFisBytes, "command", journey);
}

void SataWire::release(int64_t at_ns) {
  reserve(at_ns, fis_ns(kFisBytes), "release");
}

int64_t SataWire::end(Protocol protocol, int64_t at_ns, Journey &journey) {
  if (protocol == Protocol::kPioIn)
    return at_ns;  // the last PIO Setup FIS has carried the status
  return fis(at_ns, is_queued(protocol) ? kSetDeviceBitsBytes : kFisBytes, "status", journey);
}

int64_t SataWire::error(int64_t at_ns, Journey &journey) {
  return fis(at_ns, kFisBytes, "error", journey);
}

int64_t SataWire::send(DataWindow &data, Protocol protocol, uint32_t block_bytes, Span ready,
                       uint32_t bytes, Journey &journey) {
  if (!timing_)
    return ready.end_ns;
  uint32_t pieces = (bytes + kMaxDataBytes - 1) / kMaxDataBytes;
  int64_t step_ns = (ready.end_ns - ready.start_ns) / std::max(pieces, 1u);
  int64_t at_ns = ready.start_ns;
  int64_t done_ns = ready.start_ns;
  for (uint32_t i = 0; i < pieces; i++) {
    uint32_t size = std::min(kMaxDataBytes, bytes - i * kMaxDataBytes);
    int64_t ready_ns = i + 1 < pieces ? ready.start_ns + (i + 1) * step_ns : ready.end_ns;
    journey.reach(Stage::kChannel, ready_ns);
    at_ns = std::max(at_ns, ready_ns);
    if (i == 0 && is_queued(protocol))
      at_ns = fis(at_ns, kDmaSetupBytes, "setup", journey);
    Span wire = reserve(at_ns, data_ns(protocol, block_bytes, size), "data in");
    journey.reach(Stage::kSata, wire.end_ns);
    Span host = data.reserve(DataDirection::kToGuest, wire.start_ns, size);
    // The initiator holds one FIS: the next may start when this one has begun to leave it.
    at_ns = std::max(wire.end_ns, host.start_ns);
    journey.reach(Stage::kPcie, at_ns);
    done_ns = std::max({done_ns, wire.end_ns, host.end_ns});
  }
  journey.reach(Stage::kPcie, done_ns);
  return done_ns;
}

int64_t SataWire::receive(DataWindow &data, Protocol protocol, uint32_t block_bytes, int64_t at_ns,
                          uint32_t bytes, Journey &journey) {
  if (!timing_)
    return at_ns;
  int64_t fetch_ns = at_ns;
  if (is_queued(protocol))
    at_ns = fis(at_ns, kDmaSetupBytes, "setup", journey);
  for (uint32_t offset = 0; offset < bytes; offset += kMaxDataBytes) {
    uint32_t size = std::min(kMaxDataBytes, bytes - offset);
    Span host = data.reserve(DataDirection::kFromGuest, fetch_ns, size);
    int64_t duration_ns = data_ns(protocol, block_bytes, size);
    // Not before the first byte is there, and not so early that the last one would be missing.
    int64_t fed_ns = std::max(host.start_ns, host.end_ns - duration_ns);
    journey.reach(Stage::kPcie, fed_ns);
    Span wire = reserve(std::max(at_ns, fed_ns), duration_ns, "data out");
    journey.reach(Stage::kSata, wire.end_ns);
    fetch_ns = wire.start_ns;  // one FIS ahead
    at_ns = wire.end_ns;
  }
  return at_ns;
}

}  // namespace revodrive
