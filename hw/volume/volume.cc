// SPDX-License-Identifier: GPL-2.0-or-later
#include "volume/volume.h"

#include <algorithm>
#include <string>

namespace revodrive {

namespace {

// A drive with fewer sectors does not decide how large the volume is: its firmware has crashed.
constexpr uint64_t kMinMemberSectors = 2048;
constexpr size_t kSerialAt = 20, kSerialBytes = 20;  // IDENTIFY words 10 to 19
constexpr size_t kSectorsAt = 200;                   // words 100 to 103

uint64_t hash(std::span<const uint8_t> bytes, uint64_t value = 0xcbf29ce484222325) {
  for (uint8_t byte : bytes)
    value = (value ^ byte) * 0x100000001b3;
  return value;
}

uint64_t name_of(const MemberPort::Identity &identity) {
  return hash(std::span(identity).subspan(kSerialAt, kSerialBytes));
}

uint64_t sectors_of(const MemberPort::Identity &identity) {
  uint64_t sectors = 0;
  for (size_t i = 0; i < 8; i++)
    sectors |= uint64_t{identity[kSectorsAt + i]} << (8 * i);
  return sectors;
}

}  // namespace

Volume::Volume(const VolumeParts &parts, unsigned members, uint32_t chunk_bytes)
    : parts_(parts), members_(members), chunk_sectors_(chunk_bytes / RD_SECTOR_BYTES) {
  stripe_ = Stripe(members_, chunk_sectors_, 0);
  firmware_.watch(parts_.host.observer(), "volume");
  for (unsigned i = 0; i < members_; i++)
    ports_[i] = std::make_unique<MemberPort>(*this, i, parts_.host, parts_.queue, parts_.timing);
}

void Volume::plug(unsigned member, AtaTarget &target) {
  ports_[member]->plug(target);
  if (!formed_)
    form();
}

void Volume::form() {
  uint64_t smallest = UINT64_MAX;
  for (unsigned i = 0; i < members_; i++) {
    const MemberPort::Identity *identity = ports_[i]->identity();
    if (!identity)
      return;
    uint64_t sectors = sectors_of(*identity);
    if (sectors >= kMinMemberSectors)
      smallest = std::min(smallest, sectors);
    names_[i] = name_of(*identity);
  }
  if (smallest == UINT64_MAX || smallest < chunk_sectors_)
    return;
  stripe_ = Stripe(members_, chunk_sectors_, smallest);
  formed_ = true;
  inspect();
}

bool Volume::is_ours(unsigned member, const MemberPort::Identity &identity) {
  return !formed_ || names_[member] == name_of(identity);
}

uint64_t Volume::fingerprint() const {
  uint64_t value = hash({});
  for (unsigned i = 0; i < members_; i++) {
    for (unsigned byte = 0; byte < 8; byte++) {
      auto one = static_cast<uint8_t>(names_[i] >> (8 * byte));
      value = hash({&one, 1}, value);
    }
  }
  return value;
}

void Volume::inspect() {
  for (unsigned i = 0; i < members_; i++)
    ports_[i]->inspect();
}

void Volume::drop_all() {
  for (unsigned i = 0; i < members_; i++)
    ports_[i]->drop_all();
  firmware_.clear();
}

int64_t Volume::accept(int64_t at_ns) {
  return parts_.timing
             ? firmware_.reserve(at_ns, static_cast<int64_t>(parts_.profile.command_ns), "request")
                   .end_ns
             : at_ns;
}

int64_t Volume::schedule(int64_t at_ns) {
  return parts_.timing
             ? firmware_.reserve(at_ns, static_cast<int64_t>(parts_.profile.part_ns), "part").end_ns
             : at_ns;
}

// Which part of the request is each member's.
void Volume::share_out(VolumeRequest &request) {
  request.next = request.end = {};
  for (unsigned i = 0; i < members_; i++) {
    switch (request.op) {
      case VolumeOp::kEach:
        request.end[i] = 1;
        break;
      case VolumeOp::kMember:
        request.end[i] = i == request.member ? 1 : 0;
        break;
      default:
        request.next[i] = stripe_.below(i, request.lba);
        request.end[i] = stripe_.below(i, request.lba + request.sectors);
    }
  }
}

bool Volume::submit(VolumeRequest &request) {
  requests_++;
  request.failure = VolumeFailure::kNone;
  request.failed_lba = 0;
  request.queued = 0;
  request.running = 0;
  bool addressed = request.op != VolumeOp::kEach && request.op != VolumeOp::kMember;
  if (!addressed) {
    request.sectors = 0;
    request.answers = {};
  }
  uint32_t each = request.data_bytes * (request.data_apart ? members_ : 1);
  bool moves = request.op == VolumeOp::kRead || request.op == VolumeOp::kWrite;
  request.map.open(request.data,
                   moves ? static_cast<uint32_t>(request.sectors * RD_SECTOR_BYTES) : each);
  share_out(request);

  const VolumeRequest *outer = submitting_;
  submitting_ = &request;
  for (unsigned i = 0; i < members_; i++) {
    if (request.next[i] != request.end[i])
      ports_[i]->enqueue(request);
  }
  submitting_ = outer;
  if (!ended(request))
    return false;
  close(request);
  return true;
}

void Volume::close(VolumeRequest &request) {
  request.map.close(!request.failed());
  if (request.failed())
    failed_++;
}

void Volume::part_done(VolumeRequest &request) {
  if (&request == submitting_ || !ended(request))
    return;
  close(request);
  client_->volume_done(request);
}

void Volume::cancel(VolumeRequest &request) {
  for (unsigned i = 0; i < members_; i++)
    ports_[i]->cancel(request);
  request.running = 0;
  request.map.close(false);
}

void Volume::reset_links() {
  for (unsigned i = 0; i < members_; i++)
    ports_[i]->reset_link();
}

void Volume::query(const Visitor &visit) const {
  MemberCounters sum;
  unsigned ready = 0;
  for (unsigned i = 0; i < members_; i++) {
    const MemberCounters &one = ports_[i]->counters();
    sum.commands += one.commands;
    sum.failed += one.failed;
    sum.retried += one.retried;
    sum.losses += one.losses;
    ready += ports_[i]->state() == MemberState::kReady;
  }
  visit("volume_sectors", sectors());
  visit("volume_members_ready", ready);
  visit("volume_degraded", ready != members_);
  visit("volume_requests", requests_);
  visit("volume_failed", failed_);
  visit("volume_parts", sum.commands);
  visit("volume_parts_failed", sum.failed);
  visit("volume_parts_retried", sum.retried);
  visit("volume_member_losses", sum.losses);
  visit("volume_firmware_busy_ns", static_cast<uint64_t>(firmware_.busy_ns()));
}

void Volume::save(StreamWriter &out) const {
  out.section("VOLM");
  out.put(static_cast<uint8_t>(members_));
  out.put(chunk_sectors_);
  out.put(formed_);
  out.put(stripe_.member_sectors());
  for (uint64_t name : names_)
    out.put(name);
  firmware_.save(out);
  out.put(requests_);
  out.put(failed_);
  for (unsigned i = 0; i < members_; i++)
    ports_[i]->save(out);
}

void Volume::load(StreamReader &in) {
  in.section("VOLM");
  if (in.get<uint8_t>() != members_ || in.get<uint32_t>() != chunk_sectors_)
    in.fail();
  bool formed = in.get<bool>();
  auto member_sectors = in.get<uint64_t>();
  if (member_sectors % chunk_sectors_ != 0 || member_sectors >= uint64_t{1} << 48 ||
      (formed && member_sectors == 0))
    in.fail();
  std::array<uint64_t, kMaxMembers> names{};
  for (uint64_t &name : names)
    in.get(name);
  firmware_.load(in);
  in.get(requests_);
  in.get(failed_);
  for (unsigned i = 0; i < members_ && in.ok(); i++)
    ports_[i]->load(in);
  if (!in.ok())
    return;
  formed_ = formed;
  names_ = names;
  stripe_ = Stripe(members_, chunk_sectors_, member_sectors);
}

}  // namespace revodrive
