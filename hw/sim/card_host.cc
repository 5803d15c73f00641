// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/card_host.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "sim/large_pages.h"
#include "sim/user_error.h"

namespace revodrive::sim {

namespace {

// Most of what a card fetches or stores is a number, a header or a FIS.
void copy(void *to, const void *from, size_t len) {
  switch (len) {
    case 4:
      std::memcpy(to, from, 4);
      break;
    case 20:
      std::memcpy(to, from, 20);
      break;
    case 32:
      std::memcpy(to, from, 32);
      break;
    default:
      std::memcpy(to, from, len);
  }
}

}  // namespace

const rd_host_ops CardHost::kOps = {
    .now_ns = [](void *host) { return self(host).now_ns_; },
    .dma_read =
        [](void *host, uint64_t addr, void *buf, size_t len) {
          CardHost &h = self(host);
          if (!h.inside(addr, len))
            return -EIO;
          copy(buf, h.memory(addr), len);
          return 0;
        },
    .dma_write =
        [](void *host, uint64_t addr, const void *buf, size_t len) {
          CardHost &h = self(host);
          if (!h.inside(addr, len))
            return -EIO;
          copy(h.memory(addr), buf, len);
          return 0;
        },
    .dma_map = [](void *host, uint64_t addr, size_t *len, bool) -> void * {
      CardHost &h = self(host);
      return h.inside(addr, *len) ? h.memory(addr) : nullptr;
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
    .log =
        [](void *, rd_log_level level, const char *text) {
          if (level == RD_LOG_WARNING)
            std::fprintf(stderr, "revosim: %s\n", text);
        },
    .command_done = [](void *host,
                       const rd_command_record *record) { self(host).stages_.add(*record); },
    .span =
        [](void *host, const char *track, const char *label, int64_t start_ns, int64_t end_ns) {
          if (TimelineTrace *trace = self(host).trace_)
            trace->add(track, label, start_ns, end_ns);
        },
    .table_memory = ask_for_large_pages,
};

CardHost::CardHost(const rd_card_config &config, size_t memory_bytes, bool spans)
    : memory_(static_cast<uint8_t *>(std::calloc(memory_bytes, 1))), memory_bytes_(memory_bytes) {
  if (!memory_)
    refuse("the jobs' buffers need %zu MiB, which this machine does not have", memory_bytes >> 20);
  if (!spans)
    ops_.span = nullptr;
  rd_error error = {};
  card_ = rd_card_create(&config, &ops_, this, &error);
  if (!card_)
    throw UserError(error.text);
}

CardHost::~CardHost() {
  if (card_)
    rd_card_destroy(card_);
}

void CardHost::attach(unsigned port, uint64_t bytes, const std::string &preset) {
  std::string serial = "OCZ-REVOSIM-" + std::to_string(port);
  rd_member_config config = {};
  config.bytes = bytes;
  config.serial = serial.c_str();
  config.discard = true;
  config.preset = preset.c_str();
  rd_error error = {};
  if (rd_card_attach(card_, port, &config, &error) != 0)
    refuse("SSD %u: %s", port, error.text);
  member_bytes_[port] = bytes;
  members_ = std::max(members_, port + 1);
}

void CardHost::advance(int64_t ns) {
  int64_t end_ns = now_ns_ + ns;
  while (deadline_ns_ < end_ns)
    move_to(std::max(now_ns_, deadline_ns_));
  move_to(end_ns);
}

uint32_t CardHost::load32(uint64_t addr) {
  uint32_t value;
  std::memcpy(&value, memory(addr), sizeof(value));
  return value;
}

void CardHost::store32(uint64_t addr, uint32_t value) {
  std::memcpy(memory(addr), &value, sizeof(value));
}

void CardHost::store64(uint64_t addr, uint64_t value) {
  std::memcpy(memory(addr), &value, sizeof(value));
}

void CardHost::query(const Visitor &visit) {
  rd_card_query(
      card_,
      [](void *opaque, const char *name, uint64_t value) {
        (*static_cast<const Visitor *>(opaque))(name, value);
      },
      const_cast<Visitor *>(&visit));
}

uint64_t CardHost::counter(const std::string &name) {
  uint64_t found = 0;
  query([&](const std::string &seen, uint64_t value) {
    if (seen == name)
      found = value;
  });
  return found;
}

std::vector<uint8_t> CardHost::save() {
  uint8_t *buf = nullptr;
  size_t len = 0;
  rd_error error = {};
  if (rd_card_save(card_, &buf, &len, &error) != 0)
    throw UserError(error.text);
  std::vector<uint8_t> bytes(buf, buf + len);
  std::free(buf);
  return bytes;
}

void CardHost::load(std::span<const uint8_t> bytes, int64_t now_ns) {
  now_ns_ = now_ns;
  rd_error error = {};
  if (rd_card_load(card_, bytes.data(), bytes.size(), &error) != 0)
    throw UserError(error.text);
  rd_card_resume(card_);
}

}  // namespace revodrive::sim
