// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where the time of commands goes: whatever happens to a command, the stages of its journey add up
// to the time between its doorbell and the moment the guest is told.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <set>

#include "driver.h"
#include "random.h"
#include "revodrive/journey.h"
#include "runner.h"

using namespace revodrive;
using namespace revodrive::test;
using namespace revodrive::regs;

namespace {

constexpr unsigned kMembers = 4;
constexpr unsigned kTags = 15;  // a slot buffer each for four phys

int64_t sum_of(const rd_command_record &record) {
  return std::accumulate(std::begin(record.stage_ns), std::end(record.stage_ns), int64_t{0});
}

rd_command_kind other_kind(uint8_t opcode) {
  return opcode == 0xEA ? RD_FLUSH : RD_OTHER;
}

// A driver that does all there is to do, at random, and checks each record it sees.
class Storm {
 public:
  Storm(ScriptedHost &on, const Driver &with, uint64_t seed)
      : host(on), driver(with), random_(seed) {
    host.on_command = [this](const rd_command_record &record) { check(record); };
  }

  void step() {
    switch (random_.below(24)) {
      case 0:
        host.defer = !host.defer;
        break;
      case 1:
        if (!host.pending.empty())
          host.answer();
        break;
      case 2:
        set_coalescing();
        break;
      case 3:
        poll();
        break;
      case 4:
        if (random_.one_in(8))
          upset();
        break;
      case 5:
        fault();
        break;
      case 6:
      case 7:
      case 8:
      case 9:
        host.advance(static_cast<int64_t>(random_.below(300'000)));
        break;
      case 10:
      case 11:
        while (host.irq && driver.interrupt()) {
        }
        break;
      default:
        issue();
    }
  }
  // Until nothing is in flight that could end by itself.
  void drain() {
    for (unsigned port = 0; port < kMembers; port++)
      rd_card_fault(host.card(), port, "clear", nullptr);
    host.defer = false;
    do {
      while (!host.pending.empty())
        host.answer();
      while (host.irq && driver.interrupt()) {
      }
    } while (host.run_until([&] { return host.irq || !host.pending.empty(); }));
  }
  void issue() {
    auto phy = static_cast<uint8_t>(random_.below(kMembers));
    auto tag = static_cast<uint8_t>(random_.below(kTags));
    auto slot = static_cast<uint16_t>(phy * 16 + tag);
    if (running.contains(slot))
      return;
    auto sectors = static_cast<uint16_t>(1 + random_.below(64));
    uint64_t lba = random_.below(random_.one_in(16) ? 20000 : 16000);  // some beyond the end
    bool write = random_.one_in(2);
    Request request = driver.read_request(lba, sectors, driver.data_addr(0x10000 * slot));
    if (!random_.one_in(4))
      request.fis = ncq_fis(write ? 0x61 : 0x60, lba, sectors, tag);
    else if (random_.one_in(2))
      request.fis[2] = write ? 0x35 : 0x25;
    else
      request = driver.plain(random_.one_in(2) ? 0xEA : 0xE5);
    request.tag = tag;
    request.phy = request.register_set = phy;
    if (random_.one_in(64) && !request.segments.empty())
      request.segments[0].addr = 0;  // nowhere
    running[slot] = {host.now_ns(), request.fis};
    driver.issue(slot, request);
  }
  void check(const rd_command_record &record) {
    auto found = running.find(record.slot);
    ck_assert(found != running.end());
    ck_assert_int_eq(record.start_ns, found->second.start_ns);
    ck_assert_int_eq(record.end_ns, host.now_ns());
    ck_assert_int_eq(sum_of(record), record.end_ns - record.start_ns);
    for (int64_t ns : record.stage_ns)
      ck_assert_int_ge(ns, 0);
    const auto &fis = found->second.fis;
    bool read = fis[2] == 0x60 || fis[2] == 0x25;
    bool write = fis[2] == 0x61 || fis[2] == 0x35;
    ck_assert_uint_eq(record.port, record.slot / 16);
    ck_assert_uint_eq(record.opcode, fis[2]);
    rd_command_kind expected = read ? RD_READ : write ? RD_WRITE : other_kind(fis[2]);
    ck_assert_msg(record.kind == expected, "opcode 0x%02x: kind %s", fis[2],
                  rd_kind_name(record.kind));
    bool queued = fis[2] == 0x60 || fis[2] == 0x61;
    ck_assert_uint_eq(record.tag, (queued ? record.slot % 16 : 0));
    ck_assert_uint_eq(record.bytes > 0, (read || write));
    if (read || write)
      ck_assert_uint_eq(record.lba, fis[4] | fis[5] << 8 | fis[6] << 16);
    for (size_t i = 0; i < RD_STAGES; i++)
      seen[i] += record.stage_ns[i];
    errors += record.error;
    count++;
    running.erase(found);
  }

  struct Issued {
    int64_t start_ns;
    std::array<uint8_t, 20> fis;
  };
  ScriptedHost &host;
  Driver driver;
  std::map<uint16_t, Issued> running;
  std::array<int64_t, RD_STAGES> seen{};
  unsigned count = 0, errors = 0;

 private:
  void set_coalescing() {
    driver.set_reg(kIntCoal, random_.one_in(3) ? 0 : 0x00010000 | (1 + random_.below(20)));
    driver.set_reg(kIntCoalTimeout, 0x00010000 | random_.below(500));
  }
  // Looks without having been interrupted.
  void poll() {
    driver.reg(kIntStat);
    driver.take_completions();
    driver.set_reg(kIntStat, kIntDone);
  }
  void fault() {
    auto port = static_cast<unsigned>(random_.below(kMembers));
    static const char *const kOrders[] = {
        "stage=media,action=delay,delay_us=2000,count=3",
        "stage=fetch,action=hold,count=1",
        "stage=completion,action=delay,delay_us=1000,count=2",
        "op=read,action=fail,error=unc,count=1",
        "release",
        "clear",
    };
    rd_error error = {};
    const char *order = kOrders[random_.below(std::size(kOrders))];
    int result = rd_card_fault(host.card(), port, order, &error);
    ck_assert_msg(result == 0, "%s: %s", order, error.text);
  }
  // Commands that are gone without a completion are nobody's any more.
  void upset() {
    poll();
    auto port = static_cast<unsigned>(random_.below(kMembers));
    bool all = false;
    switch (random_.below(4)) {
      case 0:
        driver.set_reg(kSerialCtl + 4 * port, kSerialHardReset);
        break;
      case 1:
        rd_card_detach(host.card(), port);
        host.attach(port);
        break;
      case 2:
        driver.set_reg(kPcs, driver.reg(kPcs) | kPcsReset);
        driver.set_reg(kTxCfg, 0);
        poll();
        all = true;
        break;
      case 3:
        rd_card_reset(host.card(), RD_RESET_BUS);
        all = true;
        break;
    }
    if (all) {
      driver.probe();
      running.clear();
    }
    poll();  // some ended while others were cancelled
    std::erase_if(running, [&](const auto &it) { return it.first / 16 == port; });
    host.advance(500'000'000);  // the link comes up
    while (host.irq && driver.interrupt()) {
    }
  }

  Random random_;
};

void build(ScriptedHost &host) {
  host.build();
  for (unsigned port = 0; port < kMembers; port++)
    host.attach(port);
  host.verdict = [](const Transfer &transfer) {
    return transfer.offset % (1021 * 512) == 0 && transfer.offset > 0 ? -EIO : 0;
  };
}

START_TEST(stages_add_up_whatever_happens) {
  uint64_t first = seed();
  std::array<int64_t, RD_STAGES> seen{};
  for (uint64_t round = 0; round < 6; round++) {
    ScriptedHost host;
    build(host);
    Driver driver(host);
    driver.probe();
    Storm storm(host, driver, first + round);
    for (int i = 0; i < 3000; i++)
      storm.step();
    storm.drain();
    ck_assert_uint_eq(storm.running.size(), 0);
    ck_assert_uint_gt(storm.count, 500);
    ck_assert_uint_gt(storm.errors, 10);
    for (size_t i = 0; i < RD_STAGES; i++)
      seen[i] += storm.seen[i];
  }
  for (unsigned stage : {RD_STAGE_PCIE, RD_STAGE_BRIDGE, RD_STAGE_SATA, RD_STAGE_CONTROLLER,
                         RD_STAGE_DIE, RD_STAGE_HOST, RD_STAGE_COALESCING, RD_STAGE_FAULT})
    ck_assert_msg(seen[stage] > 0, "nothing was ever charged to %s", rd_stage_name(stage));
}
END_TEST

// One read with nothing in its way: each stage has what the profile says it must have.
START_TEST(a_lonely_read) {
  ScriptedHost host;
  build(host);
  Driver driver(host);
  driver.probe();
  driver.set_reg(kIntCoal, 0x00010000 | 8);
  driver.set_reg(kIntCoalTimeout, 0x00010000 | 100);
  std::vector<rd_command_record> records;
  host.on_command = [&](const rd_command_record &record) { records.push_back(record); };
  driver.run(4, driver.read_request(0, 8, driver.data_addr()));
  ck_assert_uint_eq(records.size(), 1);
  const rd_command_record &read = records[0];
  ck_assert_int_eq(sum_of(read), read.end_ns - read.start_ns);
  ck_assert_int_eq(read.stage_ns[RD_STAGE_COALESCING], 100'000);
  ck_assert_int_eq(read.stage_ns[RD_STAGE_HOST], 0);
  ck_assert_int_eq(read.stage_ns[RD_STAGE_FAULT], 0);
  ck_assert_int_ge(read.stage_ns[RD_STAGE_PCIE], 3 * 600);  // three reads of host memory
  ck_assert_int_ge(read.stage_ns[RD_STAGE_BRIDGE], 500);
  ck_assert_int_ge(read.stage_ns[RD_STAGE_SATA], 4096 * 1000 / 600);
  ck_assert_int_gt(read.stage_ns[RD_STAGE_CONTROLLER], 0);
}
END_TEST

START_TEST(a_late_backend_is_the_hosts) {
  ScriptedHost host;
  build(host);
  Driver driver(host);
  driver.probe();
  driver.set_reg(kIntCoal, 0);
  std::vector<rd_command_record> records;
  host.on_command = [&](const rd_command_record &record) { records.push_back(record); };
  host.defer = true;
  driver.issue(4, driver.read_request(0, 8, driver.data_addr()));
  host.advance(50'000'000);
  host.answer();
  ck_assert_uint_eq(records.size(), 1);
  ck_assert_int_gt(records[0].stage_ns[RD_STAGE_HOST], 49'000'000);
  ck_assert_int_eq(records[0].end_ns - records[0].start_ns, 50'000'000);
  ck_assert_int_eq(sum_of(records[0]), 50'000'000);
}
END_TEST

// Commands in flight and completions that wait for their interrupt keep what they have been
// through.
START_TEST(journeys_survive_save_and_load) {
  uint64_t first = seed();
  for (uint64_t round = 0; round < 4; round++) {
    ScriptedHost source, target;
    build(source);
    build(target);
    Driver driver(source);
    driver.probe();
    Storm storm(source, driver, first + round);
    storm.driver.set_reg(kIntCoal, 0x00010000 | 100);
    storm.driver.set_reg(kIntCoalTimeout, 0x00010000 | 2000);
    for (int i = 0; i < 40; i++) {
      storm.issue();
      source.advance(5000);
    }
    auto bytes = source.save();
    target.disks = source.disks;
    std::memcpy(target.memory(ScriptedHost::kMemoryBase, ScriptedHost::kMemoryBytes),
                source.memory(ScriptedHost::kMemoryBase, ScriptedHost::kMemoryBytes),
                ScriptedHost::kMemoryBytes);
    target.advance(source.now_ns() - target.now_ns());
    rd_error error = {};
    ck_assert_msg(rd_card_load(target.card(), bytes.data(), bytes.size(), &error) == 0, "%s",
                  error.text);
    rd_card_resume(target.card());
    Storm twin(target, storm.driver.moved_to(target), 0);
    twin.running = storm.running;
    ck_assert_uint_gt(storm.running.size(), 5);
    unsigned before = storm.count;
    storm.seen = {};
    storm.drain();
    twin.drain();
    ck_assert_uint_eq(twin.count, storm.count - before);
    ck_assert(twin.seen == storm.seen);
    ck_assert_uint_eq(twin.running.size(), 0);
    for (const char *name : {"read_latency_count", "read_latency_sum_ns", "write_latency_p99_ns",
                             "write_stage_die_ns", "flush_latency_max_ns"})
      ck_assert_uint_eq(target.counter(name), source.counter(name));
  }
}
END_TEST

// The card's sums are those of the records, of all of them and of nothing else.
START_TEST(statistics_are_of_the_records) {
  ScriptedHost host;
  build(host);
  Driver driver(host);
  driver.probe();
  ck_assert_int_eq(rd_card_set(host.card(), RD_CARD, "reset_latency", 0, nullptr), 0);
  Storm storm(host, driver, seed());
  std::map<unsigned, std::vector<int64_t>> latencies;
  std::map<std::string, uint64_t> stages;
  host.on_command = [&](const rd_command_record &record) {
    storm.check(record);
    latencies[record.kind].push_back(record.end_ns - record.start_ns);
    for (unsigned stage = 0; stage < RD_STAGES; stage++)
      stages[std::string(rd_kind_name(record.kind)) + "_stage_" + rd_stage_name(stage) + "_ns"] +=
          static_cast<uint64_t>(record.stage_ns[stage]);
  };
  for (int i = 0; i < 3000; i++)
    storm.step();
  storm.drain();
  for (auto &[kind, all] : latencies) {
    std::sort(all.begin(), all.end());
    std::string prefix = std::string(rd_kind_name(kind)) + "_latency_";
    auto median = static_cast<uint64_t>(all[(all.size() - 1) / 2]);
    ck_assert_uint_eq(host.counter(prefix + "count"), all.size());
    ck_assert_uint_eq(host.counter(prefix + "sum_ns"),
                      std::accumulate(all.begin(), all.end(), uint64_t{0}));
    ck_assert_uint_eq(host.counter(prefix + "min_ns"), all.front());
    ck_assert_uint_eq(host.counter(prefix + "max_ns"), all.back());
    ck_assert_uint_ge(host.counter(prefix + "p50_ns"), median);
    ck_assert_uint_le(host.counter(prefix + "p50_ns"), median + median / 64);
    ck_assert_uint_le(host.counter(prefix + "p99_9_ns"), host.counter(prefix + "p99_99_ns"));
  }
  for (const auto &[name, ns] : stages)
    ck_assert_msg(host.counter(name) == ns, "%s", name.c_str());
  rd_error error = {};
  ck_assert_int_eq(rd_card_set(host.card(), RD_CARD, "nonsense", 0, &error), -EINVAL);
  ck_assert_ptr_nonnull(std::strstr(error.text, "nonsense"));
  ck_assert_int_eq(rd_card_set(host.card(), RD_CARD, "reset_latency", 0, &error), 0);
  ck_assert_uint_eq(host.counter("read_latency_count"), 0);
}
END_TEST

// When each of many commands ends, over a backend that takes `backend_ns` for each.
std::vector<int64_t> end_times(bool timing, uint64_t with_seed, int64_t backend_ns) {
  constexpr unsigned kCommands = 400;
  ScriptedHost host;
  host.build(8, timing);
  for (unsigned port = 0; port < kMembers; port++)
    host.attach(port);
  Driver driver(host);
  driver.probe();
  driver.set_reg(kIntCoal, 0);
  host.defer = true;
  std::vector<int64_t> ends(kCommands);
  host.on_command = [&](const rd_command_record &record) { ends[record.slot] = record.end_ns; };
  Random random(with_seed);
  std::deque<int64_t> due_ns;
  auto answer_until = [&](int64_t until_ns) {
    for (; !due_ns.empty() && due_ns.front() <= until_ns; due_ns.pop_front()) {
      host.advance(due_ns.front() - host.now_ns());
      host.answer();
    }
    host.advance(until_ns - host.now_ns());
    while (host.irq && driver.interrupt()) {
    }
  };
  for (uint16_t slot = 0; slot < kCommands; slot++) {
    auto sectors = static_cast<uint16_t>(1 + random.below(128));
    uint64_t lba = random.below(16000);
    Request request = driver.read_request(lba, sectors, driver.data_addr());
    if (random.one_in(2))
      request = driver.write_request(lba, sectors, driver.data_addr(0x20000));
    if (random.one_in(50))
      request = driver.plain(0xEA);
    request.phy = request.register_set = static_cast<uint8_t>(random.below(kMembers));
    driver.issue(slot, request);
    due_ns.push_back(host.now_ns() + backend_ns);
    answer_until(host.now_ns() + static_cast<int64_t>(random.below(40'000)));
  }
  answer_until(host.now_ns() + 10'000'000'000);
  return ends;
}

// Case C070: a model with its timing on must not be faster than without.
START_TEST(c070_timing_never_makes_faster) {
  uint64_t first = seed();
  for (int64_t backend_ns : {0, 20'000, 500'000, 20'000'000}) {
    std::vector<int64_t> timed = end_times(true, first, backend_ns);
    std::vector<int64_t> untimed = end_times(false, first, backend_ns);
    for (size_t i = 0; i < timed.size(); i++) {
      ck_assert_int_gt(untimed[i], 0);
      ck_assert_msg(timed[i] >= untimed[i], "command %zu: %ld ns early", i, untimed[i] - timed[i]);
    }
    if (backend_ns == 0)  // a slow backend may hide the model
      ck_assert(timed != untimed);
  }
}
END_TEST

START_TEST(cut_takes_from_the_end) {
  Journey journey;
  journey.start(1000);
  journey.reach(Stage::kPcie, 1100);
  journey.reach(Stage::kDie, 1500);
  journey.reach(Stage::kSata, 1600);
  journey.cut(1700);  // of no effect
  ck_assert_int_eq(journey.at_ns(), 1600);
  journey.cut(1300);
  ck_assert_int_eq(journey.total_ns(), 300);
  ck_assert_int_eq(journey.stage_ns(Stage::kPcie), 100);
  ck_assert_int_eq(journey.stage_ns(Stage::kDie), 100);
  ck_assert_int_eq(journey.stage_ns(Stage::kSata), 100);
  journey.cut(0);
  ck_assert_int_eq(journey.total_ns(), 0);
  ck_assert_int_eq(journey.start_ns(), 1000);
}
END_TEST

START_TEST(stream_of_a_journey) {
  Journey journey;
  journey.start(77);
  journey.reach(Stage::kMap, 100);
  journey.reach(Stage::kCoalescing, 1000);
  StreamWriter out;
  journey.save(out);
  Journey copy;
  StreamReader in(out.bytes());
  copy.load(in);
  ck_assert(in.ok() && in.at_end());
  ck_assert_int_eq(copy.start_ns(), 77);
  ck_assert_int_eq(copy.at_ns(), 1000);
  ck_assert_int_eq(copy.stage_ns(Stage::kMap), 23);
  for (size_t field = 0; field <= RD_STAGES; field++) {
    std::vector<uint8_t> bad = out.bytes();
    bad[8 * field + 7] |= 0x80;  // negative
    StreamReader broken(bad);
    copy.load(broken);
    ck_assert(!broken.ok());
    ck_assert_int_eq(copy.total_ns(), 0);
  }
}
END_TEST

START_TEST(names) {
  std::set<std::string> names;
  for (unsigned i = 0; i < RD_STAGES; i++)
    names.insert(rd_stage_name(i));
  for (unsigned i = 0; i < RD_COMMAND_KINDS; i++)
    names.insert(rd_kind_name(i));
  ck_assert_uint_eq(names.size(), RD_STAGES + RD_COMMAND_KINDS);
  ck_assert_ptr_null(rd_stage_name(RD_STAGES));
  ck_assert_ptr_null(rd_kind_name(RD_COMMAND_KINDS));
}
END_TEST

}  // namespace

int main() {
  return run_tests("journey", {stages_add_up_whatever_happens, a_lonely_read,
                               a_late_backend_is_the_hosts, journeys_survive_save_and_load,
                               statistics_are_of_the_records, c070_timing_never_makes_faster,
                               cut_takes_from_the_end, stream_of_a_journey, names});
}
