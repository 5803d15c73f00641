// SPDX-License-Identifier: GPL-2.0-or-later
#include "card/card.h"

#include <cerrno>

#include "revodrive/error.h"

namespace revodrive {

namespace {

constexpr uint32_t kStreamVersion = 1;

}  // namespace

class Card::Entry {
 public:
  explicit Entry(Card &card) : card_(card) { card_.depth_++; }
  ~Entry() {
    if (--card_.depth_ == 0)
      card_.settle();
  }

 private:
  Card &card_;
};

Card::Card(const Profile &profile, const rd_card_config &config, const rd_host_ops &ops, void *host)
    : profile_(profile),
      timing_(config.timing),
      ports_(config.ports),
      host_(ops, host),
      link_(profile.pcie, config.timing),
      bridge_({host_, queue_, link_, profile.bridge, profile.sata, config.timing}) {
}

Card::~Card() {
  depth_++;  // nothing settles any more
  for (unsigned port = 0; port < ports_; port++)
    bridge_.unplug(port);
  host_.arm_timer(RD_NEVER);
}

void Card::settle() {
  if (depth_ > 0)
    return;
  depth_++;
  queue_.run(host_.now_ns());
  depth_--;
  if (queue_.next_ns() == armed_ns_)
    return;
  armed_ns_ = queue_.next_ns();
  host_.arm_timer(armed_ns_);
}

int Card::attach(unsigned port, const rd_member_config &config, rd_error *error) {
  if (port >= ports_) {
    set_error(error, "port %u: this card has ports 0 to %u", port, ports_ - 1);
    return -EINVAL;
  }
  if (members_[port]) {
    set_error(error, "port %u: already in use", port);
    return -EBUSY;
  }
  auto member = Member::create(host_, port, profile_, config, timing_, error);
  if (!member)
    return -EINVAL;
  Entry entry(*this);
  members_[port] = std::move(member);
  bridge_.plug(port, members_[port]->drive());
  return 0;
}

void Card::detach(unsigned port) {
  if (port >= ports_ || !members_[port])
    return;
  Entry entry(*this);
  bridge_.unplug(port);
  members_[port].reset();
}

uint32_t Card::mmio_read(uint32_t offset) {
  if (host_.in_dma() || offset >= regs::kBarBytes || offset % 4 != 0)
    return UINT32_MAX;
  return bridge_.read(offset);
}

void Card::mmio_write(uint32_t offset, uint32_t value) {
  if (host_.in_dma()) {
    host_.log(RD_LOG_GUEST_ERROR, "DMA into the card's own register 0x%05x ignored", offset);
    return;
  }
  if (offset >= regs::kBarBytes || offset % 4 != 0)
    return;
  Entry entry(*this);
  bridge_.write(offset, value);
}

void Card::block_done(uint64_t token, int error) {
  Entry entry(*this);
  MemberMedia::done(token, error);
}

void Card::reset(rd_reset kind) {
  Entry entry(*this);
  bridge_.reset();
  link_.clear();
  for (auto &member : members_) {
    if (member)
      member->drive().reset(kind == RD_RESET_POWER ? LinkReset::kPowerOn : LinkReset::kComreset);
  }
}

std::vector<uint8_t> Card::save() const {
  StreamWriter out;
  out.section("RDRV");
  out.put(kStreamVersion);
  out.put(static_cast<uint8_t>(ports_));
  out.put(timing_);
  out.put(static_cast<uint16_t>(profile_.name.size()));
  out.put_bytes({reinterpret_cast<const uint8_t *>(profile_.name.data()), profile_.name.size()});
  out.put(queue_.next_order());
  link_.save(out);
  for (const auto &member : members_) {
    out.put(member ? member->sectors() : uint64_t{0});
    if (member)
      member->drive().save(out);
  }
  bridge_.save(out);
  return out.bytes();
}

int Card::load(std::span<const uint8_t> bytes, rd_error *error) {
  reset(RD_RESET_BUS);
  Entry entry(*this);
  StreamReader in(bytes);
  in.section("RDRV");
  auto version = in.get<uint32_t>();
  if (in.ok() && version != kStreamVersion) {
    set_error(error, "saved state has version %u, this card reads version %u", version,
              kStreamVersion);
    return -EINVAL;
  }
  auto ports = in.get<uint8_t>();
  auto timing = in.get<bool>();
  std::string name(in.get<uint16_t>(), '\0');
  in.get_bytes({reinterpret_cast<uint8_t *>(name.data()), name.size()});
  if (in.ok() && (ports != ports_ || timing != timing_ || name != profile_.name)) {
    set_error(error,
              "saved state is of a card with ports=%u timing=%s profile=%.64s, this one has "
              "ports=%u timing=%s profile=%s",
              ports, timing ? "on" : "off", name.c_str(), ports_, timing_ ? "on" : "off",
              profile_.name.c_str());
    return -EINVAL;
  }
  load_body(in);
  if (in.ok() && in.at_end())
    return 0;
  set_error(error, "saved state is damaged or of other members (%zu bytes); the card was reset",
            bytes.size());
  reset(RD_RESET_BUS);
  return -EINVAL;
}

void Card::load_body(StreamReader &in) {
  auto next_order = in.get<uint64_t>();
  link_.load(in);
  for (auto &member : members_) {
    if (in.get<uint64_t>() != (member ? member->sectors() : 0))
      in.fail();
    if (member && in.ok())
      member->drive().load(in);
  }
  if (!in.ok())
    return;
  bridge_.load(in);
  queue_.set_next_order(next_order);
}

void Card::resume() {
  Entry entry(*this);
  bridge_.resume();
}

void Card::query(const Visitor &visit) const {
  bridge_.query([&](std::string_view name, uint64_t value) { visit(std::string(name), value); });
  visit("dma_errors", host_.dma_errors());
  visit("pcie_up_busy_ns", static_cast<uint64_t>(link_.busy_up_ns()));
  visit("pcie_down_busy_ns", static_cast<uint64_t>(link_.busy_down_ns()));
  for (unsigned port = 0; port < ports_; port++) {
    if (!members_[port])
      continue;
    std::string prefix = "port" + std::to_string(port) + ".";
    members_[port]->drive().query(
        [&](std::string_view name, uint64_t value) { visit(prefix + std::string(name), value); });
  }
}

}  // namespace revodrive
