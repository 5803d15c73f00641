// SPDX-License-Identifier: GPL-2.0-or-later
#include "fast_host.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sim/large_pages.h"

namespace revodrive::bench {

using namespace regs;

namespace {

constexpr unsigned kPrd = 0x40;
constexpr unsigned kStatus = 0x200;
constexpr unsigned kTableBytes = 0x400;

// A benchmark that cannot run has no result to report.
void require(bool good, const char *what) {
  if (good)
    return;
  std::fprintf(stderr, "bench: %s\n", what);
  std::exit(EXIT_FAILURE);
}

}  // namespace

const rd_host_ops FastHost::kOps = {
    .now_ns = [](void *host) { return self(host).now_ns_; },
    .dma_read =
        [](void *host, uint64_t addr, void *buf, size_t len) {
          if (!self(host).inside(addr, len))
            return -EIO;
          std::memcpy(buf, self(host).at(addr), len);
          return 0;
        },
    .dma_write =
        [](void *host, uint64_t addr, const void *buf, size_t len) {
          if (!self(host).inside(addr, len))
            return -EIO;
          std::memcpy(self(host).at(addr), buf, len);
          return 0;
        },
    .dma_map = [](void *host, uint64_t addr, size_t *len, bool) -> void * {
      return self(host).inside(addr, *len) ? self(host).at(addr) : nullptr;
    },
    .dma_unmap = [](void *, void *, size_t, bool, size_t) {},
    .set_irq = [](void *host, bool level) { self(host).irq_ = level; },
    .msi_notify = [](void *) {},
    .arm_timer = [](void *host, int64_t deadline_ns) { self(host).deadline_ns_ = deadline_ns; },
    .block_submit = [](void *host, unsigned, rd_block_op, uint64_t, uint64_t, const rd_iov *,
                       unsigned,
                       uint64_t token) { rd_card_block_done(self(host).card_, token, 0); },
    .block_drain = [](void *, unsigned) {},
    .block_wait = [](void *, unsigned) {},
    .persist = nullptr,
    .log = [](void *, rd_log_level, const char *text) { std::fprintf(stderr, "%s\n", text); },
    .command_done = nullptr,
    .span = nullptr,
    .table_memory = sim::ask_for_large_pages,
};

FastHost::FastHost(const Load &load) : load_(load) {
  static const rd_host_ops kWatched = [] {
    rd_host_ops ops = kOps;
    ops.command_done = [](void *host, const rd_command_record *) { self(host).spans_++; };
    ops.span = [](void *host, const char *, const char *, int64_t, int64_t) {
      self(host).spans_++;
    };
    return ops;
  }();
  memory_.resize(kData + uint64_t{kMembers} * kDepth * load.bytes);
  fill_buffers();
  rd_card_config config = {};
  config.ports = RD_MAX_PORTS;
  config.timing = load.timing;
  rd_error error = {};
  card_ = rd_card_create(&config, load.watched ? &kWatched : &kOps, this, &error);
  require(card_ != nullptr, error.text);
  for (unsigned port = 0; port < kMembers; port++) {
    rd_member_config member = {};
    char serial[] = "BENCH-0";
    serial[6] = static_cast<char>('0' + port);
    member.bytes = load.member_bytes;
    member.preset = load.preset;
    member.serial = serial;
    require(rd_card_attach(card_, port, &member, &error) == 0, error.text);
  }
  probe();
  if (load.preset)
    prepare_all();
  else
    fill_members();
}

FastHost::~FastHost() {
  rd_card_destroy(card_);
}

void FastHost::put32(uint64_t addr, uint32_t value) {
  std::memcpy(at(addr), &value, sizeof(value));
}

void FastHost::put64(uint64_t addr, uint64_t value) {
  std::memcpy(at(addr), &value, sizeof(value));
}

uint32_t FastHost::get32(uint64_t addr) const {
  uint32_t value;
  std::memcpy(&value, memory_.data() + addr, sizeof(value));
  return value;
}

// Each 4 KiB is random first and zero for the rest, as fio lays it out.
void FastHost::fill_buffers() {
  for (uint64_t addr = kData; addr < memory_.size(); addr += 8) {
    bool noise = addr % 4096 * 100 < 4096 * uint64_t{100 - load_.compressible_percent};
    put64(addr, noise ? random_.next() : 0);
  }
}

void FastHost::probe() {
  set(kCtl, kCtlReset);
  set(kAllVsr, kVsrConfig);
  set(kAllVsr + 4, 0x0084FFFE);
  set(kPcs, 0);
  set(kCmdListLo, static_cast<uint32_t>(kCommandList));
  set(kRxFisLo, static_cast<uint32_t>(kRxFis));
  set(kTxCfg, kTxEntries);
  set(kTxLo, static_cast<uint32_t>(kTxRing));
  set(kRxCfg, kRxEntries);
  set(kRxLo, static_cast<uint32_t>(kRxRing));
  put32(kRxRing, 0xFFF);
  for (unsigned phy = 0; phy < kMembers; phy++) {
    set(kPortVsr + 8 * phy, kVsrConfig);
    set(kPortVsr + 8 * phy + 4, 0x0004FFFF);
  }
  while (deadline_ns_ != RD_NEVER)
    jump();
  for (unsigned phy = 0; phy < kMembers; phy++)
    set(kPortIrq + 8 * phy, UINT32_MAX);
  set(kIntCoal, load_.coalescing ? 0x000101FF : 0);
  set(kIntCoalTimeout, 0x00010080);
  set(kTxCfg, kRingEnable | kTxEntries);
  set(kRxCfg, kRingEnable | kRxEntries);
  set(kPcs, 0x59);
  set(kIntMask, 0x0E00FFFB);
  writel(kGlobalEnable, 0xC0000);
}

void FastHost::fill_members() {
  Load wanted = load_;
  load_.write = load_.sequential = true;
  prepare_all();
  run(kMembers * load_.member_bytes / load_.bytes);
  load_ = wanted;
  prepare_all();  // those in flight were read by the card already
  next_lba_ = {};
}

void FastHost::prepare_all() {
  for (unsigned slot = 0; slot < kMembers * kDepth; slot++)
    prepare(slot);
}

// All of a command that stays the same from one use of the slot to the next.
void FastHost::prepare(unsigned slot) {
  uint64_t table = kTables + uint64_t{slot} * kTableBytes;
  uint64_t header = kCommandList + 64 * uint64_t{slot};
  unsigned tag = slot % kDepth;
  put32(header, (load_.write ? 1u : 255u) << 16 | 0x40);
  put32(header + 4, 0x01000005);
  put32(header + 8, tag);
  put32(header + 12, load_.bytes);
  put64(header + 0x10, table);
  put64(header + 0x20, table + kStatus);
  put64(header + 0x28, table + kPrd);
  put64(table + kPrd, kData + uint64_t{slot} * load_.bytes);
  put32(table + kPrd + 8, load_.bytes);
  uint8_t *fis = at(table);
  uint32_t sectors = load_.bytes / RD_SECTOR_BYTES;
  fis[0] = 0x27;
  fis[1] = 0x80;
  fis[2] = load_.write ? 0x61 : 0x60;
  fis[3] = static_cast<uint8_t>(sectors);
  fis[7] = 0x40;
  fis[11] = static_cast<uint8_t>(sectors >> 8);
  fis[12] = static_cast<uint8_t>(tag << 3);
}

void FastHost::issue(unsigned slot) {
  unsigned phy = slot / kDepth;
  uint32_t sectors = load_.bytes / RD_SECTOR_BYTES;
  uint64_t places = load_.member_bytes / load_.bytes;
  uint64_t lba = load_.sequential ? next_lba_[phy] : chosen_[slot];
  next_lba_[phy] = (lba + sectors) % (places * sectors);
  uint8_t *fis = at(kTables + uint64_t{slot} * kTableBytes);
  for (unsigned i = 0; i < 3; i++) {
    fis[4 + i] = static_cast<uint8_t>(lba >> (8 * i));
    fis[8 + i] = static_cast<uint8_t>(lba >> (24 + 8 * i));
  }
  put32(kTxRing + 4 * tx_next_, 0x70000000u | phy << 20 | 1u << (12 + phy) | slot);
  set(kTxProd, tx_next_);
  tx_next_ = (tx_next_ + 1) % kTxEntries;
  choose(slot);
}

void FastHost::choose(unsigned slot) {
  if (load_.sequential)
    return;
  uint32_t sectors = load_.bytes / RD_SECTOR_BYTES;
  chosen_[slot] = random_.below(load_.member_bytes / load_.bytes) * sectors;
  ahead_[ahead_count_++] = slot;
  if (ahead_count_ < kAhead)
    return;
  ahead_count_ = 0;
  for (unsigned it : ahead_)
    rd_card_expect(card_, it / kDepth, chosen_[it]);
}

void FastHost::serve_interrupt() {
  rd_card_mmio_read(card_, kGlobalStatus);
  uint32_t status = rd_card_mmio_read(card_, kCore0 + kIntStat);
  uint32_t last = get32(kRxRing);
  while (rx_last_ != last) {
    rx_last_ = rx_last_ == 0xFFF ? 0 : (rx_last_ + 1) % kRxEntries;
    uint32_t entry = get32(kRxRing + 4 + 4 * rx_last_);
    require((entry & 0xFFFF0000u) == 0x00010000u, "a command failed");
    done_++;
    issue(entry & 0xFFF);
  }
  set(kIntStat, status);
}

void FastHost::jump() {
  require(deadline_ns_ != RD_NEVER, "the card has nothing more to do");
  now_ns_ = deadline_ns_ > now_ns_ ? deadline_ns_ : now_ns_;
  deadline_ns_ = RD_NEVER;
  rd_card_timer_fired(card_);
}

void FastHost::run(uint64_t commands) {
  bool started = done_ > 0;
  uint64_t end = done_ + commands;
  for (unsigned slot = 0; !started && slot < kMembers * kDepth; slot++)
    issue(slot);
  while (done_ < end) {
    if (irq_)
      serve_interrupt();
    else
      jump();
  }
}

}  // namespace revodrive::bench
