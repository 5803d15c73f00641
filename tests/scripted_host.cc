// SPDX-License-Identifier: GPL-2.0-or-later
#include "scripted_host.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace revodrive::test {

void demand(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

const rd_host_ops ScriptedHost::kOps = {
    .now_ns = [](void *host) { return self(host).now_ns_; },
    .dma_read =
        [](void *host, uint64_t addr, void *buf, size_t len) {
          ScriptedHost &h = self(host);
          h.on_dma(addr, len);
          if (!h.inside(addr, len))
            return -EIO;
          std::memcpy(buf, h.memory(addr, len), len);
          return 0;
        },
    .dma_write =
        [](void *host, uint64_t addr, const void *buf, size_t len) {
          ScriptedHost &h = self(host);
          h.on_dma(addr, len);
          if (!h.inside(addr, len))
            return -EIO;
          std::memcpy(h.memory(addr, len), buf, len);
          return 0;
        },
    .dma_map = [](void *host, uint64_t addr, size_t *len, bool) -> void * {
      ScriptedHost &h = self(host);
      h.on_dma(addr, *len);
      if (!h.mappable || !h.inside(addr, *len))
        return nullptr;
      h.mapped++;
      return h.memory(addr, *len);
    },
    .dma_unmap = [](void *host, void *, size_t, bool, size_t) { self(host).mapped--; },
    .set_irq =
        [](void *host, bool level) {
          ScriptedHost &h = self(host);
          demand(level != h.irq, "set_irq without a change");
          h.irq = level;
          h.irq_rises += level;
        },
    .msi_notify = [](void *host) { self(host).msi_messages++; },
    .arm_timer = [](void *host, int64_t deadline_ns) { self(host).deadline_ns_ = deadline_ns; },
    .block_submit =
        [](void *host, unsigned port, rd_block_op op, uint64_t offset, uint64_t bytes,
           const rd_iov *iov, unsigned niov, uint64_t token) {
          self(host).submit({port, op, offset, bytes, {iov, iov + niov}, token});
        },
    .block_drain = [](void *host, unsigned port) { self(host).drain(port); },
    .block_wait =
        [](void *host, unsigned port) {
          if (self(host).wait_answers)
            self(host).drain(port);
        },
    .persist =
        [](void *host, const void *bytes, size_t len, uint64_t token) {
          ScriptedHost &h = self(host);
          const auto *from = static_cast<const uint8_t *>(bytes);
          h.persisted.assign(from, from + len);
          h.persists++;
          if (token == 0)
            return;
          if (h.defer_persist)
            h.persist_tokens.push_back(token);
          else
            rd_card_block_done(h.card_, token, h.persist_error);
        },
    .log = [](void *host, rd_log_level, const char *text) { self(host).messages.push_back(text); },
    .command_done = [](void *host,
                       const rd_command_record *record) { self(host).on_command(*record); },
    .span = [](void *host, const char *track, const char *label, int64_t start_ns,
               int64_t end_ns) { self(host).on_span(track, label, start_ns, end_ns); },
    .table_memory =
        [](void *host, void *memory, size_t bytes) {
          auto *first = static_cast<const uint8_t *>(memory);
          bool zero = std::all_of(first, first + std::min<size_t>(bytes, 65536),
                                  [](uint8_t byte) { return byte == 0; });
          self(host).tables.push_back(zero ? bytes : 0);
        },
};

ScriptedHost::~ScriptedHost() {
  if (card_)
    rd_card_destroy(card_);
}

void ScriptedHost::build(unsigned ports, bool timing, bool vca, rd_policy policy) {
  rd_card_config config = {};
  config.ports = ports;
  config.timing = timing;
  config.vca = vca;
  config.policy = policy;
  config.persistent = persisted.empty() ? nullptr : persisted.data();
  config.persistent_len = persisted.size();
  rd_error error = {};
  card_ = rd_card_create(&config, &kOps, this, &error);
  demand(card_ != nullptr, error.text);
}

void ScriptedHost::destroy() {
  rd_card_destroy(card_);
  card_ = nullptr;
  deadline_ns_ = RD_NEVER;
}

void ScriptedHost::attach(unsigned port, uint64_t bytes) {
  std::string serial = "OCZ-TEST" + std::to_string(port);
  rd_member_config config = {};
  config.bytes = bytes;
  config.serial = serial.c_str();
  rd_error error = {};
  if (disks[port].size() != bytes)
    disks[port] = Zeroed(bytes);
  demand(rd_card_attach(card_, port, &config, &error) == 0, error.text);
}

bool ScriptedHost::inside(uint64_t addr, size_t len) const {
  return bus_master && addr >= kMemoryBase && len <= kMemoryBytes &&
         addr - kMemoryBase <= kMemoryBytes - len;
}

uint8_t *ScriptedHost::memory(uint64_t addr, size_t len) {
  demand(addr >= kMemoryBase && addr - kMemoryBase + len <= kMemoryBytes,
         "not an address of the guest's memory");
  return memory_.data() + (addr - kMemoryBase);
}

uint32_t ScriptedHost::load32(uint64_t addr) {
  uint32_t value;
  std::memcpy(&value, memory(addr, sizeof(value)), sizeof(value));
  return value;
}

void ScriptedHost::store32(uint64_t addr, uint32_t value) {
  std::memcpy(memory(addr, sizeof(value)), &value, sizeof(value));
}

void ScriptedHost::advance(int64_t ns) {
  int64_t end_ns = now_ns_ + ns;
  while (deadline_ns_ <= end_ns) {
    now_ns_ = std::max(now_ns_, deadline_ns_ + timer_late_ns);
    deadline_ns_ = RD_NEVER;
    rd_card_timer_fired(card_);
  }
  now_ns_ = std::max(now_ns_, end_ns);
}

bool ScriptedHost::run_until(const std::function<bool()> &done) {
  while (!done() && deadline_ns_ != RD_NEVER)
    advance(std::max<int64_t>(deadline_ns_ - now_ns_, 0));
  return done();
}

std::vector<uint8_t> ScriptedHost::save() {
  uint8_t *buf = nullptr;
  size_t len = 0;
  rd_error error = {};
  demand(rd_card_save(card_, &buf, &len, &error) == 0, error.text);
  std::vector<uint8_t> bytes(buf, buf + len);
  std::free(buf);
  return bytes;
}

uint64_t ScriptedHost::counter(const std::string &name) {
  std::pair<std::string, uint64_t> wanted(name, 0);
  rd_card_query(
      card_,
      [](void *opaque, const char *found, uint64_t value) {
        auto &want = *static_cast<std::pair<std::string, uint64_t> *>(opaque);
        if (want.first == found)
          want.second = value;
      },
      &wanted);
  return wanted.second;
}

void ScriptedHost::submit(Transfer transfer) {
  log.push_back(transfer);
  if (defer)
    pending.push_back(std::move(transfer));
  else
    complete(transfer);
}

void ScriptedHost::answer() {
  demand(!pending.empty(), "no transfer waits for an answer");
  Transfer transfer = std::move(pending.front());
  pending.pop_front();
  complete(transfer);
}

void ScriptedHost::complete(const Transfer &transfer) {
  int error = verdict(transfer);
  Zeroed &disk = disks[transfer.port];
  uint64_t at = transfer.offset;
  for (const rd_iov &piece : transfer.iov) {
    demand(at + piece.len <= disk.size(), "a transfer beyond the end of the disk");
    if (error == 0 && transfer.op == RD_BLOCK_READ)
      std::memcpy(piece.base, disk.data() + at, piece.len);
    else if (error == 0)
      std::memcpy(disk.data() + at, piece.base, piece.len);
    at += piece.len;
  }
  rd_card_block_done(card_, transfer.token, error);
}

void ScriptedHost::answer_persist() {
  demand(!persist_tokens.empty(), "nothing waits to be stored");
  uint64_t token = persist_tokens.front();
  persist_tokens.pop_front();
  rd_card_block_done(card_, token, persist_error);
}

void ScriptedHost::drain(unsigned port) {
  while (!persist_tokens.empty())
    answer_persist();
  auto mine = [port](const Transfer &transfer) { return transfer.port == port; };
  for (;;) {
    auto found = std::find_if(pending.begin(), pending.end(), mine);
    if (found == pending.end())
      return;
    Transfer transfer = std::move(*found);
    pending.erase(found);
    complete(transfer);
  }
}

}  // namespace revodrive::test
