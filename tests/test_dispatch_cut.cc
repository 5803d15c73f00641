// SPDX-License-Identifier: GPL-2.0-or-later
//
// policy=dispatch and its map when power is lost, at any moment and with any part of what was not
// flushed; and when somebody damages it.

#include <algorithm>
#include <cstring>

#include "dispatch_bench.h"
#include "runner.h"
#include "volume/dispatch_layout.h"

using namespace revodrive;

namespace {

// Sectors that the load works on: pieces that lie on pages of the map of their own.
constexpr uint64_t kSpan = 4096, kPiece = 1024, kApart = 16256;

uint64_t lba_of(uint64_t index) {
  return index / kPiece * kApart + index % kPiece;
}
uint64_t index_of(uint64_t lba) {
  return lba / kApart * kPiece + lba % kApart;
}

// What may be read after a loss of power: a version that a flush has acknowledged, or any later
// one.
struct Expected {
  std::vector<std::vector<int64_t>> versions{kSpan, {0}};

  void written(uint64_t lba, uint64_t sectors, int64_t version) {
    for (uint64_t i = lba; i < lba + sectors; i++)
      versions[i].push_back(version);
  }
  // Those that had ended when the flush was given are the oldest that may be seen.
  void flushed(const std::vector<int64_t> &floor) {
    for (uint64_t i = 0; i < kSpan; i++) {
      auto at = std::find(versions[i].begin(), versions[i].end(), floor[i]);
      if (at != versions[i].end())
        versions[i].erase(versions[i].begin(), at);
    }
  }
};

class Load {
 public:
  Load(DispatchBench &bench, Random &random, Expected &expected, uint32_t version)
      : bench_(bench), random_(random), expected_(expected), version_(version) {
    for (auto &list : expected_.versions)
      ended_.push_back(list.front());
    bench_.on_done = [this](VolumeJob &job) { done(job); };
  }
  // Requests that run at the same time do not overlap.
  void round() {
    for (uint64_t at = random_.below(200); at + 300 < kSpan;) {
      uint64_t count = 1 + random_.below(random_.below(3) ? 24 : 250);
      count = std::min(count, kPiece - at % kPiece);
      switch (random_.below(10)) {
        case 0:
          start(VolumeOp::kFlush, 0, 0);
          break;
        case 1:
          start(VolumeOp::kTrim, at, count);
          break;
        default:
          start(VolumeOp::kWrite, at, count, random_.below(12) == 0);
      }
      at += count + random_.below(600);
    }
    bench_.run_all();
  }
  bool cut = false;

 private:
  void start(VolumeOp op, uint64_t lba, uint64_t count, bool stable = false) {
    uint32_t version = op == VolumeOp::kWrite ? ++version_ : 0;
    if (op != VolumeOp::kFlush)
      expected_.written(lba, count, version);
    versions_of_[bench_.jobs.size()] = version;
    floors_[bench_.jobs.size()] = ended_;
    VolumeJob &job = bench_.submit(op, lba_of(lba), count, version, stable);
    if (job.ends > 0)
      done(job);
  }
  void done(VolumeJob &job) {
    auto at = std::find_if(bench_.jobs.begin(), bench_.jobs.end(),
                           [&](const auto &it) { return it.get() == &job; });
    auto number = static_cast<size_t>(at - bench_.jobs.begin());
    if (job.failed() || cut || !floors_.contains(number))
      return;
    if (job.op == VolumeOp::kFlush)
      return expected_.flushed(floors_[number]);
    auto first = static_cast<ptrdiff_t>(index_of(job.lba));
    std::fill_n(ended_.begin() + first, job.sectors, versions_of_[number]);
    if (!job.stable)
      return;
    std::vector<int64_t> floor(kSpan, -1);
    std::fill_n(floor.begin() + first, job.sectors, versions_of_[number]);
    expected_.flushed(floor);
  }

  DispatchBench &bench_;
  Random &random_;
  Expected &expected_;
  uint32_t version_;
  std::vector<int64_t> ended_;
  std::map<size_t, int64_t> versions_of_;
  std::map<size_t, std::vector<int64_t>> floors_;
};

void check(DispatchBench &bench, Expected &expected) {
  std::vector<int64_t> found;
  for (uint64_t at = 0; at < kSpan; at += kPiece) {
    std::vector<int64_t> piece = bench.versions(lba_of(at), kPiece);
    found.insert(found.end(), piece.begin(), piece.end());
  }
  for (uint64_t i = 0; i < kSpan; i++) {
    auto &allowed = expected.versions[i];
    ck_assert_msg(std::find(allowed.begin(), allowed.end(), found[i]) != allowed.end(),
                  "block %llu: version %lld, oldest allowed %lld of %zu",
                  static_cast<unsigned long long>(i), static_cast<long long>(found[i]),
                  static_cast<long long>(allowed.front()), allowed.size());
    allowed = {found[i]};  // it is there now, and nothing else is in flight
  }
}

}  // namespace

namespace {

// One life of a volume: the load runs until the medium has changed `limit` times, then the power is
// lost. One change in `trouble` fails before that (0: none). Returns what is left.
DispatchBench::Contents live(const DispatchBench::Contents &contents, Random &random,
                             Random &losses, Expected &expected, uint32_t version, uint64_t *limit,
                             uint64_t trouble) {
  DispatchBench bench(contents);
  DispatchBench::Contents left;
  uint64_t changes = 0;
  bool cut = false;
  Load *running = nullptr;
  for (auto &media : bench.media)
    media->gate = [&](rd_block_op) {
      if (changes++ == *limit) {
        left = bench.after_cut(losses);
        cut = true;
        if (running)
          running->cut = true;
      }
      bool fails = running && trouble > 0 && losses.below(trouble) == 0;
      return cut || fails ? -EIO : 0;
    };
  if (bench.open()) {
    check(bench, expected);
    Load load(bench, random, expected, version);
    load.cut = cut;
    running = &load;
    for (int round = 0; round < 2; round++)
      load.round();
    running = nullptr;
  } else {
    ck_assert_msg(cut, "%s", bench.warnings.empty() ? "?" : bench.warnings[0].c_str());
  }
  if (cut)
    return left;
  *limit = changes;
  return bench.after_cut(losses);
}

void last_look(const DispatchBench::Contents &contents, Expected &expected) {
  DispatchBench bench(contents);
  ck_assert_msg(bench.open(), "%s", bench.warnings.empty() ? "?" : bench.warnings[0].c_str());
  check(bench, expected);
}

}  // namespace

// The same load with the power cut at its first change of a medium, at its second, and so on to its
// last; after each a next life goes on from what is left, and is cut, too.
START_TEST(cut_at_every_write) {
  uint64_t seed = test::seed();
  bool more = true;
  for (uint64_t at = 0; more && at < 1000; at++) {
    Random random(seed), losses(seed + at);
    Expected expected;
    DispatchBench::Contents contents(4);
    for (uint32_t life = 0; life < 2; life++) {
      uint64_t limit = life == 0 ? at : losses.below(150);
      contents = live(contents, random, losses, expected, 1000000 * life, &limit, 0);
      more &= life > 0 || limit == at;
    }
    last_look(contents, expected);
  }
  ck_assert(!more);
}
END_TEST

// Members refuse some of the writes of data, of the map, of its records: what fails is told, and
// what was told to be safe is.
START_TEST(cut_after_commits_that_failed) {
  uint64_t seed = test::seed();
  for (uint64_t round = 0; round < 60; round++) {
    Random random(seed + round), losses(seed - round);
    Expected expected;
    DispatchBench::Contents contents(4);
    for (uint32_t life = 0; life < 3; life++) {
      uint64_t limit = losses.below(250);
      contents =
          live(contents, random, losses, expected, 1000000 * life, &limit, 8 + losses.below(40));
    }
    last_look(contents, expected);
  }
}
END_TEST

// The power of the drives goes while the machine runs on: the map is what is stored.
START_TEST(power_cycle_of_the_card) {
  DispatchBench bench;
  ck_assert(bench.open());
  bench.run(VolumeOp::kWrite, 0, 64, 1);
  bench.run(VolumeOp::kFlush);
  bench.run(VolumeOp::kWrite, 0, 64, 2);
  bench.volume.drop_all(true);
  ck_assert(!bench.volume.opened());
  ck_assert(bench.run(VolumeOp::kRead, 0, 8).failed());
  ck_assert(bench.open());
  for (int64_t version : bench.versions(0, 64))
    ck_assert_int_eq(version, 1);
}
END_TEST

START_TEST(a_reset_of_the_bus_keeps_what_has_ended) {
  DispatchBench bench;
  ck_assert(bench.open());
  bench.run(VolumeOp::kWrite, 0, 64, 1);
  bench.submit(VolumeOp::kWrite, 64, 64, 1);
  bench.submit(VolumeOp::kFlush);
  bench.step();
  bench.volume.drop_all();
  bench.jobs.clear();
  ck_assert(bench.volume.opened());
  for (int64_t version : bench.versions(0, 64))
    ck_assert_int_eq(version, 1);
  ck_assert(!bench.run(VolumeOp::kFlush).failed());
}
END_TEST

namespace {

DispatchBench::Contents used_volume(Random &random, Expected &expected) {
  DispatchBench bench;
  ck_assert(bench.open());
  Load load(bench, random, expected, 1);
  for (int round = 0; round < 4; round++)
    load.round();
  ck_assert(!bench.run(VolumeOp::kFlush).failed());
  check(bench, expected);
  return bench.contents();
}

}  // namespace

// Each sector of the map's area in turn: what is read is right, or nothing is.
START_TEST(damage_is_noticed) {
  Random random(test::seed());
  Expected expected;
  const DispatchBench::Contents contents = used_volume(random, expected);
  auto layout = DispatchLayout::make(4, DispatchBench::kMemberSectors);
  unsigned refused = 0;
  for (unsigned member = 0; member < 4; member++) {
    for (const auto &[lba, sector] : contents[member]) {
      if (lba < layout.area_lba)
        continue;
      DispatchBench::Contents damaged = contents;
      CutMedia::Sector &bytes = damaged[member][lba];
      if (random.below(2))
        bytes[random.below(512)] ^= static_cast<uint8_t>(1 + random.below(255));
      else
        bytes = {};
      DispatchBench bench(damaged);
      if (bench.open()) {
        check(bench, expected);
        continue;
      }
      refused++;
      ck_assert_uint_eq(bench.counter("volume_map_state"), 2);
      ck_assert_uint_eq(bench.warnings.size(), 1);
      ck_assert(bench.run(VolumeOp::kRead, 0, 8).failure == VolumeFailure::kMap);
      ck_assert(bench.run(VolumeOp::kWrite, 0, 8, 1).failure == VolumeFailure::kMap);
    }
  }
  ck_assert_uint_gt(refused, 0);
}
END_TEST

// Older copies of the area, as a backup of one member would bring them.
START_TEST(an_old_member_is_noticed) {
  Random random(test::seed());
  Expected expected;
  DispatchBench::Contents old = used_volume(random, expected);
  DispatchBench bench(old);
  ck_assert(bench.open());
  for (uint32_t i = 0; i < 8; i++) {
    bench.run(VolumeOp::kWrite, 0, 4096, 77 + i);
    bench.run(VolumeOp::kFlush);
  }
  for (unsigned member = 0; member < 4; member++) {
    DispatchBench::Contents mixed = bench.contents();
    mixed[member] = old[member];
    DispatchBench next(mixed);
    ck_assert(!next.open());
    ck_assert_ptr_nonnull(strstr(next.warnings.at(0).c_str(), "older than the others"));
  }
}
END_TEST

START_TEST(members_of_others_are_refused) {
  Random random(test::seed());
  Expected expected;
  DispatchBench::Contents contents = used_volume(random, expected);
  std::swap(contents[0], contents[1]);
  DispatchBench swapped(contents);
  ck_assert(!swapped.open());
  ck_assert_ptr_nonnull(strstr(swapped.warnings.at(0).c_str(), "SSD 0 is of another volume"));

  contents = used_volume(random, expected = {});
  contents[3].clear();
  DispatchBench blank(contents);
  ck_assert(!blank.open());
  ck_assert_ptr_nonnull(strstr(blank.warnings.at(0).c_str(), "SSD 3 has no map, others have"));

  DispatchBench::Contents somebody(4);
  somebody[1][3] = {1, 2, 3};
  DispatchBench used(somebody);
  ck_assert(!used.open());
  ck_assert_ptr_nonnull(strstr(used.warnings.at(0).c_str(), "something in its first sectors"));
  ck_assert(used.media[0]->content.empty());  // nothing was touched
}
END_TEST

START_TEST(a_stream_that_was_tampered_with_is_refused_or_harmless) {
  Random random(test::seed());
  Expected expected;
  DispatchBench bench(used_volume(random, expected));
  ck_assert(bench.open());
  StreamWriter out;
  bench.volume.save(out);
  for (int i = 0; i < 60; i++) {
    std::vector<uint8_t> bytes = out.bytes();
    bytes[random.below(bytes.size())] ^= static_cast<uint8_t>(1 << random.below(8));
    if (random.below(4) == 0)
      bytes.resize(random.below(bytes.size()));
    DispatchBench other(bench.contents());
    StreamReader in(bytes);
    other.volume.load(in);
    if (!in.ok())
      other.volume.drop_all(true);
    other.run(VolumeOp::kOpen);
    other.run(VolumeOp::kRead, 0, 64);
    other.run(VolumeOp::kWrite, 0, 64, 1);
    other.run(VolumeOp::kFlush);
  }
}
END_TEST

int main() {
  return test::run_tests(
      "dispatch_cut",
      {cut_at_every_write, cut_after_commits_that_failed, power_cycle_of_the_card,
       a_reset_of_the_bus_keeps_what_has_ended, damage_is_noticed, an_old_member_is_noticed,
       members_of_others_are_refused, a_stream_that_was_tampered_with_is_refused_or_harmless});
}
