// SPDX-License-Identifier: GPL-2.0-or-later
//
// policy=dispatch at work: where blocks go, what is read, how evenly members are written, and what
// a lost member means. Power cuts are in test_dispatch_cut.cc.
#include <set>

#include "dispatch_bench.h"
#include "runner.h"
#include "volume/free_space.h"

using namespace revodrive;

namespace {

constexpr uint64_t kMib = 2048;  // sectors

void good(const VolumeJob &job) {
  ck_assert_uint_eq(job.ends, 1);
  ck_assert_msg(!job.failed(), "failure %d", static_cast<int>(job.failure));
  ck_assert(job.window.guards_intact());
  ck_assert_uint_eq(job.window.maps, job.window.unmaps);
}

void failed(const VolumeJob &job, VolumeFailure failure) {
  ck_assert_uint_eq(job.ends, 1);
  ck_assert_int_eq(static_cast<int>(job.failure), static_cast<int>(failure));
}

void all_are(DispatchBench &bench, uint64_t lba, uint64_t sectors, int64_t version) {
  for (int64_t found : bench.versions(lba, sectors))
    ck_assert_int_eq(found, version);
}

}  // namespace

START_TEST(free_places_are_the_lowest_and_never_given_twice) {
  Random random(test::seed());
  for (uint64_t places : {1, 63, 64, 65, 5000, 300000}) {
    FreeSpace space;
    space.reset(places);
    std::vector<bool> taken(places);
    for (int round = 0; round < 600; round++) {
      if (random.below(3) > 0) {
        auto wanted = static_cast<uint32_t>(1 + random.below(200));
        FreeSpace::Run run = space.find(wanted);
        ck_assert_uint_le(run.count, wanted);
        ck_assert_int_eq(run.count == 0, space.free() == 0);
        for (uint64_t i = run.first; i < run.first + run.count; i++) {
          ck_assert(!taken[i]);
          taken[i] = true;
        }
        auto lowest = std::find(taken.begin(), taken.end(), false) - taken.begin();
        ck_assert(wanted > 1 || run.count == 0 || static_cast<uint64_t>(lowest) > run.first);
        space.take(run.first, run.count);
      } else {
        uint64_t place = random.below(places);
        if (taken[place])
          space.release(place, 1);
        taken[place] = false;
        ck_assert(space.is_free(place));
      }
      ck_assert_uint_eq(space.free(),
                        static_cast<uint64_t>(std::count(taken.begin(), taken.end(), false)));
    }
  }
}
END_TEST

START_TEST(what_was_never_written_reads_as_zeroes) {
  DispatchBench bench;
  ck_assert(bench.open());
  uint64_t sectors = bench.volume.sectors();
  ck_assert_uint_eq(sectors % 8, 0);
  ck_assert_uint_gt(sectors, 4 * (DispatchBench::kMemberSectors - 8192 - 1024));
  ck_assert_uint_lt(sectors, 4 * DispatchBench::kMemberSectors);
  all_are(bench, 0, 256, 0);
  all_are(bench, sectors - 100, 100, 0);
}
END_TEST

// Ends inside of blocks on both sides: the rest of them stays zero, or as it was.
START_TEST(writes_of_any_size_and_place) {
  for (bool timing : {true, false}) {
    DispatchBench bench(DispatchBench::Contents(4), timing);
    ck_assert(bench.open());
    good(bench.run(VolumeOp::kWrite, 3, 1, 1));
    all_are(bench, 0, 3, 0);
    all_are(bench, 3, 1, 1);
    all_are(bench, 4, 4, 0);
    good(bench.run(VolumeOp::kWrite, 5, 300, 2));
    all_are(bench, 3, 1, 1);
    all_are(bench, 4, 1, 0);
    all_are(bench, 5, 300, 2);
    all_are(bench, 305, 40, 0);
    good(bench.run(VolumeOp::kWrite, 13, 2, 3));
    all_are(bench, 13, 2, 3);
    all_are(bench, 15, 290, 2);
    good(bench.run(VolumeOp::kVerify, 0, 400));
  }
}
END_TEST

// Two writes to other sectors of one block at the same time: both are there.
START_TEST(neighbours_in_a_block_do_not_undo_each_other) {
  DispatchBench bench;
  ck_assert(bench.open());
  for (uint32_t i = 0; i < 64; i++)
    bench.submit(VolumeOp::kWrite, 100 + i, 1, i + 1);
  bench.run_all();
  for (uint32_t i = 0; i < 64; i++)
    all_are(bench, 100 + i, 1, i + 1);
}
END_TEST

START_TEST(a_rewritten_block_moves_to_who_is_free) {
  DispatchBench bench;
  ck_assert(bench.open());
  std::set<uint64_t> places;
  for (uint32_t round = 1; round <= 8; round++) {
    for (auto &media : bench.media)
      media->changes = 0;
    good(bench.run(VolumeOp::kWrite, 800, 8, round));
    for (unsigned i = 0; i < 4; i++)
      if (bench.media[i]->changes > 0)
        places.insert(i);
    all_are(bench, 800, 8, round);
  }
  ck_assert_uint_eq(places.size(), 4);
}
END_TEST

// Four writes that come together go to four members.
START_TEST(a_burst_is_spread_evenly) {
  DispatchBench bench;
  ck_assert(bench.open());
  std::array<uint64_t, 4> before{};
  for (unsigned i = 0; i < 4; i++)
    before[i] = bench.media[i]->changes;
  for (uint32_t i = 0; i < 64; i++)
    bench.submit(VolumeOp::kWrite, 8 * ((i * 37) % 512), 8, 1);
  bench.run_all();
  for (unsigned i = 0; i < 4; i++)
    ck_assert_uint_eq(bench.media[i]->changes - before[i], 16);
}
END_TEST

START_TEST(trim_gives_zeroes_to_the_sector_and_reaches_the_members) {
  DispatchBench bench;
  ck_assert(bench.open());
  good(bench.run(VolumeOp::kWrite, 0, 4096, 7));
  uint64_t free = bench.counter("volume_free_sectors");
  good(bench.run(VolumeOp::kTrim, 13, 2000));
  all_are(bench, 0, 13, 7);
  all_are(bench, 13, 2000, 0);
  all_are(bench, 2013, 100, 7);
  uint64_t trimmed = 0;
  for (auto &drive : bench.drives)
    drive->query([&](std::string_view name, uint64_t value) {
      trimmed += name == "trim_sectors" ? value : 0;
    });
  ck_assert_uint_eq(trimmed, 2008 - 16);  // whole blocks from 16 to 2008
  ck_assert_uint_eq(bench.counter("volume_free_sectors"), free + trimmed);
  ck_assert_uint_eq(bench.counter("volume_unsafe_pages"), 0);
  good(bench.run(VolumeOp::kTrim, 0, bench.volume.sectors()));
  ck_assert_uint_eq(bench.counter("volume_mapped_sectors"), 0);
}
END_TEST

// The bound that docs/vca.md states, under loads that would drive the members apart.
START_TEST(members_are_written_evenly) {
  Random random(test::seed());
  constexpr uint64_t kBound = 2 * 1024 + 128;  // balance_kib, and a chunk
  for (int kind = 0; kind < 4; kind++) {
    DispatchBench bench;
    ck_assert(bench.open());
    uint64_t sectors = bench.volume.sectors();
    for (uint32_t i = 0; i < 1200; i++) {
      uint64_t span = kind == 0 ? 64 : sectors / 2;
      uint64_t count = kind < 2    ? 8
                       : kind == 2 ? 8 * (1 + random.below(64))
                                   : 1 + random.below(300);
      uint64_t lba = random.below(span) / 8 * 8 + (kind == 3 ? random.below(8) : 0);
      bench.submit(random.below(4) ? VolumeOp::kWrite : VolumeOp::kRead, lba, count, 1);
      if (random.below(8) == 0)
        bench.run_all();
      if (random.below(200) == 0)
        bench.submit(VolumeOp::kTrim, random.below(sectors / 2), sectors / 4);
      ck_assert_uint_le(bench.counter("volume_imbalance_sectors"), kBound);
    }
    bench.run_all();
    ck_assert_uint_eq(bench.counter("volume_crowded"), 0);
  }
}
END_TEST

// All of it, several times over, without a flush: commits of its own make room.
START_TEST(a_full_volume_can_be_rewritten) {
  DispatchBench bench;
  ck_assert(bench.open());
  uint64_t sectors = bench.volume.sectors();
  for (uint32_t version = 1; version <= 3; version++) {
    for (uint64_t lba = 0; lba < sectors; lba += 8192)
      bench.submit(VolumeOp::kWrite, lba, std::min<uint64_t>(8192, sectors - lba), version);
    bench.run_all();
  }
  for (auto &job : bench.jobs)
    ck_assert(!job->failed());
  for (uint64_t lba = 0; lba < sectors; lba += 4096)
    all_are(bench, lba, std::min<uint64_t>(4096, sectors - lba), 3);
  ck_assert_uint_gt(bench.counter("volume_commits"), 3);
}
END_TEST

START_TEST(a_flush_ends_after_what_came_before_it) {
  DispatchBench bench;
  ck_assert(bench.open());
  VolumeJob &first = bench.submit(VolumeOp::kWrite, 0, 512, 1);
  VolumeJob &flush = bench.submit(VolumeOp::kFlush);
  VolumeJob &again = bench.submit(VolumeOp::kFlush);
  VolumeJob &later = bench.submit(VolumeOp::kWrite, 0, 512, 2);
  while (flush.ends == 0) {
    bench.step();
    ck_assert(flush.ends == 0 || first.ends == 1);
  }
  ck_assert_uint_eq(again.ends, 1);  // one commit for both
  ck_assert_uint_eq(later.ends, 0);
  ck_assert_uint_eq(bench.counter("volume_unsafe_pages"), 0);
  bench.run_all();
  good(later);
}
END_TEST

// Against a plain copy of what the volume must hold.
START_TEST(storm) {
  Random random(test::seed());
  for (bool timing : {true, false}) {
    DispatchBench bench(DispatchBench::Contents(4), timing);
    ck_assert(bench.open());
    uint64_t sectors = bench.volume.sectors();
    std::vector<int64_t> model(sectors, 0);
    uint32_t version = 0;
    for (int round = 0; round < 50; round++) {
      bench.jobs.clear();
      uint64_t at = random.below(2000);  // requests of a round do not overlap
      while (at + 3000 < sectors && bench.jobs.size() < 100) {
        uint64_t count = 1 + random.below(random.below(4) ? 40 : 900);
        auto from = model.begin() + static_cast<ptrdiff_t>(at);
        switch (random.below(8)) {
          case 0:
          case 1:
          case 2:
          case 3:
            version++;
            std::fill_n(from, count, version);
            bench.submit(VolumeOp::kWrite, at, count, version, random.below(10) == 0);
            break;
          case 4:
            std::fill_n(from, count, 0);
            bench.submit(VolumeOp::kTrim, at, count);
            break;
          case 5:
            bench.submit(VolumeOp::kFlush);
            break;
          default:
            bench.submit(VolumeOp::kRead, at, count);
        }
        at += count + random.below(500);
      }
      bench.run_all();
      for (auto &job : bench.jobs) {
        good(*job);
        for (uint64_t i = 0; job->op == VolumeOp::kRead && i < job->sectors; i++)
          ck_assert_int_eq(DispatchBench::version_in(job->window.data() + i * 512, job->lba + i),
                           model[job->lba + i]);
      }
    }
  }
}
END_TEST

START_TEST(cancelled_requests_leave_nothing_behind) {
  Random random(test::seed());
  DispatchBench bench;
  ck_assert(bench.open());
  good(bench.run(VolumeOp::kWrite, 0, 8192, 1));
  good(bench.run(VolumeOp::kFlush));
  uint64_t free = bench.counter("volume_free_sectors");
  for (int round = 0; round < 30; round++) {
    bench.jobs.clear();
    for (uint64_t i = 0; i < 80; i++) {
      VolumeOp op = random.below(6) == 0   ? VolumeOp::kFlush
                    : random.below(3) == 0 ? VolumeOp::kRead
                                           : VolumeOp::kWrite;
      bench.submit(op, i * 100, 1 + random.below(64), 2);
    }
    for (uint64_t i = random.below(8); i > 0 && bench.queue.next_ns() != RD_NEVER; i--)
      bench.step();
    for (auto &job : bench.jobs) {
      if (job->ends == 0 && random.below(2))
        bench.volume.cancel(*job), job->ends = 99;
    }
    bench.run_all();
    for (auto &job : bench.jobs)
      ck_assert(job->ends == 1 || job->ends == 99);
    good(bench.run(VolumeOp::kFlush));
    ck_assert_uint_eq(bench.counter("volume_free_sectors"), free);
    for (int64_t version : bench.versions(0, 8192))
      ck_assert(version == 1 || version == 2);
  }
}
END_TEST

// Reads of its share fail, no write is let in, nobody sees anything wrong; then it comes back.
START_TEST(a_lost_member_and_its_return) {
  DispatchBench bench;
  ck_assert(bench.open());
  good(bench.run(VolumeOp::kWrite, 0, 2048, 1));
  good(bench.run(VolumeOp::kFlush));
  good(bench.run(VolumeOp::kWrite, 0, 64, 2));  // not flushed
  bench.volume.unplug(2);
  unsigned lost = 0;
  for (uint64_t lba = 0; lba < 2048; lba += 8) {
    VolumeJob &job = bench.run(VolumeOp::kRead, lba, 8);
    lost += job.failed();
    if (job.failed())
      ck_assert_int_eq(static_cast<int>(job.failure), static_cast<int>(VolumeFailure::kMissing));
    else
      ck_assert_int_eq(DispatchBench::version_in(job.window.data(), lba), lba < 64 ? 2 : 1);
  }
  ck_assert_uint_gt(lost, 0);
  ck_assert_uint_lt(lost, 256);
  failed(bench.run(VolumeOp::kWrite, 4096, 8, 3), VolumeFailure::kMissing);
  failed(bench.run(VolumeOp::kTrim, 0, 64), VolumeFailure::kMissing);
  failed(bench.run(VolumeOp::kFlush), VolumeFailure::kMissing);
  bench.volume.plug(2, *bench.drives[2]);
  all_are(bench, 0, 64, 2);
  all_are(bench, 64, 1984, 1);
  good(bench.run(VolumeOp::kFlush));
  DispatchBench next(bench.contents());
  ck_assert(next.open());
  all_are(next, 0, 64, 2);
  all_are(next, 64, 1984, 1);
}
END_TEST

START_TEST(saved_and_loaded_in_the_middle) {
  Random random(test::seed());
  for (int round = 0; round < 15; round++) {
    DispatchBench bench;
    ck_assert(bench.open());
    good(bench.run(VolumeOp::kWrite, 0, 4096, 1));
    good(bench.run(VolumeOp::kFlush));
    good(bench.run(VolumeOp::kWrite, 512, 1024, 2));  // safe only with the map in memory
    bench.submit(VolumeOp::kWrite, 4096, 256, 3);
    bench.submit(VolumeOp::kTrim, 0, 256);
    bench.submit(VolumeOp::kFlush);
    for (uint64_t i = random.below(40); i > 0 && bench.queue.next_ns() != RD_NEVER; i--)
      bench.step();
    StreamWriter out;
    bench.volume.save(out);
    auto contents = bench.contents();
    DispatchBench other(contents);
    StreamReader in(out.bytes());
    other.volume.load(in);
    ck_assert(in.ok() && in.at_end());
    ck_assert(other.volume.opened());
    all_are(other, 512, 1024, 2);
    // As the bridge does.
    for (auto &job : bench.jobs) {
      if (job->ends == 0)
        other.submit(job->op, job->lba, job->sectors, 3);
    }
    good(other.run(VolumeOp::kFlush));
    DispatchBench last(other.after_cut(random));
    ck_assert(last.open());
    all_are(last, 0, 256, 0);
    all_are(last, 256, 256, 1);
    all_are(last, 512, 1024, 2);
    all_are(last, 4096, 256, 3);
  }
}
END_TEST

// Where the time of a request went that has just ended: nothing is left over, and the most of it
// was with the members.
static void spent_on_members(const DispatchBench &bench, const VolumeJob &job) {
  Journey whole;
  whole.start(job.start_ns);
  whole.follow(job.before, Stage::kBridge);
  whole.follow(job.last, Stage::kBridge);
  ck_assert_int_eq(whole.at_ns(), bench.now_ns);
  int64_t firmware_ns = whole.stage_ns(Stage::kPcie) + whole.stage_ns(Stage::kBridge);
  ck_assert_int_gt(whole.stage_ns(Stage::kSata), 0);
  ck_assert_int_lt(firmware_ns, whole.total_ns() / 2);
}

START_TEST(who_waits_for_the_map_went_the_way_of_its_commands) {
  DispatchBench bench;
  unsigned ends = 0;
  bench.on_done = [&](VolumeJob &job) {
    ends++;
    spent_on_members(bench, job);
  };
  bench.run(VolumeOp::kOpen);
  bench.run(VolumeOp::kWrite, 0, 64, 1);
  bench.run(VolumeOp::kFlush);
  bench.run(VolumeOp::kWrite, 0, 64, 2, true);
  bench.run(VolumeOp::kTrim, 0, 64);
  ck_assert_uint_eq(ends, 5);
  bench.run(VolumeOp::kWrite, 0, 64, 3);
  bench.submit(VolumeOp::kFlush);
  bench.step();
  bench.run(VolumeOp::kFlush);  // in the middle of another one's commit, and waits for its own
  ck_assert_uint_eq(ends, 8);
}
END_TEST

int main() {
  return test::run_tests(
      "dispatch",
      {free_places_are_the_lowest_and_never_given_twice, what_was_never_written_reads_as_zeroes,
       writes_of_any_size_and_place, neighbours_in_a_block_do_not_undo_each_other,
       a_rewritten_block_moves_to_who_is_free, a_burst_is_spread_evenly,
       trim_gives_zeroes_to_the_sector_and_reaches_the_members, members_are_written_evenly,
       a_full_volume_can_be_rewritten, a_flush_ends_after_what_came_before_it, storm,
       cancelled_requests_leave_nothing_behind, a_lost_member_and_its_return,
       saved_and_loaded_in_the_middle, who_waits_for_the_map_went_the_way_of_its_commands});
}
