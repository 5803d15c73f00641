// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/hba_driver.h"

#include <algorithm>
#include <cstring>

#include "sim/user_error.h"

namespace revodrive::sim {

namespace {

// Chip level.
constexpr uint32_t kGlobalControl = 0x10204;
constexpr uint32_t kCore0 = 0x20000;
constexpr uint32_t kCoreStride = 0x4000;
// Core level.
constexpr uint32_t kCtl = 0x100;
constexpr uint32_t kPcs = 0x104;
constexpr uint32_t kCmdList = 0x108;
constexpr uint32_t kRxFis = 0x110;
constexpr uint32_t kTxCfg = 0x120;
constexpr uint32_t kTxRing = 0x124;
constexpr uint32_t kTxProd = 0x12C;
constexpr uint32_t kRxCfg = 0x134;
constexpr uint32_t kRxRing = 0x138;
constexpr uint32_t kIntCoal = 0x148;
constexpr uint32_t kIntCoalTimeout = 0x14C;
constexpr uint32_t kIntMask = 0x154;
constexpr uint32_t kPortIrq = 0x180;
constexpr uint32_t kPortVsr = 0x250;
constexpr uint32_t kAllVsr = 0x290;

constexpr uint32_t kRingEnable = 1u << 16;
constexpr uint32_t kCoalEnable = 1u << 16;
constexpr uint32_t kMicroseconds = 1u << 16;
constexpr uint32_t kPhySignature = 1u << 16;

constexpr uint32_t kHeaderBytes = 64;
constexpr uint32_t kPrdBytes = 12;
constexpr uint32_t kFisBytes = 20;
constexpr uint32_t kPrdLimit = 0x3FFE00;  // 22 bits, whole sectors
constexpr uint32_t kQueuedFlag = 0x40;
constexpr uint8_t kSspCommand = 0x06;        // frame type
constexpr uint32_t kSspEntry = 0x30001000u;  // SSP, initiator, phy 0

struct Opcode {
  uint8_t value;
  bool queued;
};

Opcode opcode(AtaKind kind) {
  switch (kind) {
    case AtaKind::kRead:
      return {0x60, true};  // READ FPDMA QUEUED
    case AtaKind::kWrite:
      return {0x61, true};  // WRITE FPDMA QUEUED
    case AtaKind::kTrim:
      return {0x06, false};  // DATA SET MANAGEMENT
    case AtaKind::kFlush:
      break;
  }
  return {0xEA, false};  // FLUSH CACHE EXT
}

// Register FIS, host to device (Serial ATA 3.0, 10.3.4).
void fill_fis(uint8_t *fis, const AtaRequest &request, Opcode code) {
  std::memset(fis, 0, kFisBytes);
  fis[0] = 0x27;
  fis[1] = 0x80;
  fis[2] = code.value;
  fis[7] = 0x40;
  auto put_lba = [&](uint64_t lba) {
    for (unsigned i = 0; i < 3; i++) {
      fis[4 + i] = static_cast<uint8_t>(lba >> (8 * i));
      fis[8 + i] = static_cast<uint8_t>(lba >> (24 + 8 * i));
    }
  };
  if (code.queued) {
    put_lba(request.lba);
    fis[3] = static_cast<uint8_t>(request.sectors);
    fis[11] = static_cast<uint8_t>(request.sectors >> 8);
    fis[12] = static_cast<uint8_t>(request.tag << 3);
  } else if (request.kind == AtaKind::kTrim) {
    fis[3] = 1;   // TRIM
    fis[12] = 1;  // one block of ranges
  }
}

}  // namespace

uint8_t ata_opcode(AtaKind kind) {
  return opcode(kind).value;
}

void HbaDriver::write64(const Core &core, uint32_t offset, uint64_t value) {
  write(core, offset, static_cast<uint32_t>(value));
  write(core, offset + 4, static_cast<uint32_t>(value >> 32));
}

void HbaDriver::probe(unsigned ports, const Coalescing &coalescing) {
  cores_ = ports > kPhys ? 2 : 1;
  for (unsigned i = 0; i < cores_; i++) {
    cores_list_[i] = {kCore0 + i * kCoreStride, area_ + i * kCoreArea, 0, kRxNone};
    bring_up(cores_list_[i]);
  }
  host_.advance(500'000'000);
  for (unsigned i = 0; i < cores_; i++)
    enable(cores_list_[i], coalescing);
  uint32_t value = host_.readl(kGlobalControl) | 0xC0000;
  for (uint32_t offset : {0x10200u, 0x1020Cu, 0x10210u, 0x10214u, 0x10218u, kGlobalControl})
    host_.writel(offset, value);
  if (volume_)
    wait_for_volume();
}

// TEST UNIT READY, until it is; the first answer tells of the power-on.
void HbaDriver::wait_for_volume() {
  bool ready = false;
  for (unsigned tries = 0; tries < 10 && !ready; tries++) {
    uint64_t table = cores_list_[0].area + kTableOffset;
    std::memset(host_.memory(table), 0, kPrdOffset);
    *host_.memory(table) = kSspCommand;
    host_.store32(cores_list_[0].area, 0);
    host_.store32(cores_list_[0].area + 12, 0);
    ring(cores_list_[0], kSspEntry);
    bool ended = false;
    while (!ended && host_.deadline_ns() != RD_NEVER) {
      host_.move_to(host_.deadline_ns());
      serve([&](unsigned, unsigned, bool failed) {
        ended = true;
        ready = !failed;
      });
    }
  }
  if (!ready)
    refuse("the volume does not become ready");
}

// A SAS target says that all is well by an entry without a response frame.
bool HbaDriver::failed(uint32_t entry) const {
  constexpr uint32_t kError = 1u << 17, kResponse = 1u << 18;
  return (entry & (volume_ ? kError | kResponse : kError)) != 0;
}

void HbaDriver::bring_up(Core &core) {
  write(core, kCtl, 1u << 5);
  write(core, kAllVsr, 8);
  write(core, kAllVsr + 4, 0x0084FFFE);
  write(core, kPcs, 0);
  write64(core, kCmdList, core.area);
  write64(core, kRxFis, core.area + kFisOffset);
  write(core, kTxCfg, kTxEntries);
  write64(core, kTxRing, core.area + kTxOffset);
  write(core, kRxCfg, kRxEntries);
  write64(core, kRxRing, core.area + kRxOffset);
  host_.store32(core.area + kRxOffset, kRxNone);
  for (unsigned phy = 0; phy < kPhys; phy++) {
    write(core, kPortVsr + 8 * phy, 8);
    write(core, kPortVsr + 8 * phy + 4, 0x0004FFFF);
  }
  for (unsigned slot = 0; slot < (volume_ ? kVolumeLanes : kPhys) * kTags; slot++)
    prepare_slot(core, slot);
}

void HbaDriver::enable(Core &core, const Coalescing &coalescing) {
  for (unsigned phy = 0; phy < kPhys; phy++) {
    uint32_t stat = read(core, kPortIrq + 8 * phy);
    write(core, kPortIrq + 8 * phy, stat & ~kPhySignature);
    write(core, kPortIrq + 8 * phy + 4, 0x00C00105);
    write(core, kPortIrq + 8 * phy, read(core, kPortIrq + 8 * phy));
  }
  write(core, kPcs, read(core, kPcs) | 2);
  write(core, kIntCoal, coalescing.count ? kCoalEnable | coalescing.count : 0);
  write(core, kIntCoalTimeout, kMicroseconds | (coalescing.count ? coalescing.us : 0));
  write(core, kTxCfg, 0);
  write(core, kTxCfg, kRingEnable | kTxEntries);
  write(core, kRxCfg, kRingEnable | kRxEntries);
  write(core, kPcs, 0x59);
  write(core, kIntMask, 0x0E00FFFB);
}

void HbaDriver::prepare_slot(Core &core, unsigned slot) {
  uint64_t header = core.area + kHeaderBytes * uint64_t{slot};
  uint64_t table = core.area + kTableOffset + kTableBytes * slot;
  host_.store32(header + 4, 0x01000005);
  host_.store32(header + 8, slot);
  host_.store64(header + 0x10, table);
  host_.store64(header + 0x18, table + 0x60);
  host_.store64(header + 0x20, table + kStatusOffset);
  host_.store64(header + 0x28, table + kPrdOffset);
}

void HbaDriver::ring(Core &core, uint32_t entry) {
  host_.store32(core.area + kTxOffset + 4 * uint64_t{core.tx_next}, entry);
  uint32_t produced = core.tx_next;
  core.tx_next = (core.tx_next + 1) % kTxEntries;
  write(core, kTxProd, produced);
}

// The command information unit (SAS-2 9.2.2.1), and what the command moves.
uint32_t HbaDriver::fill_scsi(uint8_t *unit, uint64_t table, const AtaRequest &request) {
  constexpr size_t kCdb = 12;
  uint8_t *cdb = unit + kCdb;
  auto put = [](uint8_t *to, size_t count, uint64_t value) {
    for (size_t i = 0; i < count; i++)
      to[i] = static_cast<uint8_t>(value >> (8 * (count - 1 - i)));
  };
  std::memset(unit, 0, kCdb + 16);
  if (request.kind == AtaKind::kFlush) {
    cdb[0] = 0x35;  // SYNCHRONIZE CACHE (10)
    return 0;
  }
  if (request.kind != AtaKind::kTrim) {
    cdb[0] = request.kind == AtaKind::kRead ? 0x88 : 0x8A;  // READ, WRITE (16)
    put(cdb + 2, 8, request.lba);
    put(cdb + 10, 4, request.sectors);
    return static_cast<uint32_t>(request.sectors) * RD_SECTOR_BYTES;
  }
  constexpr uint32_t kListBytes = 24;
  cdb[0] = 0x42;  // UNMAP, one range
  put(cdb + 7, 2, kListBytes);
  uint8_t *list = host_.memory(table + kPayloadOffset);
  std::memset(list, 0, kListBytes);
  list[1] = kListBytes - 2;
  list[3] = kListBytes - 8;
  put(list + 8, 8, request.lba);
  put(list + 16, 4, request.sectors);
  return kListBytes;
}

void HbaDriver::issue_scsi(const AtaRequest &request) {
  constexpr size_t kUnit = 24;  // behind the frame header
  Core &core = cores_list_[0];
  unsigned slot = request.port * kTags + request.tag;
  uint64_t header = core.area + kHeaderBytes * uint64_t{slot};
  uint64_t table = core.area + kTableOffset + kTableBytes * slot;
  *host_.memory(table) = kSspCommand;
  uint32_t bytes = fill_scsi(host_.memory(table) + kUnit, table, request);
  DataLayout data = request.data;
  if (request.kind == AtaKind::kTrim)
    data = {table + kPayloadOffset, bytes, bytes, bytes};
  uint32_t prds = bytes > 0 ? fill_prds(table + kPrdOffset, data, bytes) : 0;
  host_.store32(header, prds << 16);
  host_.store32(header + 12, bytes);
  ring(core, kSspEntry | slot);
}

void HbaDriver::issue(const AtaRequest &request) {
  if (volume_)
    return issue_scsi(request);
  Core &core = cores_list_[request.port / kPhys];
  unsigned phy = request.port % kPhys;
  unsigned slot = phy * kTags + request.tag;
  uint64_t header = core.area + kHeaderBytes * uint64_t{slot};
  uint64_t table = core.area + kTableOffset + kTableBytes * slot;
  Opcode code = opcode(request.kind);
  fill_fis(host_.memory(table), request, code);

  uint32_t bytes = 0;
  uint32_t prds = 0;
  if (code.queued) {
    bytes = static_cast<uint32_t>(request.sectors) * RD_SECTOR_BYTES;
    prds = fill_prds(table + kPrdOffset, request.data, bytes);
  } else if (request.kind == AtaKind::kTrim) {
    bytes = RD_SECTOR_BYTES;
    fill_trim(table + kPayloadOffset, request.lba, request.sectors);
    prds = fill_prds(table + kPrdOffset, {table + kPayloadOffset, bytes, bytes, bytes}, bytes);
  }
  host_.store32(header, prds << 16 | (code.queued ? kQueuedFlag : 0));
  host_.store32(header + 8, code.queued ? request.tag : slot);
  host_.store32(header + 12, bytes);

  // STP, the phy as register set and as bitmap.
  ring(core, 0x70000000u | phy << 20 | 1u << (12 + phy) | slot);
}

uint32_t HbaDriver::fill_prds(uint64_t prd, const DataLayout &data, uint32_t bytes) {
  uint64_t addr = data.addr;
  uint32_t piece = std::min(data.first_bytes, bytes);
  uint32_t count = 0;
  uint64_t next = data.addr + piece + data.stride_bytes - data.piece_bytes;
  while (bytes > 0) {
    uint32_t len = std::min({piece, bytes, kPrdLimit});
    host_.store64(prd, addr);
    host_.store32(prd + 8, len);
    prd += kPrdBytes;
    count++;
    bytes -= len;
    addr += len;
    piece -= len;
    if (piece == 0) {
      addr = next;
      next += data.stride_bytes;
      piece = data.piece_bytes;
    }
  }
  return count;
}

void HbaDriver::fill_trim(uint64_t addr, uint64_t lba, uint64_t sectors) {
  std::memset(host_.memory(addr), 0, RD_SECTOR_BYTES);
  for (unsigned i = 0; i < kTrimRanges && sectors > 0; i++) {
    uint64_t count = std::min<uint64_t>(sectors, kTrimRangeSectors);
    host_.store64(addr + 8 * i, lba | count << 48);
    lba += count;
    sectors -= count;
  }
}

void HbaDriver::acknowledge_phys(Core &core, uint32_t stat) {
  constexpr unsigned kPhyShift = 8;
  if ((stat >> kPhyShift & 0xF) == 0)
    return;
  for (unsigned phy = 0; phy < kPhys; phy++) {
    if (stat >> (kPhyShift + phy) & 1)
      write(core, kPortIrq + 8 * phy, read(core, kPortIrq + 8 * phy));
  }
}

}  // namespace revodrive::sim
