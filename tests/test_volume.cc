// SPDX-License-Identifier: GPL-2.0-or-later
//
// The volume over four drives: where bytes go, what runs at the same time, and what happens to
// requests when members fail, go and come.
#include "volume_bench.h"

#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint32_t kChunk = VolumeBench::kChunk;
constexpr uint8_t kFlushCacheExt = 0xEA;

uint8_t fill_on(const VolumeBench &bench, uint64_t lba) {
  uint64_t number = lba / kChunk;
  const FakeMedia &media = *bench.media[number % 4];
  FakeMedia::Sector sector = media.sector(number / 4 * kChunk + lba % kChunk);
  bool even = std::all_of(sector.begin(), sector.end(), [&](uint8_t b) { return b == sector[0]; });
  ck_assert(even);
  return sector[0];
}

void good(const VolumeJob &job) {
  ck_assert_uint_eq(job.ends, 1);
  ck_assert_msg(!job.failed(), "failure %d", static_cast<int>(job.failure));
  ck_assert(job.window.guards_intact());
  ck_assert_uint_eq(job.window.maps, job.window.unmaps);
}

void failed(const VolumeJob &job, VolumeFailure failure, uint64_t lba) {
  ck_assert_uint_eq(job.ends, 1);
  ck_assert_int_eq(static_cast<int>(job.failure), static_cast<int>(failure));
  ck_assert_uint_eq(job.failed_lba, lba);
  ck_assert_uint_eq(job.window.maps, job.window.unmaps);
}

std::vector<FakeMedia::Record> discards(const FakeMedia &media) {
  std::vector<FakeMedia::Record> found;
  for (const auto &record : media.records) {
    if (record.op == RD_BLOCK_DISCARD)
      found.push_back(record);
  }
  return found;
}

}  // namespace

START_TEST(size_is_that_of_the_smallest_member_in_whole_chunks) {
  VolumeBench bench(8192 + 100);
  ck_assert(bench.volume.formed());
  ck_assert_uint_eq(bench.volume.sectors(), 4 * 8192);
}
END_TEST

START_TEST(a_request_over_chunks_lies_on_all_members_and_ends_once) {
  VolumeBench bench;
  VolumeJob &write = bench.submit(VolumeOp::kWrite, 100, 1000, 0xA5);
  ck_assert_uint_eq(write.ends, 0);
  bench.run();
  good(write);
  ck_assert_uint_eq(fill_on(bench, 99), 0);
  for (uint64_t lba = 100; lba < 1100; lba++)
    ck_assert_uint_eq(fill_on(bench, lba), 0xA5);
  ck_assert_uint_eq(fill_on(bench, 1100), 0);
  VolumeJob &read = bench.submit(VolumeOp::kRead, 100, 1000);
  bench.run();
  good(read);
  ck_assert(std::all_of(read.window.data(), read.window.data() + 512000,
                        [](uint8_t byte) { return byte == 0xA5; }));
}
END_TEST

START_TEST(more_requests_than_tags) {
  VolumeBench bench;
  for (uint32_t i = 0; i < 300; i++)
    bench.submit(VolumeOp::kWrite, i * 8, 8, static_cast<uint8_t>(i));
  bench.run();
  for (uint32_t i = 0; i < 300; i++) {
    good(*bench.jobs[i]);
    ck_assert_uint_eq(fill_on(bench, i * 8 + 7), static_cast<uint8_t>(i));
  }
}
END_TEST

// A drive aborts everything when a command without a tag meets queued ones.
START_TEST(flush_waits_its_turn_and_holds_up_who_comes_later) {
  VolumeBench bench;
  for (auto &media : bench.media)
    media->records.clear();
  bench.submit(VolumeOp::kWrite, 0, 1024, 1);
  VolumeJob &flush = bench.submit_each(kFlushCacheExt);
  bench.submit(VolumeOp::kWrite, 0, 1024, 2);
  bench.run();
  good(flush);
  for (unsigned i = 0; i < 4; i++) {
    std::vector<rd_block_op> ops;
    for (const auto &record : bench.media[i]->records)
      ops.push_back(record.op);
    std::vector<rd_block_op> want{RD_BLOCK_WRITE, RD_BLOCK_WRITE, RD_BLOCK_FLUSH, RD_BLOCK_WRITE,
                                  RD_BLOCK_WRITE};
    ck_assert(ops == want);
  }
  ck_assert_uint_eq(fill_on(bench, 1023), 2);
}
END_TEST

START_TEST(stable_writes_are_stable_on_every_member) {
  VolumeBench bench;
  VolumeJob &job = bench.submit(VolumeOp::kRead, 0, 1);
  bench.run();
  good(job);
  for (auto &media : bench.media)
    media->records.clear();
  bench.jobs.push_back(std::make_unique<VolumeJob>(512 * 512, &bench.host));
  VolumeJob &write = *bench.jobs.back();
  write.op = VolumeOp::kWrite;
  write.sectors = 512;
  write.stable = true;
  write.data = &write.window;
  bench.start(write);
  bench.run();
  good(write);
  for (auto &media : bench.media) {
    ck_assert_uint_eq(media->records.size(), 1);
    ck_assert_int_eq(media->records[0].op, RD_BLOCK_WRITE_FUA);
  }
}
END_TEST

// Ends in the middle of chunks on both sides: not a sector more, not one less.
START_TEST(trim_reaches_members_to_the_sector) {
  VolumeBench bench;
  VolumeJob &job = bench.submit(VolumeOp::kTrim, 3 * kChunk + 5, 4 * kChunk + 10);
  bench.run();
  good(job);
  // Chunks 3 (from sector 5), 4, 5, 6 and 7 (up to sector 15) of the volume.
  struct {
    uint64_t lba, sectors;
  } want[] = {{kChunk, kChunk}, {kChunk, kChunk}, {kChunk, kChunk}, {5, kChunk + 10}};
  for (unsigned i = 0; i < 4; i++) {
    auto found = discards(*bench.media[i]);
    ck_assert_uint_eq(found.size(), 1);
    ck_assert_uint_eq(found[0].offset / 512, want[i].lba);
    ck_assert_uint_eq(found[0].bytes / 512, want[i].sectors);
  }
}
END_TEST

// Longer than a TRIM range and than all ranges of a command can say.
START_TEST(trim_of_a_large_volume) {
  constexpr uint64_t kMember = 10'000'000;
  VolumeBench bench(kMember);
  VolumeJob &job = bench.submit(VolumeOp::kTrim, 0, bench.volume.sectors());
  bench.run();
  good(job);
  for (unsigned i = 0; i < 4; i++) {
    uint64_t next = 0;
    for (const auto &record : discards(*bench.media[i])) {
      ck_assert_uint_eq(record.offset / 512, next);
      next += record.bytes / 512;
    }
    ck_assert_uint_eq(next, kMember / kChunk * kChunk);
  }
}
END_TEST

// One bad sector under a full queue: one request fails, at that sector; nobody else notices.
START_TEST(bad_sector_fails_one_request) {
  VolumeBench bench;
  constexpr uint64_t kBad = 2 * kChunk + 17;  // sector 17 of member 2
  bench.media[2]->fail = [](const FakeMedia::Record &record) {
    bool hit = record.op == RD_BLOCK_READ && record.offset <= 17 * 512 &&
               record.offset + record.bytes > 17 * 512;
    return hit ? -EIO : 0;
  };
  for (uint64_t lba = 0; lba < 4096; lba += 8)
    bench.submit(VolumeOp::kRead, lba, 8);
  bench.run();
  for (auto &job : bench.jobs) {
    if (job->lba <= kBad && kBad < job->lba + 8)
      failed(*job, VolumeFailure::kMedium, kBad / 8 * 8);
    else
      good(*job);
  }
}
END_TEST

// Everything below the LBA that a failure names has been done.
START_TEST(the_lowest_of_several_failures_is_named) {
  VolumeBench bench;
  for (unsigned i : {1u, 3u})
    bench.media[i]->fail = [](const FakeMedia::Record &record) {
      return record.op == RD_BLOCK_READ ? -EIO : 0;
    };
  VolumeJob &job = bench.submit(VolumeOp::kRead, 0, 8 * kChunk);
  bench.run();
  failed(job, VolumeFailure::kMedium, kChunk);
}
END_TEST

START_TEST(a_lost_member_fails_its_share_only) {
  VolumeBench bench;
  for (auto &media : bench.media)
    media->hold = true;
  VolumeJob &whole = bench.submit(VolumeOp::kWrite, 0, 4 * kChunk, 1);
  VolumeJob &other = bench.submit(VolumeOp::kWrite, kChunk, 8, 2);
  bench.volume.unplug(2);
  for (auto &media : bench.media) {
    media->hold = false;
    media->drain();
  }
  bench.run();
  failed(whole, VolumeFailure::kMissing, 2 * kChunk);
  good(other);
  VolumeJob &later = bench.submit(VolumeOp::kRead, 2 * kChunk + 1, 1);
  failed(later, VolumeFailure::kMissing, 2 * kChunk + 1);
  VolumeJob &elsewhere = bench.submit(VolumeOp::kRead, 0, 2 * kChunk);
  bench.run();
  good(elsewhere);
  VolumeJob &flush = bench.submit_each(kFlushCacheExt);
  bench.run();
  ck_assert(flush.failed());
}
END_TEST

START_TEST(only_the_same_drive_comes_back) {
  VolumeBench bench;
  bench.submit(VolumeOp::kWrite, kChunk, 8, 7);
  bench.run();
  bench.volume.unplug(1);
  auto stranger = bench.make_drive(1, "STRANGER");
  bench.volume.plug(1, *stranger);
  ck_assert(bench.volume.state(1) == MemberState::kForeign);
  failed(bench.submit(VolumeOp::kRead, kChunk, 8), VolumeFailure::kMissing, kChunk);
  bench.volume.unplug(1);
  bench.volume.plug(1, *bench.drives[1]);
  ck_assert(bench.volume.state(1) == MemberState::kReady);
  VolumeJob &read = bench.submit(VolumeOp::kRead, kChunk, 8);
  bench.run();
  good(read);
  ck_assert_uint_eq(read.window.data()[0], 7);
}
END_TEST

START_TEST(cancelled_requests_end_silently_and_leave_no_transfer) {
  VolumeBench bench;
  for (auto &media : bench.media)
    media->hold = true;
  for (uint32_t i = 0; i < 100; i++)
    bench.submit(VolumeOp::kRead, i * 16, 16);
  for (auto &media : bench.media)
    media->hold = false;
  for (uint32_t i = 0; i < 100; i += 2)
    bench.volume.cancel(*bench.jobs[i]);
  bench.run();
  for (uint32_t i = 0; i < 100; i++) {
    ck_assert_uint_eq(bench.jobs[i]->ends, i % 2);
    ck_assert_uint_eq(bench.jobs[i]->window.maps, bench.jobs[i]->window.unmaps);
  }
  for (auto &media : bench.media)
    ck_assert_uint_eq(media->held(), 0);
}
END_TEST

// Everything at once, against a plain copy of what the volume must hold.
START_TEST(storm) {
  Random random(test::seed());
  for (bool timing : {true, false}) {
    VolumeBench bench(2048, timing, 16);
    uint64_t sectors = bench.volume.sectors();
    std::vector<int> model(sectors, 0);
    for (int round = 0; round < 60; round++) {
      bench.jobs.clear();
      bool holds = random.below(2) == 0;
      for (auto &media : bench.media)
        media->hold = holds;
      uint64_t at = 0;  // requests of a round do not overlap
      while (at + 300 < sectors) {
        uint64_t count = 1 + random.below(200);
        if (random.below(2)) {
          auto fill = static_cast<uint8_t>(random.below(255));
          bench.submit(VolumeOp::kWrite, at, count, fill);
          std::fill_n(model.begin() + static_cast<ptrdiff_t>(at), count, fill);
        } else {
          bench.submit(VolumeOp::kRead, at, count);
        }
        at += count + random.below(50);
      }
      for (int i = 0; holds && i < 20; i++) {
        FakeMedia &media = *bench.media[random.below(4)];
        if (media.held() > 0)
          media.answer(random.below(media.held()));
      }
      for (auto &media : bench.media) {
        media->hold = false;
        media->drain();
      }
      bench.run();
      for (auto &job : bench.jobs) {
        good(*job);
        for (uint64_t i = 0; job->op == VolumeOp::kRead && i < job->sectors; i++)
          ck_assert_int_eq(job->window.data()[i * 512 + 3], model[job->lba + i]);
      }
    }
  }
}
END_TEST

int main() {
  return test::run_tests(
      "volume",
      {size_is_that_of_the_smallest_member_in_whole_chunks,
       a_request_over_chunks_lies_on_all_members_and_ends_once, more_requests_than_tags,
       flush_waits_its_turn_and_holds_up_who_comes_later, stable_writes_are_stable_on_every_member,
       trim_reaches_members_to_the_sector, trim_of_a_large_volume, bad_sector_fails_one_request,
       the_lowest_of_several_failures_is_named, a_lost_member_fails_its_share_only,
       only_the_same_drive_comes_back, cancelled_requests_end_silently_and_leave_no_transfer,
       storm});
}
