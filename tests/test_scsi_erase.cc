// SPDX-License-Identifier: GPL-2.0-or-later
//
// FORMAT UNIT and SANITIZE of the volume: what they take, what others hear meanwhile, how they end.
#include "scsi_judge.h"

#include "runner.h"

using namespace revodrive;

START_TEST(nothing_else_runs_while_the_volume_is_erased) {
  ScsiBench bench;
  bench.volume.hold = true;
  ScsiJob &erase = bench.start({0x48, 0x02, 0, 0, 0, 0, 0, 0, 0, 0});
  refused(bench.run({0x28, 0, 0, 0, 0, 5, 0, 0, 1}, 512), 2, 0x041B);
  refused(bench.run({0x00}), 2, 0x041B);
  refused(bench.run({0x04, 0, 0, 0, 0, 0}), 2, 0x041B);
  while (!bench.volume.held.empty())
    bench.volume.answer();
  good(erase);
  ck_assert_uint_eq(bench.volume.erasures, 1);
  bench.volume.hold = false;
  good(bench.run({0x28, 0, 0, 0, 0, 5, 0, 0, 1}, 512));
}
END_TEST

// It may have erased a part: nothing is read until it was done again.
START_TEST(an_erase_that_was_cut_short_has_to_be_repeated) {
  ScsiBench bench;
  bench.volume.hold = true;
  ScsiJob &erase = bench.start({0x48, 0x02, 0, 0, 0, 0, 0, 0, 0, 0});
  for (int i = 0; i < 3; i++)
    bench.volume.answer();
  bench.device.cancel(erase.command);
  bench.volume.hold = false;
  ck_assert_uint_eq(bench.volume.erasures, 100);
  refused(bench.run({0x28, 0, 0, 0, 0, 5, 0, 0, 1}, 512), 3, 0x3103);
  good(bench.run({0x04, 0, 0, 0, 0, 0}));
  good(bench.run({0x28, 0, 0, 0, 0, 5, 0, 0, 1}, 512));
}
END_TEST

// Every one who asks hears it, and an erase is let in.
START_TEST(a_map_that_cannot_be_used_is_told) {
  ScsiBench bench;
  bench.volume.is_open = false;
  bench.volume.is_damaged = true;
  refused(bench.run({0x00}), 2, 0x0403);
  refused(bench.run({0x25}, 8), 2, 0x0403);
  refused(bench.run({0x28, 0, 0, 0, 0, 5, 0, 0, 1}, 512), 2, 0x0403);
  ScsiJob &sense = bench.run({0x03, 0, 0, 0, 64}, 64);
  ck_assert_uint_eq(be(sense, 2, 1), 2);
  ck_assert_uint_eq(be(sense, 12, 2), 0x0403);
  ck_assert_uint_eq(be(bench.run({0x4D, 0, 0x6F, 0, 0, 0, 0, 0, 64}, 64), 8, 2), 0x5D10);
  ck_assert_uint_eq(be(bench.run({0x4D, 0, 0x76, 0, 0, 0, 0, 0, 64}, 64), 8, 1), 2);
  good(bench.run({0x48, 0x02}));
  ck_assert_uint_eq(bench.volume.erasures, 1);
}
END_TEST

// sg_format: FMTDATA and CMPLST with a list header, short or long, IMMED in it.
START_TEST(format_lists) {
  struct {
    uint8_t cdb;
    std::vector<uint8_t> list;
    int bad, bit;  // -1, -1: taken
  } cases[] = {
      {0x18, {0, 0, 0, 0}, -1, -1},
      {0x10, {0, 0xF0, 0, 0}, -1, -1},
      {0x38, {0, 0, 0, 0, 0, 0, 0, 0}, -1, -1},
      {0x30, {0, 0xA0, 0, 0, 0, 0, 0, 0}, -1, -1},
      {0x20, {}, -1, -1},  // without FMTDATA there is no list, whatever its length
      {0x10, {0x01, 0, 0, 0}, 0, 0},
      {0x10, {0, 0x20, 0, 0}, 1, 5},  // DCRT without FOV
      {0x10, {0, 0x88, 0, 0}, 1, 3},  // an initialization pattern
      {0x10, {0, 0, 0, 8}, 2, -1},
      {0x10, {0, 0, 1, 0}, 2, -1},
      {0x30, {0, 0, 0x10, 0, 0, 0, 0, 0}, 2, 4},
      {0x30, {0, 0, 0, 0x03, 0, 0, 0, 0}, 3, 1},
      {0x30, {0, 0, 0, 0, 0, 0, 0, 8}, 4, -1},
  };
  for (auto &one : cases) {
    ScsiBench bench;
    size_t before = bench.volume.records.size();
    ScsiJob &job = bench.run({0x04, one.cdb}, static_cast<uint32_t>(one.list.size()), one.list);
    if (one.bad < 0) {
      good(job);
      ck_assert_uint_eq(bench.volume.erasures, 1);
      continue;
    }
    refused(job, 5, 0x2600);
    ck_assert_int_eq(job.field(), one.bad);
    ck_assert_int_eq(job.bit(), one.bit);
    ck_assert(!job.in_cdb());
    ck_assert_uint_eq(bench.volume.records.size(), before);
    good(bench.run({0x00}));
  }
  ScsiBench bench;
  bad_field(bench.run({0x04, 0x90}, 4), 1, 7);           // FMTPINFO
  bad_field(bench.run({0x04, 0x13}, 4), 1, 1);           // defects by physical sector
  bad_field(bench.run({0x04, 0x10, 0, 0, 1}, 4), 4, 0);  // a fast format
  refused(bench.run({0x04, 0x30}, 4), 11, 0x4B00);
  good(bench.run({0x00}));
}
END_TEST

// Whatever asks hears how far it is; the status of the command came before.
START_TEST(an_immediate_erase_goes_on_after_its_status) {
  const std::initializer_list<uint8_t> kFormat{0x04, 0x18}, kSanitize{0x48, 0x82};
  for (bool format : {true, false}) {
    unsigned code = format ? 0x0404 : 0x041B;
    ScsiBench bench;
    bench.volume.is_open = false;  // by a map of another volume
    bench.volume.hold = true;
    ScsiJob &job = format ? bench.start(kFormat, 4, {0, 2, 0, 0}) : bench.start(kSanitize);
    ck_assert(!job.done);
    bench.volume.answer();  // all members have taken the password
    good(job);
    ck_assert(job.done);
    ScsiJob &early = bench.run({0x00});
    refused(early, 2, code);
    ck_assert_int_eq(early.field(), 0);
    bench.volume.answer();  // they are prepared, and erase
    bench.volume.done_share = 0x8123;
    for (std::initializer_list<uint8_t> cdb :
         {std::initializer_list<uint8_t>{0x00}, {0x25}, {0x1B}, {0x85, 6}, {0x15, 0x10}}) {
      ScsiJob &other = bench.run(cdb, 8);
      refused(other, 2, code);
      ck_assert_int_eq(other.field(), 0x8123);
    }
    for (uint8_t descriptors : {0, 1}) {
      ScsiJob &sense = bench.run({0x03, descriptors, 0, 0, 64}, 64);
      good(sense);
      size_t at = descriptors ? 12 : 15;
      ck_assert_uint_eq(be(sense, 0, 1), descriptors ? 0x72 : 0x70);
      ck_assert_uint_eq(be(sense, descriptors ? 1 : 2, 1), 2);
      ck_assert_uint_eq(be(sense, descriptors ? 2 : 12, 2), code);
      ck_assert_uint_eq(be(sense, at, 1), 0x80);
      ck_assert_uint_eq(be(sense, at + 1, 2), 0x8123);
    }
    good(bench.run({0x4D, 0, 0x6F, 0, 0, 0, 0, 0, 64}, 64));  // nobody is asked
    good(bench.run({0x12, 0, 0, 0, 36}, 36));
    bench.device.reset(ScsiReset::kLunReset);
    refused(bench.run({0x00}), 6, 0x2903);
    ck_assert_uint_eq(bench.volume.held.size(), 1);
    bench.volume.is_open = true;
    while (!bench.volume.held.empty())
      bench.volume.answer();
    ck_assert_uint_eq(bench.volume.erasures, 1);
    good(bench.run({0x00}));
    ck_assert(!bench.broken_rule);
  }
}
END_TEST

START_TEST(an_immediate_erase_is_cut_short_by_a_reset) {
  for (ScsiReset kind : {ScsiReset::kPowerOn, ScsiReset::kHardReset}) {
    ScsiBench bench;
    bench.volume.hold = true;
    bench.start({0x48, 0x82});
    for (int i = 0; i < 3; i++)
      bench.volume.answer();
    bench.device.reset(kind);
    ck_assert(bench.volume.held.empty());
    ck_assert_uint_eq(bench.volume.erasures, 100);
    bench.volume.hold = false;
    ck_assert_uint_eq(bench.run({0x00}).key(), 6);
    refused(bench.run({0x00}), 3, 0x3103);
    good(bench.run({0x04, 0x18}, 4, {0, 2, 0, 0}));
    good(bench.run({0x00}));
  }
}
END_TEST

// A refusal comes before the status where it can, and is told by the next command where not.
START_TEST(an_immediate_erase_that_is_refused) {
  ScsiBench bench;
  bench.volume.failure = VolumeFailure::kAborted;
  refused(bench.run({0x48, 0x82}), 11, 0);
  bench.volume.failure = VolumeFailure::kNone;
  good(bench.run({0x00}));
  bench.volume.hold = true;
  ScsiJob &job = bench.start({0x48, 0x82});
  bench.volume.answer();
  bench.volume.answer();
  good(job);
  bench.volume.answer();
  bench.volume.failure = VolumeFailure::kAborted;
  bench.volume.refuses = true;
  bench.volume.answer();
  bench.volume.refuses = false;
  bench.volume.failure = VolumeFailure::kNone;
  bench.volume.answer();
  bench.volume.hold = false;
  ck_assert_uint_eq(bench.volume.erasures, 0);
  ScsiJob &told = bench.run({0x28, 0, 0, 0, 0, 5, 0, 0, 1}, 512);
  refused(told, 3, 0x3103);
  ck_assert_uint_eq(told.command.sense[0], 0x71);
  good(bench.run({0x28, 0, 0, 0, 0, 5, 0, 0, 1}, 512));
}
END_TEST

// Saved in the middle, it begins anew in the machine that loads.
START_TEST(an_immediate_erase_is_saved) {
  ScsiBench bench, other;
  bench.volume.hold = true;
  bench.start({0x04, 0x18}, 4, {0, 2, 0, 0});
  for (int i = 0; i < 3; i++)
    bench.volume.answer();
  StreamWriter out;
  bench.device.save(out);
  std::vector<uint8_t> bytes = out.bytes();
  StreamReader in(bytes);
  other.device.load(in);
  ck_assert(in.ok() && in.at_end());
  refused(other.run({0x00}), 2, 0x0404);
  StreamWriter again;
  other.device.save(again);
  ck_assert(again.bytes() == bytes);
  ck_assert_uint_eq(other.volume.erasures, 0);
  other.device.resume();
  ck_assert_uint_eq(other.volume.erasures, 1);
  good(other.run({0x00}));
}
END_TEST

int main() {
  return test::run_tests(
      "scsi_erase",
      {nothing_else_runs_while_the_volume_is_erased, an_erase_that_was_cut_short_has_to_be_repeated,
       a_map_that_cannot_be_used_is_told, format_lists, an_immediate_erase_goes_on_after_its_status,
       an_immediate_erase_is_cut_short_by_a_reset, an_immediate_erase_that_is_refused,
       an_immediate_erase_is_saved});
}
