// SPDX-License-Identifier: GPL-2.0-or-later
#include "volume/map_keeper.h"

#include <algorithm>

#include "revodrive/ata.h"

namespace revodrive {

namespace {

constexpr uint32_t kPageSectors = DispatchLayout::kPageSectors;

}  // namespace

MapKeeper::MapKeeper(PlacementHost &host, MapKeeperOwner &owner) : host_(host), owner_(owner) {
  for (VolumeRequest &request : transfers_)
    request.internal = true;
}

void MapKeeper::form(const DispatchLayout &layout) {
  layout_ = layout;
  map_.reset(layout);
  state_ = State::kUnread;
}

// -------------------------------------------------------------------------------------- transfers

VolumeRequest &MapKeeper::transfer(VolumeOp op, unsigned member, uint32_t sectors) {
  VolumeRequest &request = transfers_[member];
  buffers_[member].bytes.resize(size_t{sectors} * RD_SECTOR_BYTES);
  request.op = op;
  request.lba = 0;
  request.sectors = sectors;
  request.stable = false;
  request.data = &buffers_[member];
  request.start_ns = host_.now_ns();
  host_.prepare(request);
  return request;
}

// `offset`: sectors from the start of the buffer.
void MapKeeper::add(VolumeRequest &request, unsigned member, uint64_t lba, uint32_t sectors,
                    uint32_t offset) {
  request.add_part({.lba = lba,
                    .sectors = sectors,
                    .volume_lba = offset,
                    .member = static_cast<uint8_t>(member)});
}

void MapKeeper::go(VolumeRequest &request) {
  pending_++;
  host_.send(request);
}

void MapKeeper::ended(VolumeRequest &request) {
  host_.finish(request);
  if (request.failed() && failure_ == VolumeFailure::kNone)
    failure_ = request.failure;
  if (--pending_ > 0)
    return;
  owner_.map_step(request.last);
  next();
}

void MapKeeper::flush() {
  VolumeRequest &request = transfers_[0];
  request.op = VolumeOp::kEach;
  request.data = nullptr;
  request.data_bytes = 0;
  request.h2d = {0x27, 0x80, ata::kFlushCacheExt, 0, 0, 0, 0, ata::kDeviceLba};
  request.start_ns = host_.now_ns();
  host_.prepare(request);
  std::fill_n(request.end.begin(), layout_.members, uint64_t{1});
  go(request);
}

void MapKeeper::write_labels() {
  uint64_t volume = host_.fingerprint() ^ static_cast<uint64_t>(host_.now_ns()) << 1;
  for (unsigned i = 0; i < layout_.members; i++) {
    VolumeRequest &request = transfer(VolumeOp::kWrite, i, 1);
    map_area::Label label{.volume = volume, .member = i, .layout = layout_};
    label.encode(map_area::Sector(buffers_[i].bytes.data(), RD_SECTOR_BYTES));
    request.stable = true;
    add(request, i, layout_.label_lba(), 1, 0);
    go(request);
  }
}

void MapKeeper::write_records(const map_area::Record &record) {
  for (unsigned i = 0; i < layout_.members; i++) {
    VolumeRequest &request = transfer(VolumeOp::kWrite, i, 1);
    record.encode(map_area::Sector(buffers_[i].bytes.data(), RD_SECTOR_BYTES));
    request.stable = true;
    add(request, i, layout_.record_lba(record_slot_), 1, 0);
    go(request);
  }
}

// The next few of the dirty pages, each to its member. False: all were written.
bool MapKeeper::write_pages() {
  const std::vector<uint32_t> &dirty = map_.dirty();
  auto count = std::min<size_t>(dirty.size() - position_, kBatch);
  if (count == 0)
    return false;
  std::array<uint32_t, kMaxMembers> pages{}, at{};
  for (size_t i = 0; i < count; i++)
    pages[dirty[position_ + i] % layout_.members]++;
  for (unsigned i = 0; i < layout_.members; i++) {
    if (pages[i] > 0)
      transfer(VolumeOp::kWrite, i, pages[i] * kPageSectors);
  }
  for (size_t i = 0; i < count; i++) {
    uint32_t page = dirty[position_ + i];
    unsigned member = page % layout_.members;
    uint32_t offset = at[member]++ * kPageSectors;
    uint8_t *bytes = &buffers_[member].bytes[size_t{offset} * RD_SECTOR_BYTES];
    map_.encode(
        page, commit_,
        std::span<uint8_t, DispatchMap::kPageBytes>(bytes, size_t{DispatchMap::kPageBytes}));
    add(transfers_[member], member, layout_.page_lba(page, map_.spare_slot(page)), kPageSectors,
        offset);
  }
  position_ += static_cast<uint32_t>(count);
  for (unsigned i = 0; i < layout_.members; i++) {
    if (pages[i] > 0)
      go(transfers_[i]);
  }
  return true;
}

// ------------------------------------------------------------------------------------------ steps

void MapKeeper::commit(const Written &written) {
  failure_ = VolumeFailure::kNone;
  written_ = written;
  // What the last commit may have left half told goes first: until all records say so, the copies
  // that it replaced must stay.
  if (record_pending_)
    begin(Step::kRecord);
  else
    start_commit();
}

void MapKeeper::start_commit() {
  position_ = 0;
  if (map_.dirty().empty())
    return begin(Step::kFlush);
  commit_ = next_commit_++;
  begin(Step::kPages);
}

void MapKeeper::begin(Step step) {
  step_ = step;
  pending_++;  // transfers may end at once, and the step must not end before its last one began
  switch (step) {
    case Step::kIdle:
      break;
    case Step::kReadHead:
      read_heads();
      break;
    case Step::kReadStart:
      read_starts();
      break;
    case Step::kReadPages:
      read_pages();
      break;
    case Step::kFlush:
      flush();
      break;
    case Step::kFirstRecord:
      write_records(record_);
      break;
    case Step::kLabels:
      write_labels();
      break;
    case Step::kPages:
      write_pages();
      break;
    case Step::kRecord:
      write_records(record_);
      break;
  }
  if (--pending_ == 0)
    next();
}

// All transfers of the step have ended.
void MapKeeper::next() {
  if (failure_ != VolumeFailure::kNone)
    return fail(failure_);
  switch (step_) {
    case Step::kIdle:
      return;
    case Step::kReadHead:
      return heads_read();
    case Step::kReadStart:
      return starts_read();
    case Step::kFirstRecord:
      return begin(Step::kLabels);
    case Step::kLabels:
      return labels_written();
    case Step::kReadPages:
      return take_pages() ? begin(Step::kReadPages) : pages_read();
    case Step::kPages:
      return begin(position_ < map_.dirty().size() ? Step::kPages : Step::kFlush);
    case Step::kFlush:
      if (map_.dirty().empty())
        return end_commit(VolumeFailure::kNone);
      map_.all_written(commit_);
      record_ = {commit_, record_.commit, map_.sum(), written_};
      record_slot_ ^= 1;
      record_pending_ = true;
      return begin(Step::kRecord);
    case Step::kRecord: {
      bool late = record_.commit != commit_;
      record_pending_ = false;
      return late ? start_commit() : end_commit(VolumeFailure::kNone);
    }
  }
}

void MapKeeper::fail(VolumeFailure failure) {
  bool reading = step_ <= Step::kReadPages;
  step_ = Step::kIdle;
  if (!reading)
    return end_commit(failure);
  map_.reset(layout_);
  bool unreadable = failure == VolumeFailure::kMedium || failure == VolumeFailure::kAddress;
  if (unreadable)
    spoil("the map cannot be read");
  owner_.map_read(unreadable ? VolumeFailure::kNone : failure);
}

void MapKeeper::end_commit(VolumeFailure failure) {
  step_ = Step::kIdle;
  commit_ = 0;
  commits_ += failure == VolumeFailure::kNone;
  owner_.map_committed(failure);
}

void MapKeeper::drop(bool power) {
  step_ = Step::kIdle;
  pending_ = 0;
  commit_ = 0;
  if (power)
    form(layout_);
}

void MapKeeper::spoil(const std::string &why) {
  map_.reset(layout_);
  state_ = State::kBad;
  host_.warn("the volume cannot be used: " + why +
             ". SANITIZE or FORMAT UNIT (sg_sanitize, sg_format) erase it and make it anew");
}

// A commit that ran is not saved: it runs again.
void MapKeeper::save(StreamWriter &out) const {
  out.put(state_);
  out.put(record_.commit);
  out.put(record_.previous);
  out.put(record_.sum);
  for (uint64_t sectors : record_.written)
    out.put(sectors);
  out.put(static_cast<uint8_t>(record_slot_));
  out.put(record_pending_);
  out.put(next_commit_);
  out.put(commits_);
  map_.save(out);
}

void MapKeeper::load(StreamReader &in) {
  in.get(state_);
  in.get(record_.commit);
  in.get(record_.previous);
  in.get(record_.sum);
  for (uint64_t &sectors : record_.written)
    in.get(sectors);
  record_slot_ = in.get<uint8_t>();
  in.get(record_pending_);
  in.get(next_commit_);
  in.get(commits_);
  if (state_ > State::kBad || record_slot_ > 1 || next_commit_ <= record_.commit)
    in.fail();
  map_.reset(layout_);
  map_.load(in);
}

}  // namespace revodrive
