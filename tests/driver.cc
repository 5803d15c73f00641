// SPDX-License-Identifier: GPL-2.0-or-later
#include "driver.h"

#include <algorithm>
#include <cstring>

namespace revodrive::test {

using namespace regs;

namespace {

constexpr uint32_t kTxEntries = 2048;
constexpr uint32_t kRxEntries = 1024;

}  // namespace

std::array<uint8_t, 20> lba48_fis(uint8_t opcode, uint64_t lba, uint16_t count) {
  std::array<uint8_t, 20> fis{};
  fis[0] = 0x27;
  fis[1] = 0x80;
  fis[2] = opcode;
  fis[7] = 0x40;
  for (unsigned i = 0; i < 3; i++) {
    fis[4 + i] = static_cast<uint8_t>(lba >> (8 * i));
    fis[8 + i] = static_cast<uint8_t>(lba >> (24 + 8 * i));
  }
  fis[12] = static_cast<uint8_t>(count);
  fis[13] = static_cast<uint8_t>(count >> 8);
  return fis;
}

std::array<uint8_t, 20> ncq_fis(uint8_t opcode, uint64_t lba, uint16_t sectors, uint8_t tag) {
  auto fis = lba48_fis(opcode, lba, static_cast<uint16_t>(tag << 3));
  fis[3] = static_cast<uint8_t>(sectors);
  fis[11] = static_cast<uint8_t>(sectors >> 8);
  return fis;
}

Driver::Driver(ScriptedHost &host, unsigned core)
    : host_(&host),
      core_(core),
      base_(kCore0 + core * kCoreStride),
      area_(ScriptedHost::kMemoryBase + core * kAreaBytes) {
}

void Driver::write_cmd_space(uint32_t addr, uint32_t value) {
  set_reg(kCmdAddr, addr);
  set_reg(kCmdData, value);
}

uint32_t Driver::read_cmd_space(uint32_t addr) {
  set_reg(kCmdAddr, addr);
  return reg(kCmdData);
}

void Driver::probe() {
  set_reg(kCtl, kCtlReset);
  set_reg(kAllVsr, kVsrConfig);
  set_reg(kAllVsr + 4, 0x0084FFFE);
  set_reg(kPcs, 0);
  auto set64 = [&](uint32_t offset, uint64_t value) {
    set_reg(offset, static_cast<uint32_t>(value));
    set_reg(offset + 4, static_cast<uint32_t>(value >> 32));
  };
  set64(kCmdListLo, command_list());
  set64(kRxFisLo, rx_fis());
  set_reg(kTxCfg, kTxEntries);
  set64(kTxLo, tx_ring());
  set_reg(kRxCfg, kRxEntries);
  set64(kRxLo, rx_ring());
  host_->store32(rx_ring(), 0xFFF);
  for (unsigned phy = 0; phy < kPhysPerCore; phy++) {
    set_reg(kPortVsr + 8 * phy, kVsrConfig);
    set_reg(kPortVsr + 8 * phy + 4, 0x0004FFFF);
  }
  host_->advance(500000000);
  for (unsigned phy = 0; phy < kPhysPerCore; phy++) {
    uint32_t stat = reg(kPortIrq + 8 * phy);
    set_reg(kPortIrq + 8 * phy, stat & ~kPhySignature);
    set_reg(kPortIrq + 8 * phy + 4, 0x00C00105);
    set_reg(kPortIrq + 8 * phy, reg(kPortIrq + 8 * phy));
  }
  set_reg(kPcs, reg(kPcs) | kPcsReset);
  set_reg(kIntCoal, 0x000101FF);
  set_reg(kIntCoalTimeout, 0x00010080);
  set_reg(kTxCfg, 0);
  set_reg(kTxCfg, kRingEnable | kTxEntries);
  set_reg(kRxCfg, kRingEnable | kRxEntries);
  set_reg(kPcs, 0x59);
  set_reg(kIntMask, 0x0E00FFFB);
  uint32_t enable = host_->readl(0x10204) | 0xC0000;
  for (uint32_t offset : {0x10200, 0x1020C, 0x10210, 0x10214, 0x10218, 0x10204})
    host_->writel(offset, enable);
  tx_next_ = 0;
  rx_last_ = 0xFFF;
}

SspRequest ssp_command(std::span<const uint8_t> cdb, uint64_t addr, uint32_t bytes, uint8_t unit) {
  SspRequest request;
  request.table[0] = 0x06;
  request.table[24 + 1] = unit;
  std::copy(cdb.begin(), cdb.end(), request.table.begin() + 24 + 12);
  if (bytes > 0)
    request.segments = {{addr, bytes}};
  request.data_bytes = bytes;
  return request;
}

SspRequest ssp_task(uint8_t function, uint16_t tag, uint8_t unit) {
  SspRequest request;
  request.table[0] = 0x16;
  request.table[24 + 1] = unit;
  request.table[24 + 10] = function;
  request.table[24 + 12] = static_cast<uint8_t>(tag >> 8);
  request.table[24 + 13] = static_cast<uint8_t>(tag);
  request.task = true;
  return request;
}

// Header and PRD table of a slot, its buffer cleared before.
void Driver::put_header(uint16_t slot, uint32_t flags, uint32_t tag, uint32_t bytes,
                        std::span<const Segment> segments) {
  uint64_t buf = buffer(slot);
  std::memset(host_->memory(buf, 0x2000), 0, 0x2000);
  uint64_t header = command_list() + 64 * uint64_t{slot};
  auto put64 = [&](uint64_t addr, uint64_t value) {
    host_->store32(addr, static_cast<uint32_t>(value));
    host_->store32(addr + 4, static_cast<uint32_t>(value >> 32));
  };
  host_->store32(header, flags);
  host_->store32(header + 8, tag);
  host_->store32(header + 12, bytes);
  put64(header + 0x10, buf);
  put64(header + 0x18, buf + 0x60);
  put64(header + 0x20, buf + kStatusOffset);
  put64(header + 0x28, segments.empty() ? 0 : buf + 0xA0);
  uint64_t prd = buf + 0xA0;
  for (const Segment &segment : segments) {
    put64(prd, segment.addr);
    host_->store32(prd + 8, segment.len);
    prd += 12;
  }
}

void Driver::ring(uint32_t entry) {
  host_->store32(tx_ring() + 4 * tx_next_, entry);
  set_reg(kTxProd, tx_next_);
  tx_next_ = (tx_next_ + 1) % kTxEntries;
}

void Driver::issue(uint16_t slot, const Request &request) {
  bool ncq = request.fis[2] == 0x60 || request.fis[2] == 0x61;
  put_header(slot, uint32_t{request.prd_count} << 16 | (ncq ? 0x40 : 0), ncq ? request.tag : slot,
             request.data_bytes, request.segments);
  host_->store32(command_list() + 64 * uint64_t{slot} + 4, 0x01000005);
  std::memcpy(host_->memory(buffer(slot), 20), request.fis.data(), 20);
  ring(0x70000000u | uint32_t{request.register_set} << 20 | 1u << (12 + request.phy) | slot);
}

void Driver::issue(uint16_t slot, const SspRequest &request) {
  constexpr uint32_t kRetry = 0x200, kTask = 0x2000;
  auto count = static_cast<uint32_t>(request.segments.size());
  put_header(slot, count << 16 | kRetry | (request.task ? kTask : 0), slot, request.data_bytes,
             request.segments);
  host_->store32(command_list() + 64 * uint64_t{slot} + 4, 0x0100000D);
  std::memcpy(host_->memory(buffer(slot), 52), request.table.data(), 52);
  ring(0x30000000u | 1u << (12 + request.phy) | slot);
}

void Driver::take_completions() {
  uint32_t last = host_->load32(rx_ring());
  if (last == 0xFFF)
    return;
  if (last == rx_last_)
    last = reg(kRxCons) & 0xFFF;
  while (rx_last_ != last) {
    rx_last_ = rx_last_ == 0xFFF ? 0 : (rx_last_ + 1) % kRxEntries;
    completions_.push_back(host_->load32(rx_ring() + 4 + 4 * rx_last_));
    demand(completions_.size() <= 1000000, "the completion ring has no end");
  }
}

bool Driver::interrupt() {
  if (!(host_->readl(kGlobalStatus) & (kGlobalCoreBit << core_)))
    return false;
  set_reg(kIntStat, kIntDone);
  reg(kIntStat);
  uint32_t stat = reg(kIntStat);
  take_completions();
  for (unsigned phy = 0; phy < kPhysPerCore; phy++) {
    if (stat & (1u << (kIntPortShift + phy)))
      set_reg(kPortIrq + 8 * phy, reg(kPortIrq + 8 * phy));
  }
  set_reg(kIntStat, stat);
  return true;
}

uint32_t Driver::wait(uint16_t slot, size_t before) {
  for (;;) {
    host_->run_until([&] { return host_->irq; });
    if (!host_->irq || !interrupt())
      return 0;
    for (size_t i = before; i < completions_.size(); i++) {
      if ((completions_[i] & 0xFFF) == slot)
        return completions_[i];
    }
  }
}

std::span<uint8_t> Driver::d2h(unsigned register_set) {
  return {host_->memory(rx_fis() + 0x800 + 0x100 * register_set + 0x40, 20), 20};
}

Request Driver::read_request(uint64_t lba, uint16_t sectors, uint64_t addr) const {
  uint32_t bytes = uint32_t{sectors} * RD_SECTOR_BYTES;
  return {.fis = lba48_fis(0x25, lba, sectors),
          .segments = {{addr, bytes}},
          .data_bytes = bytes,
          .prd_count = 255};
}

Request Driver::write_request(uint64_t lba, uint16_t sectors, uint64_t addr) const {
  Request request = read_request(lba, sectors, addr);
  request.fis[2] = 0x35;
  request.prd_count = 1;
  return request;
}

Request Driver::plain(uint8_t opcode) const {
  return {.fis = lba48_fis(opcode, 0, 0), .segments = {}};
}

Request Driver::identify(uint64_t addr) const {
  return {
      .fis = lba48_fis(0xEC, 0, 0), .segments = {{addr, 512}}, .data_bytes = 512, .prd_count = 255};
}

}  // namespace revodrive::test
