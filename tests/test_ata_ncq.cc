// SPDX-License-Identifier: GPL-2.0-or-later
//
// Queued commands: 32 tags, order, and every way in which the queue stops.
#include <utility>

#include "drive_bench.h"
#include "random.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint64_t kSectors = 1 << 20;
constexpr uint64_t kBadLba = 0x12345;

bool queue_failed(const FakeCommand &command) {
  return command.done() && command.ata.failed && command.status() == 0x41 &&
         command.error() == 0x04;
}

// A transfer that touches kBadLba fails.
int bad_sector(const FakeMedia::Record &record) {
  uint64_t lba = record.offset / 512;
  return lba <= kBadLba && kBadLba < lba + record.bytes / 512 ? -EIO : 0;
}

struct ErrorPage {
  explicit ErrorPage(DriveBench &bench, uint8_t opcode = 0x2F) {
    FakeCommand &done = bench.read_log(0x10, 1, opcode);
    ck_assert(done.good());
    const uint8_t *page = done.window.data();
    ck_assert(sums_to_zero(page));
    not_queued = page[0] & 0x80;
    tag = page[0] & 0x1F;
    status = page[2];
    error = page[3];
    lba = page[4] | page[5] << 8 | page[6] << 16 | uint64_t{page[8]} << 24;
  }
  bool not_queued;
  uint8_t tag, status, error;
  uint64_t lba;
};

}  // namespace

START_TEST(all_tags_at_once) {
  DriveBench bench(kSectors);
  std::vector<FakeCommand *> reads;
  for (uint8_t tag = 0; tag < 32; tag++)
    reads.push_back(&bench.issue(queued(false, tag, tag * 64u, 8), 4096));
  bench.initiator.run();
  for (FakeCommand *read : reads) {
    ck_assert(read->good());
    ck_assert(!read->early);
  }
  ck_assert_uint_eq(bench.counter("ncq_commands"), 32);
  ck_assert(bench.rules_kept());
}
END_TEST

START_TEST(data_goes_both_ways) {
  DriveBench bench(kSectors);
  std::vector<uint8_t> data(512 * 1024);
  Random random(7);
  for (uint8_t &byte : data)
    byte = static_cast<uint8_t>(random.next());
  ck_assert(bench.run(queued(true, 5, 777, 1024), 512 * 1024, data.data()).good());
  FakeCommand &read = bench.run(queued(false, 31, 777, 1024), 512 * 1024);
  ck_assert(read.good());
  ck_assert_mem_eq(read.window.data(), data.data(), data.size());
}
END_TEST

START_TEST(limits) {
  DriveBench bench(kSectors);
  ck_assert(bench.run(queued(false, 0, kSectors - 8, 8), 4096).good());
  for (bool write : {false, true}) {
    FakeCommand &beyond = bench.run(queued(write, 9, kSectors - 8, 9), 8192);
    ck_assert(queue_failed(beyond));
    ErrorPage page(bench);
    ck_assert(!page.not_queued);
    ck_assert_uint_eq(page.tag, 9);
    ck_assert_uint_eq(page.error, 0x10);
    ck_assert_uint_eq(page.lba, kSectors - 8);
  }
  ck_assert_uint_eq(bench.media.records.size(), 1);
}
END_TEST

START_TEST(short_window) {
  DriveBench bench(kSectors);
  FakeCommand &done = bench.run(queued(true, 2, 0, 8), 4095);
  ck_assert(queue_failed(done) && done.ata.data_short);
  ck_assert_uint_eq(ErrorPage(bench).tag, 2);
  ck_assert(bench.media.records.empty());
}
END_TEST

// Case C012: one bad sector among 31 queued reads.
START_TEST(one_bad_sector) {
  for (uint8_t log_opcode : {0x2F, 0x47}) {
    DriveBench bench(kSectors);
    bench.media.fail = bad_sector;
    std::vector<FakeCommand *> reads;
    for (uint8_t tag = 0; tag < 31; tag++)
      reads.push_back(&bench.issue(queued(false, tag, kBadLba - 20 * 8 + tag * 8u, 8), 4096));
    bench.initiator.run();
    // What ended before the error may be good; from the error on everything fails alike.
    bool error_seen = false;
    unsigned failed = 0;
    for (const FakeCommand *done : bench.initiator.order) {
      error_seen |= done->ata.failed;
      failed += done->ata.failed;
      ck_assert(error_seen ? queue_failed(*done) : done->good());
    }
    ck_assert_uint_eq(bench.initiator.order.size(), 31);
    ck_assert_uint_ge(failed, 1);
    ck_assert(queue_failed(*reads[20]) && !reads[20]->early);
    ck_assert_uint_eq(bench.counter("media_errors"), 1);
    ck_assert_uint_eq(bench.counter("aborted"), failed - 1);

    // Refused until the log was read.
    FakeCommand &refused = bench.run(queued(false, 3, 0, 8), 4096);
    ck_assert(queue_failed(refused));
    ErrorPage page(bench, log_opcode);
    ck_assert(!page.not_queued);
    ck_assert_uint_eq(page.tag, 20);
    ck_assert_uint_eq(page.status, 0x41);
    ck_assert_uint_eq(page.error, 0x40);
    ck_assert_uint_eq(page.lba, kBadLba);
    ck_assert(bench.run(queued(false, 3, 0, 8), 4096).good());
    ck_assert(bench.rules_kept());
  }
}
END_TEST

START_TEST(backend_errors) {
  static constexpr struct {
    bool write;
    int error;
    uint8_t log_status, log_error;
  } kCases[] = {{false, -EIO, 0x41, 0x40},
                {true, -EIO, 0x61, 0x04},
                {true, -ENOSPC, 0x61, 0x04},
                {false, -ECANCELED, 0x41, 0x04},
                {true, -ECANCELED, 0x41, 0x04}};
  for (const auto &it : kCases) {
    DriveBench bench(kSectors);
    bench.media.fail = [&](const FakeMedia::Record &) { return it.error; };
    FakeCommand &done = bench.run(queued(it.write, 17, 99, 8), 4096);
    ck_assert(queue_failed(done));
    ck_assert(!done.window.moved);
    ErrorPage page(bench);
    ck_assert_uint_eq(page.tag, 17);
    ck_assert_uint_eq(page.status, it.log_status);
    ck_assert_uint_eq(page.error, it.log_error);
    ck_assert_uint_eq(page.lba, 99);
  }
}
END_TEST

// The backend is slow: whoever still waits for it when the queue stops comes back when it answers.
START_TEST(stop_with_media_pending) {
  DriveBench bench(kSectors);
  bench.media.hold = true;
  bench.media.fail = bad_sector;
  FakeCommand &slow = bench.issue(queued(false, 1, 0, 8), 4096);
  FakeCommand &bad = bench.issue(queued(false, 2, kBadLba, 8), 4096);
  FakeCommand &quick = bench.issue(queued(false, 3, 100, 8), 4096);
  bench.initiator.run();
  ck_assert(slow.late && bad.late && quick.late);
  bench.media.answer(1);  // bad
  ck_assert(queue_failed(bad) && !bad.early);
  ck_assert(!slow.done() && !quick.done());
  ck_assert(queue_failed(bench.run(queued(false, 4, 0, 8), 4096)));
  ErrorPage page(bench);
  ck_assert_uint_eq(page.tag, 2);
  // The error state is over, but the stragglers are still aborted, and their tags still busy.
  bench.media.hold = false;
  FakeCommand &next = bench.run(queued(false, 5, 200, 8), 4096);
  ck_assert(next.good());
  bench.media.answer(1);  // quick
  ck_assert(queue_failed(quick) && quick.early && !quick.window.moved);
  bench.media.answer(0);
  ck_assert(queue_failed(slow) && slow.early);
  ck_assert_uint_eq(bench.counter("aborted"), 3);
  ck_assert(bench.rules_kept());
}
END_TEST

// A backend that answers a straggler from inside the submit of another command: nothing may
// complete there, and nothing may be forgotten.
START_TEST(straggler_ends_inside_execute) {
  DriveBench bench(kSectors);
  bench.media.hold = true;
  bench.media.fail = bad_sector;
  FakeCommand &slow = bench.issue(queued(false, 1, 0, 8), 4096);
  FakeCommand &bad = bench.issue(queued(false, 2, kBadLba, 8), 4096);
  bench.initiator.run();
  bench.media.answer(1);
  ck_assert(queue_failed(bad) && !slow.done());
  ErrorPage page(bench);
  bool answered = false;
  bench.media.fail = [&](const FakeMedia::Record &) {
    if (!std::exchange(answered, true))
      bench.media.answer(0);  // slow
    return 0;
  };
  FakeCommand &other = bench.issue(queued(false, 3, 50, 8), 4096);
  ck_assert(queue_failed(slow));
  bench.media.answer(0);
  bench.initiator.run();
  ck_assert(other.good());
  ck_assert(bench.rules_kept());
}
END_TEST

// The same with another aborted command that has its data already and waits for its time: it must
// not complete from inside execute() either.
START_TEST(nothing_completes_inside_execute) {
  DriveBench bench(kSectors);
  bench.media.hold = true;
  FakeCommand &slow = bench.issue(queued(false, 1, 0, 8), 4096);
  bench.initiator.run();
  FakeCommand &waiting = bench.issue(queued(false, 2, 64, 8), 4096);
  bench.media.answer(1);
  FakeCommand &other = bench.issue({.opcode = 0xE5}, 0);
  bool answered = false;
  bench.media.fail = [&](const FakeMedia::Record &) {
    if (!std::exchange(answered, true))
      bench.media.answer(0);  // slow
    return 0;
  };
  FakeCommand &inner = bench.issue({.opcode = 0x25, .count = 1}, 512);
  ck_assert(queue_failed(slow) && !waiting.done());
  bench.initiator.run();
  bench.media.answer(0);
  ck_assert(queue_failed(waiting) && queue_failed(other) && inner.good());
  ck_assert(bench.rules_kept());
}
END_TEST

START_TEST(any_other_command_ends_the_error_state) {
  for (uint8_t opcode : {0xEC, 0xE5, 0x25, 0x00}) {
    DriveBench bench(kSectors);
    bench.media.fail = bad_sector;
    ck_assert(queue_failed(bench.run(queued(false, 2, kBadLba, 1), 512)));
    ck_assert(queue_failed(bench.run(queued(false, 2, 0, 1), 512)));
    bench.run({.opcode = opcode, .count = 1}, 512);
    ck_assert(bench.run(queued(false, 2, 0, 1), 512).good());
    ErrorPage page(bench);  // and the log can still be read
    ck_assert_uint_eq(page.error, 0x40);
  }
}
END_TEST

START_TEST(reset_ends_the_error_state) {
  for (LinkReset kind : {LinkReset::kComreset, LinkReset::kPowerOn}) {
    DriveBench bench(kSectors);
    bench.media.fail = bad_sector;
    ck_assert(queue_failed(bench.run(queued(false, 6, kBadLba, 1), 512)));
    bench.drive->reset(kind);
    ck_assert(bench.run(queued(false, 6, 0, 1), 512).good());
    ErrorPage page(bench);  // holds no tag from before the reset
    ck_assert(page.not_queued);
    ck_assert_uint_eq(page.error, 0);
  }
}
END_TEST

START_TEST(busy_tag) {
  DriveBench bench(kSectors);
  FakeCommand &first = bench.issue(queued(false, 8, 0, 8), 4096);
  FakeCommand &other = bench.issue(queued(true, 9, 64, 8), 4096);
  FakeCommand &twice = bench.issue(queued(false, 8, 128, 8), 4096);
  bench.initiator.run();
  ck_assert(queue_failed(first) && queue_failed(other) && queue_failed(twice));
  ErrorPage page(bench);
  ck_assert(!page.not_queued);
  ck_assert_uint_eq(page.tag, 8);
  ck_assert_uint_eq(page.error, 0x04);
  ck_assert(bench.run(queued(false, 8, 0, 8), 4096).good());
  ck_assert(bench.rules_kept());
}
END_TEST

// Case C013: a command that is not queued arrives while queued ones are outstanding.
START_TEST(mixed_with_other_commands) {
  for (uint8_t opcode : {0x25, 0x35, 0xEC, 0xE7, 0x06, 0xB0, 0xFF, 0x2F}) {
    DriveBench bench(kSectors);
    bench.media.hold = true;
    FakeCommand &read = bench.issue(queued(false, 0, 0, 8), 4096);
    FakeCommand &write = bench.issue(queued(true, 1, 64, 8), 4096);
    bench.media.answer(1);
    size_t submitted = bench.media.records.size();
    FakeCommand &other = bench.issue({.opcode = opcode, .lba = 0x10, .count = 1}, 512);
    bench.initiator.run();
    ck_assert(queue_failed(other));
    ck_assert(queue_failed(write));
    ck_assert(!read.done());
    bench.media.answer();
    ck_assert(queue_failed(read));
    ck_assert_uint_eq(bench.media.records.size(), submitted);
    ck_assert(queue_failed(bench.run(queued(false, 4, 0, 8), 4096)));
    ErrorPage page(bench);
    ck_assert(page.not_queued);
    ck_assert_uint_eq(page.error, 0x04);
    bench.media.hold = false;
    ck_assert(bench.run(queued(false, 0, 0, 8), 4096).good());
    ck_assert_uint_eq(bench.counter("mixed_ncq"), 1);
    ck_assert(bench.rules_kept());
  }
}
END_TEST

START_TEST(never_mixed_in_order) {
  DriveBench bench(kSectors);
  for (int i = 0; i < 10; i++) {
    ck_assert(bench.run(queued(i % 2, 0, 0, 8), 4096).good());
    ck_assert(bench.run({.opcode = 0xEC}, 512).good());
  }
  ck_assert_uint_eq(bench.counter("mixed_ncq"), 0);
}
END_TEST

START_TEST(cancel_with_media_pending) {
  for (int drain_error : {0, -ECANCELED}) {
    DriveBench bench(kSectors);
    bench.media.hold = true;
    bench.media.drain_error = drain_error;
    FakeCommand &first = bench.issue(queued(false, 1, 0, 8), 4096);
    FakeCommand &second = bench.issue(queued(true, 2, 64, 8), 4096);
    bench.initiator.run();
    ck_assert(first.late && second.late);
    bench.initiator.cancel(first);  // drains the member, so the other one ends
    ck_assert_int_eq(first.state, FakeCommand::kCanceled);
    ck_assert(!first.window.moved);
    ck_assert(second.done());
    ck_assert_int_eq(second.good(), drain_error == 0);
    ck_assert_uint_eq(bench.media.held(), 0);
    bench.media.hold = false;
    bench.run({.opcode = 0xE5});
    ck_assert(bench.run(queued(false, 1, 0, 8), 4096).good());  // the tag is free
    ck_assert(bench.rules_kept());
  }
}
END_TEST

START_TEST(cancel_everything) {
  DriveBench bench(kSectors);
  bench.media.hold = true;
  for (uint8_t tag = 0; tag < 32; tag++)
    bench.issue(queued(tag % 2, tag, tag * 8u, 8), 4096);
  for (size_t i = 0; i < 5; i++)
    bench.media.answer(3 * i);
  bench.initiator.cancel_all();
  bench.drive->reset(LinkReset::kComreset);
  ck_assert_uint_eq(bench.initiator.order.size(), 0);
  ck_assert_uint_eq(bench.media.held(), 0);
  bench.media.hold = false;
  for (uint8_t tag = 0; tag < 32; tag++)
    ck_assert(bench.run(queued(false, tag, 0, 8), 4096).good());
  ck_assert(bench.rules_kept());
}
END_TEST

START_TEST(log_when_nothing_happened) {
  DriveBench bench(kSectors);
  ErrorPage page(bench);
  ck_assert(page.not_queued);
  ck_assert_uint_eq(page.status, 0);
  ck_assert_uint_eq(page.error, 0);
}
END_TEST

int main() {
  return test::run_tests(
      "ata_ncq",
      {all_tags_at_once, data_goes_both_ways, limits, short_window, one_bad_sector, backend_errors,
       stop_with_media_pending, straggler_ends_inside_execute, nothing_completes_inside_execute,
       any_other_command_ends_the_error_state, reset_ends_the_error_state, busy_tag,
       mixed_with_other_commands, never_mixed_in_order, cancel_with_media_pending,
       cancel_everything, log_when_nothing_happened});
}
