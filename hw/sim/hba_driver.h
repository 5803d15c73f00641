// SPDX-License-Identifier: GPL-2.0-or-later
//
// A small driver of the card, in guest memory and registers like the real one: brings the bridge up
// in the order Linux's mvsas does (drivers/scsi/mvsas: mv_94xx.c, mv_sas.c), issues ATA commands
// through the delivery ring, takes completions out of the completion ring. One slot per drive and
// tag; its header and table are filled once, a command changes only what differs. A volume of the
// card (mode=vca) is a SAS disk on the first phy: its commands are SCSI, and it has as many tags as
// eight drives.
#ifndef REVODRIVE_SIM_HBA_DRIVER_H
#define REVODRIVE_SIM_HBA_DRIVER_H

#include <array>
#include <cstdint>

#include "sim/card_host.h"

namespace revodrive::sim {

constexpr unsigned kTags = 32;
// A volume of the card has the tags of so many drives: what a drive is to its block layer.
constexpr unsigned kVolumeLanes = 8;

enum class AtaKind : uint8_t { kRead, kWrite, kTrim, kFlush };

// The data of a command in guest memory: pieces of `piece_bytes` that lie `stride_bytes` apart, the
// first of `first_bytes`, the last whatever is left. One contiguous buffer has first_bytes equal to
// all of it.
struct DataLayout {
  uint64_t addr = 0;
  uint32_t first_bytes = 0;
  uint32_t piece_bytes = 0;
  uint32_t stride_bytes = 0;
};

uint8_t ata_opcode(AtaKind kind);

struct AtaRequest {
  AtaKind kind = AtaKind::kRead;
  uint8_t port = 0;
  uint8_t tag = 0;
  uint64_t lba = 0;
  uint64_t sectors = 0;  // read and write: up to kMaxSectors; trim: up to kMaxTrimSectors
  DataLayout data;
};

// How the driver programs interrupt coalescing; mvsas: 511 completions or 128 us.
struct Coalescing {
  uint32_t count = 511;  // 0: an interrupt for each completion
  uint32_t us = 128;
};

class HbaDriver {
 public:
  static constexpr size_t kAreaBytes = 2 << 20;   // guest memory for both cores' rings and tables
  static constexpr uint32_t kMaxSectors = 32768;  // 16 MiB
  static constexpr uint32_t kTrimRangeSectors = 65535;
  static constexpr unsigned kTrimRanges = 64;
  static constexpr uint64_t kMaxTrimSectors = uint64_t{kTrimRangeSectors} * kTrimRanges;
  static constexpr unsigned kMaxPrds = 64;

  // `area`: guest memory for the driver, kAreaBytes of it.
  HbaDriver(CardHost &host, uint64_t area, bool volume)
      : host_(host), area_(area), volume_(volume) {}

  // Brings up the cores that `ports` need. The clock moves on by half a second, past the links;
  // then a volume is asked until it is ready.
  void probe(unsigned ports, const Coalescing &coalescing);
  // The tag must be free; the doorbell is rung now.
  void issue(const AtaRequest &request);

  // Serves the interrupt while it is raised: done(port, tag, failed) for each completion.
  template <typename Done>
  void serve(Done done) {
    while (host_.irq()) {
      for (unsigned core = 0; core < cores_; core++)
        serve_core(core, done);
    }
  }

 private:
  static constexpr unsigned kPhys = 4;  // a core

  struct Core {
    uint32_t base = 0;  // registers
    uint64_t area = 0;
    uint32_t tx_next = 0;
    uint32_t rx_last = 0;
  };

  void bring_up(Core &core);
  void enable(Core &core, const Coalescing &coalescing);
  void prepare_slot(Core &core, unsigned slot);
  uint32_t fill_prds(uint64_t prd, const DataLayout &data, uint32_t bytes);
  void issue_scsi(const AtaRequest &request);
  uint32_t fill_scsi(uint8_t *unit, uint64_t table, const AtaRequest &request);
  void ring(Core &core, uint32_t entry);
  void wait_for_volume();
  bool failed(uint32_t entry) const;
  void fill_trim(uint64_t addr, uint64_t lba, uint64_t sectors);
  void acknowledge_phys(Core &core, uint32_t stat);
  uint32_t read(const Core &core, uint32_t offset) { return host_.readl(core.base + offset); }
  void write(const Core &core, uint32_t offset, uint32_t value) {
    host_.writel(core.base + offset, value);
  }
  void write64(const Core &core, uint32_t offset, uint64_t value);

  // One pass of mvs_int_full(): status, ring, status back.
  template <typename Done>
  void serve_core(unsigned number, Done &done) {
    Core &core = cores_list_[number];
    constexpr uint32_t kIntStat = 0x150;
    uint32_t stat = read(core, kIntStat);
    uint64_t ring = core.area + kRxOffset;
    uint32_t last = host_.load32(ring);
    while (core.rx_last != last && last != kRxNone) {
      core.rx_last = core.rx_last == kRxNone ? 0 : (core.rx_last + 1) % kRxEntries;
      uint32_t entry = host_.load32(ring + 4 + 4 * uint64_t{core.rx_last});
      uint32_t slot = entry & 0xFFF;
      done(number * kPhys + slot / kTags, slot % kTags, failed(entry));
    }
    acknowledge_phys(core, stat);
    write(core, kIntStat, stat);
  }

  static constexpr uint32_t kTxEntries = 2048;
  static constexpr uint32_t kRxEntries = 1024;
  static constexpr uint32_t kRxNone = 0xFFF;
  // Offsets in a core's area.
  static constexpr uint64_t kCoreArea = kAreaBytes / 2;
  static constexpr uint64_t kFisOffset = 0x20000;  // after 2048 headers of 64 bytes
  static constexpr uint64_t kTxOffset = 0x24000;
  static constexpr uint64_t kRxOffset = 0x28000;
  static constexpr uint64_t kTableOffset = 0x30000;
  // Of a slot's table: FIS, PRDs, status record, TRIM payload.
  static constexpr uint64_t kTableBytes = 0x800;
  static constexpr uint64_t kPrdOffset = 0x80;
  static constexpr uint64_t kStatusOffset = 0x400;
  static constexpr uint64_t kPayloadOffset = 0x600;

  CardHost &host_;
  uint64_t area_;
  bool volume_;
  unsigned cores_ = 0;
  std::array<Core, 2> cores_list_;
};

}  // namespace revodrive::sim
#endif
