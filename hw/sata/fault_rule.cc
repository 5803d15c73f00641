// SPDX-License-Identifier: GPL-2.0-or-later
#include "revodrive/fault_rule.h"

#include <algorithm>
#include <charconv>

#include "revodrive/error.h"
#include "revodrive/ata.h"
#include "sata/fault_facts.h"

namespace revodrive {

namespace {

constexpr uint64_t kMaxLba = (uint64_t{1} << 48) - 1;
constexpr uint64_t kMaxDelayUs = 3'600'000'000;  // an hour
constexpr unsigned kMaxBits = 64;
constexpr size_t kMaxName = 31;
constexpr size_t kMaxText = 900;
constexpr std::string_view kBlanks = " \t\r";

struct Pair {
  std::string_view key, value;
};

constexpr std::string_view kStages[] = {"fetch", "decode", "media", "link", "completion"};

struct ActionName {
  std::string_view name;
  FaultAction action;
  FaultStage usual;
  std::string_view stages;  // where it can act
};
constexpr ActionName kActions[] = {
    {"hold", FaultAction::kHold, FaultStage::kDecode, "fetch|decode|media|link|completion"},
    {"delay", FaultAction::kDelay, FaultStage::kMedia, "fetch|decode|media|link|completion"},
    {"drop", FaultAction::kDrop, FaultStage::kDecode, "fetch|decode|media|link|completion"},
    {"fail", FaultAction::kFail, FaultStage::kDecode, "fetch|decode|media|link|completion"},
    {"corrupt", FaultAction::kCorrupt, FaultStage::kMedia, "media|link"},
    {"hang", FaultAction::kHang, FaultStage::kDecode, "decode"},
    {"link-down", FaultAction::kLinkDown, FaultStage::kFetch, "fetch|completion"},
};

struct ErrorName {
  std::string_view name;
  FaultError error;
  FaultStage usual;
};
// ATA8-ACS 6.2 and 6.3. A write fault goes with ABRT, as an ICRC does (6.3.3).
constexpr ErrorName kErrors[] = {
    {"unc", {ata::kUncorrectable, 0}, FaultStage::kMedia},
    {"idnf", {ata::kIdNotFound, 0}, FaultStage::kMedia},
    {"abrt", {ata::kAbort, 0}, FaultStage::kDecode},
    {"icrc", {ata::kInterfaceCrc | ata::kAbort, 0}, FaultStage::kLink},
    {"df", {ata::kAbort, ata::kStatusFault}, FaultStage::kMedia},
    {"busy", {0, ata::kStatusBusy}, FaultStage::kDecode},
};

int length(std::string_view text) {
  return static_cast<int>(std::min<size_t>(text.size(), 100));
}

// Every refusal has this form.
bool refuse(rd_error *error, const Pair &pair, const char *allowed) {
  set_error(error, "faults: %.*s=%.*s: %s", length(pair.key), pair.key.data(), length(pair.value),
            pair.value.data(), allowed);
  return false;
}

bool number(std::string_view text, uint64_t *value) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return status == std::errc() && end == text.data() + text.size();
}

bool number_in(const Pair &pair, uint64_t low, uint64_t high, uint64_t *value, rd_error *error) {
  if (number(pair.value, value) && *value >= low && *value <= high)
    return true;
  char allowed[80];
  std::snprintf(allowed, sizeof(allowed), "must be a number from %llu to %llu",
                static_cast<unsigned long long>(low), static_cast<unsigned long long>(high));
  return refuse(error, pair, allowed);
}

// Takes what stands before the next of `separators` out of *rest.
std::string_view next_word(std::string_view *rest, std::string_view separators) {
  size_t end = rest->find_first_of(separators);
  std::string_view word = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  return word;
}

bool parse_name(const Pair &pair, std::string *name, rd_error *error) {
  auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  if (pair.value.empty() || pair.value.size() > kMaxName ||
      !std::all_of(pair.value.begin(), pair.value.end(), fits))
    return refuse(error, pair, "must be 1 to 31 letters, digits, '_', '-' or '.'");
  *name = pair.value;
  return true;
}

bool parse_op(const Pair &pair, FaultRule *rule, rd_error *error) {
  std::string_view rest = pair.value;
  do {
    std::string_view word = next_word(&rest, "|");
    uint64_t opcode = 0;
    if (word == "now") {
      rule->immediate = true;
    } else if (word == "any") {
      rule->ops.set();
    } else if (word == "log10") {
      rule->log10 = true;
    } else if (number(word, &opcode) && opcode < 256) {
      rule->ops.set(opcode);
    } else if (!add_opcodes(word, &rule->ops)) {
      return refuse(error, pair,
                    "must be opcodes (0x00 to 0xff) or any, read, write, verify, ncq, flush, trim, "
                    "identify, smart, log, log10, power, features, security, now, joined by '|'");
    }
  } while (!rest.empty());
  rule->any_op = rule->ops.all();
  return true;
}

bool parse_lba(const Pair &pair, FaultRule *rule, rd_error *error) {
  std::string_view rest = pair.value;
  std::string_view first = next_word(&rest, "-");
  uint64_t low = 0;
  uint64_t high = 0;
  bool range = first.size() < pair.value.size();
  bool good = number(first, &low) && (!range || number(rest, &high));
  if (!range)
    high = low;
  if (!good || low > high || high > kMaxLba)
    return refuse(error, pair, "must be FIRST or FIRST-LAST, sectors from 0 to 2^48 - 1");
  rule->lba_first = low;
  rule->lba_last = high;
  return true;
}

// A decimal fraction of up to nine digits, so that the same text is the same rule everywhere.
bool parse_probability(const Pair &pair, FaultRule *rule, rd_error *error) {
  constexpr const char *kAllowed = "must be a decimal fraction from 0 to 1 of up to nine digits";
  std::string_view rest = pair.value;
  std::string_view whole = next_word(&rest, ".");
  uint64_t units = 0;
  if (!number(whole, &units) || units > 1 || rest.size() > 9 || whole.starts_with("0x"))
    return refuse(error, pair, kAllowed);
  uint64_t scale = 1;
  uint64_t billionths = 0;
  for (char c : rest) {
    if (c < '0' || c > '9')
      return refuse(error, pair, kAllowed);
    billionths = billionths * 10 + static_cast<unsigned>(c - '0');
    scale *= 10;
  }
  if (units == 1 && billionths > 0)
    return refuse(error, pair, kAllowed);
  rule->chance = units * FaultRule::kAlways + billionths * FaultRule::kAlways / scale;
  return true;
}

template <typename Names>
auto find_name(const Names &names, std::string_view name) {
  return std::find_if(std::begin(names), std::end(names),
                      [&](const auto &entry) { return entry.name == name; });
}

bool parse_stage(const Pair &pair, FaultRule *rule, rd_error *error) {
  auto found = std::find(std::begin(kStages), std::end(kStages), pair.value);
  if (found == std::end(kStages))
    return refuse(error, pair, "must be fetch, decode, media, link or completion");
  rule->stage = static_cast<FaultStage>(found - std::begin(kStages));
  return true;
}

bool parse_direction(const Pair &pair, FaultRule *rule, rd_error *error) {
  if (pair.value == "in")
    rule->direction = FaultDirection::kIn;
  else if (pair.value == "out")
    rule->direction = FaultDirection::kOut;
  else if (pair.value == "none")
    rule->direction = FaultDirection::kNone;
  else
    return refuse(error, pair, "must be in, out or none");
  return true;
}

bool parse_action(const Pair &pair, FaultRule *rule, rd_error *error) {
  auto found = find_name(kActions, pair.value);
  if (found == std::end(kActions))
    return refuse(error, pair, "must be hold, delay, drop, fail, corrupt, hang or link-down");
  rule->action = found->action;
  return true;
}

bool parse_error(const Pair &pair, FaultRule *rule, rd_error *error) {
  auto found = find_name(kErrors, pair.value);
  if (found == std::end(kErrors))
    return refuse(error, pair, "must be unc, idnf, abrt, icrc, df or busy");
  rule->error = found->error;
  return true;
}

bool parse_heal(const Pair &pair, FaultRule *rule, rd_error *error) {
  if (pair.value != "write" && pair.value != "never")
    return refuse(error, pair, "must be write or never");
  rule->heals = pair.value == "write";
  return true;
}

// The keys whose value is a plain number.
bool parse_number(const Pair &pair, FaultRule *rule, bool *known, rd_error *error) {
  struct Key {
    std::string_view name;
    uint64_t low, high;
    void (*set)(FaultRule *, uint64_t);
  };
  static constexpr Key kKeys[] = {
      {"tag", 0, 31, [](FaultRule *r, uint64_t v) { r->tag = static_cast<uint8_t>(v); }},
      {"nth", 1, UINT64_MAX, [](FaultRule *r, uint64_t v) { r->nth = v; }},
      {"every", 1, UINT64_MAX, [](FaultRule *r, uint64_t v) { r->every = v; }},
      {"seed", 0, UINT64_MAX, [](FaultRule *r, uint64_t v) { r->seed = v; }},
      {"count", 1, UINT64_MAX, [](FaultRule *r, uint64_t v) { r->count = v; }},
      {"bits", 1, kMaxBits, [](FaultRule *r, uint64_t v) { r->bits = static_cast<unsigned>(v); }},
      {"delay_us", 0, kMaxDelayUs,
       [](FaultRule *r, uint64_t v) { r->delay_ns = static_cast<int64_t>(v) * 1000; }},
  };
  auto found = find_name(kKeys, pair.key);
  *known = found != std::end(kKeys);
  if (!*known)
    return true;
  uint64_t value = 0;
  if (!number_in(pair, found->low, found->high, &value, error))
    return false;
  found->set(rule, value);
  return true;
}

bool parse_pair(const Pair &pair, FaultRule *rule, rd_error *error) {
  struct Key {
    std::string_view name;
    bool (*parse)(const Pair &, FaultRule *, rd_error *);
  };
  static constexpr Key kKeys[] = {
      {"name", [](const Pair &p, FaultRule *r, rd_error *e) { return parse_name(p, &r->name, e); }},
      {"op", parse_op},
      {"lba", parse_lba},
      {"direction", parse_direction},
      {"probability", parse_probability},
      {"stage", parse_stage},
      {"action", parse_action},
      {"error", parse_error},
      {"heal", parse_heal},
  };
  bool known = false;
  bool good = parse_number(pair, rule, &known, error);
  if (known)
    return good;
  auto found = find_name(kKeys, pair.key);
  if (found == std::end(kKeys))
    return refuse(error, pair,
                  "no such key; there are name, op, lba, tag, direction, nth, every, probability, "
                  "seed, count, stage, action, error, delay_us, bits, heal");
  return found->parse(pair, rule, error);
}

bool split(std::string_view text, std::vector<Pair> *pairs, rd_error *error) {
  while (!text.empty()) {
    std::string_view word = next_word(&text, ", \t\r");
    if (word.empty())
      continue;
    size_t equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      set_error(error, "faults: '%.*s': must be KEY=VALUE pairs, or start with clear or release",
                length(word), word.data());
      return false;
    }
    Pair pair{word.substr(0, equals), word.substr(equals + 1)};
    if (std::any_of(pairs->begin(), pairs->end(), [&](auto &p) { return p.key == pair.key; }))
      return refuse(error, pair, "the key was given before");
    pairs->push_back(pair);
  }
  return true;
}

const Pair *find_pair(const std::vector<Pair> &pairs, std::string_view key) {
  auto found =
      std::find_if(pairs.begin(), pairs.end(), [&](auto &pair) { return pair.key == key; });
  return found == pairs.end() ? nullptr : &*found;
}

// A key that only makes sense with some actions.
bool check_key(const std::vector<Pair> &pairs, std::string_view key, bool wanted, bool needed,
               const char *with, rd_error *error) {
  const Pair *pair = find_pair(pairs, key);
  if (pair && !wanted) {
    char allowed[80];
    std::snprintf(allowed, sizeof(allowed), "allowed with %s only", with);
    return refuse(error, *pair, allowed);
  }
  if (!pair && needed) {
    set_error(error, "faults: %.*s= is missing: %s needs it", length(key), key.data(), with);
    return false;
  }
  return true;
}

void set_usual_stage(const std::vector<Pair> &pairs, FaultRule *rule) {
  if (const Pair *error = find_pair(pairs, "error"))
    rule->stage = find_name(kErrors, error->value)->usual;
  else
    rule->stage = find_name(kActions, find_pair(pairs, "action")->value)->usual;
  if (rule->action == FaultAction::kHang || rule->action == FaultAction::kLinkDown)
    rule->stage = find_name(kActions, find_pair(pairs, "action")->value)->usual;
}

bool check_stage(const std::vector<Pair> &pairs, const FaultRule &rule, rd_error *error) {
  auto action = find_name(kActions, find_pair(pairs, "action")->value);
  std::string_view rest = action->stages;
  while (!rest.empty()) {
    if (next_word(&rest, "|") == fault_stage_name(rule.stage))
      return true;
  }
  set_error(error, "faults: stage=%s: action=%s acts at %s", fault_stage_name(rule.stage).data(),
            action->name.data(), action->stages.data());
  return false;
}

bool check_immediate(const std::vector<Pair> &pairs, const FaultRule &rule, rd_error *error) {
  if (!rule.immediate)
    return true;
  if (rule.action != FaultAction::kHang && rule.action != FaultAction::kLinkDown)
    return refuse(error, *find_pair(pairs, "op"), "allowed with action=hang and link-down only");
  for (const Pair &pair : pairs) {
    if (pair.key != "name" && pair.key != "op" && pair.key != "action" && pair.key != "delay_us")
      return refuse(error, pair, "op=now matches no command, so there is nothing to choose");
  }
  return true;
}

bool check_rule(const std::vector<Pair> &pairs, const FaultRule &rule, rd_error *error) {
  bool fail = rule.action == FaultAction::kFail;
  bool delay = rule.action == FaultAction::kDelay;
  bool timed = delay || rule.action == FaultAction::kLinkDown;
  bool corrupt = rule.action == FaultAction::kCorrupt;
  bool heal = fail && rule.stage == FaultStage::kMedia && rule.lba_first;
  if (!check_key(pairs, "error", fail, fail, "action=fail", error) ||
      !check_key(pairs, "delay_us", timed, delay, delay ? "action=delay" : "delay and link-down",
                 error) ||
      !check_key(pairs, "bits", corrupt, false, "action=corrupt", error) ||
      !check_key(pairs, "heal", heal, false, "action=fail, stage=media and lba=", error))
    return false;
  const Pair *every = find_pair(pairs, "every");
  if (every && rule.nth)
    return refuse(error, *every, "nth= and every= exclude each other");
  if (rule.heals && rule.lba_last - *rule.lba_first >= FaultRule::kMaxHealSectors)
    return refuse(error, *find_pair(pairs, "lba"), "with heal=write at most 65536 sectors");
  return check_stage(pairs, rule, error) && check_immediate(pairs, rule, error);
}

// Sectors go bad for who reads them, and are written anew by who writes them.
void set_usual_ops(const std::vector<Pair> &pairs, FaultRule *rule) {
  const Pair *error = find_pair(pairs, "error");
  bool reads = error && error->value == "unc";
  if (find_pair(pairs, "op"))
    return;
  if (!reads)
    rule->ops.set();
  for (std::string_view name : {"read", "verify"})
    add_opcodes(name, &rule->ops);
}

void set_text(const std::vector<Pair> &pairs, FaultRule *rule) {
  rule->text = rule->name.empty() ? "" : "name=" + rule->name;
  for (const Pair &pair : pairs) {
    if (pair.key == "name")
      continue;
    if (!rule->text.empty())
      rule->text += ',';
    rule->text.append(pair.key).append("=").append(pair.value);
  }
  if (!find_pair(pairs, "stage") && !rule->immediate)
    rule->text.append(",stage=").append(fault_stage_name(rule->stage));
}

bool parse_rule(std::string_view text, FaultRule *rule, rd_error *error) {
  std::vector<Pair> pairs;
  if (text.size() > kMaxText) {
    set_error(error, "faults: '%.*s...': a rule has at most %zu characters", length(text),
              text.data(), kMaxText);
    return false;
  }
  if (!split(text, &pairs, error))
    return false;
  for (const Pair &pair : pairs) {
    if (!parse_pair(pair, rule, error))
      return false;
  }
  if (!find_pair(pairs, "action")) {
    set_error(error,
              "faults: '%.*s': action= is missing; it is hold, delay, drop, fail, corrupt, hang or "
              "link-down",
              length(text), text.data());
    return false;
  }
  if (!find_pair(pairs, "stage"))
    set_usual_stage(pairs, rule);
  set_usual_ops(pairs, rule);
  if (!check_rule(pairs, *rule, error))
    return false;
  set_text(pairs, rule);
  return true;
}

// clear [name=a]; release [name=a] [count=n] [tag=t] [lba=l]
bool parse_choice(std::string_view text, FaultOrder *order, rd_error *error) {
  std::vector<Pair> pairs;
  if (!split(text, &pairs, error))
    return false;
  bool release = order->kind == FaultOrder::Kind::kRelease;
  for (const Pair &pair : pairs) {
    uint64_t tag = 0;
    uint64_t lba = 0;
    bool good = true;
    if (pair.key == "name")
      good = parse_name(pair, &order->name, error);
    else if (release && pair.key == "count")
      good = number_in(pair, 1, UINT64_MAX, &order->count, error);
    else if (release && pair.key == "tag" && (good = number_in(pair, 0, 31, &tag, error)))
      order->tag = static_cast<uint8_t>(tag);
    else if (release && pair.key == "lba" && (good = number_in(pair, 0, kMaxLba, &lba, error)))
      order->lba = lba;
    else if (good)
      return refuse(error, pair,
                    release ? "release takes name, count, tag and lba" : "clear takes name only");
    if (!good)
      return false;
  }
  return true;
}

bool parse_order(std::string_view text, FaultOrder *order, rd_error *error) {
  std::string_view rest = text;
  std::string_view word = next_word(&rest, ", \t\r");
  if (word != "clear" && word != "release")
    return parse_rule(text, &order->rule, error);
  order->kind = word == "clear" ? FaultOrder::Kind::kClear : FaultOrder::Kind::kRelease;
  return parse_choice(rest, order, error);
}

}  // namespace

std::string_view fault_stage_name(FaultStage stage) {
  return kStages[static_cast<size_t>(stage)];
}

bool parse_fault_orders(std::string_view text, std::vector<FaultOrder> *orders, rd_error *error) {
  while (!text.empty()) {
    std::string_view part = next_word(&text, ";\n");
    size_t first = part.find_first_not_of(kBlanks);
    if (first == std::string_view::npos)
      continue;
    FaultOrder order;
    if (!parse_order(part.substr(first), &order, error))
      return false;
    orders->push_back(std::move(order));
  }
  return true;
}

}  // namespace revodrive
