// SPDX-License-Identifier: GPL-2.0-or-later
//
// One card with two SSDs and the driver's life, for the tests of fault rules: short ways to give
// orders, to issue, and to see what has come.
#ifndef REVODRIVE_TESTS_FAULT_RIG_H
#define REVODRIVE_TESTS_FAULT_RIG_H

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "driver.h"
#include "scripted_host.h"
// Last: its macros have common names.
#include <check.h>

namespace revodrive::test {

inline const char *const kStageNames[] = {"fetch", "decode", "media", "link", "completion"};

// One SSD on phy 0, another on phy 1, the driver's life, and short ways to give orders.
struct Rig {
  explicit Rig(bool timing = true) {
    host.build(8, timing);
    host.attach(0);
    host.attach(1);
    driver.probe();
    for (size_t lba = 0; lba < 2048; lba++)
      memset(&host.disks[0][lba * 512], static_cast<uint8_t>(lba), 512);
  }
  ScriptedHost host;
  Driver driver{host};

  int try_fault(const std::string &text, rd_error *error, unsigned port = 0) {
    return rd_card_fault(host.card(), port, text.c_str(), error);
  }
  void fault(const std::string &text, unsigned port = 0) {
    rd_error error = {};
    ck_assert_msg(try_fault(text, &error, port) == 0, "%s: %s", text.c_str(), error.text);
  }
  std::vector<std::string> list(unsigned port = 0) {
    std::vector<std::string> lines;
    rd_card_list_faults(
        host.card(), port,
        [](void *opaque, const char *line) {
          static_cast<std::vector<std::string> *>(opaque)->push_back(line);
        },
        &lines);
    return lines;
  }
  Request ncq(bool write, uint8_t tag, uint64_t lba, uint16_t sectors = 8) {
    Request request = driver.read_request(lba, sectors, driver.data_addr(0x10000 * tag));
    request.fis = ncq_fis(write ? 0x61 : 0x60, lba, sectors, tag);
    request.tag = tag;
    return request;
  }
  Request log10() {
    Request request = driver.identify(driver.data_addr(0x700000 - 0x400000));
    request.fis = lba48_fis(0x2F, 0x10, 1);
    return request;
  }
  uint8_t *data(uint8_t tag) { return host.memory(driver.data_addr(0x10000 * tag), 0x10000); }
  // Lets `ns` pass, serving interrupts.
  void wait(int64_t ns = 1'000'000'000) {
    int64_t end_ns = host.now_ns() + ns;
    while (host.now_ns() < end_ns) {
      int64_t step_ns = std::min(end_ns, std::max(host.deadline_ns(), host.now_ns() + 1));
      host.advance(step_ns - host.now_ns());
      while (host.irq && driver.interrupt()) {
      }
    }
  }
  // The RX entry of the slot, 0 while it has not completed.
  uint32_t entry(uint16_t slot) const {
    uint32_t found = 0;
    unsigned times = 0;
    for (uint32_t it : driver.completions()) {
      if ((it & 0xFFF) == slot) {
        found = it;
        times++;
      }
    }
    ck_assert_uint_le(times, 1);
    return found;
  }
  bool done(uint16_t slot) const { return entry(slot) != 0; }
  bool good(uint16_t slot) const { return entry(slot) == (0x00010000u | slot); }
  bool failed(uint16_t slot) const { return entry(slot) == (0x00030000u | slot); }
};

inline bool has(const std::string &text, const char *part) {
  return text.find(part) != std::string::npos;
}

}  // namespace revodrive::test
#endif
