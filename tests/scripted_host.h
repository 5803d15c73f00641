// SPDX-License-Identifier: GPL-2.0-or-later
//
// A host of the card for tests: flat guest memory, a clock that moves only when told, disks in
// memory, and a backend whose answers the test decides. Everything the card does to its host is
// recorded.
#ifndef REVODRIVE_TESTS_SCRIPTED_HOST_H
#define REVODRIVE_TESTS_SCRIPTED_HOST_H

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "revodrive/host.h"
#include "zeroed.h"

namespace revodrive::test {

// Ends the test, or the program where there is no test (the fuzzer), unless it holds.
void demand(bool holds, const char *what);

// A backend transfer as the card submitted it.
struct Transfer {
  unsigned port;
  rd_block_op op;
  uint64_t offset;
  uint64_t bytes;
  std::vector<rd_iov> iov;
  uint64_t token;
};

class ScriptedHost {
 public:
  static constexpr uint64_t kMemoryBase = 0x1000000;
  static constexpr size_t kMemoryBytes = 32 << 20;

  ScriptedHost() = default;
  ~ScriptedHost();

  // Builds the card / attaches an SSD of `bytes` to a port. Failures end the test.
  void build(unsigned ports = 8, bool timing = true, bool vca = false,
             rd_policy policy = RD_POLICY_STRIPE);
  void attach(unsigned port, uint64_t bytes = 8 << 20);
  // Ends the card; what it stored is there for the next one that is built.
  void destroy();
  rd_card *card() { return card_; }

  // Guest memory, by bus address.
  uint8_t *memory(uint64_t addr, size_t len);
  uint32_t load32(uint64_t addr);
  void store32(uint64_t addr, uint32_t value);

  // Registers.
  uint32_t readl(uint32_t offset) { return rd_card_mmio_read(card_, offset); }
  void writel(uint32_t offset, uint32_t value) { rd_card_mmio_write(card_, offset, value); }

  // Moves the clock, firing the card's timer at each deadline on the way.
  void advance(int64_t ns);
  int64_t now_ns() const { return now_ns_; }
  int64_t deadline_ns() const { return deadline_ns_; }
  int64_t timer_late_ns = 0;  // how long after its time the timer fires
  // Advances until `done` holds or nothing more will happen; returns done().
  bool run_until(const std::function<bool()> &done);

  // The card's state as rd_card_save() gives it. Failure ends the test.
  std::vector<uint8_t> save();
  // The value of a counter, 0 if there is none of that name.
  uint64_t counter(const std::string &name);

  // The backend. Deferred transfers wait in `pending` until answer(); others are done at once.
  std::map<unsigned, Zeroed> disks;
  bool defer = false;
  bool wait_answers = false;  // block_wait() answers, as a host with a repeatable clock does
  std::deque<Transfer> pending;
  std::vector<Transfer> log;  // every transfer ever submitted
  // The errno with which a transfer ends, 0 for success.
  std::function<int(const Transfer &)> verdict = [](const Transfer &) { return 0; };
  // Answers the oldest pending transfer.
  void answer();

  // What the card stored last, and how often it did. Deferred ones wait until answer_persist().
  std::vector<uint8_t> persisted;
  unsigned persists = 0;
  bool defer_persist = false;
  int persist_error = 0;
  std::deque<uint64_t> persist_tokens;
  void answer_persist();

  bool irq = false;
  unsigned irq_rises = 0;
  unsigned msi_messages = 0;
  bool bus_master = true;
  bool mappable = true;  // false: dma_map() gives nothing
  unsigned mapped = 0;   // maps without unmap
  // Called for each completed command, and for each booking of a resource.
  std::function<void(const rd_command_record &)> on_command = [](const rd_command_record &) {};
  std::function<void(const char *track, const char *label, int64_t start_ns, int64_t end_ns)>
      on_span = [](const char *, const char *, int64_t, int64_t) {};
  // Called for each DMA with its address before it happens.
  std::function<void(uint64_t addr, size_t len)> on_dma = [](uint64_t, size_t) {};
  std::vector<std::string> messages;
  std::vector<size_t> tables;  // bytes of each that the card told of, 0 if it was not zero

 private:
  static const rd_host_ops kOps;
  static ScriptedHost &self(void *host) { return *static_cast<ScriptedHost *>(host); }
  bool inside(uint64_t addr, size_t len) const;
  void submit(Transfer transfer);
  void complete(const Transfer &transfer);
  void drain(unsigned port);

  rd_card *card_ = nullptr;
  Zeroed memory_{kMemoryBytes};
  int64_t now_ns_ = 1000000;
  int64_t deadline_ns_ = RD_NEVER;
};

}  // namespace revodrive::test
#endif
