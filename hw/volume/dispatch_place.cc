// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which member gets what: the parts of a request, by the map and by who is free.
#include <algorithm>

#include "volume/dispatch.h"

namespace revodrive {

namespace {

constexpr uint32_t kUnit = DispatchLayout::kUnitSectors;
constexpr uint32_t kUnitBytes = kUnit * RD_SECTOR_BYTES;
constexpr uint64_t kSectorsPerKib = 1024 / RD_SECTOR_BYTES;

uint64_t end_of(const VolumeRequest &request) {
  return request.lba + request.sectors;
}

// Blocks of the map that a part fills.
uint32_t units_of(const VolumePart &part) {
  return part.sectors / kUnit;
}

}  // namespace

MemberRun Dispatch::take(VolumeRequest &request, unsigned member) {
  const VolumePart &part = request.parts[request.next[member] - 1];
  request.next[member] = part.link;
  bool own = part.source != VolumePart::kGuest;
  return {part.lba, part.sectors, part.volume_lba, own ? &request.edges[part.source - 1] : nullptr};
}

uint64_t Dispatch::next_lba(const VolumeRequest &request, unsigned member) const {
  return request.parts[request.next[member] - 1].volume_lba;
}

// --------------------------------------------------------------------------------------- the books

// A part behind the last one, on the member and in the volume, makes that one longer.
void Dispatch::assign(VolumeRequest &request, const VolumePart &part) {
  request.counted = true;
  if (!request.parts.empty()) {
    VolumePart &last = request.parts.back();
    bool joins = last.member == part.member && last.source == VolumePart::kGuest &&
                 part.source == VolumePart::kGuest && last.in_place == part.in_place &&
                 last.lba + last.sectors == part.lba &&
                 last.volume_lba + last.sectors == part.volume_lba &&
                 last.sectors + part.sectors <= kLongest;
    if (joins) {
      last.sectors += part.sectors;
      return;
    }
  }
  request.add_part(part);
  load_[part.member]++;
}

void Dispatch::discount(VolumeRequest &request) {
  if (!request.counted)
    return;
  request.counted = false;
  for (const VolumePart &part : request.parts)
    load_[part.member]--;
}

// Places that were taken for it, and are in no map.
void Dispatch::give_back(const VolumePart &part) {
  if (!part.in_place)
    free_[part.member].release(part.lba / kUnit, units_of(part));
}

void Dispatch::retract(VolumeRequest &request) {
  for (const VolumePart &part : request.parts) {
    written_[part.member] -= part.sectors;
    give_back(part);
  }
  discount(request);
  request.parts.clear();
  request.next = {};
}

// ------------------------------------------------------------------------------------------- reads

void Dispatch::look_up(VolumeRequest &request) {
  uint64_t end = end_of(request);
  for (uint64_t lba = request.lba; lba < end;) {
    uint64_t stop = std::min(end, (lba / kUnit + 1) * kUnit);
    auto sectors = static_cast<uint32_t>(stop - lba);
    uint32_t place = keeper_.map().place(lba / kUnit);
    if (place != DispatchMap::kNowhere) {
      assign(request, {.lba = unit_lba(place) + lba % kUnit,
                       .sectors = sectors,
                       .volume_lba = lba,
                       .member = static_cast<uint8_t>(member_of(place))});
    } else if (!request.holes.empty() &&
               request.holes.back().volume_lba + request.holes.back().sectors == lba) {
      request.holes.back().sectors += sectors;
    } else {
      request.holes.push_back({.sectors = sectors, .volume_lba = lba});
    }
    lba = stop;
  }
  charge(request, 0);
  if (request.op == VolumeOp::kVerify)
    request.holes.clear();
  request.done_ns = request.start_ns;
  for (const VolumePart &hole : request.holes)
    request.done_ns =
        request.data
            ->reserve(DataDirection::kToGuest, request.start_ns, hole.sectors * RD_SECTOR_BYTES)
            .end_ns;
}

// The firmware's time to look at the queues, and to work with the map.
void Dispatch::charge(VolumeRequest &request, uint64_t chunks) {
  uint64_t pieces = request.parts.size() + request.holes.size();
  uint64_t cost_ns = chunks * profile_.dispatch_ns + pieces * profile_.map_ns;
  request.start_ns = host_.work(request.start_ns, static_cast<int64_t>(cost_ns));
}

// ------------------------------------------------------------------------------------------ writes

// Who is free: the fewest commands, then the fewest writes so far; nobody may be ahead in writes by
// more than the balance. -1: there is no place anywhere.
int Dispatch::choose() {
  uint64_t least = UINT64_MAX, least_of_all = UINT64_MAX;
  for (unsigned i = 0; i < members_; i++) {
    least_of_all = std::min(least_of_all, written_[i]);
    if (free_[i].free() > 0)
      least = std::min(least, written_[i]);
  }
  uint64_t slack = profile_.balance_kib * kSectorsPerKib;
  int best = -1;
  for (unsigned i = 0; i < members_; i++) {
    if (free_[i].free() == 0 || written_[i] > least + slack)
      continue;
    auto b = static_cast<unsigned>(best);
    if (best < 0 || load_[i] < load_[b] || (load_[i] == load_[b] && written_[i] < written_[b]))
      best = static_cast<int>(i);
  }
  if (best >= 0 && written_[static_cast<unsigned>(best)] > least_of_all + slack)
    crowded_++;
  return best;
}

// False: there are not enough places now, or the request has failed; it has none then.
bool Dispatch::place_write(VolumeRequest &request) {
  uint64_t chunks = 0, end = end_of(request);
  for (uint64_t lba = request.lba; lba < end;) {
    uint64_t unit = lba / kUnit, whole_end = end / kUnit;
    bool whole = lba % kUnit == 0 && unit < whole_end;
    uint64_t units = whole ? std::min<uint64_t>(whole_end - unit, chunk_ / kUnit) : 1;
    if (!(whole ? place_chunk(request, unit, static_cast<uint32_t>(units))
                : place_edge(request, unit))) {
      retract(request);
      return false;
    }
    chunks++;
    lba = std::min(end, (unit + units) * kUnit);
  }
  charge(request, chunks);
  return true;
}

// Whole blocks of the map: to one member if it has the room, in as few pieces as it can.
bool Dispatch::place_chunk(VolumeRequest &request, uint64_t unit, uint32_t units) {
  while (units > 0) {
    int member = choose();
    if (member < 0)
      return false;
    FreeSpace &space = free_[static_cast<unsigned>(member)];
    while (units > 0 && space.free() > 0) {
      FreeSpace::Run run = space.find(units);
      space.take(run.first, run.count);
      assign_write(request, {.lba = run.first * kUnit,
                             .sectors = run.count * kUnit,
                             .volume_lba = unit * kUnit,
                             .member = static_cast<uint8_t>(member)});
      unit += run.count;
      units -= run.count;
    }
  }
  return true;
}

void Dispatch::assign_write(VolumeRequest &request, const VolumePart &part) {
  written_[part.member] += part.sectors;
  assign(request, part);
}

// A block that is written in part stays where it is. One that is nowhere gets a place, and zeroes
// around what is written.
bool Dispatch::place_edge(VolumeRequest &request, uint64_t unit) {
  uint64_t from = std::max(request.lba, unit * kUnit);
  uint64_t to = std::min(end_of(request), (unit + 1) * kUnit);
  auto sectors = static_cast<uint32_t>(to - from);
  uint32_t place = keeper_.map().place(unit);
  if (place != DispatchMap::kNowhere) {
    assign_write(request, {.lba = unit_lba(place) + from % kUnit,
                           .sectors = sectors,
                           .volume_lba = from,
                           .member = static_cast<uint8_t>(member_of(place)),
                           .in_place = true});
    return true;
  }
  uint8_t source = from == request.lba ? VolumePart::kHead : VolumePart::kTail;
  std::vector<uint8_t> &bytes = request.edges[source - 1].bytes;
  bytes.assign(kUnitBytes, 0);
  auto offset = static_cast<uint32_t>((from - request.lba) * RD_SECTOR_BYTES);
  uint32_t length = sectors * RD_SECTOR_BYTES;
  if (!request.data->copy_from_guest(
          offset, std::span(bytes).subspan(from % kUnit * RD_SECTOR_BYTES, length))) {
    request.note_failure(VolumeFailure::kData, from);
    return false;
  }
  int member = choose();
  if (member < 0)
    return false;
  request.start_ns =
      request.data->reserve(DataDirection::kFromGuest, request.start_ns, length).end_ns;
  FreeSpace &space = free_[static_cast<unsigned>(member)];
  uint64_t number = space.find(1).first;
  space.take(number, 1);
  assign_write(request, {.lba = number * kUnit,
                         .sectors = kUnit,
                         .volume_lba = from,
                         .member = static_cast<uint8_t>(member),
                         .source = source});
  return true;
}

// What was written is from now on what is read. A failed request has done what is below its
// failure; the places of the rest were never seen.
void Dispatch::enter(VolumeRequest &request) {
  for (const VolumePart &part : request.parts) {
    if (part.in_place)
      continue;
    uint64_t unit = part.volume_lba / kUnit;
    uint64_t number = part.lba / kUnit;
    if (request.failed() && (unit + units_of(part)) * kUnit > request.failed_lba) {
      give_back(part);
      continue;
    }
    for (uint32_t i = 0; i < units_of(part); i++) {
      uint32_t old = keeper_.map().place(unit + i);
      if (old != DispatchMap::kNowhere)
        pending_.push_back(old);
      keeper_.map().set(unit + i, place_of(part.member, number + i));
    }
    request.mapped = true;
  }
}

// ------------------------------------------------------------------------------------------- trims

// Blocks of the map that are trimmed in part get zeroes there. Until that is done the request is a
// write.
void Dispatch::clear_edges(VolumeRequest &request) {
  request.op = VolumeOp::kWrite;
  request.phase = VolumeRequest::Phase::kClearing;
  uint64_t end = end_of(request);
  uint64_t first_whole = (request.lba + kUnit - 1) / kUnit * kUnit;
  uint64_t last_whole = std::max(end / kUnit * kUnit, first_whole);
  if (request.lba < first_whole)
    clear_edge(request, request.lba, std::min(end, first_whole), VolumePart::kHead);
  if (last_whole < end)
    clear_edge(request, last_whole, end, VolumePart::kTail);
  charge(request, 0);
}

void Dispatch::clear_edge(VolumeRequest &request, uint64_t lba, uint64_t end, uint8_t source) {
  uint32_t place = keeper_.map().place(lba / kUnit);
  if (place == DispatchMap::kNowhere)
    return;
  auto sectors = static_cast<uint32_t>(end - lba);
  request.edges[source - 1].bytes.assign(size_t{sectors} * RD_SECTOR_BYTES, 0);
  assign(request, {.lba = unit_lba(place) + lba % kUnit,
                   .sectors = sectors,
                   .volume_lba = lba,
                   .member = static_cast<uint8_t>(member_of(place)),
                   .source = source,
                   .in_place = true});
}

// The parts are then the places that the members may forget, once no stored map has them.
void Dispatch::unmap(VolumeRequest &request) {
  request.parts.clear();
  request.next = {};
  uint64_t end = end_of(request) / kUnit;
  for (uint64_t unit = (request.lba + kUnit - 1) / kUnit; unit < end; unit++) {
    uint32_t place = keeper_.map().place(unit);
    if (place == DispatchMap::kNowhere)
      continue;
    keeper_.map().set(unit, DispatchMap::kNowhere);
    pending_.push_back(place);
    request.mapped = true;
    auto member = static_cast<uint8_t>(member_of(place));
    uint64_t lba = unit_lba(place);
    uint32_t before = request.next[member] ? request.last_part[member] : 0;
    VolumePart *last = before ? &request.parts[before - 1] : nullptr;
    if (last && last->lba + last->sectors == lba && last->sectors + kUnit <= kLongest)
      last->sectors += kUnit;
    else
      request.add_part(
          {.lba = lba, .sectors = kUnit, .volume_lba = unit * kUnit, .member = member});
  }
}

}  // namespace revodrive
