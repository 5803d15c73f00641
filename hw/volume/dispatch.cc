// SPDX-License-Identifier: GPL-2.0-or-later
//
// The line of requests that change the map, and its commits.
#include "volume/dispatch.h"

#include <algorithm>

namespace revodrive {

Dispatch::Dispatch(PlacementHost &host, unsigned members, uint32_t chunk_sectors,
                   const VolumeProfile &profile)
    : host_(host),
      members_(members),
      chunk_(chunk_sectors),
      profile_(profile),
      keeper_(host, *this) {
}

bool Dispatch::form(uint64_t smallest) {
  layout_ = DispatchLayout::make(members_, smallest);
  smallest_ = smallest;
  if (layout_.members == 0)
    return false;
  keeper_.form(layout_);
  return true;
}

void Dispatch::submit(VolumeRequest &request) {
  request.phase = VolumeRequest::Phase::kFirst;
  request.mapped = false;
  if (request.op == VolumeOp::kOpen)
    return open(request);
  if (!opened())
    return fail(request, VolumeFailure::kMap);
  if (request.op == VolumeOp::kRead || request.op == VolumeOp::kVerify) {
    look_up(request);
    return host_.send(request);
  }
  line_.push_back(&request);
  pump();
}

void Dispatch::fail(VolumeRequest &request, VolumeFailure failure) {
  request.note_failure(failure, request.addressed() ? request.lba : 0);
  host_.finish(request);
}

// ----------------------------------------------------------------------------------- the map comes

void Dispatch::open(VolumeRequest &request) {
  if (opened())
    return host_.finish(request);
  if (keeper_.state() == MapKeeper::State::kBad)
    return fail(request, VolumeFailure::kMap);
  opening_.push_back(&request);
  if (!keeper_.busy())
    keeper_.read();
}

void Dispatch::map_read(VolumeFailure failure) {
  bool bad = keeper_.state() == MapKeeper::State::kBad;
  if (opened())
    written_ = keeper_.written();
  Line waiting;
  waiting.swap(opening_);
  for (VolumeRequest *request : waiting) {
    if (bad || failure != VolumeFailure::kNone)
      request->note_failure(bad ? VolumeFailure::kMap : failure, 0);
    host_.finish(*request);
  }
}

bool Dispatch::claim(uint32_t place) {
  FreeSpace &space = free_[member_of(place)];
  uint64_t number = (place - 1) % layout_.places;
  if (!space.is_free(number))
    return false;
  space.take(number, 1);
  return true;
}

bool Dispatch::accept_map() {
  for (unsigned i = 0; i < members_; i++)
    free_[i].reset(layout_.places);
  bool good = true;
  keeper_.map().for_each([&](uint64_t, uint32_t place) { good = good && claim(place); });
  return good;
}

// --------------------------------------------------------------------------------------- the line

bool Dispatch::conflicts(const VolumeRequest &request, const Line &with, size_t count) const {
  auto overlaps = [&](const VolumeRequest *other) {
    if (!other->addressed())
      return false;
    return other->lba / kUnit <= (request.lba + request.sectors - 1) / kUnit &&
           request.lba / kUnit <= (other->lba + other->sectors - 1) / kUnit;
  };
  return std::any_of(with.begin(), with.begin() + static_cast<ptrdiff_t>(count), overlaps);
}

// Every member has all it can work on: what waits goes to the one that is free first.
bool Dispatch::full() const {
  return *std::min_element(load_.begin(), load_.begin() + members_) >= kDepth;
}

// The first in line that may go now.
VolumeRequest *Dispatch::startable() {
  if (full())
    return nullptr;
  for (size_t i = 0; i < line_.size(); i++) {
    VolumeRequest &request = *line_[i];
    if (request.op == VolumeOp::kFlush) {
      commit_wanted_ |= i == 0;
      return nullptr;
    }
    if (conflicts(request, flying_, flying_.size()) || conflicts(request, line_, i))
      continue;
    line_.erase(line_.begin() + static_cast<ptrdiff_t>(i));
    return &request;
  }
  return nullptr;
}

void Dispatch::pump() {
  if (pumping_)
    return;  // whoever pumps looks again
  pumping_ = true;
  while (!keeper_.busy() && opened()) {
    if (VolumeRequest *request = commit_wanted_ ? nullptr : startable())
      start(*request);
    else if (commit_wanted_ && flying_.empty())
      begin_commit();
    else
      break;
  }
  pumping_ = false;
}

// A map that cannot be stored must not change.
VolumeFailure Dispatch::members_failure() const {
  for (unsigned i = 0; i < members_; i++) {
    MemberState state = host_.state(i);
    if (state != MemberState::kReady)
      return state == MemberState::kLocked ? VolumeFailure::kLocked : VolumeFailure::kMissing;
  }
  return VolumeFailure::kNone;
}

void Dispatch::start(VolumeRequest &request) {
  request.start_ns = std::max(request.start_ns, host_.now_ns());
  VolumeFailure failure = members_failure();
  if (failure != VolumeFailure::kNone)
    return fail(request, failure);
  if (request.op == VolumeOp::kTrim)
    clear_edges(request);
  else if (!place_write(request))
    return request.failed() ? host_.finish(request) : wait_for_places(request);
  short_ = false;
  flying_.push_back(&request);
  host_.send(request);
}

// A commit gives back the places of blocks that went elsewhere.
void Dispatch::wait_for_places(VolumeRequest &request) {
  if (short_ || (pending_.empty() && flying_.empty()))
    return fail(request, VolumeFailure::kFault);
  short_ = commit_wanted_ = true;
  line_.insert(line_.begin(), &request);
}

void Dispatch::ended(VolumeRequest &request) {
  if (request.internal)
    return keeper_.ended(request);
  bool changes = request.op == VolumeOp::kWrite || request.op == VolumeOp::kTrim;
  if (changes && request.phase != VolumeRequest::Phase::kTrimming) {
    end_change(request);
  } else {
    discount(request);
    host_.finish(request);
  }
  pump();
}

void Dispatch::end_change(VolumeRequest &request) {
  std::erase(flying_, &request);
  discount(request);
  if (request.phase == VolumeRequest::Phase::kFirst) {
    enter(request);
  } else {
    request.op = VolumeOp::kTrim;
    if (!request.failed())
      unmap(request);
  }
  bool commit = request.op == VolumeOp::kTrim ? request.mapped : request.stable && unsafe(request);
  if (request.failed() || !commit)
    return host_.finish(request);
  request.phase = VolumeRequest::Phase::kCommit;
  request.before.follow(request.last, Stage::kBridge);
  committing_.push_back(&request);
  commit_wanted_ = true;
}

// Where it was written, power would not find it again: it, or a write before it that made the
// place.
bool Dispatch::unsafe(const VolumeRequest &request) const {
  uint64_t last = (request.lba + request.sectors - 1) / kUnit;
  for (uint64_t unit = request.lba / kUnit; unit <= last; unit++) {
    if (keeper_.map().is_unsafe(unit))
      return true;
  }
  return false;
}

void Dispatch::begin_commit() {
  commit_wanted_ = false;
  while (!line_.empty() && line_.front()->op == VolumeOp::kFlush) {
    committing_.push_back(line_.front());
    line_.erase(line_.begin());
  }
  covered_ = committing_.size();
  keeper_.commit(written_);
}

// While the map is read or stored all wait for that, and go its way.
void Dispatch::map_step(const Journey &way) {
  for (const Line *line : {&opening_, &line_, &committing_}) {
    for (VolumeRequest *request : *line)
      request->before.follow(way, Stage::kBridge);
  }
}

void Dispatch::map_committed(VolumeFailure failure) {
  if (failure == VolumeFailure::kNone)
    release_pending();
  Line done(committing_.begin(), committing_.begin() + static_cast<ptrdiff_t>(covered_));
  committing_.erase(committing_.begin(), committing_.begin() + static_cast<ptrdiff_t>(covered_));
  covered_ = 0;
  if (failure != VolumeFailure::kNone && short_) {
    short_ = false;
    VolumeRequest &first = *line_.front();
    line_.erase(line_.begin());
    fail(first, failure);
  }
  bool outermost = !pumping_;
  pumping_ = true;  // no write goes before the trims, which are of places that are free now
  auto others = done.begin();
  if (failure == VolumeFailure::kNone)
    others = std::stable_partition(done.begin(), done.end(), [](const VolumeRequest *request) {
      return request->op == VolumeOp::kTrim;
    });
  for (auto trim = done.begin(); trim != others; ++trim) {
    (*trim)->phase = VolumeRequest::Phase::kTrimming;
    (*trim)->start_ns = host_.now_ns();
    host_.send(**trim);
  }
  for (auto other = others; other != done.end(); ++other) {
    if (failure != VolumeFailure::kNone)
      (*other)->note_failure(failure, (*other)->addressed() ? (*other)->lba : 0);
    host_.finish(**other);
  }
  pumping_ = !outermost;
  pump();
}

void Dispatch::release_pending() {
  for (uint32_t place : pending_)
    free_[member_of(place)].release((place - 1) % layout_.places, 1);
  pending_.clear();
}

void Dispatch::cancel(VolumeRequest &request) {
  auto forget = [&](Line &line) {
    auto found = std::find(line.begin(), line.end(), &request);
    if (found == line.end())
      return false;
    if (&line == &committing_ && static_cast<size_t>(found - line.begin()) < covered_)
      covered_--;
    line.erase(found);
    return true;
  };
  bool waited = forget(opening_) || forget(line_) || forget(committing_);
  bool flew = forget(flying_);
  discount(request);
  if (flew && request.phase == VolumeRequest::Phase::kFirst) {
    for (const VolumePart &part : request.parts)
      give_back(part);
  }
  if (waited)
    short_ = false;
  pump();
}

void Dispatch::drop_all(bool power) {
  for (VolumeRequest *request : flying_) {
    bool write = request->phase == VolumeRequest::Phase::kFirst;
    for (const VolumePart &part : request->parts) {
      if (write)
        give_back(part);
    }
    request->counted = false;
  }
  for (Line *line : {&opening_, &line_, &flying_, &committing_})
    line->clear();
  covered_ = 0;
  commit_wanted_ = short_ = false;
  load_ = {};
  keeper_.drop(power);
  if (power)
    pending_.clear();
}

void Dispatch::erased(bool completely) {
  drop_all(true);
  if (!completely)
    keeper_.spoil("an erase of it has failed");
}

// --------------------------------------------------------------------------------------- the rest

void Dispatch::query(const Visitor &visit) const {
  uint64_t free = 0;
  for (const FreeSpace &space : free_)
    free += space.free();
  auto [least, most] = std::minmax_element(written_.begin(), written_.begin() + members_);
  visit("volume_map_state", static_cast<uint64_t>(keeper_.state()));
  visit("volume_mapped_sectors", keeper_.map().mapped() * kUnit);
  visit("volume_free_sectors", free * kUnit);
  visit("volume_unsafe_pages", keeper_.map().dirty().size());
  visit("volume_commits", keeper_.commits());
  visit("volume_imbalance_sectors", *most - *least);
  visit("volume_crowded", crowded_);
}

void Dispatch::save(StreamWriter &out) const {
  out.put(smallest_);
  if (layout_.members == 0)
    return;
  keeper_.save(out);
  for (uint64_t sectors : written_)
    out.put(sectors);
  out.put(crowded_);
  out.put(static_cast<uint64_t>(pending_.size()));
  for (uint32_t place : pending_)
    out.put(place);
}

void Dispatch::load(StreamReader &in) {
  uint64_t smallest = smallest_;
  drop_all(true);
  if (load_map(in))
    return;
  // A map of which only a part is known is none: the stored one will be read.
  in.fail();
  drop_all(true);
  form(smallest);
}

bool Dispatch::load_map(StreamReader &in) {
  auto smallest = in.get<uint64_t>();
  bool was_formed = layout_.members > 0;
  if (!in.ok() || smallest > uint64_t{1} << 48 || form(smallest) != was_formed)
    return false;
  if (!was_formed)
    return true;
  keeper_.load(in);
  for (uint64_t &sectors : written_)
    in.get(sectors);
  in.get(crowded_);
  auto count = in.get<uint64_t>();
  if (!in.ok() || count > layout_.places * members_ || !accept_map())
    return false;
  for (uint64_t i = 0; i < count && in.ok(); i++) {
    auto place = in.get<uint32_t>();
    if (place == DispatchMap::kNowhere || place > layout_.places * members_ || !claim(place))
      return false;
    pending_.push_back(place);
  }
  return in.ok();
}

}  // namespace revodrive
