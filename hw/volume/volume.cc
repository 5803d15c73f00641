// SPDX-License-Identifier: GPL-2.0-or-later
#include "volume/volume.h"

#include <algorithm>
#include <string>

#include "revodrive/ata.h"
#include "revodrive/error.h"
#include "volume/dispatch.h"
#include "volume/stripe_placement.h"

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
  PlacementHost &host = *this;
  if (parts_.policy == RD_POLICY_DISPATCH)
    placement_ = std::make_unique<Dispatch>(host, members_, chunk_sectors_, parts_.profile);
  else
    placement_ = std::make_unique<StripePlacement>(host, members_, chunk_sectors_);
  firmware_.watch(parts_.host.observer(), "volume");
  for (unsigned i = 0; i < members_; i++)
    ports_[i] = std::make_unique<MemberPort>(*this, i, parts_.host, parts_.queue, parts_.timing);
}

bool Volume::check(uint64_t member_sectors, rd_error *error) const {
  // One of a crashed firmware is always small, and does not count.
  if (member_sectors < kMinMemberSectors || member_sectors >= placement_->least_sectors())
    return true;
  set_error(error, "image of %llu bytes: an SSD of this volume must have at least %llu bytes",
            static_cast<unsigned long long>(member_sectors * RD_SECTOR_BYTES),
            static_cast<unsigned long long>(placement_->least_sectors() * RD_SECTOR_BYTES));
  return false;
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
  if (smallest == UINT64_MAX || !placement_->form(smallest))
    return;
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

void Volume::drop_all(bool power) {
  for (unsigned i = 0; i < members_; i++)
    ports_[i]->drop_all();
  placement_->drop_all(power);
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

int64_t Volume::work(int64_t at_ns, int64_t cost_ns) {
  return parts_.timing ? firmware_.reserve(at_ns, cost_ns, "place").end_ns : at_ns;
}

void Volume::warn(const std::string &text) {
  parts_.host.log(RD_LOG_WARNING, "%s", text.c_str());
}

bool Volume::submit(VolumeRequest &request) {
  requests_++;
  prepare(request);
  request.submitting = true;
  send_to(request);
  request.submitting = false;
  return request.over;
}

void Volume::prepare(VolumeRequest &request) {
  request.failure = VolumeFailure::kNone;
  request.failed_lba = 0;
  request.done_ns = 0;
  request.before.start(request.start_ns);
  request.last.start(request.start_ns);
  request.queued = 0;
  request.running = 0;
  request.over = false;
  request.parts.clear();
  request.holes.clear();
  request.next = request.end = {};
  if (request.op == VolumeOp::kFlush)
    request.h2d = {0x27, 0x80, ata::kFlushCacheExt, 0, 0, 0, 0, ata::kDeviceLba};
  if (!request.addressed()) {
    request.sectors = 0;
    request.answers = {};
  }
  uint32_t each = request.data_bytes * (request.data_apart ? members_ : 1);
  request.map.open(request.data, request.moves_data()
                                     ? static_cast<uint32_t>(request.sectors * RD_SECTOR_BYTES)
                                     : each);
}

// What concerns the members as such goes past the placement, and so does a flush where there is
// nothing but their caches.
void Volume::send_to(VolumeRequest &request) {
  bool past = request.op == VolumeOp::kEach || request.op == VolumeOp::kMember ||
              (request.op == VolumeOp::kFlush && !placement_->keeps_map());
  if (!past)
    return placement_->submit(request);
  for (unsigned i = 0; i < members_; i++)
    request.end[i] = request.op != VolumeOp::kMember || i == request.member ? 1 : 0;
  send(request);
}

void Volume::send(VolumeRequest &request) {
  request.running++;  // so that it does not end before all members have their share
  for (unsigned i = 0; i < members_; i++) {
    if (request.next[i] != request.end[i])
      ports_[i]->enqueue(request);
  }
  request.running--;
  part_done(request);
}

void Volume::part_done(VolumeRequest &request) {
  if (!ended(request))
    return;
  if (request.internal || request.addressed())
    return placement_->ended(request);
  finish(request);
}

void Volume::finish(VolumeRequest &request) {
  request.map.close(!request.failed());
  if (!request.holes.empty())
    fill_holes(request);
  if (!request.internal) {
    failed_ += request.failed();
    written_ += request.op == VolumeOp::kWrite && !request.failed() ? request.sectors : 0;
  }
  request.over = true;
  if (!request.submitting && !request.internal)
    client_->volume_done(request);
}

// After the members' data is there: a mapping that was a copy brings other bytes for these.
void Volume::fill_holes(VolumeRequest &request) {
  static constexpr std::array<uint8_t, 8 * RD_SECTOR_BYTES> kZeroes{};
  for (const VolumePart &hole : request.holes) {
    auto at = static_cast<uint32_t>((hole.volume_lba - request.lba) * RD_SECTOR_BYTES);
    uint32_t end = at + hole.sectors * RD_SECTOR_BYTES;
    while (at < end) {
      auto bytes = std::min<uint32_t>(end - at, kZeroes.size());
      if (!request.data->copy_to_guest(at, std::span(kZeroes).first(bytes)))
        return request.note_failure(VolumeFailure::kData, hole.volume_lba);
      at += bytes;
    }
  }
}

void Volume::cancel(VolumeRequest &request) {
  request.over = true;
  for (unsigned i = 0; i < members_; i++)
    ports_[i]->cancel(request);
  request.running = 0;
  request.map.close(false);
  placement_->cancel(request);
}

uint16_t Volume::progress(const VolumeRequest &request) const {
  uint16_t least = UINT16_MAX;
  for (unsigned i = 0; i < members_; i++)
    least = std::min(least, ports_[i]->progress(request));
  return least;
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
  visit("volume_write_sectors", written_);
  visit("volume_parts", sum.commands);
  visit("volume_parts_failed", sum.failed);
  visit("volume_parts_retried", sum.retried);
  visit("volume_member_losses", sum.losses);
  visit("volume_firmware_busy_ns", static_cast<uint64_t>(firmware_.busy_ns()));
  placement_->query(visit);
}

void Volume::save(StreamWriter &out) const {
  out.section("VOLM");
  out.put(static_cast<uint8_t>(members_));
  out.put(chunk_sectors_);
  out.put(formed_);
  for (uint64_t name : names_)
    out.put(name);
  firmware_.save(out);
  out.put(requests_);
  out.put(failed_);
  out.put(written_);
  for (unsigned i = 0; i < members_; i++)
    ports_[i]->save(out);
  placement_->save(out);
}

void Volume::load(StreamReader &in) {
  in.section("VOLM");
  auto members = in.get<uint8_t>();
  auto chunk_sectors = in.get<uint32_t>();
  alien_chunk_sectors_ = in.ok() && chunk_sectors != chunk_sectors_ ? chunk_sectors : 0;
  if (members != members_ || chunk_sectors != chunk_sectors_)
    in.fail();
  bool formed = in.get<bool>();
  std::array<uint64_t, kMaxMembers> names{};
  for (uint64_t &name : names)
    in.get(name);
  firmware_.load(in);
  in.get(requests_);
  in.get(failed_);
  in.get(written_);
  for (unsigned i = 0; i < members_ && in.ok(); i++)
    ports_[i]->load(in);
  if (in.ok())
    placement_->load(in);
  if (formed != (placement_->sectors() > 0))
    in.fail();
  if (!in.ok())
    return;
  formed_ = formed;
  names_ = names;
}

}  // namespace revodrive
