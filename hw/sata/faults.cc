// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/faults.h"

#include <algorithm>

#include "revodrive/ata_command.h"
#include "revodrive/error.h"
#include "revodrive/ata.h"
#include "sata/fault_facts.h"

namespace revodrive {

namespace {

constexpr size_t kMaxRuleText = 1024;

// splitmix64 (Steele, Lea, Flood 2014): one 64-bit word of state.
uint64_t next_random(uint64_t *state) {
  *state += 0x9E3779B97F4A7C15;
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// Inside the drive a delay is only a matter of time; the bridge keeps the command meanwhile.
bool stops(FaultAction action, FaultStage stage) {
  if (action == FaultAction::kDelay)
    return stage == FaultStage::kFetch || stage == FaultStage::kCompletion;
  return action != FaultAction::kFail && action != FaultAction::kCorrupt;
}

bool is_log10(const FaultFacts &facts) {
  return (facts.opcode == ata::kReadLogExt || facts.opcode == ata::kReadLogDmaExt) &&
         (facts.lba & 0xFF) == ata::kLogQueuedError;
}

}  // namespace

bool FaultChoice::fits(const AtaCommand &command) const {
  const FaultState &state = command.fault;
  bool resting = state.stop != FaultAction::kNone && state.stop != FaultAction::kDrop;
  if (!resting || state.rule != rule)
    return false;
  FaultFacts facts = fault_facts(command.h2d);
  if (tag && (!facts.queued || facts.tag != *tag))
    return false;
  return !lba || (*lba >= facts.lba && *lba - facts.lba < facts.sectors);
}

bool FaultSet::matches_lba(const Entry &entry, const FaultFacts &facts) {
  const FaultRule &rule = entry.rule;
  if (!rule.lba_first)
    return true;
  if (!facts.medium && rule.any_op)
    return false;
  uint64_t last = facts.lba + (facts.sectors - 1);
  if (!rule.heals)
    return facts.lba <= rule.lba_last && last >= *rule.lba_first;
  return std::any_of(entry.bad.begin(), entry.bad.end(),
                     [&](const Range &bad) { return facts.lba <= bad.last && last >= bad.first; });
}

bool FaultSet::matches(const Entry &entry, const FaultFacts &facts) {
  const FaultRule &rule = entry.rule;
  if (rule.immediate && !rule.ops.any() && !rule.log10)
    return false;
  if (!rule.ops[facts.opcode] && !(rule.log10 && is_log10(facts)))
    return false;
  if (rule.tag && (!facts.queued || facts.tag != *rule.tag))
    return false;
  if (rule.direction && facts.direction != *rule.direction)
    return false;
  return matches_lba(entry, facts);
}

// A command matched: is it the one?
bool FaultSet::fires(Entry &entry) {
  const FaultRule &rule = entry.rule;
  entry.seen++;
  if (rule.count != 0 && entry.hits >= rule.count)
    return false;
  if (rule.nth != 0 && entry.seen != rule.nth)
    return false;
  if (rule.every != 0 && entry.seen % rule.every != 0)
    return false;
  return rule.chance == FaultRule::kAlways || next_random(&entry.random) >> 32 < rule.chance;
}

// The first sector of the command that the rule is about.
uint64_t FaultSet::first_bad(const Entry &entry, const FaultFacts &facts) {
  if (!facts.medium || !entry.rule.lba_first)
    return facts.lba;
  if (!entry.rule.heals)
    return std::max(facts.lba, *entry.rule.lba_first);
  auto found = std::find_if(entry.bad.begin(), entry.bad.end(),
                            [&](const Range &bad) { return bad.last >= facts.lba; });
  return found == entry.bad.end() ? facts.lba : std::max(facts.lba, found->first);
}

void FaultSet::note(Entry &entry, FaultStage stage, const FaultFacts &facts, FaultState &state) {
  const FaultRule &rule = entry.rule;
  entry.hits++;
  hits_++;
  if (stops(rule.action, stage)) {
    state.stop = rule.action;
    state.stage = stage;
    state.rule = entry.id;
    state.order = next_order_++;
    if (stage == FaultStage::kCompletion)
      state.delay_ns = rule.delay_ns;
  } else if (rule.action == FaultAction::kDelay) {
    state.delay_ns += rule.delay_ns;
  } else if (rule.action == FaultAction::kFail) {
    state.fails = true;
    state.error = rule.error;
    state.lba = first_bad(entry, facts);
  } else {
    uint64_t first = first_bad(entry, facts);
    uint64_t last = facts.lba + (facts.sectors - 1);
    if (facts.medium && rule.lba_first)
      last = std::min(last, rule.lba_last);
    state.flip_bits = static_cast<uint8_t>(rule.bits);
    state.flip_seed = next_random(&entry.random);
    state.flip_first = static_cast<uint32_t>(first - facts.lba);
    state.flip_sectors = static_cast<uint32_t>(last - first + 1);
  }
}

FaultHit FaultSet::ask(FaultStage stage, AtaCommand &command) {
  auto bit = static_cast<uint8_t>(1u << static_cast<unsigned>(stage));
  if (command.fault.asked & bit)
    return {};
  command.fault.asked |= bit;
  FaultFacts facts = fault_facts(command.h2d);
  for (Entry &entry : rules_) {
    if (entry.rule.stage != stage || !matches(entry, facts) || !fires(entry))
      continue;
    note(entry, stage, facts, command.fault);
    return {entry.rule.action, entry.id, entry.rule.delay_ns};
  }
  return {};
}

void FaultSet::rest(FaultStage stage, AtaCommand &command) {
  command.fault.stop = FaultAction::kHang;
  command.fault.stage = stage;
  command.fault.rule = hung_;
  command.fault.order = next_order_++;
}

// Cuts the written sectors out of the bad ones.
void FaultSet::written(uint64_t lba, uint64_t sectors) {
  if (sectors == 0)
    return;
  uint64_t last = lba + (sectors - 1);
  for (Entry &entry : rules_) {
    if (!entry.rule.heals)
      continue;
    std::vector<Range> left;
    for (const Range &bad : entry.bad) {
      if (bad.last < lba || bad.first > last) {
        left.push_back(bad);
        continue;
      }
      if (bad.first < lba)
        left.push_back({bad.first, lba - 1});
      if (bad.last > last)
        left.push_back({last + 1, bad.last});
    }
    entry.bad = std::move(left);
  }
}

bool FaultSet::add(FaultRule rule, rd_error *error) {
  if (rules_.size() >= kMaxRules) {
    set_error(error, "faults: a member takes at most %zu rules; clear some first", kMaxRules);
    return false;
  }
  for (unsigned i = 1; rule.name.empty(); i++) {
    std::string name = "rule" + std::to_string(i);
    if (find(name).empty()) {
      rule.name = name;
      rule.text = "name=" + name + "," + rule.text;
    }
  }
  if (!find(rule.name).empty()) {
    set_error(error, "faults: name=%s: there is a rule of that name; clear it first",
              rule.name.c_str());
    return false;
  }
  Entry entry;
  entry.id = next_id_++;
  entry.random = rule.seed;
  if (rule.heals)
    entry.bad = {{*rule.lba_first, rule.lba_last}};
  entry.rule = std::move(rule);
  rules_.push_back(std::move(entry));
  return true;
}

std::vector<FaultSet::Known> FaultSet::find(std::string_view name) const {
  std::vector<Known> known;
  for (const Entry &entry : rules_) {
    if (name.empty() || entry.rule.name == name)
      known.push_back({entry.id, &entry.rule});
  }
  return known;
}

void FaultSet::remove(uint32_t id) {
  std::erase_if(rules_, [id](const Entry &entry) { return entry.id == id; });
}

bool FaultSet::knows(uint32_t id) const {
  return std::any_of(rules_.begin(), rules_.end(), [id](const Entry &it) { return it.id == id; });
}

void FaultSet::clear() {
  rules_.clear();
  hung_ = 0;
}

std::string FaultSet::describe(uint32_t id) const {
  auto found = std::find_if(rules_.begin(), rules_.end(),
                            [id](const Entry &entry) { return entry.id == id; });
  if (found == rules_.end())
    return "";
  return found->rule.text + " seen=" + std::to_string(found->seen) +
         " hits=" + std::to_string(found->hits);
}

void FaultState::save(StreamWriter &out) const {
  out.section("FLTC");
  out.put(asked);
  out.put(stop);
  out.put(stage);
  out.put(rule);
  out.put(order);
  out.put(fails);
  out.put(error.error);
  out.put(error.status);
  out.put(lba);
  out.put(flip_bits);
  out.put(flip_seed);
  out.put(flip_first);
  out.put(flip_sectors);
}

void FaultState::load(StreamReader &in) {
  clear();
  in.section("FLTC");
  in.get(asked);
  in.get(stop);
  in.get(stage);
  in.get(rule);
  in.get(order);
  in.get(fails);
  in.get(error.error);
  in.get(error.status);
  in.get(lba);
  in.get(flip_bits);
  in.get(flip_seed);
  in.get(flip_first);
  in.get(flip_sectors);
  if (stop > FaultAction::kLinkDown || stage > FaultStage::kCompletion)
    in.fail();
  if (!in.ok())
    clear();
}

void FaultSet::save(StreamWriter &out) const {
  out.section("FLTS");
  out.put(static_cast<uint16_t>(rules_.size()));
  for (const Entry &entry : rules_) {
    const std::string &text = entry.rule.text;
    out.put(static_cast<uint16_t>(text.size()));
    out.put_bytes({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
    out.put(entry.id);
    out.put(entry.seen);
    out.put(entry.hits);
    out.put(entry.random);
    out.put(static_cast<uint32_t>(entry.bad.size()));
    for (const Range &bad : entry.bad) {
      out.put(bad.first);
      out.put(bad.last);
    }
  }
  out.put(next_id_);
  out.put(next_order_);
  out.put(hung_);
  out.put(hits_);
}

void FaultSet::restore_bad(Entry &entry, StreamReader &in) {
  auto count = in.get<uint32_t>();
  if (count > FaultRule::kMaxHealSectors)
    in.fail();
  entry.bad.clear();
  for (uint32_t i = 0; i < count && in.ok(); i++) {
    Range bad{};
    in.get(bad.first);
    in.get(bad.last);
    if (bad.first > bad.last)
      in.fail();
    entry.bad.push_back(bad);
  }
}

void FaultSet::load(StreamReader &in) {
  rules_.clear();
  in.section("FLTS");
  auto count = in.get<uint16_t>();
  if (count > kMaxRules)
    in.fail();
  for (unsigned i = 0; i < count && in.ok(); i++) {
    std::string text(std::min<size_t>(in.get<uint16_t>(), kMaxRuleText), '\0');
    in.get_bytes({reinterpret_cast<uint8_t *>(text.data()), text.size()});
    std::vector<FaultOrder> orders;
    bool good = in.ok() && parse_fault_orders(text, &orders, nullptr) && orders.size() == 1 &&
                orders[0].kind == FaultOrder::Kind::kAdd && !orders[0].rule.name.empty() &&
                add(std::move(orders[0].rule), nullptr);
    if (!good)
      return in.fail();
    Entry &entry = rules_.back();
    in.get(entry.id);
    in.get(entry.seen);
    in.get(entry.hits);
    in.get(entry.random);
    restore_bad(entry, in);
  }
  in.get(next_id_);
  in.get(next_order_);
  in.get(hung_);
  in.get(hits_);
  if (hung_ != 0 && !knows(hung_))
    in.fail();
  if (!in.ok())
    clear();
}

}  // namespace revodrive
