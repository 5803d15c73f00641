// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/nand.h"

#include <algorithm>

namespace revodrive {

namespace {

constexpr int64_t kNsPerUs = 1000;

uint32_t erasing_dies(const FlashProfile &profile) {
  auto blocks = static_cast<uint32_t>(profile.erase_at_once);
  return blocks == 0 ? 0 : std::max(blocks / std::max(profile.planes, 1u), 1u);
}

uint32_t erase_rounds(const FlashProfile &profile) {
  auto blocks = static_cast<uint32_t>(profile.erase_at_once);
  return blocks == 0 || blocks >= profile.planes ? 1 : (profile.planes + blocks - 1) / blocks;
}

}  // namespace

Nand::Nand(const FlashGeometry &geometry, const FlashProfile &profile, bool timing)
    : timing_(timing),
      page_bytes_(profile.page_bytes),
      page_total_bytes_(profile.page_bytes + profile.page_spare_bytes),
      bus_mb_s_(profile.bus_mb_s),
      bus_command_ns_(profile.bus_command_ns),
      decode_mb_s_(profile.decode_mb_s),
      read_ns_(profile.read_page_us * kNsPerUs),
      program_ns_(profile.program_page_us * kNsPerUs),
      erase_ns_(profile.erase_block_us * kNsPerUs * geometry.block_pages /
                std::max(profile.block_pages, 1u)),
      dies_at_once_(erasing_dies(profile)),
      erase_rounds_(erase_rounds(profile)),
      dies_(geometry.dies),
      channels_(geometry.channels) {
}

// Code words are corrected while the next ones come.
const Nand::Move &Nand::read_move(uint32_t pages, uint32_t bytes) const {
  return known_.of(uint64_t{pages} << 32 | bytes, [&] {
    int64_t decode_ns = decode_mb_s_ == 0 ? 0 : int64_t{bytes} * 1000 / decode_mb_s_;
    return Move{uint64_t{bytes} * page_total_bytes_ / page_bytes_,
                std::max(move_ns(pages, bytes), decode_ns)};
  });
}

// The spare bytes belong to the code words and come along with them.
int64_t Nand::move_ns(uint32_t pages, uint32_t bytes) const {
  uint64_t total = uint64_t{bytes} * page_total_bytes_ / page_bytes_;
  auto bytes_ns = static_cast<int64_t>((total * 1000 + bus_mb_s_ - 1) / bus_mb_s_);
  return bytes_ns + pages * bus_command_ns_;
}

int64_t Nand::work_ns(Kind kind) const {
  return kind == Kind::kProgram ? program_ns_ : erase_ns_ * erase_rounds_;
}

Nand::Read Nand::read(int64_t at_ns, uint32_t die, uint32_t pages, uint32_t bytes,
                      uint32_t first_bytes, const char *label) {
  counts_.read_ops++;
  counts_.read_bytes += bytes;
  const Move move = read_move(pages, bytes);
  counts_.bus_bytes += move.bus_bytes;
  if (!timing_)
    return {at_ns, at_ns, at_ns};
  // A program of another die that has begun by now uses the channel first.
  for (uint32_t other = die % channels_.size(); other < dies_.size(); other += channels_.size())
    settle(other, at_ns);
  Die &it = dies_[die];
  Span busy = it.time.reserve(at_ns, read_ns_ + move.ns, label);
  if (it.first != it.end)
    push_back(it, busy.end_ns);
  int64_t sensed_ns = busy.start_ns + read_ns_;
  int64_t end_ns = channel_of(die).time.reserve(sensed_ns, move.ns, "out").end_ns;
  return {sensed_ns, end_ns - move.ns + read_move(1, first_bytes).ns, end_ns};
}

Nand::Ticket Nand::program(int64_t at_ns, uint32_t die, uint32_t pages, bool background) {
  uint32_t bytes = pages * page_bytes_;
  counts_.program_ops++;
  counts_.program_bytes += bytes;
  counts_.bus_bytes += uint64_t{pages} * page_total_bytes_;
  return queue(at_ns, die, Kind::kProgram, move_ns(pages, bytes), background);
}

Nand::Ticket Nand::erase(int64_t at_ns, uint32_t die) {
  counts_.erase_ops++;
  return queue(at_ns, die, Kind::kErase, 0, true);
}

Nand::Ticket Nand::queue(int64_t at_ns, uint32_t die, Kind kind, int64_t move_ns, bool background) {
  if (!timing_)
    return {die, 0, at_ns, false};
  settle(die, at_ns);
  Die &it = dies_[die];
  Channel &channel = channel_of(die);
  int64_t start_ns = std::max(at_ns, busy_until_ns(die));
  // The channel is a matter of how much is queued on it, not of who comes first.
  channel.queued_ns = std::max(channel.queued_ns, at_ns) + move_ns;
  int64_t wait_ns = std::max<int64_t>(channel.queued_ns - (start_ns + move_ns), 0);
  Op op{start_ns, start_ns + move_ns + (move_ns ? wait_ns : 0) + work_ns(kind), move_ns, kind,
        background};
  if (it.end - it.first == kOps)
    begin_oldest(die);
  Ticket ticket{die, it.end, op.end_ns, background || it.background > 0};
  it.background += background;
  it.ops[it.end++ % kOps] = op;
  if (kind == Kind::kProgram && !background)
    it.host_end_ns = op.end_ns;
  return ticket;
}

// Books what has begun by `at_ns`.
void Nand::settle(uint32_t die, int64_t at_ns) {
  const Die &it = dies_[die];
  while (it.first != it.end && it.ops[it.first % kOps].start_ns < at_ns)
    begin_oldest(die);
}

void Nand::begin_oldest(uint32_t die) {
  Die &it = dies_[die];
  Op &op = it.ops[it.first++ % kOps];
  it.background -= op.background;
  bool program = op.kind == Kind::kProgram;
  // Without bytes to move this is when it starts.
  int64_t moved_ns = channel_of(die).time.reserve(op.start_ns, op.move_ns, "in").end_ns;
  int64_t end_ns = std::max(moved_ns + work_ns(op.kind), op.end_ns);
  Span busy = it.time.reserve(op.start_ns, end_ns - op.start_ns, program ? "program" : "erase");
  op.start_ns = busy.start_ns;
  op.end_ns = busy.end_ns;
  if (program && !op.background)
    it.host_end_ns = std::max(it.host_end_ns, op.end_ns);
  if (it.first != it.end)
    push_back(it, op.end_ns);
}

// What waits does not start before `until_ns`.
void Nand::push_back(Die &die, int64_t until_ns) {
  for (uint32_t i = die.first; i != die.end; i++) {
    Op &op = die.ops[i % kOps];
    if (op.start_ns >= until_ns)
      return;
    op.end_ns += until_ns - op.start_ns;
    op.start_ns = until_ns;
    until_ns = op.end_ns;
    if (op.kind == Kind::kProgram && !op.background)
      die.host_end_ns = std::max(die.host_end_ns, op.end_ns);
  }
}

int64_t Nand::end_ns(const Ticket &ticket) const {
  if (!timing_)
    return ticket.end_ns;
  const Die &die = dies_[ticket.die];
  if (die.end - ticket.number > kOps)
    return ticket.end_ns;
  return die.ops[ticket.number % kOps].end_ns;
}

int64_t Nand::host_end_ns() const {
  int64_t end_ns = 0;
  for (const Die &die : dies_)
    end_ns = std::max(end_ns, die.host_end_ns);
  return end_ns;
}

int64_t Nand::busy_until_ns(uint32_t die) const {
  const Die &it = dies_[die];
  int64_t until_ns = it.time.busy_until_ns();
  return it.first == it.end ? until_ns : std::max(until_ns, it.ops[(it.end - 1) % kOps].end_ns);
}

int64_t Nand::busy_until_ns() const {
  int64_t until_ns = 0;
  for (uint32_t die = 0; die < dies_.size(); die++)
    until_ns = std::max(until_ns, busy_until_ns(die));
  return until_ns;
}

void Nand::erase_all(int64_t at_ns, int64_t duration_ns, uint32_t blocks) {
  counts_.erase_ops += uint64_t{blocks} * dies_.size();
  if (!timing_)
    return;
  for (Die &die : dies_)
    die.time.reserve(at_ns, duration_ns, "erase");
}

int64_t Nand::die_busy_ns() const {
  int64_t sum = 0;
  for (const Die &die : dies_)
    sum += die.time.busy_ns();
  return sum;
}

int64_t Nand::channel_busy_ns() const {
  int64_t sum = 0;
  for (const Channel &channel : channels_)
    sum += channel.time.busy_ns();
  return sum;
}

void Nand::clear() {
  for (Die &die : dies_) {
    die.time.clear();
    die.first = die.end;
    die.host_end_ns = 0;
    die.background = 0;
    die.ops.fill({});
  }
  for (Channel &channel : channels_) {
    channel.time.clear();
    channel.queued_ns = 0;
  }
}

void Nand::watch(Observer *observer, const std::string &prefix) {
  for (size_t i = 0; i < channels_.size(); i++)
    channels_[i].time.watch(observer, prefix + "channel " + std::to_string(i));
  for (size_t i = 0; i < dies_.size(); i++)
    dies_[i].time.watch(observer, prefix + "die " + std::to_string(i));
}

void Nand::save(StreamWriter &out) const {
  out.section("NAND");
  out.put(static_cast<uint32_t>(dies_.size()));
  out.put(static_cast<uint32_t>(channels_.size()));
  for (const Die &die : dies_) {
    die.time.save(out);
    out.put(die.host_end_ns);
    out.put(die.first);
    out.put(die.end);
    for (const Op &op : die.ops) {
      out.put(op.start_ns);
      out.put(op.end_ns);
      out.put(op.move_ns);
      out.put(op.kind);
      out.put(op.background);
    }
  }
  for (const Channel &channel : channels_) {
    channel.time.save(out);
    out.put(channel.queued_ns);
  }
  for (uint64_t value : {counts_.read_ops, counts_.program_ops, counts_.erase_ops,
                         counts_.read_bytes, counts_.program_bytes, counts_.bus_bytes})
    out.put(value);
}

void Nand::load_ops(StreamReader &in, Die &die) {
  in.get(die.host_end_ns);
  in.get(die.first);
  in.get(die.end);
  if (die.end - die.first > kOps || die.host_end_ns < 0 || die.host_end_ns > kLatestNs)
    in.fail();
  for (Op &op : die.ops) {
    in.get(op.start_ns);
    in.get(op.end_ns);
    in.get(op.move_ns);
    auto kind = in.get<uint8_t>();
    op.kind = static_cast<Kind>(kind);
    in.get(op.background);
    if (op.start_ns < 0 || op.end_ns < op.start_ns || op.end_ns > kLatestNs || op.move_ns < 0 ||
        op.move_ns > kLatestNs || kind > static_cast<uint8_t>(Kind::kErase))
      in.fail();
  }
  die.background = 0;
  for (uint32_t i = die.first; in.ok() && i != die.end; i++)
    die.background += die.ops[i % kOps].background;
}

void Nand::load(StreamReader &in) {
  in.section("NAND");
  bool same = in.get<uint32_t>() == dies_.size();
  same &= in.get<uint32_t>() == channels_.size();
  if (!same)
    in.fail();
  for (Die &die : dies_) {
    die.time.load(in);
    load_ops(in, die);
  }
  for (Channel &channel : channels_) {
    channel.time.load(in);
    in.get(channel.queued_ns);
    if (channel.queued_ns < 0 || channel.queued_ns > kLatestNs)
      in.fail();
  }
  for (uint64_t *value : {&counts_.read_ops, &counts_.program_ops, &counts_.erase_ops,
                          &counts_.read_bytes, &counts_.program_bytes, &counts_.bus_bytes})
    in.get(*value);
  if (!in.ok())
    clear();
}

}  // namespace revodrive
