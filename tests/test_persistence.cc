// SPDX-License-Identifier: GPL-2.0-or-later
//
// What outlives the power: across replugs, across cards, and from bytes that are not what they
// should be.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>

#include "card/persistent_store.h"
#include "driver.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;
using namespace revodrive::test;

namespace {

constexpr uint64_t kSmartKey = 0xC24F00;
constexpr int64_t kSecond = 1'000'000'000;

// A card with one SSD and its driver. `persisted`: of an earlier one.
struct Rig {
  ScriptedHost host;
  std::unique_ptr<Driver> driver;
  uint16_t slot = 0;

  explicit Rig(const std::vector<uint8_t> &persisted = {}) {
    host.persisted = persisted;
    host.build();
    host.attach(0);
    driver = std::make_unique<Driver>(host);
    driver->probe();
  }

  bool run(const Request &request) {
    slot = static_cast<uint16_t>((slot + 1) % 64);
    ck_assert(driver->run(slot, request) != 0);
    return driver->status(0) == 0x50;
  }
  bool plain(uint8_t opcode) { return run(driver->plain(opcode)); }
  Request smart(uint8_t feature, uint8_t low, uint16_t sectors) {
    Request request = driver->plain(0xB0);
    request.fis = lba48_fis(0xB0, kSmartKey | low, sectors);
    request.fis[3] = feature;
    if (sectors > 0) {
      request.data_bytes = sectors * 512u;
      request.segments = {{driver->data_addr(), request.data_bytes}};
      request.prd_count = 1;
    }
    return request;
  }
  // Raw value of an attribute.
  uint64_t attribute(uint8_t id) {
    ck_assert(run(smart(0xD0, 0, 1)));
    const uint8_t *page = host.memory(driver->data_addr(), 512);
    for (size_t at = 2; at < 2 + 30 * 12; at += 12) {
      if (page[at] != id)
        continue;
      uint64_t raw = 0;
      std::memcpy(&raw, page + at + 5, 7);
      return raw;
    }
    ck_abort_msg("attribute %u is missing", id);
  }
  // Data that does not compress, so that flash writes are host writes.
  void write_mib(unsigned count) {
    std::mt19937 random(1);
    uint8_t *data = host.memory(driver->data_addr(), 1 << 20);
    std::generate_n(data, 1 << 20, [&] { return static_cast<uint8_t>(random()); });
    for (unsigned i = 0; i < count; i++)
      ck_assert(run(driver->write_request(i % 4 * 2048, 2048, driver->data_addr())));
  }
  Request write_log(uint8_t address, uint8_t byte) {
    std::memset(host.memory(driver->data_addr(), 512), byte, 512);
    return smart(0xD6, address, 1);
  }
};

START_TEST(counters_survive_a_new_card) {
  std::vector<uint8_t> stored;
  uint64_t hours_ms = 0;
  {
    Rig rig;
    rig.write_mib(1030);
    rig.host.advance(5 * kSecond);
    ck_assert_uint_eq(rig.attribute(241), 1);
    ck_assert_uint_eq(rig.attribute(12), 1);
    ck_assert_uint_eq(rig.attribute(174), 0);
    hours_ms = rig.attribute(9) >> 32;
    ck_assert(rig.plain(0xE0));
    rig.host.destroy();
    stored = rig.host.persisted;
  }
  Rig rig(stored);
  ck_assert_uint_eq(rig.attribute(241), 1);
  ck_assert_uint_eq(rig.attribute(233), 1);
  ck_assert_uint_eq(rig.attribute(12), 2);
  ck_assert_uint_eq(rig.attribute(174), 0);
  ck_assert_uint_ge(rig.attribute(9) >> 32, hours_ms);
  // 1030 MiB and 1018 more are 2 GiB.
  rig.write_mib(1018);
  ck_assert_uint_eq(rig.attribute(241), 2);
  ck_assert_uint_eq(rig.attribute(234), 2);
}
END_TEST

START_TEST(replug_is_a_power_cycle) {
  Rig rig;
  rig.write_mib(1);
  rd_card_detach(rig.host.card(), 0);
  rig.host.attach(0);
  rig.host.advance(kSecond);
  ck_assert_uint_eq(rig.attribute(12), 2);
  ck_assert_uint_eq(rig.attribute(174), 1);
  ck_assert(rig.plain(0xE0));
  rd_card_detach(rig.host.card(), 0);
  rig.host.attach(0);
  rig.host.advance(kSecond);
  ck_assert_uint_eq(rig.attribute(12), 3);
  ck_assert_uint_eq(rig.attribute(174), 1);
  // Another drive is another drive.
  rd_card_detach(rig.host.card(), 0);
  rig.host.attach(1);
  rd_card_detach(rig.host.card(), 1);
  ck_assert_uint_eq(rig.host.counter("port0.power_cycles"), 0);
}
END_TEST

START_TEST(power_loss_after_standby_and_use) {
  Rig rig;
  ck_assert(rig.plain(0xE0));
  unsigned persists = rig.host.persists;
  rig.write_mib(1);
  ck_assert_uint_eq(rig.host.persists, persists + 1);  // no longer parked, and known to be
  Rig next(rig.host.persisted);                        // as after a kill
  ck_assert_uint_eq(next.attribute(174), 1);
}
END_TEST

START_TEST(command_waits_for_the_store) {
  Rig rig;
  rig.host.defer_persist = true;
  rig.driver->issue(1, rig.write_log(0x80, 0x5A));
  rig.host.advance(kSecond);
  rig.driver->interrupt();
  size_t before = rig.driver->completions().size();
  ck_assert_uint_eq(rig.host.persist_tokens.size(), 1);
  rig.host.answer_persist();
  rig.host.advance(kSecond);
  rig.driver->interrupt();
  ck_assert_uint_eq(rig.driver->completions().size(), before + 1);
  rig.host.defer_persist = false;
  Rig next(rig.host.persisted);
  ck_assert(next.run(next.smart(0xD5, 0x80, 1)));
  ck_assert_uint_eq(next.host.memory(next.driver->data_addr(), 512)[100], 0x5A);
}
END_TEST

START_TEST(failed_store_fails_the_command) {
  Rig rig;
  rig.host.persist_error = -EIO;
  ck_assert(!rig.run(rig.write_log(0x81, 1)));
  ck_assert_uint_eq(rig.driver->status(0) & 0x21, 0x21);
  rig.host.persist_error = 0;
  ck_assert(rig.run(rig.write_log(0x81, 1)));
}
END_TEST

// Pulled out while a command waits for the store: it ends, and nobody hears of it afterwards.
START_TEST(unplug_while_storing) {
  Rig rig;
  rig.host.defer_persist = true;
  rig.driver->issue(1, rig.write_log(0x80, 1));
  ck_assert_uint_eq(rig.host.persist_tokens.size(), 1);
  rd_card_detach(rig.host.card(), 0);
  ck_assert(rig.host.persist_tokens.empty());
  rig.host.advance(kSecond);
}
END_TEST

START_TEST(flush_stores_once_a_minute) {
  Rig rig;
  unsigned persists = rig.host.persists;
  rig.write_mib(1);
  ck_assert(rig.plain(0xEA));
  ck_assert_uint_eq(rig.host.persists, persists);
  rig.host.advance(61 * kSecond);
  ck_assert(rig.plain(0xEA));
  ck_assert(rig.plain(0xEA));
  ck_assert_uint_eq(rig.host.persists, persists + 1);
  rd_card_store(rig.host.card());
  ck_assert_uint_eq(rig.host.persists, persists + 2);
}
END_TEST

START_TEST(two_drives_of_one_serial_are_refused) {
  Rig rig;
  rd_member_config config = {};
  config.bytes = 8 << 20;
  config.serial = "OCZ-TEST0";
  rd_error error = {};
  ck_assert_int_eq(rd_card_attach(rig.host.card(), 1, &config, &error), -EINVAL);
  ck_assert_ptr_nonnull(strstr(error.text, "OCZ-TEST0"));
}
END_TEST

START_TEST(absent_drive_moves_with_the_card) {
  Rig from, to;
  from.write_mib(1);
  rd_card_detach(from.host.card(), 0);
  rd_card_detach(to.host.card(), 0);
  std::vector<uint8_t> bytes = from.host.save();
  rd_error error = {};
  ck_assert_int_eq(rd_card_load(to.host.card(), bytes.data(), bytes.size(), &error), 0);
  to.host.attach(0);
  to.host.advance(kSecond);
  ck_assert_uint_eq(to.host.counter("port0.power_cycles"), 2);
}
END_TEST

// Newer sections are skipped, missing ones are as new.
START_TEST(sections_come_and_go) {
  StreamWriter drive;
  drive.section("NEW!");
  drive.put(uint32_t{3});
  drive.put_bytes(std::array<uint8_t, 3>{1, 2, 3});
  PersistentStore store;
  store.put("OCZ-TEST0", drive.bytes());
  Rig rig(store.encode());
  ck_assert_uint_eq(rig.attribute(12), 2);
  ck_assert_uint_eq(rig.attribute(241), 0);
}
END_TEST

START_TEST(unknown_version_is_refused) {
  Rig rig;
  std::vector<uint8_t> bytes = rig.host.persisted;
  bytes.at(4) = 77;
  PersistentStore store;
  rd_error error = {};
  ck_assert(!store.decode(bytes, &error));
  ck_assert_ptr_nonnull(strstr(error.text, "version 77"));
}
END_TEST

// Whatever was stored: a card and its drive come up, or there is a message.
START_TEST(damaged_bytes) {
  Random random(seed());
  std::vector<uint8_t> good;
  {
    Rig rig;
    ck_assert(rig.run(rig.write_log(0x9F, 7)));
    ck_assert(rig.run(rig.smart(0xD4, 2, 0)));
    good = rig.host.persisted;
  }
  for (unsigned round = 0; round < 24; round++) {
    std::vector<uint8_t> bytes = good;
    for (unsigned i = 0; i < 1 + random.below(4); i++)
      bytes[random.below(bytes.size())] = static_cast<uint8_t>(random.next());
    if (random.one_in(4))
      bytes.resize(random.below(bytes.size()));
    PersistentStore store;
    rd_error error = {};
    if (!store.decode(bytes, &error)) {
      ck_assert_uint_gt(strlen(error.text), 0);
      continue;
    }
    ScriptedHost host;
    host.persisted = bytes;
    host.build();
    rd_member_config config = {};
    config.bytes = 8 << 20;
    config.serial = "OCZ-TEST0";
    if (rd_card_attach(host.card(), 0, &config, &error) != 0) {
      ck_assert_ptr_nonnull(strstr(error.text, "OCZ-TEST0"));
      continue;
    }
    host.disks[0] = Zeroed(8 << 20);
    Driver driver(host);
    driver.probe();
    Request request = driver.plain(0xB0);
    request.fis = lba48_fis(0xB0, kSmartKey, 1);
    request.fis[3] = 0xD0;
    request.data_bytes = 512;
    request.segments = {{driver.data_addr(), 512}};
    request.prd_count = 1;
    ck_assert(driver.run(1, request) != 0);
  }
}
END_TEST

START_TEST(interrupted_self_test_is_logged) {
  Rig rig;
  ck_assert(rig.run(rig.smart(0xD4, 2, 0)));
  rig.host.advance(100 * kSecond);
  rd_card_store(rig.host.card());
  Rig next(rig.host.persisted);
  ck_assert(next.run(next.smart(0xD5, 0x06, 1)));
  const uint8_t *page = next.host.memory(next.driver->data_addr(), 512);
  ck_assert_uint_eq(page[508], 1);
  ck_assert_uint_eq(page[2], 2);
  ck_assert_uint_eq(page[3], 0x29);
}
END_TEST

}  // namespace

int main() {
  return run_tests(
      "persistence",
      {counters_survive_a_new_card, replug_is_a_power_cycle, power_loss_after_standby_and_use,
       command_waits_for_the_store, failed_store_fails_the_command, unplug_while_storing,
       flush_stores_once_a_minute, two_drives_of_one_serial_are_refused,
       absent_drive_moves_with_the_card, sections_come_and_go, unknown_version_is_refused,
       damaged_bytes, interrupted_self_test_is_logged});
}
