// SPDX-License-Identifier: GPL-2.0-or-later
#include "play.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "../driver.h"
#include "../scripted_host.h"

namespace revodrive::test {

namespace {

constexpr unsigned kSteps = 300;
constexpr unsigned kDeadlines = 32;  // the most that one step lets pass
constexpr uint64_t kMemberBytes = 1 << 20;
constexpr uint64_t kDispatchBytes = 16 << 20;

// Zeroes follow the end.
class Bytes {
 public:
  explicit Bytes(std::span<const uint8_t> bytes) : left_(bytes) {}

  bool empty() const { return left_.empty(); }
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    for (uint8_t byte : take(bytes))
      value = value << 8 | byte;
    return value;
  }
  uint8_t byte() { return static_cast<uint8_t>(number(1)); }
  std::span<const uint8_t> take(size_t most) {
    std::span<const uint8_t> taken = left_.first(std::min(most, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const uint8_t> left_;
};

class Player {
 public:
  explicit Player(std::span<const uint8_t> bytes) : in_(bytes) {
    uint8_t shape = in_.byte();
    vca_ = shape & 1;
    dispatch_ = vca_ && (shape & 2);
    host_.defer = shape & 8;
    host_.wait_answers = true;
    host_.build(kMembers, (shape & 4) == 0, vca_,
                dispatch_ ? RD_POLICY_DISPATCH : RD_POLICY_STRIPE);
    for (unsigned port = 0; port < kMembers; port++)
      host_.attach(port, dispatch_ ? kDispatchBytes : kMemberBytes);
    driver_.probe();
  }

  void run() {
    for (unsigned step = 0; step < kSteps && !in_.empty(); step++)
      (this->*kKinds[in_.byte() % kKinds.size()])();
    host_.destroy();
    demand(host_.mapped == 0, "guest memory is still mapped after the end");
  }

 private:
  using Step = void (Player::*)();
  static constexpr unsigned kMembers = 4;

  uint32_t any_register() {
    uint8_t where = in_.byte();
    if (where == 0)
      return static_cast<uint32_t>(in_.number(3)) % regs::kBarBytes & ~3u;
    uint32_t core = regs::kCore0 + (where & 1) * regs::kCoreStride;
    return core + regs::kCtl + (where >> 1) * 4;
  }
  // Mostly the driver's area, sometimes anywhere.
  uint64_t any_address() {
    uint8_t where = in_.byte();
    if (where == 0)
      return in_.number(8);
    if (where & 1)
      return driver_.data_addr(in_.number(2) * 4);
    return driver_.command_list() + in_.number(3) % (4 << 20);
  }
  std::vector<Segment> scatter_list() {
    std::vector<Segment> list;
    for (unsigned i = in_.byte() % 5; i > 0; i--) {
      uint64_t addr = any_address();
      list.push_back({addr, static_cast<uint32_t>(in_.number(3))});
    }
    return list;
  }

  void write_register() {
    uint32_t offset = any_register();
    host_.writel(offset, static_cast<uint32_t>(in_.number(4)));
  }
  void read_register() { host_.readl(any_register()); }
  void write_command_space() {
    auto addr = static_cast<uint32_t>(in_.number(2));
    driver_.write_cmd_space(addr, static_cast<uint32_t>(in_.number(4)));
  }
  void write_memory() {
    uint64_t addr = driver_.command_list() + in_.number(3) % (8 << 20);
    std::span<const uint8_t> data = in_.take(1 + in_.byte() % 64);
    if (!data.empty())
      std::memcpy(host_.memory(addr, data.size()), data.data(), data.size());
  }

  void ata_command() {
    Request request;
    request.phy = in_.byte() % kMembers;
    request.register_set = in_.byte() % 20;
    std::array<uint8_t, 20> &fis = request.fis;
    fis = lba48_fis(in_.byte(), in_.number(2), static_cast<uint16_t>(in_.number(1)));
    uint8_t more = in_.byte();
    if (more & 1) {
      std::span<const uint8_t> raw = in_.take(fis.size() - 3);
      std::copy(raw.begin(), raw.end(), fis.begin() + 3);
    }
    if (more & 2)
      fis[3] = in_.byte();  // features
    request.tag = in_.byte() % 33;
    if (fis[2] == 0x60 || fis[2] == 0x61) {
      std::swap(fis[3], fis[12]);
      fis[12] = static_cast<uint8_t>(request.tag << 3);
    }
    request.segments = scatter_list();
    request.data_bytes = static_cast<uint32_t>(in_.number(3));
    request.prd_count = static_cast<uint16_t>(request.segments.size());
    if (more & 4)
      request.prd_count = static_cast<uint16_t>(in_.number(2));
    driver_.issue(in_.byte() % 64, request);
  }
  void scsi_command() {
    uint8_t unit = in_.byte() % 5;
    std::span<const uint8_t> cdb = in_.take(16);
    SspRequest request = ssp_command(cdb, 0, 0, unit);
    request.segments = scatter_list();
    request.data_bytes = static_cast<uint32_t>(in_.number(3));
    driver_.issue(in_.byte() % 64, request);
  }
  void scsi_task() {
    uint8_t function = in_.byte();
    uint16_t tag = in_.byte() % 64;
    driver_.issue(in_.byte() % 64, ssp_task(function, tag, in_.byte() % 5));
  }

  void let_time_pass() {
    for (unsigned i = in_.byte() % kDeadlines; i > 0; i--) {
      if (host_.deadline_ns() == RD_NEVER)
        return;
      host_.advance(std::max<int64_t>(host_.deadline_ns() - host_.now_ns(), 0));
    }
  }
  void acknowledge() {
    for (unsigned phy = 0; phy < regs::kPhysPerCore; phy++) {
      uint32_t offset = regs::kPortIrq + 8 * phy;
      driver_.set_reg(offset, driver_.reg(offset));
    }
    driver_.set_reg(regs::kIntStat, driver_.reg(regs::kIntStat));
  }
  void answer_backend() {
    int error = in_.byte() % 4 == 3 ? -EIO : 0;
    host_.verdict = [error](const Transfer &) { return error; };
    for (unsigned i = in_.byte() % 8; i > 0 && !host_.pending.empty(); i--)
      host_.answer();
  }
  void change_memory() {
    uint8_t bits = in_.byte();
    host_.bus_master = bits & 1;
    host_.mappable = bits & 2;
  }

  void reset() { rd_card_reset(host_.card(), in_.byte() & 1 ? RD_RESET_POWER : RD_RESET_BUS); }
  void unplug() { rd_card_detach(host_.card(), in_.byte() % kMembers); }
  void plug() {
    unsigned port = in_.byte() % kMembers;
    std::string serial = "OCZ-TEST" + std::to_string(port);
    rd_member_config config = {};
    config.bytes = host_.disks[port].size();
    config.serial = serial.c_str();
    rd_error error = {};
    rd_card_attach(host_.card(), port, &config, &error);
  }
  void fault() {
    unsigned port = in_.byte() % kMembers;
    std::span<const uint8_t> text = in_.take(in_.byte() % 80);
    rd_error error = {};
    std::string words(text.begin(), text.end());
    demand(rd_card_fault(host_.card(), port, words.c_str(), &error) == 0 || error.text[0] != 0,
           "a fault rule was refused without a word");
  }
  void query() {
    rd_card_query(
        host_.card(), [](void *, const char *, uint64_t) {}, nullptr);
  }

  // The state, and the same with some bytes changed. What is saved must load.
  void save_and_load() {
    while (!host_.pending.empty())
      host_.answer();
    std::vector<uint8_t> state = host_.save();
    rd_error error = {};
    for (unsigned i = in_.byte() % 4; i > 0; i--) {
      std::vector<uint8_t> damaged = state;
      damaged[in_.number(3) % damaged.size()] ^= in_.byte();
      if (rd_card_load(host_.card(), damaged.data(), damaged.size(), &error) == 0)
        rd_card_resume(host_.card());
      while (!host_.pending.empty())
        host_.answer();
    }
    demand(rd_card_load(host_.card(), state.data(), state.size(), &error) == 0, error.text);
    rd_card_resume(host_.card());
  }

  static constexpr std::array<Step, 18> kKinds = {
      &Player::ata_command,    &Player::scsi_command,  &Player::let_time_pass,
      &Player::write_register, &Player::read_register, &Player::write_memory,
      &Player::acknowledge,    &Player::scsi_task,     &Player::write_command_space,
      &Player::answer_backend, &Player::change_memory, &Player::reset,
      &Player::unplug,         &Player::plug,          &Player::fault,
      &Player::query,          &Player::save_and_load, &Player::let_time_pass};

  Bytes in_;
  bool vca_ = false;
  bool dispatch_ = false;
  ScriptedHost host_;
  Driver driver_{host_};
};

}  // namespace

void play(std::span<const uint8_t> bytes) {
  Player(bytes).run();
}

}  // namespace revodrive::test
