// SPDX-License-Identifier: GPL-2.0-or-later
#include "sim/placement.h"

#include <algorithm>
#include <bit>
#include <string>

#include "sim/dispatch.h"
#include "sim/units.h"
#include "sim/user_error.h"

namespace revodrive::sim {

namespace {

constexpr uint64_t kDefaultChunk = 64 << 10;  // what OCZ's volume and mdadm --chunk=64 use

class Single final : public Placement {
 public:
  Single(const Members &members, unsigned port) : members_(members), port_(port) {}
  uint64_t bytes() const override { return members_.bytes; }
  void place(const IoRequest &io, std::vector<AtaRequest> &out) override {
    append_range(members_, io, port_, io.offset, io.bytes, out);
  }
  std::optional<Sector> sector(uint64_t offset) const override {
    return Sector{port_, offset / RD_SECTOR_BYTES};
  }

 private:
  Members members_;
  unsigned port_;
};

// A disk that the card makes of its drives: commands go to any tag that is free.
class Volume final : public Placement {
 public:
  explicit Volume(const Members &members) : members_(members) {}
  uint64_t bytes() const override { return members_.volume_bytes; }
  void place(const IoRequest &io, std::vector<AtaRequest> &out) override {
    const uint32_t *lanes = members_.in_flight;
    auto lane = std::min_element(lanes, lanes + kVolumeLanes) - lanes;
    append_range(members_, io, static_cast<unsigned>(lane), io.offset, io.bytes, out);
  }

 private:
  Members members_;
};

class Stripe final : public Placement {
 public:
  // `chunk`: a power of two.
  Stripe(const Members &members, uint32_t chunk)
      : members_(members), chunk_(chunk), shift_(static_cast<unsigned>(std::countr_zero(chunk))) {
    members_.max_command_bytes =
        std::min(members_.max_command_bytes, chunk * (HbaDriver::kMaxPrds - 1));
  }
  uint64_t bytes() const override { return members_.bytes / chunk_ * chunk_ * members_.count; }
  void place(const IoRequest &io, std::vector<AtaRequest> &out) override;
  std::optional<Sector> sector(uint64_t offset) const override {
    uint64_t chunk = number(offset);
    uint64_t start = (chunk / members_.count << shift_) + inside(offset);
    return Sector{static_cast<unsigned>(chunk % members_.count), start / RD_SECTOR_BYTES};
  }

 private:
  void place_on(const IoRequest &io, unsigned port, uint64_t start, uint64_t end,
                std::vector<AtaRequest> &out) const;

  uint64_t number(uint64_t at) const { return at >> shift_; }
  uint64_t inside(uint64_t at) const { return at & (chunk_ - 1); }

  Members members_;
  uint32_t chunk_;
  unsigned shift_;
};

// The chunks of one member are neighbours there: one command takes them all.
void Stripe::place(const IoRequest &io, std::vector<AtaRequest> &out) {
  if (io.op == Op::kFlush)
    return append_flushes(members_, out);
  uint64_t first = number(io.offset);
  uint64_t last = number(io.offset + io.bytes - 1);
  uint64_t count = members_.count;
  if (first == last) {
    uint64_t start = (first / count << shift_) + inside(io.offset);
    return place_on(io, static_cast<unsigned>(first % count), start, start + io.bytes, out);
  }
  for (uint64_t chunk = first; chunk <= last && chunk < first + count; chunk++) {
    uint64_t final = chunk + (last - chunk) / count * count;
    uint64_t start = chunk / count * chunk_ + (chunk == first ? inside(io.offset) : 0);
    uint64_t end =
        final / count * chunk_ + (final == last ? inside(io.offset + io.bytes - 1) + 1 : chunk_);
    place_on(io, static_cast<unsigned>(chunk % count), start, end, out);
  }
}

void Stripe::place_on(const IoRequest &io, unsigned port, uint64_t start, uint64_t end,
                      std::vector<AtaRequest> &out) const {
  uint64_t limit = io.op == Op::kTrim ? HbaDriver::kMaxTrimSectors * RD_SECTOR_BYTES
                                      : members_.max_command_bytes;
  while (start < end) {
    uint64_t bytes = std::min(end - start, limit);
    uint64_t in_target = ((number(start) * members_.count + port) << shift_) + inside(start);
    AtaRequest request = command_of(io, port, start, bytes);
    request.data = {io.buffer + (in_target - io.offset),
                    chunk_ - static_cast<uint32_t>(inside(start)), chunk_, chunk_ * members_.count};
    out.push_back(request);
    start += bytes;
  }
}

}  // namespace

AtaRequest command_of(const IoRequest &io, unsigned port, uint64_t start, uint64_t bytes) {
  AtaRequest request;
  request.kind = io.op == Op::kRead    ? AtaKind::kRead
                 : io.op == Op::kWrite ? AtaKind::kWrite
                                       : AtaKind::kTrim;
  request.port = static_cast<uint8_t>(port);
  request.lba = start / RD_SECTOR_BYTES;
  request.sectors = bytes / RD_SECTOR_BYTES;
  return request;
}

void append_flush(unsigned port, std::vector<AtaRequest> &out) {
  AtaRequest request;
  request.kind = AtaKind::kFlush;
  request.port = static_cast<uint8_t>(port);
  out.push_back(request);
}

void append_flushes(const Members &members, std::vector<AtaRequest> &out) {
  for (unsigned port = 0; port < members.count; port++)
    append_flush(port, out);
}

void append_range(const Members &members, const IoRequest &io, unsigned port, uint64_t start,
                  uint64_t bytes, std::vector<AtaRequest> &out) {
  if (io.op == Op::kFlush)
    return append_flush(port, out);
  uint64_t limit =
      io.op == Op::kTrim ? HbaDriver::kMaxTrimSectors * RD_SECTOR_BYTES : members.max_command_bytes;
  for (uint64_t done = 0; done < bytes;) {
    uint64_t part = std::min(bytes - done, limit);
    AtaRequest request = command_of(io, port, start + done, part);
    auto length = static_cast<uint32_t>(std::min<uint64_t>(part, UINT32_MAX));
    request.data = {io.buffer + done, length, length, length};
    out.push_back(request);
    done += part;
  }
}

std::unique_ptr<Placement> Placement::single(const Members &members, unsigned port) {
  return std::make_unique<Single>(members, port);
}

std::optional<CardVolume> CardVolume::parse(std::string_view text) {
  std::vector<std::string_view> words = split(text, ':');
  CardVolume volume;
  if (words[0] == "vca-dispatch")
    volume.policy = RD_POLICY_DISPATCH;
  else if (words[0] != "vca-stripe")
    return {};
  constexpr uint64_t kLeast = 4 << 10;  // docs/vca.md
  constexpr uint64_t kMost = 16 << 20;
  auto chunk = words.size() == 2 ? parse_bytes(words[1]) : 0;
  bool fits = chunk && (words.size() < 2 ||
                        (std::has_single_bit(*chunk) && *chunk >= kLeast && *chunk <= kMost));
  if (words.size() > 2 || !fits)
    refuse(
        "--placement=%s: must be vca-stripe[:CHUNK] or vca-dispatch[:CHUNK], of 4k to 16m, a "
        "power of two",
        std::string(text).c_str());
  volume.chunk_bytes = static_cast<uint32_t>(*chunk);
  return volume;
}

std::unique_ptr<Placement> Placement::volume(const Members &members, std::string_view text) {
  if (members.volume_bytes > 0)
    return std::make_unique<Volume>(members);
  std::vector<std::string_view> words = split(text, ':');
  bool known = words.size() <= 2 && (words[0] == "stripe" || words[0] == "dispatch");
  auto unit = words.size() == 2      ? parse_bytes(words[1])
              : words[0] == "stripe" ? kDefaultChunk
                                     : kDispatchGranule;
  constexpr uint64_t kLeast = 4096;
  constexpr uint64_t kMost = 1 << 20;
  bool fits = unit && *unit >= kLeast && *unit <= kMost && (*unit & (*unit - 1)) == 0;
  if (!known || !fits)
    refuse(
        "--placement=%s: must be stripe[:CHUNK] or dispatch[:GRANULE], of 4k to 1m, a power of "
        "two, "
        "or vca-stripe or vca-dispatch",
        std::string(text).c_str());
  if (words[0] == "dispatch")
    return dispatch(members, static_cast<uint32_t>(*unit));
  return std::make_unique<Stripe>(members, static_cast<uint32_t>(*unit));
}

}  // namespace revodrive::sim
