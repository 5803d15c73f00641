// SPDX-License-Identifier: GPL-2.0-or-later
//
// The grammar of fault rules, and which commands they choose.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "fault_rig.h"
#include "revodrive/fault_rule.h"
#include "runner.h"

using namespace revodrive;
using namespace revodrive::test;

namespace {

std::string refusal(const std::string &text) {
  std::vector<FaultOrder> orders;
  rd_error error = {};
  bool good = parse_fault_orders(text, &orders, &error);
  ck_assert_msg(!good, "'%s' was taken", text.c_str());
  return error.text;
}

FaultRule rule(const std::string &text) {
  std::vector<FaultOrder> orders;
  rd_error error = {};
  ck_assert_msg(parse_fault_orders(text, &orders, &error), "%s", error.text);
  ck_assert_uint_eq(orders.size(), 1);
  ck_assert(orders[0].kind == FaultOrder::Kind::kAdd);
  return orders[0].rule;
}

START_TEST(grammar_takes_what_it_documents) {
  FaultRule full = rule(
      "name=a.1,op=0x60|write|log10,lba=100-0xC8,tag=3,direction=in,every=3,probability=0.25,"
      "seed=7,count=2,stage=link,action=fail,error=icrc");
  test::check_text(full.name, "a.1");
  ck_assert(full.ops[0x60] && full.ops[0x61] && full.ops[0x35] && !full.ops[0x25]);
  ck_assert(full.log10 && *full.lba_first == 100 && full.lba_last == 200 && *full.tag == 3);
  ck_assert(full.every == 3 && full.chance == FaultRule::kAlways / 4 && full.count == 2);
  ck_assert(full.stage == FaultStage::kLink && full.error.error == 0x84);
  ck_assert(rule(full.text).text == full.text);
  ck_assert(rule("action=fail error=unc").stage == FaultStage::kMedia);
  ck_assert(!rule("action=fail,error=unc").ops[0x61]);
  ck_assert(rule("action=fail,error=df").ops[0x61]);
  ck_assert(rule("action=drop").stage == FaultStage::kDecode);
  ck_assert(rule("action=link-down,op=now").immediate);
  ck_assert(rule("action=delay,delay_us=5").delay_ns == 5000);
  std::vector<FaultOrder> orders;
  ck_assert(parse_fault_orders(" action=drop ; clear name=b\nrelease name=c,count=2 tag=4;;",
                               &orders, nullptr));
  ck_assert_uint_eq(orders.size(), 3);
  ck_assert(orders[1].kind == FaultOrder::Kind::kClear && orders[1].name == "b");
  ck_assert(orders[2].kind == FaultOrder::Kind::kRelease && orders[2].count == 2 &&
            *orders[2].tag == 4);
}
END_TEST

START_TEST(refusals_name_key_value_and_choice) {
  struct {
    const char *text, *key, *allowed;
  } cases[] = {
      {"op=bogus,action=drop", "op=bogus", "identify"},
      {"op=0x100,action=drop", "op=0x100", "0xff"},
      {"op=,action=drop", "op=", "opcodes"},
      {"tag=32,action=drop", "tag=32", "from 0 to 31"},
      {"lba=9-3,action=drop", "lba=9-3", "FIRST-LAST"},
      {"lba=0x1000000000000,action=drop", "lba=0x1", "2^48"},
      {"direction=up,action=drop", "direction=up", "in, out or none"},
      {"nth=0,action=drop", "nth=0", "from 1"},
      {"nth=1,every=2,action=drop", "every=2", "exclude"},
      {"probability=1.5,action=drop", "probability=1.5", "from 0 to 1"},
      {"probability=1e-3,action=drop", "probability=1e-3", "fraction"},
      {"action=explode", "action=explode", "link-down"},
      {"op=read", "action=", "missing"},
      {"action=fail", "error=", "missing"},
      {"action=fail,error=bad", "error=bad", "icrc"},
      {"action=drop,error=unc", "error=unc", "action=fail only"},
      {"action=delay", "delay_us=", "missing"},
      {"action=delay,delay_us=3600000001", "delay_us=3600000001", "3600000000"},
      {"action=drop,delay_us=1", "delay_us=1", "link-down"},
      {"action=corrupt,stage=fetch", "stage=fetch", "media|link"},
      {"action=hang,stage=media", "stage=media", "decode"},
      {"action=drop,stage=lunch", "stage=lunch", "completion"},
      {"action=corrupt,bits=65", "bits=65", "64"},
      {"action=drop,heal=write", "heal=write", "lba="},
      {"action=fail,error=unc,heal=write,lba=0-65536", "lba=0-65536", "65536"},
      {"action=drop,op=now", "op=now", "hang"},
      {"action=hang,op=now,tag=1", "tag=1", "nothing to choose"},
      {"action=drop,color=red", "color=red", "probability"},
      {"action=drop,action=hold", "action=hold", "before"},
      {"action", "'action'", "KEY=VALUE"},
      {"name=a/b,action=drop", "name=a/b", "letters"},
      {"clear op=read", "op=read", "name only"},
      {"release nth=1", "nth=1", "count"},
  };
  for (auto &it : cases) {
    std::string text = refusal(it.text);
    ck_assert_msg(has(text, it.key) && has(text, it.allowed), "%s -> %s", it.text, text.c_str());
  }
  Rig rig;
  rd_error error = {};
  ck_assert_int_eq(rig.try_fault("action=drop", &error, 5), -ENODEV);
  ck_assert(has(error.text, "port 5"));
  ck_assert_int_eq(rig.try_fault("clear name=x", &error), -EINVAL);
  ck_assert(has(error.text, "name=x"));
  rig.fault("name=x,op=flush,action=drop");
  ck_assert_int_eq(rig.try_fault("name=x,action=drop", &error), -EINVAL);
  ck_assert(has(error.text, "clear it first"));
  for (int i = 1; i < 64; i++)
    rig.fault("op=0xFF,action=drop");
  ck_assert_int_eq(rig.try_fault("action=drop", &error), -EINVAL);
  ck_assert(has(error.text, "at most 64"));
  ck_assert_uint_eq(rig.list().size(), 64);
  rig.fault("clear");
  ck_assert_uint_eq(rig.list().size(), 0);
}
END_TEST

// Random text is refused or taken, and what was taken reads the same again.
START_TEST(grammar_survives_noise) {
  uint64_t state = seed();
  const std::string words[] = {"action=", "hold", "fail", "error=", "unc", "op=", "read",  "|",
                               ",",       ";",    "lba=", "1-2",    "=",   "0x",  "clear", " "};
  for (unsigned round = 0; round < 20000; round++) {
    std::string text;
    for (unsigned i = 0; i < 8; i++) {
      state = state * 6364136223846793005 + 1442695040888963407;
      text += words[state >> 33 & 15];
    }
    std::vector<FaultOrder> orders;
    rd_error error = {};
    if (!parse_fault_orders(text, &orders, &error)) {
      ck_assert_uint_gt(strlen(error.text), 0);
      continue;
    }
    for (const FaultOrder &order : orders) {
      if (order.kind == FaultOrder::Kind::kAdd)
        ck_assert(rule(order.rule.text).text == order.rule.text);
    }
  }
}
END_TEST

START_TEST(the_nth_and_every_nth_and_count) {
  struct {
    const char *text;
    std::vector<unsigned> hit;
  } cases[] = {{"nth=3", {2}},
               {"every=4", {3, 7, 11}},
               {"count=2", {0, 1}},
               {"every=2,count=2", {1, 3}},
               {"direction=out", {}},
               {"probability=0", {}},
               {"probability=1.0,count=1", {0}}};
  for (auto &it : cases) {
    Rig rig;
    rig.fault(std::string("action=fail,error=abrt,op=0x25|0x35,") + it.text);
    std::vector<unsigned> hit;
    for (uint16_t i = 0; i < 12; i++) {
      Request request = rig.driver.read_request(i, 1, rig.driver.data_addr());
      if (rig.driver.run(10 + i, request) >> 16 == 3)
        hit.push_back(i);
    }
    ck_assert_msg(hit == it.hit, "%s", it.text);
  }
}
END_TEST

// Chance is the same in each run, other with another seed, and about as frequent as asked.
START_TEST(chance_is_repeatable) {
  auto pattern = [](unsigned seed) {
    Rig rig;
    rig.fault("action=fail,error=abrt,op=read,probability=0.25,seed=" + std::to_string(seed));
    std::string hits;
    for (uint16_t i = 0; i < 400; i++) {
      Request request = rig.driver.read_request(i, 1, rig.driver.data_addr());
      hits += rig.driver.run(10 + i % 64, request) >> 16 == 3 ? 'x' : '.';
    }
    return hits;
  };
  std::string first = pattern(7);
  ck_assert(first == pattern(7));
  ck_assert(first != pattern(8));
  auto count = std::count(first.begin(), first.end(), 'x');
  ck_assert_int_gt(count, 70);
  ck_assert_int_lt(count, 130);
}
END_TEST

}  // namespace

int main() {
  return run_tests("fault_rules",
                   {grammar_takes_what_it_documents, refusals_name_key_value_and_choice,
                    grammar_survives_noise, the_nth_and_every_nth_and_count, chance_is_repeatable});
}
