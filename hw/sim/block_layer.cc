// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/block_layer.h"

namespace revodrive::sim {

BlockLayer::BlockLayer(CardHost &host, HbaDriver &driver, unsigned members, unsigned depth,
                       bool any_order)
    : host_(host), driver_(driver), any_order_(any_order), members_(members) {
  for (Member &member : members_) {
    member.all_tags = depth == kTags ? UINT32_MAX : (1u << depth) - 1;
    member.free_tags = member.all_tags;
  }
}

void BlockLayer::Queue::pop() {
  if (++first_ == items_.size()) {
    items_.clear();
    first_ = 0;
  } else if (first_ >= 4096 && first_ * 2 >= items_.size()) {
    items_.erase(items_.begin(), items_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }
}

void BlockLayer::submit(IoRequest &io, Placement &placement) {
  parts_.clear();
  placement.place(io, parts_);
  io.parts = static_cast<uint32_t>(parts_.size());
  io.failed = false;
  for (AtaRequest &ata : parts_) {
    Member &member = members_[ata.port];
    if (in_flight_[ata.port]++ == 0)
      member.busy_since_ns = host_.now_ns();
    if (member.queue.empty() && can_start(member, ata.kind)) {
      start(member, &io, ata);
    } else {
      member.queue.push({&io, ata});
      waiting_++;
    }
  }
}

void BlockLayer::start(Member &member, IoRequest *io, AtaRequest &ata) {
  ata.tag = static_cast<uint8_t>(std::countr_zero(member.free_tags));
  member.free_tags &= ~(1u << ata.tag);
  member.alone = !any_order_ && (ata.kind == AtaKind::kTrim || ata.kind == AtaKind::kFlush);
  member.running[ata.tag] = io;
  member.records[ata.tag] = {ata, started_++, host_.now_ns(), 0, false};
  driver_.issue(ata);
}

void BlockLayer::start_waiting() {
  if (waiting_ == 0)
    return;
  for (Member &member : members_) {
    while (!member.queue.empty() && can_start(member, member.queue.front().ata.kind)) {
      Waiting next = member.queue.front();
      member.queue.pop();
      waiting_--;
      start(member, next.io, next.ata);
    }
  }
}

IoRequest *BlockLayer::release(unsigned port, unsigned tag, bool failed) {
  Member &member = members_[port];
  IoRequest *io = member.running[tag];
  member.free_tags |= 1u << tag;
  member.alone = false;
  int64_t now_ns = host_.now_ns();
  CommandRecord &record = member.records[tag];
  int64_t took_ns = now_ns - record.submit_ns;
  member.use.all_ns += took_ns;
  member.use.read_ns += record.ata.kind == AtaKind::kRead ? took_ns : 0;
  member.use.write_ns += record.ata.kind == AtaKind::kWrite ? took_ns : 0;
  if (--in_flight_[port] == 0)
    member.use.busy_ns += now_ns - member.busy_since_ns;
  io->failed |= failed;
  record.done_ns = now_ns;
  record.failed = failed;
  if (on_command)
    on_command(record);
  return io;
}

}  // namespace revodrive::sim
