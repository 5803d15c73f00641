// SPDX-License-Identifier: GPL-2.0-or-later
//
// The card as a whole: what a user can get wrong, save and load, and guests that do anything at
// all.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "driver.h"
#include "revodrive/profile.h"
#include "runner.h"

using namespace revodrive;
using namespace revodrive::test;
using namespace revodrive::regs;

namespace {

int try_attach(ScriptedHost &host, unsigned port, rd_member_config config, rd_error *error) {
  return rd_card_attach(host.card(), port, &config, error);
}

START_TEST(member_refusals_name_the_value) {
  ScriptedHost host;
  host.build(4);
  rd_error error = {};
  rd_member_config good = {};
  good.bytes = 1 << 20;
  good.serial = "OCZ-1";
  rd_member_config config = good;
  config.bytes = 1000001;
  ck_assert_int_eq(try_attach(host, 0, config, &error), -EINVAL);
  ck_assert_ptr_nonnull(strstr(error.text, "1000001"));
  config = good;
  config.bytes = 512;
  ck_assert_int_eq(try_attach(host, 0, config, &error), -EINVAL);
  ck_assert_ptr_nonnull(strstr(error.text, "1 MiB"));
  config = good;
  config.read_only = true;
  ck_assert_int_eq(try_attach(host, 0, config, &error), -EINVAL);
  ck_assert_ptr_nonnull(strstr(error.text, "read-only"));
  config = good;
  config.serial = "123456789012345678901";
  ck_assert_int_eq(try_attach(host, 0, config, &error), -EINVAL);
  ck_assert_ptr_nonnull(strstr(error.text, "serial"));
  config = good;
  config.wwn = 0x1234;
  ck_assert_int_eq(try_attach(host, 0, config, &error), -EINVAL);
  ck_assert_ptr_nonnull(strstr(error.text, "0x0000000000001234"));
  ck_assert_int_eq(try_attach(host, 4, good, &error), -EINVAL);
  ck_assert_ptr_nonnull(strstr(error.text, "ports 0 to 3"));
  ck_assert_int_eq(try_attach(host, 0, good, &error), 0);
  ck_assert_int_eq(try_attach(host, 0, good, &error), -EBUSY);
}
END_TEST

START_TEST(preset_of_an_image_needs_to_know_it) {
  ScriptedHost host;
  host.build(4);
  rd_error error = {};
  rd_extent parts[] = {{3 * 4096, 512}, {0, 4096}};
  std::vector<rd_extent> many(size_t{RD_MAX_EXTENTS} + 1, parts[0]);
  rd_member_config config = {};
  config.bytes = 8 << 20;
  config.serial = "OCZ-1";
  config.preset = "newish";
  ck_assert_int_eq(try_attach(host, 0, config, &error), -EINVAL);
  ck_assert_ptr_nonnull(strstr(error.text, "'newish'"));
  ck_assert_ptr_nonnull(strstr(error.text, "fresh, full, steady or image"));
  config.preset = "image";
  ck_assert_int_eq(try_attach(host, 0, config, &error), -EINVAL);
  ck_assert_ptr_nonnull(strstr(error.text, "no image"));
  config.data = many.data();
  config.data_count = many.size();
  ck_assert_int_eq(try_attach(host, 0, config, &error), -EINVAL);
  ck_assert_ptr_nonnull(strstr(error.text, "1048577"));
  for (unsigned count : {0, 2}) {
    config.data = parts;
    config.data_count = count;
    config.serial = count == 0 ? "OCZ-2" : "OCZ-3";
    ck_assert_int_eq(try_attach(host, count, config, &error), 0);
    std::string name = "port" + std::to_string(count) + ".mapped_units";
    ck_assert_uint_eq(host.counter(name), count);
  }
}
END_TEST

// The host hears of the map of an SSD before anything is in it, and again when it is a new one.
START_TEST(host_is_told_of_the_map) {
  ScriptedHost host;
  host.build();
  ck_assert(host.tables.empty());
  host.attach(0, 8 << 20);
  ck_assert(!host.tables.empty());
  for (size_t bytes : host.tables)
    ck_assert_uint_eq(bytes, (8 << 20) / 4096 * 5);
  size_t told = host.tables.size();
  host.attach(1, 16 << 20);
  ck_assert_uint_gt(host.tables.size(), told);
  ck_assert_uint_eq(host.tables.back(), (16 << 20) / 4096 * 5);
}
END_TEST

START_TEST(unknown_profile_lists_the_known) {
  rd_error error = {};
  Profile profile;
  ck_assert(!Profile::load("revodrive4", nullptr, &profile, &error));
  ck_assert_ptr_nonnull(strstr(error.text, "revodrive4"));
  ck_assert_ptr_nonnull(strstr(error.text, "revodrive3-x2-480"));
  ck_assert(Profile::load(nullptr, nullptr, &profile, &error));
  ck_assert_uint_eq(profile.pcie.lanes, 4);
}
END_TEST

int load(ScriptedHost &host, const std::vector<uint8_t> &bytes, rd_error *error) {
  return rd_card_load(host.card(), bytes.data(), bytes.size(), error);
}

// A second host with the first one's memory, disks and clock, as a migration has them.
struct Twins {
  ScriptedHost source, target;
  Driver driver{source};
  Driver successor{target};
  Twins() {
    for (ScriptedHost *host : {&source, &target}) {
      host->build();
      host->attach(0);
      host->attach(1);
    }
    driver.probe();
  }
  void migrate() {
    auto bytes = source.save();
    target.disks = source.disks;
    memcpy(target.memory(ScriptedHost::kMemoryBase, ScriptedHost::kMemoryBytes),
           source.memory(ScriptedHost::kMemoryBase, ScriptedHost::kMemoryBytes),
           ScriptedHost::kMemoryBytes);
    target.advance(source.now_ns() - target.now_ns());
    successor = driver_state();
    rd_error error = {};
    ck_assert_msg(load(target, bytes, &error) == 0, "%s", error.text);
    rd_card_resume(target.card());
  }
  // The driver's own indices live in guest memory and move with it.
  Driver driver_state() { return driver.moved_to(target); }
};

START_TEST(idle_card_moves) {
  Twins twins;
  twins.driver.run(4, twins.driver.identify(twins.driver.data_addr()));
  twins.migrate();
  ck_assert(twins.source.save() == twins.target.save());
  Request request = twins.successor.identify(twins.successor.data_addr(0x1000));
  ck_assert_uint_eq(twins.successor.run(5, request), 0x00010005);
  ck_assert(memcmp(twins.target.memory(twins.successor.data_addr(), 512),
                   twins.target.memory(twins.successor.data_addr(0x1000), 512), 512) == 0);
}
END_TEST

// Whatever a host says will come, nothing comes of it.
START_TEST(hints_change_nothing) {
  Twins twins;
  twins.driver.run(4, twins.driver.write_request(8, 8, twins.driver.data_addr()));
  std::vector<uint8_t> before = twins.source.save();
  for (unsigned port : {0u, 1u, 3u, 7u, 8u, 1000u, UINT32_MAX}) {
    for (unsigned shift = 0; shift < 64; shift++) {
      rd_card_expect(twins.source.card(), port, uint64_t{1} << shift);
      rd_card_expect(twins.source.card(), port, UINT64_MAX >> shift);
    }
  }
  ck_assert(twins.source.save() == before);
}
END_TEST

// Commands in every stage: waiting for model time, for the backend (kept by the host for a retry),
// failed at delivery, completed and coalescing. All complete, once, at the times they would have
// had.
START_TEST(busy_card_moves) {
  Twins twins;
  Driver &driver = twins.driver;
  driver.issue(4, driver.plain(0xEA));
  twins.source.run_until([&] { return twins.source.counter("completions") == 1; });
  driver.issue(5, driver.read_request(8, 8, driver.data_addr()));
  Request dead = driver.identify(driver.data_addr(0x2000));
  dead.phy = 3;
  driver.issue(6, dead);
  twins.source.defer = true;
  memset(twins.source.memory(driver.data_addr(0x4000), 4096), 0x77, 4096);
  Request write = driver.write_request(64, 8, driver.data_addr(0x4000));
  write.phy = 1;
  write.register_set = 1;
  driver.issue(7, write);
  twins.migrate();
  ck_assert(twins.target.disks[1][64 * 512] == 0x77);
  while (twins.target.run_until([&] { return twins.target.irq; }))
    twins.successor.interrupt();
  std::vector<uint32_t> slots;
  for (uint32_t entry : twins.successor.completions())
    slots.push_back(entry & 0xFFF);
  std::sort(slots.begin(), slots.end());
  ck_assert((slots == std::vector<uint32_t>{4, 5, 6, 7}));
  ck_assert_uint_eq(twins.successor.status(1), 0x50);
}
END_TEST

START_TEST(foreign_state_is_refused) {
  ScriptedHost source, fewer;
  source.build();
  source.attach(0);
  fewer.build(4);
  fewer.attach(0);
  rd_error error = {};
  ck_assert_int_eq(load(fewer, source.save(), &error), -EINVAL);
  ck_assert_ptr_nonnull(strstr(error.text, "ports=8"));
  ScriptedHost smaller;
  smaller.build();
  smaller.attach(0, 4 << 20);
  ck_assert_int_eq(load(smaller, source.save(), &error), -EINVAL);
  auto newer = source.save();
  newer[4] = 99;
  ck_assert_int_eq(load(source, newer, &error), -EINVAL);
  ck_assert_ptr_nonnull(strstr(error.text, "99"));
}
END_TEST

// Truncated at each length and with random bytes flipped: refused or loaded, and the card works on.
START_TEST(damaged_state_never_breaks_the_card) {
  std::mt19937_64 random(seed());
  Twins twins;
  Driver &driver = twins.driver;
  for (uint16_t slot = 4; slot < 20; slot++)
    driver.issue(slot, driver.read_request(slot, 8, driver.data_addr(0x1000 * slot)));
  auto bytes = twins.source.save();
  rd_error error = {};
  for (size_t len = 0; len < bytes.size(); len += 1 + random() % 97) {
    std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(len));
    ck_assert_int_eq(load(twins.target, cut, &error), -EINVAL);
  }
  for (unsigned round = 0; round < 2000; round++) {
    auto bad = bytes;
    for (unsigned flips = 1 + random() % 4; flips > 0; flips--)
      bad[random() % bad.size()] ^= static_cast<uint8_t>(1u << (random() % 8));
    if (load(twins.target, bad, &error) == 0)
      rd_card_resume(twins.target.card());
    twins.target.advance(1000000);
  }
  rd_card_reset(twins.target.card(), RD_RESET_BUS);
  twins.successor = Driver(twins.target);
  twins.successor.probe();
  ck_assert_uint_eq(twins.successor.run(4, twins.successor.plain(0xEA)), 0x00010004);
}
END_TEST

START_TEST(reset_with_commands_in_flight) {
  ScriptedHost host;
  host.build();
  host.attach(0);
  Driver driver(host);
  for (rd_reset kind : {RD_RESET_BUS, RD_RESET_POWER}) {
    driver = Driver(host);
    driver.probe();
    host.defer = true;
    for (uint16_t slot = 4; slot < 36; slot++)
      driver.issue(slot, driver.read_request(slot, 8, driver.data_addr(0x1000 * slot)));
    rd_card_reset(host.card(), kind);
    ck_assert(!host.irq);
    ck_assert_uint_eq(host.mapped, 0);
    host.advance(1000000000);
    ck_assert_uint_eq(driver.reg(kPcs), 0);
    host.defer = false;
  }
}
END_TEST

START_TEST(destroy_with_commands_in_flight) {
  ScriptedHost host;
  host.build();
  host.attach(0);
  Driver driver(host);
  driver.probe();
  host.defer = true;
  for (uint16_t slot = 4; slot < 36; slot++)
    driver.issue(slot, driver.read_request(slot, 8, driver.data_addr(0x1000 * slot)));
}
END_TEST

// Any register, any value, any ring content, hot plug in between: no crash, no endless loop, no
// completion of a slot that cannot exist, and after a reset the card works.
START_TEST(random_guest) {
  std::mt19937_64 random(seed());
  ScriptedHost host;
  host.build();
  host.attach(0);
  host.attach(5);
  Driver driver(host);
  driver.probe();
  for (unsigned step = 0; step < 200000; step++) {
    uint32_t base = random() % 4 ? kCore0 + kCoreStride * (random() % 2) : 0x10000;
    uint32_t offset = static_cast<uint32_t>(base + (random() % 0xC0) * 4);
    uint32_t value = static_cast<uint32_t>(random());
    if (random() % 2)
      value &= 0x7FF;
    switch (random() % 16) {
      case 0:
        host.advance(static_cast<int64_t>(random() % 200000));
        break;
      case 1:
        *host.memory(ScriptedHost::kMemoryBase + random() % 0x40000, 1) =
            static_cast<uint8_t>(random());
        break;
      case 2:
        host.defer = random() % 2;
        break;
      case 3:
        if (!host.pending.empty())
          host.answer();
        break;
      case 4:
        if (random() % 64 == 0)
          rd_card_detach(host.card(), 5);
        else if (random() % 64 == 0) {
          rd_card_detach(host.card(), 5);
          host.attach(5);
        }
        break;
      case 5:
        if (random() % 256 == 0)
          Driver(host, random() % 2).probe();
        break;
      case 6:
      case 7:
        host.readl(offset);
        break;
      default:
        host.writel(offset, value);
    }
  }
  host.defer = false;
  rd_card_reset(host.card(), RD_RESET_BUS);
  ck_assert_uint_eq(host.mapped, 0);
  driver = Driver(host);
  driver.probe();
  ck_assert_uint_eq(driver.run(4, driver.plain(0xEA)), 0x00010004);
}
END_TEST

}  // namespace

int main() {
  return run_tests(
      "card",
      {member_refusals_name_the_value, preset_of_an_image_needs_to_know_it, host_is_told_of_the_map,
       unknown_profile_lists_the_known, idle_card_moves, hints_change_nothing, busy_card_moves,
       foreign_state_is_refused, damaged_state_never_breaks_the_card, reset_with_commands_in_flight,
       destroy_with_commands_in_flight, random_guest});
}
