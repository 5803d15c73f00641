// SPDX-License-Identifier: GPL-2.0-or-later
//
// The SCSI command set of the volume: what is done, what is refused, and with which sense.
#include "scsi_judge.h"

#include <algorithm>

#include "random.h"
#include "runner.h"

using namespace revodrive;

START_TEST(power_on_is_told_once_and_not_to_inquiry) {
  FakeVolume volume;
  ScsiDevice device(volume, {.model = "M", .firmware = "F"});
  Timeline host;
  auto run = [&](uint8_t opcode) {
    ScsiJob job(96, &host);
    job.command.cdb = {opcode, 0, 0, 0, 96};
    device.execute(job.command);
    return std::pair(job.command.status, job.code());
  };
  ck_assert_uint_eq(run(0x12).first, 0);
  auto [status, code] = run(0x25);
  ck_assert_uint_eq(status, 2);
  ck_assert_uint_eq(code, 0x2900);
  ck_assert_uint_eq(run(0x25).first, 2);  // byte 4 is an old field: refused, but no attention
}
END_TEST

// Each bit that a command does not know is refused with a pointer to it, and no handler runs.
START_TEST(every_reserved_bit_is_pointed_at) {
  ScsiBench bench;
  for (const ScsiOp &operation : ScsiDevice::operations()) {
    for (unsigned byte = 1; byte < operation.bytes; byte++) {
      for (unsigned bit = 0; bit < 8; bit++) {
        bool action = byte == 1 && bit < 5 && operation.action != ScsiOp::kNoAction;
        if ((operation.usage[byte] >> bit & 1) || action)
          continue;
        ScsiJob job(0, &bench.host);
        job.command.cdb[0] = operation.opcode;
        if (operation.action != ScsiOp::kNoAction)
          job.command.cdb[1] = static_cast<uint8_t>(operation.action);
        job.command.cdb[byte] |= static_cast<uint8_t>(1 << bit);
        size_t before = bench.volume.records.size();
        bench.device.execute(job.command);
        bad_field(job, static_cast<int>(byte), static_cast<int>(bit));
        ck_assert_uint_eq(bench.volume.records.size(), before);
      }
    }
  }
}
END_TEST

START_TEST(unknown_opcodes_and_actions) {
  ScsiBench bench;
  refused(bench.run({0xD0}), 5, 0x2000);
  ck_assert_int_eq(bench.jobs.back()->field(), 0);
  bad_field(bench.run({0x9E, 0x1F}), 1, 4);
  refused(bench.run({0x28, 0, 0, 0, 0, 0, 0, 0, 1}, 512, {}, 2), 5, 0x2000);
  refused(bench.run({0x00}, 0, {}, 4), 5, 0x2500);
  good(bench.run({0x12, 0, 0, 0, 36}, 36, {}, 9));
  ck_assert_uint_eq(bench.jobs.back()->window.data()[0], 0x7F);
}
END_TEST

START_TEST(reads_and_writes_of_each_length) {
  ScsiBench bench;
  std::vector<uint8_t> data(2 * 512, 0x3C);
  good(bench.run({0x0A, 0, 0, 10, 2}, 1024, data));
  good(bench.run({0x2A, 0, 0, 0, 0, 20, 0, 0, 2}, 1024, data));
  good(bench.run({0xAA, 0, 0, 0, 0, 30, 0, 0, 0, 2}, 1024, data));
  good(bench.run({0x8A, 0x08, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0, 2}, 1024, data));
  ck_assert(bench.volume.records.back() == (FakeVolume::Record{VolumeOp::kWrite, 40, 2, true, 0}));
  for (uint8_t lba : {10, 20, 30, 40}) {
    good(bench.run({0x88, 0, 0, 0, 0, 0, 0, 0, 0, lba, 0, 0, 0, 2}, 1024));
    ck_assert_uint_eq(bench.jobs.back()->window.data()[1023], 0x3C);
  }
  good(bench.run({0x08, 0, 0, 0, 0}, 256 * 512));
  ck_assert_uint_eq(bench.volume.records.back().sectors, 256);
  good(bench.run({0x28}, 0));  // no blocks is no error
}
END_TEST

START_TEST(ranges) {
  ScsiBench bench;
  refused(bench.run({0x28, 0, 0, 1, 0, 0, 0, 0, 1}, 512), 5, 0x2100);
  refused(bench.run({0x28, 0, 0, 0, 0xFF, 0xFF, 0, 0, 2}, 1024), 5, 0x2100);
  good(bench.run({0x28, 0, 0, 0, 0xFF, 0xFF, 0, 0, 1}, 512));
  good(bench.run({0x28, 0, 0, 1, 0, 0, 0, 0, 0}));
  refused(bench.run({0x88, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1}, 512), 5,
          0x2100);
  bad_field(bench.run({0x28, 0, 0, 0, 0, 0, 0, 0x20, 1}, 512), 7);
  refused(bench.run({0x28, 0, 0, 0, 0, 0, 0, 0, 2}, 512), 11, 0x4B00);
}
END_TEST

START_TEST(failures_have_their_sense_and_place) {
  ScsiBench bench;
  struct {
    VolumeFailure failure;
    uint8_t key;
    unsigned code;
  } cases[] = {
      {VolumeFailure::kMedium, 3, 0x1100},  {VolumeFailure::kFault, 4, 0x4400},
      {VolumeFailure::kAborted, 11, 0},     {VolumeFailure::kCrc, 11, 0x4703},
      {VolumeFailure::kLocked, 7, 0x7471},  {VolumeFailure::kMissing, 4, 0x0800},
      {VolumeFailure::kAddress, 5, 0x2100},
  };
  bench.volume.failed_lba = 0x1234;
  for (auto &one : cases) {
    bench.volume.failure = one.failure;
    ScsiJob &job = bench.run({0x28, 0, 0, 0, 0x12, 0, 0, 0, 0x80}, 128 * 512);
    refused(job, one.key, one.code);
    ck_assert_uint_eq(job.command.sense[0], 0xF0);
    ck_assert_uint_eq(job.command.sense[5] << 8 | job.command.sense[6], 0x1234);
  }
}
END_TEST

START_TEST(verify_compares) {
  ScsiBench bench;
  std::vector<uint8_t> data(1024, 0x11);
  good(bench.run({0x2A, 0, 0, 0, 0, 0, 0, 0, 2}, 1024, data));
  good(bench.run({0x2F, 0x02, 0, 0, 0, 0, 0, 0, 2}, 1024, data));
  data[700] ^= 1;
  ScsiJob &job = bench.run({0x2F, 0x02, 0, 0, 0, 0, 0, 0, 2}, 1024, data);
  refused(job, 14, 0x1D00);
  ck_assert_uint_eq(job.command.sense[6], 1);
  good(bench.run({0x2E, 0x02, 0, 0, 0, 9, 0, 0, 2}, 1024, data));
  ck_assert(bench.volume.records[bench.volume.records.size() - 2] ==
            (FakeVolume::Record{VolumeOp::kWrite, 9, 2, true, 0}));
  good(bench.run({0x8F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}));
  ck_assert(bench.volume.records.back() ==
            (FakeVolume::Record{VolumeOp::kVerify, 0, 65536, false, 0}));
}
END_TEST

START_TEST(unmap_lists) {
  ScsiBench bench;
  std::vector<uint8_t> list(8 + 32);
  list[1] = 38;
  list[3] = 32;
  put_be(list, 8, 8, 1000);
  put_be(list, 16, 4, 7);
  put_be(list, 24, 8, 3);
  put_be(list, 32, 4, 1);
  good(bench.run({0x42, 0, 0, 0, 0, 0, 0, 0, 40}, 40, list));
  auto &records = bench.volume.records;
  ck_assert(records[records.size() - 2] ==
            (FakeVolume::Record{VolumeOp::kTrim, 1000, 7, false, 0}));
  ck_assert(records.back() == (FakeVolume::Record{VolumeOp::kTrim, 3, 1, false, 0}));
  size_t before = records.size();
  refused(bench.run({0x42, 0, 0, 0, 0, 0, 0, 0, 4}, 4), 5, 0x1A00);
  put_be(list, 24, 8, FakeVolume::kSectors);  // the second range is wrong: the first is not done
  refused(bench.run({0x42, 0, 0, 0, 0, 0, 0, 0, 40}, 40, list), 5, 0x2100);
  put_be(list, 24, 8, 0xFFFF'FFFF'FFFF'FFFF);
  refused(bench.run({0x42, 0, 0, 0, 0, 0, 0, 0, 40}, 40, list), 5, 0x2100);
  ck_assert_uint_eq(records.size(), before);
  good(bench.run({0x42}));
}
END_TEST

START_TEST(write_same_writes_or_unmaps) {
  ScsiBench bench;
  std::vector<uint8_t> block(512, 0x77);
  good(bench.run({0x41, 0, 0, 0, 0, 5, 0, 0x10, 0}, 512, block));
  ck_assert_uint_eq(bench.volume.bytes[5 * 512], 0x77);
  ck_assert_uint_eq(bench.volume.bytes[(5 + 4096) * 512 - 1], 0x77);
  ck_assert_uint_eq(bench.volume.bytes[(5 + 4096) * 512], 0);
  good(bench.run({0x93, 0x08, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 9}, 512, block));
  ck_assert(bench.volume.records.back().op == VolumeOp::kTrim);
  ck_assert_uint_eq(bench.volume.records.back().sectors, 9);
  good(bench.run({0x93, 0x01, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 9}));
  ck_assert_uint_eq(bench.volume.bytes[5 * 512], 0);
  bad_field(bench.run({0x41, 0, 0, 0, 0, 5, 0, 0, 0}, 512, block), 7);
}
END_TEST

START_TEST(capacity_and_pages) {
  ScsiBench bench;
  ScsiJob &ten = bench.run({0x25}, 8);
  ck_assert_uint_eq(be(ten, 0, 4), FakeVolume::kSectors - 1);
  ScsiJob &sixteen = bench.run({0x9E, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32}, 32);
  ck_assert_uint_eq(be(sixteen, 0, 8), FakeVolume::kSectors - 1);
  ck_assert_uint_eq(be(sixteen, 14, 1), 0x80);
  bad_field(bench.run({0x25, 0, 0, 0, 0, 1}, 8), 5, 0);
  bad_field(bench.run({0x25, 0, 0, 0, 0, 0, 0, 0, 1}, 8), 8, 0);
  bad_field(bench.run({0x9E, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 32}, 32), 9, 0);
  bad_field(bench.run({0x9E, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 1}, 32), 14, 0);
  bad_field(bench.run({0x28, 0, 0, 0, 0, 0, 0x12, 0, 1}, 512), 6, 4);  // a group number
  ScsiJob &list = bench.run({0x12, 1, 0, 0, 255}, 255);
  ck_assert_uint_eq(be(list, 3, 1), 8);
  for (size_t i = 0; i < be(list, 3, 1); i++) {
    auto page = static_cast<uint8_t>(be(list, 4 + i, 1));
    ScsiJob &job = bench.run({0x12, 1, page, 2, 0}, 1024);
    good(job);
    ck_assert_uint_eq(be(job, 1, 1), page);
  }
  bad_field(bench.run({0x12, 1, 0xC0, 0, 255}, 255), 2);
  bad_field(bench.run({0x12, 0, 0x80, 0, 255}, 255), 2);
  // Not a byte more than asked for, and not more than there is memory for.
  ScsiJob &cut = bench.run({0x12, 0, 0, 0, 5}, 36);
  ck_assert_uint_eq(be(cut, 5, 4), 0);
  good(bench.run({0x12, 0, 0, 0, 96}, 3));
}
END_TEST

START_TEST(mode_pages_can_be_read_and_the_cache_turned_off) {
  ScsiBench bench;
  ScsiJob &all = bench.run({0x5A, 0x08, 0x3F, 0, 0, 0, 0, 1, 0}, 256);
  ck_assert_uint_eq(be(all, 0, 2), 8 + 12 + 20 + 12 + 8 + 12 - 2);
  ScsiJob &caching = bench.run({0x1A, 0x08, 0x08, 0, 64}, 64);
  ck_assert_uint_eq(be(caching, 6, 1), 0x04);
  std::vector<uint8_t> list(caching.window.data(), caching.window.data() + 24);
  list[0] = 0;
  list[2] = 0;
  list[6] = 0;
  good(bench.run({0x15, 0x10, 0, 0, 24}, 24, list));
  ck_assert_uint_eq(bench.volume.records.back().opcode, 0xEA);
  ck_assert_uint_eq(be(bench.run({0x1A, 0x08, 0x08, 0, 64}, 64), 6, 1), 0);
  good(bench.run({0x2A, 0, 0, 0, 0, 0, 0, 0, 1}, 512));
  ck_assert(bench.volume.records.back().stable);
  list[4] = 0x08;
  list[12] = 1;  // a bit that cannot be changed
  ScsiJob &job = bench.run({0x15, 0x10, 0, 0, 24}, 24, list);
  refused(job, 5, 0x2600);
  ck_assert_int_eq(job.field(), 12);
  ck_assert(!job.in_cdb());
  refused(bench.run({0x1A, 0, 0xC8, 0, 64}, 64), 5, 0x3900);
  bad_field(bench.run({0x15, 0x11, 0, 0, 24}, 24, list), 1, 0);
  refused(bench.run({0x15, 0x10, 0, 0, 3}, 3), 5, 0x1A00);
  refused(bench.run({0x15, 0x10, 0, 0, 10}, 10, std::vector<uint8_t>{0, 0, 0, 0, 8, 18, 0}), 5,
          0x1A00);
}
END_TEST

START_TEST(mode_lists_are_pointed_into) {
  ScsiBench bench;
  auto refused_at = [&](std::initializer_list<uint8_t> cdb, const std::vector<uint8_t> &list,
                        int byte, int bit) {
    ScsiJob &job = bench.run(cdb, static_cast<uint32_t>(list.size()), list);
    refused(job, 5, 0x2600);
    ck_assert_int_eq(job.field(), byte);
    ck_assert_int_eq(job.bit(), bit);
    ck_assert(!job.in_cdb());
  };
  refused_at({0x15, 0x10, 0, 0, 4}, {0, 0, 0, 16}, 3, -1);
  refused_at({0x55, 0x10, 0, 0, 0, 0, 0, 0, 8}, {0, 0, 0, 0, 0, 0, 0, 16}, 6, -1);
  refused_at({0x15, 0x10, 0, 0, 8}, {0, 0, 0, 0, 0x48, 1, 0, 0}, 4, 6);
  refused_at({0x15, 0x10, 0, 0, 8}, {0, 0, 0, 0, 0x3E, 1, 0, 0}, 4, 5);
}
END_TEST

START_TEST(operations_are_reported_as_they_are) {
  ScsiBench bench;
  ScsiJob &all = bench.run({0xA3, 0x0C, 0, 0, 0, 0, 0, 0, 16, 0}, 4096);
  ck_assert_uint_eq(be(all, 0, 4), ScsiDevice::operations().size() * 8);
  ScsiJob &read = bench.run({0xA3, 0x0C, 1, 0x28, 0, 0, 0, 0, 0, 64}, 64);
  ck_assert_uint_eq(be(read, 1, 1), 3);
  ck_assert_uint_eq(be(read, 2, 2), 10);
  ck_assert_uint_eq(be(read, 4, 1), 0x28);
  ck_assert_uint_eq(be(bench.run({0xA3, 0x0C, 1, 0x8C, 0, 0, 0, 0, 0, 64}, 64), 1, 1), 1);
  bad_field(bench.run({0xA3, 0x0C, 1, 0x9E, 0, 0, 0, 0, 0, 64}, 64), 3);
  ck_assert_uint_eq(be(bench.run({0xA3, 0x0C, 2, 0x9E, 0, 0x10, 0, 0, 0, 64}, 64), 5, 1), 0x10);
}
END_TEST

// A unit of a member lists what it takes, and refuses the rest.
START_TEST(operations_of_a_member) {
  ScsiBench bench;
  ScsiJob &all = bench.run({0xA3, 0x0C, 0, 0, 0, 0, 0, 0, 16, 0}, 4096, {}, 1);
  std::vector<uint64_t> listed;
  for (uint64_t at = 4; at < 4 + be(all, 0, 4); at += 8)
    listed.push_back(be(all, at, 1));
  for (const ScsiOp &operation : ScsiDevice::operations()) {
    bool known = std::count(listed.begin(), listed.end(), operation.opcode) > 0;
    bool action = operation.action != ScsiOp::kNoAction;
    auto number = static_cast<uint8_t>(action ? operation.action : 0);
    ScsiJob &one = bench.run({0xA3, 0x0C, static_cast<uint8_t>(action ? 2 : 1), operation.opcode, 0,
                              number, 0, 0, 0, 64},
                             64, {}, 1);
    ck_assert_uint_eq(be(one, 1, 1), known ? 3 : 1);
    ScsiJob &job = bench.run({operation.opcode, number}, 512, {}, 1);
    ck_assert_int_eq(job.command.status == 2 && job.code() == 0x2000, !known);
  }
}
END_TEST

START_TEST(stopped_and_started) {
  ScsiBench bench;
  good(bench.run({0x1B}));
  ck_assert_uint_eq(bench.volume.records.back().opcode, 0xE0);
  refused(bench.run({0x00}), 2, 0x0402);
  refused(bench.run({0x28, 0, 0, 0, 0, 0, 0, 0, 1}, 512), 2, 0x0402);
  good(bench.run({0x1B, 0, 0, 0, 1}));
  good(bench.run({0x28, 0, 0, 0, 0, 0, 0, 0, 1}, 512));
  bench.volume.is_formed = false;
  refused(bench.run({0x00}), 2, 0x0400);
  refused(bench.run({0x25}, 8), 2, 0x0400);
}
END_TEST

START_TEST(health_of_the_members_in_log_pages) {
  ScsiBench bench;
  bench.volume.page[2] = 194;
  bench.volume.page[2 + 5] = 41;
  bench.volume.page[14] = 231;
  bench.volume.page[14 + 3] = 90;
  ScsiJob &heat = bench.run({0x4D, 0, 0x4D, 0, 0, 0, 0, 0, 64}, 64);
  ck_assert_uint_eq(be(heat, 9, 1), 41);
  ck_assert_uint_eq(be(bench.run({0x4D, 0, 0x51, 0, 0, 0, 0, 0, 64}, 64), 11, 1), 10);
  ck_assert_uint_eq(be(bench.run({0x4D, 0, 0x6F, 0, 0, 0, 0, 0, 64}, 64), 8, 2), 0);
  bench.volume.states[2] = MemberState::kMissing;
  ck_assert_uint_eq(be(bench.run({0x4D, 0, 0x6F, 0, 0, 0, 0, 0, 64}, 64), 8, 2), 0x5D10);
  ScsiJob &members = bench.run({0x4D, 0, 0x76, 0, 0, 0, 0, 0, 64}, 64);
  ck_assert_uint_eq(be(members, 8, 1), 1);
  ck_assert_uint_eq(be(members, 8 + 15, 1), 1);
  ScsiJob &written = bench.run({0x4D, 0, 0x42, 0, 0, 0, 0, 0, 64}, 64);
  ck_assert_uint_eq(be(written, 8, 8), 0);
  good(bench.run({0x2A, 0, 0, 0, 0, 0, 0, 0, 2}, 1024));
  ScsiJob &after = bench.run({0x4D, 0, 0x42, 0, 0, 0, 0, 0, 64}, 64);
  ck_assert_uint_eq(be(after, 8, 8), 1024);
  ck_assert_uint_eq(be(after, 20, 8), 0);
  ck_assert_uint_eq(be(bench.run({0x4D, 0, 0x50, 0, 0, 0, 0, 2, 0}, 512), 2, 2), 400);
  bad_field(bench.run({0x4D, 0, 0x46, 0, 0, 0, 0, 0, 64}, 64), 2, 5);
}
END_TEST

START_TEST(log_pages_begin_where_they_are_asked_to) {
  ScsiBench bench;
  for (uint8_t page : {0x02, 0x03, 0x0D, 0x10, 0x11, 0x15, 0x2F, 0x36}) {
    auto run = [&](unsigned first) -> ScsiJob & {
      return bench.run({0x4D, 0, static_cast<uint8_t>(0x40 | page), 0, 0,
                        static_cast<uint8_t>(first >> 8), static_cast<uint8_t>(first), 2, 0},
                       512);
    };
    ScsiJob &whole = run(0);
    uint64_t end = 4 + be(whole, 2, 2), last = 0;
    for (uint64_t at = 4; at < end; at += 4 + be(whole, at + 3, 1)) {
      for (uint64_t first = last + (at > 4); first <= be(whole, at, 2); first++) {
        ScsiJob &rest = run(static_cast<unsigned>(first));
        good(rest);
        ck_assert_uint_eq(be(rest, 2, 2), end - at);
        ck_assert_mem_eq(rest.window.data() + 4, whole.window.data() + at, end - at);
      }
      last = be(whole, at, 2);
    }
    bad_field(run(static_cast<unsigned>(last) + 1), 5);
    bad_field(run(0xFFFF), 5);
  }
  bad_field(bench.run({0x4D, 0, 0x40, 0, 0, 0, 1, 0, 64}, 64), 5);
}
END_TEST

START_TEST(pass_through_gives_registers_back) {
  ScsiBench bench;
  bench.volume.page[0] = 0x5A;
  ScsiJob &identify = bench.run({0xA1, 0x08, 0x0E, 0, 1, 0, 0, 0, 0, 0xEC}, 512, {}, 3);
  good(identify);
  ck_assert_uint_eq(identify.window.data()[0], 0x5A);
  ScsiJob &registers = bench.run({0x85, 0x07, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0xE5}, 0);
  refused(registers, 1, 0x001D);
  const uint8_t want[] = {0x09, 12, 1, 0, 8, 7, 4, 1, 5, 2, 6, 3, 0x40, 0x50};
  ck_assert_mem_eq(registers.command.sense.data() + 8, want, sizeof(want));
  bad_field(bench.run({0x85, 0x0C, 0x0E, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0x60}, 512), 14);
  bad_field(bench.run({0x85, 0x00, 0}), 1, 4);
  refused(bench.run({0xA1, 0x08, 0x0E, 0, 2, 0, 0, 0, 0, 0xEC}, 512), 11, 0x4B00);
}
END_TEST

START_TEST(commands_end_when_the_volume_does_and_cancel_is_silent) {
  ScsiBench bench;
  bench.volume.hold = true;
  ScsiJob &first = bench.start({0x28, 0, 0, 0, 0, 0, 0, 0, 1}, 512);
  ScsiJob &second = bench.start({0x28, 0, 0, 0, 0, 1, 0, 0, 1}, 512);
  ck_assert(!first.done && !second.done);
  bench.device.cancel(first.command);
  ck_assert_uint_eq(bench.volume.held.size(), 1);
  bench.volume.answer();
  ck_assert(!first.done && second.done);
  good(second);
  ck_assert(!bench.broken_rule);
}
END_TEST

// Nothing that a guest can write into a CDB or a list makes the device read or write elsewhere.
START_TEST(random_bytes) {
  Random random(test::seed());
  ScsiBench bench;
  auto operations = ScsiDevice::operations();
  for (int round = 0; round < 20000; round++) {
    auto bytes = static_cast<uint32_t>(random.below(600));
    ScsiJob job(bytes, &bench.host);
    for (uint32_t i = 0; i < bytes; i++)
      job.window.data()[i] =
          static_cast<uint8_t>(random.below(4) ? random.below(16) : random.next());
    const ScsiOp &operation = operations[random.below(operations.size())];
    for (size_t i = 1; i < 16; i++)
      job.command.cdb[i] = static_cast<uint8_t>(random.next() & operation.usage[i] &
                                                (random.below(2) ? 0xFF : 0x03));
    job.command.cdb[0] = operation.opcode;
    if (operation.action != ScsiOp::kNoAction)
      job.command.cdb[1] = static_cast<uint8_t>(operation.action);
    job.command.lun = random.one_in(8) ? random.next() : random.below(5) << 48;
    bench.device.execute(job.command);
    ck_assert_int_ne(job.command.finish_ns, RD_NEVER);
    ck_assert(job.window.guards_intact());
    ck_assert(job.command.status == 0 || job.command.status == 2);
    ck_assert(job.command.status == 0 || job.command.sense_bytes >= 8);
    if (bench.volume.records.size() > 1000)
      bench.volume.records.clear();
  }
}
END_TEST

START_TEST(compare_and_write_is_one_operation) {
  ScsiBench bench;
  std::vector<uint8_t> zero(1024), other(1024, 0xA5);
  std::fill_n(other.begin(), 512, uint8_t{0});
  constexpr uint8_t kOp = 0x89;
  auto start = [&](const std::vector<uint8_t> &data) -> ScsiJob & {
    return bench.start({kOp, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1}, 1024, data);
  };
  bench.volume.hold = true;
  ScsiJob &first = start(other);                                             // reads
  ScsiJob &second = start(other);                                            // has to wait
  ScsiJob &write = bench.start({0x2A, 0, 0, 0, 0, 4, 0, 0, 2}, 1024, zero);  // the same block
  ScsiJob &apart = bench.start({0x2A, 0, 0, 0, 0, 9, 0, 0, 2}, 1024, zero);  // another one
  ScsiJob &read = bench.start({0x28, 0, 0, 0, 0, 5, 0, 0, 1}, 512);
  ck_assert_uint_eq(bench.volume.held.size(), 3);
  while (!bench.volume.held.empty())
    bench.volume.answer();
  good(first);
  refused(second, 0xE, 0x1D00);  // it saw what the first one wrote
  ck_assert_uint_eq(second.command.sense[6], 0);
  good(write);
  good(apart);
  good(read);
  ck_assert_uint_eq(bench.volume.bytes[5 * 512], 0);  // by the write that came last
  bench.volume.hold = false;
  good(bench.run({kOp, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0}, 0));
  refused(bench.run({kOp, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 129}, 1024), 5, 0x2400);
  refused(bench.run({kOp, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2}, 1024), 0xB, 0x4B00);
}
END_TEST

// Who waits for a claim can be taken back, and so can who holds it.
START_TEST(claims_end_with_their_commands) {
  ScsiBench bench;
  std::vector<uint8_t> zero(1024);
  bench.volume.hold = true;
  std::vector<ScsiJob *> jobs;
  for (int i = 0; i < 6; i++)
    jobs.push_back(&bench.start({0x89, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1}, 1024, zero));
  bench.device.cancel(jobs[0]->command);
  bench.device.cancel(jobs[3]->command);
  while (!bench.volume.held.empty())
    bench.volume.answer();
  for (int i : {1, 2, 4, 5})
    good(*jobs[static_cast<size_t>(i)]);
  ck_assert(!jobs[0]->done && !jobs[3]->done);
}
END_TEST

int main() {
  return test::run_tests("scsi", {power_on_is_told_once_and_not_to_inquiry,
                                  every_reserved_bit_is_pointed_at,
                                  unknown_opcodes_and_actions,
                                  reads_and_writes_of_each_length,
                                  ranges,
                                  failures_have_their_sense_and_place,
                                  verify_compares,
                                  unmap_lists,
                                  write_same_writes_or_unmaps,
                                  capacity_and_pages,
                                  mode_pages_can_be_read_and_the_cache_turned_off,
                                  mode_lists_are_pointed_into,
                                  operations_are_reported_as_they_are,
                                  operations_of_a_member,
                                  stopped_and_started,
                                  health_of_the_members_in_log_pages,
                                  log_pages_begin_where_they_are_asked_to,
                                  pass_through_gives_registers_back,
                                  commands_end_when_the_volume_does_and_cancel_is_silent,
                                  random_bytes,
                                  compare_and_write_is_one_operation,
                                  claims_end_with_their_commands});
}
