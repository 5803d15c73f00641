// SPDX-License-Identifier: GPL-2.0-or-later
//
// Orders of fault injection, carried out on the member and the bridge.
#include <cerrno>

#include "card/card.h"
#include "revodrive/error.h"

namespace revodrive {

void Card::release(unsigned port, const FaultChoice &choice) {
  if (volume_)
    volume_->port(port).release(choice);
  else
    bridge_.release(port, choice);
}

void Card::lose_link(unsigned port, uint32_t rule, int64_t for_ns) {
  if (volume_)
    volume_->port(port).lose_link(rule, for_ns);
  else
    bridge_.lose_link(port, rule, for_ns);
}

unsigned Card::resting(unsigned port, uint32_t rule) {
  return volume_ ? volume_->port(port).resting(rule) : bridge_.resting(port, rule);
}

uint32_t Card::link_lost_by(unsigned port) {
  return volume_ ? volume_->port(port).lost_by() : bridge_.link_lost_by(port);
}

int Card::fault(unsigned port, const char *text, rd_error *error) {
  if (port >= ports_ || !members_[port]) {
    set_error(error, "faults: port %u has no member", port);
    return -ENODEV;
  }
  std::vector<FaultOrder> orders;
  if (!parse_fault_orders(text, &orders, error))
    return -EINVAL;
  depth_++;
  bool good = true;
  for (FaultOrder &order : orders) {
    good = order.kind == FaultOrder::Kind::kAdd ? add_fault(port, std::move(order.rule), error)
                                                : end_faults(port, order, error);
    if (!good)
      break;
  }
  if (--depth_ == 0)
    settle();
  return good ? 0 : -EINVAL;
}

bool Card::add_fault(unsigned port, FaultRule rule, rd_error *error) {
  FaultSet &faults = members_[port]->drive().fault_set();
  bool immediate = rule.immediate;
  FaultAction action = rule.action;
  int64_t delay_ns = rule.delay_ns;
  if (!faults.add(std::move(rule), error))
    return false;
  if (!immediate)
    return true;
  uint32_t id = faults.find("").back().id;
  if (action == FaultAction::kHang)
    faults.set_hung(id);
  else
    lose_link(port, id, delay_ns == 0 ? RD_NEVER : delay_ns);
  return true;
}

// Clears or releases: in both cases what the rules keep goes on.
bool Card::end_faults(unsigned port, const FaultOrder &order, rd_error *error) {
  FaultSet &faults = members_[port]->drive().fault_set();
  std::vector<FaultSet::Known> rules = faults.find(order.name);
  if (rules.empty() && !order.name.empty()) {
    set_error(error, "faults: name=%s: there is no rule of that name", order.name.c_str());
    return false;
  }
  for (const FaultSet::Known &known : rules) {
    uint32_t id = known.id;
    if (faults.hung() == id)
      faults.set_hung(0);
    if (order.kind == FaultOrder::Kind::kClear)
      faults.remove(id);
    FaultChoice choice{.rule = id, .count = order.count, .tag = order.tag, .lba = order.lba};
    release(port, choice);
  }
  return true;
}

// Of a loaded state: a link that is down for a rule that nobody has would stay down for ever.
bool Card::faults_are_sane() {
  for (unsigned port = 0; port < ports_; port++) {
    uint32_t rule = link_lost_by(port);
    if (rule != 0 && (!members_[port] || !members_[port]->drive().fault_set().knows(rule)))
      return false;
  }
  return true;
}

// After a load that failed: no rule, and no link that is down because of one.
void Card::drop_faults() {
  for (unsigned port = 0; port < ports_; port++) {
    release(port, {.rule = link_lost_by(port), .count = 0, .tag = {}, .lba = {}});
    if (members_[port])
      members_[port]->drive().fault_set().clear();
  }
}

void Card::list_faults(unsigned port, const FaultVisitor &visit) {
  if (port >= ports_ || !members_[port])
    return;
  const FaultSet &faults = members_[port]->drive().fault_set();
  for (const FaultSet::Known &known : faults.find("")) {
    unsigned held = resting(port, known.id);
    visit(faults.describe(known.id) + " resting=" + std::to_string(held));
  }
}

}  // namespace revodrive
