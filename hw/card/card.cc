// SPDX-License-Identifier: GPL-2.0-or-later
#include "card/card.h"

#include <algorithm>
#include <cerrno>

#include "revodrive/error.h"

namespace revodrive {

namespace {

constexpr uint32_t kStreamVersion = 6;
constexpr int64_t kStoreIntervalNs = 60'000'000'000;
constexpr uint32_t kDefaultChunkBytes = 64 << 10;
constexpr unsigned kWidePhys = 4;
constexpr const char *kModes[] = {"mode=jbod", "mode=vca,policy=stripe",
                                  "mode=vca,policy=dispatch"};

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

Card::Card(const Profile &profile, const rd_card_config &config, const PersistentStore &stored,
           const rd_host_ops &ops, void *host)
    : profile_(profile),
      timing_(config.timing),
      ports_(config.ports),
      host_(ops, host),
      link_(profile.pcie, config.timing),
      bridge_({host_, queue_, link_, latency_, profile.bridge, profile.sata, config.timing}),
      store_(stored) {
  link_.watch(host_.observer());
  if (!config.vca)
    return;
  uint32_t chunk_bytes = config.chunk_bytes ? config.chunk_bytes : kDefaultChunkBytes;
  VolumeParts parts{host_, queue_, profile.volume, config.timing, config.policy};
  volume_ = std::make_unique<Volume>(parts, ports_, chunk_bytes);
  scsi_ = make_scsi_target(*volume_, profile.identity);
  unsigned phys = config.vca_phys ? config.vca_phys : 1;
  for (unsigned phy = 0; phy < phys; phy++)
    bridge_.plug(phy, *scsi_);
}

bool Card::check(const rd_card_config &config, rd_error *error) {
  uint32_t chunk = config.chunk_bytes;
  if (config.vca && config.vca_phys > 1 && config.vca_phys != kWidePhys) {
    set_error(error, "vca-phys=%u: must be 1, or %u for a wide port", config.vca_phys, kWidePhys);
    return false;
  }
  if (!config.vca || chunk == 0)
    return true;
  bool power_of_two = (chunk & (chunk - 1)) == 0;
  if (power_of_two && chunk >= Volume::kMinChunkBytes && chunk <= Volume::kMaxChunkBytes)
    return true;
  set_error(error, "chunk=%u: must be a power of two from %u (4 KiB) to %u (16 MiB)", chunk,
            Volume::kMinChunkBytes, Volume::kMaxChunkBytes);
  return false;
}

Card::~Card() {
  depth_++;  // nothing settles any more
  for (unsigned port = 0; port < RD_MAX_PORTS; port++)
    bridge_.unplug(port);
  if (volume_)
    scsi_->cut_short();
  for (unsigned port = 0; volume_ && port < ports_; port++)
    volume_->unplug(port);
  store_now();
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
  if (!member || !revive(*member, error))
    return -EINVAL;
  if (volume_ && !volume_->check(member->sectors(), error))
    return -EINVAL;
  Entry entry(*this);
  members_[port] = std::move(member);
  if (volume_)
    volume_->plug(port, members_[port]->drive());
  else
    bridge_.plug(port, members_[port]->drive());
  store_now();
  return 0;
}

// A drive that was here before, in this life of the card or an earlier one, is that drive again.
bool Card::revive(Member &member, rd_error *error) {
  for (unsigned port = 0; port < ports_; port++) {
    if (!members_[port] || members_[port]->serial() != member.serial())
      continue;
    set_error(error, "serial '%s': the SSD on port %u has it already; serials must differ",
              member.serial().c_str(), port);
    return false;
  }
  AtaDrive &drive = member.drive();
  drive.power_on(host_.now_ns());
  drive.connect_store(this);
  const std::vector<uint8_t> *bytes = store_.find(member.serial());
  if (!bytes)
    return true;
  StreamReader in(*bytes);
  drive.load_persistent(in);
  if (in.ok())
    return true;
  set_error(error, "serial '%s': what was stored of this SSD cannot be read (%zu bytes)",
            member.serial().c_str(), bytes->size());
  return false;
}

void Card::keep(Member &member, int64_t now_ns) {
  StreamWriter out;
  member.drive().save_persistent(out, now_ns);
  store_.put(member.serial(), out.bytes());
}

void Card::changed(int64_t now_ns) {
  if (now_ns - stored_ns_ >= kStoreIntervalNs)
    store(nullptr, now_ns);
}

void Card::store(MediaTransfer *waiter, int64_t now_ns) {
  stored_ns_ = now_ns;
  if (!host_.keeps()) {
    if (waiter)
      waiter->media_done(0);
    return;
  }
  for (auto &member : members_) {
    if (member)
      keep(*member, now_ns);
  }
  host_.persist(store_.encode(), MemberMedia::token(waiter));
}

// The machine stands still: the store may hold what a write would have to take back.
void Card::store_at_rest() {
  for (auto &member : members_) {
    if (member)
      member->drive().rest();
  }
  store_now();
}

void Card::detach(unsigned port) {
  if (port >= ports_ || !members_[port])
    return;
  Entry entry(*this);
  if (volume_)
    volume_->unplug(port);
  else
    bridge_.unplug(port);
  store_now();
  members_[port].reset();
}

uint32_t Card::mmio_read(uint32_t offset) {
  if (host_.in_dma() || offset >= regs::kBarBytes || offset % 4 != 0)
    return UINT32_MAX;
  register_reads_++;
  return bridge_.read(offset);
}

void Card::mmio_write(uint32_t offset, uint32_t value) {
  if (host_.in_dma()) {
    host_.log(RD_LOG_GUEST_ERROR, "DMA into the card's own register 0x%05x ignored", offset);
    return;
  }
  if (offset >= regs::kBarBytes || offset % 4 != 0)
    return;
  register_writes_++;
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
  if (volume_) {
    scsi_->cut_short();
    volume_->drop_all(kind == RD_RESET_POWER);
  }
  link_.clear();
  for (auto &member : members_) {
    if (member)
      member->drive().reset(kind == RD_RESET_POWER ? LinkReset::kPowerOn : LinkReset::kComreset);
  }
  if (!volume_)
    return;
  scsi_->reset(kind == RD_RESET_POWER ? ScsiReset::kPowerOn : ScsiReset::kHardReset);
  volume_->inspect();
}

int Card::set(unsigned port, std::string_view name, uint64_t value, rd_error *error) {
  if (port == RD_CARD)
    return set_own(name, error);
  if (port >= ports_ || !members_[port]) {
    set_error(error, "port %u: no SSD is there", port);
    return -ENODEV;
  }
  return members_[port]->drive().set(name, value, error) ? 0 : -EINVAL;
}

// Values of the card itself.
int Card::set_own(std::string_view name, rd_error *error) {
  if (name == "reset_latency") {
    latency_.clear();
    return 0;
  }
  set_error(error, "'%.*s': the card has no value of that name to set; there is reset_latency",
            static_cast<int>(name.size()), name.data());
  return -EINVAL;
}

uint8_t Card::mode() const {
  return volume_ ? static_cast<uint8_t>(1 + volume_->policy()) : 0;
}

std::vector<uint8_t> Card::save() const {
  StreamWriter out;
  out.section("RDRV");
  out.put(kStreamVersion);
  out.put(static_cast<uint8_t>(ports_));
  out.put(timing_);
  out.put(mode());
  out.put(static_cast<uint16_t>(profile_.name.size()));
  out.put_bytes({reinterpret_cast<const uint8_t *>(profile_.name.data()), profile_.name.size()});
  out.put(queue_.next_order());
  link_.save(out);
  latency_.save(out);
  for (const auto &member : members_) {
    out.put(member ? member->sectors() : uint64_t{0});
    if (member)
      member->drive().save(out);
  }
  if (volume_) {
    volume_->save(out);
    scsi_->save(out);
  }
  bridge_.save(out);
  std::vector<uint8_t> stored = store_.encode();
  out.put(static_cast<uint32_t>(stored.size()));
  out.put_bytes(stored);
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
  auto mode = in.get<uint8_t>();
  std::string name(in.get<uint16_t>(), '\0');
  in.get_bytes({reinterpret_cast<uint8_t *>(name.data()), name.size()});
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  if (in.ok() && mode < std::size(kModes) && mode != this->mode()) {
    set_error(error, "saved state is of a card with %s, this one has %s", kModes[mode],
              kModes[this->mode()]);
    return -EINVAL;
  }
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
  uint64_t chunk = volume_ ? volume_->take_alien_chunk_sectors() : 0;
  if (chunk != 0)
    set_error(error, "saved state is of a card with chunk=%llu, this one has chunk=%llu",
              static_cast<unsigned long long>(chunk * RD_SECTOR_BYTES),
              static_cast<unsigned long long>(volume_->chunk_sectors()) * RD_SECTOR_BYTES);
  else
    set_error(error, "saved state is damaged or of other members (%zu bytes); the card was reset",
              bytes.size());
  drop_faults();
  reset(RD_RESET_BUS);
  if (volume_)
    volume_->drop_all(true);  // what it knew may have come from the stream
  return -EINVAL;
}

void Card::load_body(StreamReader &in) {
  auto next_order = in.get<uint64_t>();
  link_.load(in);
  latency_.load(in);
  for (auto &member : members_) {
    if (in.get<uint64_t>() != (member ? member->sectors() : 0))
      in.fail();
    if (member && in.ok())
      member->drive().load(in);
  }
  if (volume_ && in.ok()) {
    volume_->load(in);
    scsi_->load(in);
  }
  if (!in.ok())
    return;
  bridge_.load(in);
  if (!faults_are_sane())
    in.fail();
  queue_.set_next_order(next_order);
  // Of drives that are not plugged in here nothing else tells.
  std::vector<uint8_t> stored(std::min<size_t>(in.get<uint32_t>(), in.left()));
  in.get_bytes(stored);
  PersistentStore loaded;
  rd_error unused;
  if (loaded.decode(stored, &unused))
    store_ = std::move(loaded);
  else
    in.fail();
}

void Card::resume() {
  Entry entry(*this);
  if (volume_)
    scsi_->resume();
  bridge_.resume();
}

void Card::query(const Visitor &visit) {
  bridge_.query([&](std::string_view name, uint64_t value) { visit(std::string(name), value); });
  visit("register_reads", register_reads_);
  visit("register_writes", register_writes_);
  visit("dma_errors", host_.dma_errors());
  visit("pcie_up_busy_ns", static_cast<uint64_t>(link_.busy_up_ns()));
  visit("pcie_down_busy_ns", static_cast<uint64_t>(link_.busy_down_ns()));
  latency_.query(visit);
  if (volume_)
    volume_->query([&](std::string_view name, uint64_t value) { visit(std::string(name), value); });
  for (unsigned port = 0; port < ports_; port++) {
    if (!members_[port])
      continue;
    std::string prefix = "port" + std::to_string(port) + ".";
    members_[port]->drive().idle(host_.now_ns());
    members_[port]->drive().query(
        [&](std::string_view name, uint64_t value) { visit(prefix + std::string(name), value); });
  }
}

}  // namespace revodrive
