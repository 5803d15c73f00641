// SPDX-License-Identifier: GPL-2.0-or-later
//
// Each action of a fault rule at each stage of a command.
#include <cstring>
#include <string>

#include "fault_rig.h"
#include "runner.h"

using namespace revodrive;
using namespace revodrive::test;

namespace {

// Held in each stage: nothing comes, the list shows it, COMMAND_ACTIVE too; released, it ends well
// and with the right data, queued or not, reading or writing.
START_TEST(hold_in_each_stage) {
  for (bool timing : {true, false}) {
    for (const char *stage : kStageNames) {
      for (bool write : {false, true}) {
        for (bool queued : {false, true}) {
          Rig rig(timing);
          rig.fault(std::string("name=h,action=hold,lba=64,stage=") + stage);
          Request request = write ? rig.driver.write_request(64, 8, rig.driver.data_addr(0x30000))
                                  : rig.driver.read_request(64, 8, rig.driver.data_addr(0x30000));
          if (queued)
            request.fis = ncq_fis(write ? 0x61 : 0x60, 64, 8, 3);
          request.tag = 3;
          if (write)
            memset(rig.data(3), 0xA5, 4096);
          rig.driver.issue(7, request);
          rig.wait();
          ck_assert(!rig.done(7));
          ck_assert_msg(has(rig.list().at(0), "hits=1 resting=1"), "%s", rig.list()[0].c_str());
          ck_assert_uint_eq(rig.driver.read_cmd_space(0x300) & 0x80, 0x80);
          rig.fault("release name=h");
          rig.wait();
          ck_assert_msg(rig.good(7), "%s write=%d queued=%d: 0x%x", stage, write, queued,
                        rig.entry(7));
          ck_assert(has(rig.list().at(0), "hits=1 resting=0"));
          uint8_t *where = write ? &rig.host.disks[0][64 * 512] : rig.data(3);
          ck_assert_uint_eq(where[0], write ? 0xA5 : 64);
          ck_assert_uint_eq(where[4095], write ? 0xA5 : 71);
          ck_assert_uint_eq(rig.host.mapped, 0);
          ck_assert_uint_eq(rig.host.counter("late_ios"), 0);
        }
      }
    }
  }
}
END_TEST

START_TEST(held_commands_go_on_in_any_order) {
  Rig rig;
  rig.fault("name=h,action=hold,op=ncq,stage=decode");
  for (uint8_t tag = 0; tag < 6; tag++)
    rig.driver.issue(10 + tag, rig.ncq(false, tag, 8u * tag));
  rig.wait();
  rig.fault("release name=h,tag=4");
  rig.wait();
  ck_assert(rig.good(14) && !rig.done(10));
  rig.fault("release name=h,lba=19");
  rig.wait();
  ck_assert(rig.good(12) && !rig.done(10));
  rig.fault("release name=h,count=2");
  rig.wait();
  ck_assert(rig.good(10) && rig.good(11) && !rig.done(13) && !rig.done(15));
  rig.fault("clear name=h");  // lets the rest go
  rig.wait();
  ck_assert(rig.good(13) && rig.good(15));
  rig.driver.issue(20, rig.ncq(false, 0, 0));
  rig.wait();
  ck_assert(rig.good(20));
}
END_TEST

START_TEST(delay_in_each_stage) {
  for (bool timing : {true, false}) {
    Rig plain(timing);
    int64_t start_ns = plain.host.now_ns();
    plain.driver.run(7, plain.ncq(false, 1, 64));
    int64_t usual_ns = plain.host.now_ns() - start_ns;
    for (const char *stage : kStageNames) {
      Rig rig(timing);
      rig.fault(std::string("action=delay,delay_us=70000,op=read,stage=") + stage);
      start_ns = rig.host.now_ns();
      ck_assert_uint_eq(rig.driver.run(7, rig.ncq(false, 1, 64)), 0x00010007);
      int64_t took_ns = rig.host.now_ns() - start_ns;
      ck_assert_int_ge(took_ns, 70'000'000);
      ck_assert_int_le(took_ns, usual_ns + 70'200'000);
      ck_assert_uint_eq(rig.host.counter("late_ios"), 0);
    }
  }
}
END_TEST

// Dropped: no completion ever, not after an error of the queue either; a phy reset takes it back.
START_TEST(drop_in_each_stage) {
  for (const char *stage : kStageNames) {
    Rig rig;
    rig.fault(std::string("name=d,action=drop,op=write,lba=64,stage=") + stage);
    memset(rig.data(1), 0x5A, 4096);
    rig.driver.issue(7, rig.ncq(true, 1, 64));
    rig.driver.issue(8, rig.ncq(false, 2, 128));
    rig.wait();
    ck_assert(!rig.done(7) && rig.good(8));
    bool written = strcmp(stage, "completion") == 0;
    ck_assert_uint_eq(rig.host.disks[0][64 * 512], written ? 0x5A : 64);
    rig.fault("release name=d");
    rig.wait();
    ck_assert(!rig.done(7));
    rig.driver.set_reg(regs::kSerialCtl, regs::kSerialHardReset);
    rig.wait();
    ck_assert(!rig.done(7));
    ck_assert_uint_eq(rig.driver.read_cmd_space(0x300) & 0x80, 0);
    rig.fault("clear");
    rig.driver.issue(9, rig.ncq(true, 1, 64));
    rig.wait();
    ck_assert(rig.good(9));
  }
}
END_TEST

// Each error at each stage, as the registers show it.
START_TEST(fail_in_each_stage) {
  struct {
    const char *name;
    uint8_t status, error;
  } errors[] = {{"unc", 0x51, 0x40},  {"idnf", 0x51, 0x10}, {"abrt", 0x51, 0x04},
                {"icrc", 0x51, 0x84}, {"df", 0x71, 0x04},   {"busy", 0xD1, 0x00}};
  for (const char *stage : kStageNames) {
    for (auto &it : errors) {
      Rig rig;
      rig.fault(std::string("action=fail,op=read,lba=67,count=1,error=") + it.name +
                ",stage=" + stage);
      uint32_t entry = rig.driver.run(7, rig.driver.read_request(64, 8, rig.driver.data_addr()));
      ck_assert_uint_eq(entry, 0x00030007);
      uint8_t status = rig.driver.status(0);
      bool bridge = strcmp(stage, "fetch") == 0;
      ck_assert_uint_eq(status, bridge ? it.status & ~0x10 : it.status);
      ck_assert_uint_eq(rig.driver.error(0), it.error);
      if (!bridge)
        ck_assert_uint_eq(rig.driver.d2h(0)[4], 67);
      bool moved = strcmp(stage, "completion") == 0;
      ck_assert_uint_eq(rig.host.memory(rig.driver.data_addr(), 1)[0], moved ? 64 : 0);
      ck_assert_uint_eq(rig.driver.run(8, rig.driver.read_request(64, 8, rig.driver.data_addr())),
                        0x00010008);
    }
  }
}
END_TEST

// Case C012: one bad sector among 31 reads. Log 10h names exactly its tag, error and LBA; the
// aborted ones are good when tried again.
START_TEST(bad_sector_under_full_queue) {
  Rig rig;
  rig.fault("name=bad,action=fail,error=unc,lba=0x125");
  for (uint8_t tag = 0; tag < 31; tag++)
    rig.driver.issue(10 + tag, rig.ncq(false, tag, 16u * tag, 8));
  rig.wait();
  unsigned failed = 0;
  for (uint16_t slot = 10; slot < 41; slot++) {
    ck_assert(rig.done(slot));
    failed += rig.failed(slot);
  }
  ck_assert_uint_ge(failed, 1);
  ck_assert(rig.failed(10 + 18));
  ck_assert_uint_eq(rig.driver.run(50, rig.log10()), 0x00010032);
  const uint8_t *log = rig.host.memory(rig.driver.data_addr(0x300000), 512);
  uint8_t sum = 0;
  for (unsigned i = 0; i < 512; i++)
    sum = static_cast<uint8_t>(sum + log[i]);
  ck_assert_uint_eq(sum, 0);
  ck_assert_uint_eq(log[0], 18);
  ck_assert_uint_eq(log[2], 0x41);
  ck_assert_uint_eq(log[3], 0x40);
  ck_assert_uint_eq(log[4] | log[5] << 8, 0x125);
  for (uint8_t tag = 0; tag < 31; tag++) {
    if (tag != 18)
      rig.driver.issue(100 + tag, rig.ncq(false, tag, 16u * tag, 8));
  }
  rig.wait();
  for (uint16_t tag = 0; tag < 31; tag++)
    ck_assert(tag == 18 || rig.good(100 + tag));
  ck_assert_uint_eq(rig.host.counter("port0.media_errors"), 1);
}
END_TEST

START_TEST(bad_sectors_heal_when_written) {
  Rig rig;
  rig.fault("name=bad,action=fail,error=unc,lba=100-107,heal=write");
  Driver &driver = rig.driver;
  uint16_t slot = 10;
  auto read_fails = [&](uint64_t lba, uint16_t sectors) {
    return driver.run(slot++, driver.read_request(lba, sectors, driver.data_addr())) >> 16 == 3;
  };
  ck_assert(read_fails(96, 8));
  ck_assert(!read_fails(92, 8));
  ck_assert_uint_eq(driver.run(slot++, driver.write_request(102, 2, driver.data_addr())) >> 16, 1);
  ck_assert(!read_fails(102, 2));
  ck_assert(read_fails(102, 3));
  ck_assert_uint_eq(driver.d2h(0)[4], 104);
  ck_assert(read_fails(101, 2));
  ck_assert_uint_eq(driver.run(slot++, driver.write_request(96, 32, driver.data_addr())) >> 16, 1);
  ck_assert(!read_fails(96, 32));
  // READ VERIFY sees bad sectors as well.
  rig.fault("clear;action=fail,error=unc,lba=200");
  Request verify = driver.plain(0x42);
  verify.fis = lba48_fis(0x42, 198, 8);
  ck_assert_uint_eq(driver.run(slot++, verify) >> 16, 3);
  ck_assert_uint_eq(driver.error(0), 0x40);
  ck_assert_uint_eq(driver.d2h(0)[4], 200);
}
END_TEST

// Corrupted on the way in: the guest's own buffer stays whole; on the way out: the disk does.
START_TEST(corrupt_reads_and_writes) {
  for (const char *stage : {"media", "link"}) {
    for (bool mappable : {true, false}) {
      Rig rig;
      rig.host.mappable = mappable;
      auto differing = [](const uint8_t *data, auto expected, size_t bytes) {
        unsigned bits = 0;
        for (size_t i = 0; i < bytes; i++)
          bits += static_cast<unsigned>(__builtin_popcount(data[i] ^ expected(i)));
        return bits;
      };
      rig.fault(std::string("name=c,action=corrupt,bits=5,seed=3,lba=66,stage=") + stage);
      rig.driver.issue(7, rig.ncq(false, 1, 64));
      rig.wait();
      ck_assert(rig.good(7));
      auto disk = [](size_t i) { return static_cast<uint8_t>(64 + i / 512); };
      ck_assert_uint_eq(differing(rig.data(1), disk, 4096), 5);
      ck_assert_uint_eq(differing(rig.data(1), disk, 1024), 0);  // sector 66 only
      ck_assert_uint_eq(differing(&rig.host.disks[0][64 * 512], disk, 4096), 0);
      auto fill = [](size_t) { return uint8_t{0x33}; };
      memset(rig.data(2), 0x33, 4096);
      rig.driver.issue(8, rig.ncq(true, 2, 64));
      rig.wait();
      ck_assert(rig.good(8));
      ck_assert_uint_eq(differing(rig.data(2), fill, 4096), 0);
      ck_assert_uint_eq(differing(&rig.host.disks[0][64 * 512], fill, 4096), 5);
      ck_assert_uint_eq(rig.host.mapped, 0);
    }
  }
}
END_TEST

// BSY: nothing ends until the link is reset, whatever was on its way; then all is well.
START_TEST(hang_until_reset) {
  for (bool now : {false, true}) {
    Rig rig;
    rig.driver.issue(7, rig.ncq(false, 1, 64));
    rig.driver.issue(8, rig.ncq(true, 2, 128));
    if (now) {
      rig.fault("name=h,action=hang,op=now");
    } else {
      rig.fault("name=h,action=hang,op=identify,count=1");
      rig.driver.issue(9, rig.driver.identify(rig.driver.data_addr()));
    }
    rig.driver.issue(10, rig.driver.plain(0xE5));
    rig.wait();
    for (uint16_t slot = 7; slot <= 10; slot++)
      ck_assert(!rig.done(slot));
    rig.driver.set_reg(regs::kSerialCtl, regs::kSerialHardReset);
    rig.wait();
    ck_assert_uint_eq(rig.driver.completions().size(), 0);
    ck_assert_uint_eq(rig.driver.run(11, rig.driver.identify(rig.driver.data_addr())), 0x0001000B);
  }
  Rig rig;
  rig.fault("name=h,action=hang,op=now");
  rig.driver.issue(7, rig.ncq(false, 1, 64));
  rig.wait();
  ck_assert(!rig.done(7));
  rig.fault("release name=h");
  rig.wait();
  ck_assert(rig.good(7));
}
END_TEST

START_TEST(link_goes_down_and_comes_back) {
  Rig rig;
  using namespace regs;
  rig.fault("name=l,action=link-down,delay_us=300000,op=read,nth=2");
  rig.driver.issue(7, rig.ncq(false, 1, 64));
  rig.driver.issue(8, rig.ncq(false, 2, 128));
  ck_assert_uint_eq(rig.driver.reg(kSerialCtl) & kSerialReady, 0);
  ck_assert_uint_ne(rig.driver.reg(kPortIrq) & kPhyReadyLost, 0);
  rig.driver.set_reg(kSerialCtl, kSerialHardReset);  // a reset does not bring it back
  rig.wait(200'000'000);
  ck_assert_uint_eq(rig.driver.reg(kSerialCtl) & kSerialReady, 0);
  rig.wait(200'000'000);
  ck_assert_uint_ne(rig.driver.reg(kSerialCtl) & kSerialReady, 0);
  ck_assert(!rig.done(7) && !rig.done(8));
  rig.driver.issue(9, rig.ncq(false, 1, 64));
  rig.wait();
  ck_assert(rig.good(9));
  rig.fault("clear;name=m,action=link-down,op=now");
  rig.wait();
  ck_assert_uint_eq(rig.driver.reg(kSerialCtl) & kSerialReady, 0);
  rd_card_detach(rig.host.card(), 1);
  rig.fault("release name=m");
  rig.wait();
  ck_assert_uint_ne(rig.driver.reg(kSerialCtl) & kSerialReady, 0);
  rig.fault("action=link-down,op=flush,stage=completion,delay_us=1000");
  rig.driver.issue(12, rig.driver.plain(0xEA));
  rig.wait();
  ck_assert(!rig.done(12));
  ck_assert_uint_ne(rig.driver.reg(kSerialCtl) & kSerialReady, 0);
}
END_TEST

}  // namespace

int main() {
  return run_tests("faults",
                   {hold_in_each_stage, held_commands_go_on_in_any_order, delay_in_each_stage,
                    drop_in_each_stage, fail_in_each_stage, bad_sector_under_full_queue,
                    bad_sectors_heal_when_written, corrupt_reads_and_writes, hang_until_reset,
                    link_goes_down_and_comes_back});
}
