// SPDX-License-Identifier: GPL-2.0-or-later
//
// The Security feature set: passwords, lock, freeze, erase, what is allowed in which state, and
// what outlives the power.
#include "drive_bench.h"
#include "runner.h"

using namespace revodrive;

namespace {

constexpr uint64_t kSectors = (700u << 20) / 512;  // three pieces of an erase
constexpr uint8_t kSetPassword = 0xF1, kUnlock = 0xF2, kPrepare = 0xF3, kErase = 0xF4,
                  kFreeze = 0xF5, kDisable = 0xF6;
constexpr uint16_t kEnabled = 0x02, kLocked = 0x04, kFrozen = 0x08, kExpired = 0x10,
                   kMaximum = 0x100;

struct Password {
  const char *text;
  bool master = false;
  bool maximum = false;
  bool enhanced = false;
  uint16_t id = 0;
};

bool aborted(const FakeCommand &command) {
  return command.done() && command.ata.failed && command.error() == 0x04;
}

FakeCommand &send(DriveBench &bench, uint8_t opcode, const Password &password) {
  std::array<uint8_t, 512> block{};
  block[0] = static_cast<uint8_t>(password.master | password.enhanced << 1);
  block[1] = password.maximum;
  std::memcpy(block.data() + 2, password.text, std::strlen(password.text));
  block[34] = static_cast<uint8_t>(password.id);
  block[35] = static_cast<uint8_t>(password.id >> 8);
  return bench.run({.opcode = opcode}, 512, block.data());
}

std::vector<uint8_t> identify(DriveBench &bench) {
  FakeCommand &done = bench.run({.opcode = 0xEC}, 512);
  ck_assert(done.good());
  return {done.window.data(), done.window.data() + 512};
}

uint16_t word(DriveBench &bench, size_t index) {
  return word_at(identify(bench).data(), index);
}

uint16_t state(DriveBench &bench) {
  return word(bench, 128) & (kEnabled | kLocked | kFrozen | kExpired | kMaximum);
}

void power_cycle(DriveBench &bench) {
  bench.drive->reset(LinkReset::kPowerOn);
}

FakeCommand &erase(DriveBench &bench, const Password &password) {
  ck_assert(bench.run({.opcode = kPrepare}).good());
  return send(bench, kErase, password);
}

void write_marker(DriveBench &bench, uint64_t lba) {
  std::array<uint8_t, 512> data;
  data.fill(0x5A);
  ck_assert(bench.run({.opcode = 0x35, .lba = lba, .count = 1}, 512, data.data()).good());
}

}  // namespace

START_TEST(as_shipped) {
  DriveBench bench;
  ck_assert_uint_eq(word(bench, 128), 0x0021);  // supported, enhanced erase
  ck_assert_uint_eq(word(bench, 89), 1);
  ck_assert_uint_eq(word(bench, 90), 1);
  ck_assert_uint_eq(word(bench, 92), 0xFFFE);
  ck_assert_uint_ne(word(bench, 82) & 2, 0);
  ck_assert_uint_eq(word(bench, 85) & 2, 0);
}
END_TEST

START_TEST(lock_and_unlock) {
  DriveBench bench;
  ck_assert(send(bench, kSetPassword, {.text = "secret"}).good());
  ck_assert_uint_eq(state(bench), kEnabled);
  ck_assert_uint_ne(word(bench, 85) & 2, 0);
  ck_assert(bench.run({.opcode = 0x25, .count = 1}, 512).good());  // still open
  power_cycle(bench);
  ck_assert_uint_eq(state(bench), kEnabled | kLocked);
  ck_assert(aborted(bench.run({.opcode = 0x25, .count = 1}, 512)));
  ck_assert(aborted(send(bench, kUnlock, {.text = "wrong"})));
  ck_assert(send(bench, kUnlock, {.text = "secret"}).good());
  ck_assert_uint_eq(state(bench), kEnabled);
  ck_assert(bench.run({.opcode = 0x25, .count = 1}, 512).good());
  ck_assert(aborted(send(bench, kDisable, {.text = "wrong"})));
  ck_assert(send(bench, kDisable, {.text = "secret"}).good());
  ck_assert_uint_eq(state(bench), 0);
  power_cycle(bench);
  ck_assert_uint_eq(state(bench), 0);
}
END_TEST

// The lock closes at a power cycle, and no reset of the link opens it.
START_TEST(resets_keep_the_lock) {
  DriveBench bench;
  ck_assert(send(bench, kSetPassword, {.text = "secret"}).good());
  bench.drive->reset(LinkReset::kComreset);
  ck_assert_uint_eq(state(bench), kEnabled);
  power_cycle(bench);
  bench.drive->reset(LinkReset::kComreset);
  ck_assert_uint_eq(state(bench), kEnabled | kLocked);
}
END_TEST

START_TEST(five_attempts) {
  DriveBench bench;
  ck_assert(send(bench, kSetPassword, {.text = "secret"}).good());
  power_cycle(bench);
  for (int i = 0; i < 5; i++) {
    ck_assert_uint_eq(state(bench) & kExpired, 0);
    ck_assert(aborted(send(bench, kUnlock, {.text = "wrong"})));
  }
  ck_assert_uint_eq(state(bench), kEnabled | kLocked | kExpired);
  ck_assert(aborted(send(bench, kUnlock, {.text = "secret"})));
  ck_assert(aborted(erase(bench, {.text = "secret"})));
  bench.drive->reset(LinkReset::kComreset);
  ck_assert(aborted(send(bench, kUnlock, {.text = "secret"})));
  power_cycle(bench);
  ck_assert_uint_eq(state(bench), kEnabled | kLocked);
  ck_assert(send(bench, kUnlock, {.text = "secret"}).good());
}
END_TEST

START_TEST(master_password) {
  for (bool maximum : {false, true}) {
    DriveBench bench;
    ck_assert(send(bench, kSetPassword, {.text = "boss", .master = true, .id = 0x1234}).good());
    ck_assert_uint_eq(word(bench, 92), 0x1234);
    ck_assert_uint_eq(state(bench), 0);  // only a user password enables
    ck_assert(send(bench, kSetPassword, {.text = "secret", .maximum = maximum}).good());
    ck_assert_uint_eq(state(bench), kEnabled | (maximum ? kMaximum : 0));
    power_cycle(bench);
    ck_assert(send(bench, kUnlock, {.text = "boss", .master = true}).good() == !maximum);
    ck_assert(erase(bench, {.text = "boss", .master = true}).good());
    ck_assert_uint_eq(state(bench), 0);
    ck_assert_uint_eq(word(bench, 92), 0x1234);
  }
}
END_TEST

START_TEST(master_identifier_reserved_values) {
  DriveBench bench;
  for (uint16_t id : {0x0000, 0xFFFF}) {
    ck_assert(send(bench, kSetPassword, {.text = "boss", .master = true, .id = id}).good());
    ck_assert_uint_eq(word(bench, 92), 0xFFFE);
  }
}
END_TEST

START_TEST(frozen) {
  DriveBench bench;
  ck_assert(send(bench, kSetPassword, {.text = "secret"}).good());
  ck_assert(bench.run({.opcode = kFreeze}).good());
  for (LinkReset kind : {LinkReset::kComreset, LinkReset::kComreset}) {
    ck_assert_uint_eq(state(bench), kEnabled | kFrozen);
    for (uint8_t opcode : {kSetPassword, kUnlock, kErase, kDisable})
      ck_assert_msg(aborted(send(bench, opcode, {.text = "secret"})), "0x%02x", opcode);
    ck_assert(aborted(bench.run({.opcode = kPrepare})));
    ck_assert(bench.run({.opcode = kFreeze}).good());
    ck_assert(bench.run({.opcode = 0x25, .count = 1}, 512).good());
    write_marker(bench, 7);
    bench.drive->reset(kind);
  }
  power_cycle(bench);
  ck_assert_uint_eq(state(bench), kEnabled | kLocked);
  ck_assert(aborted(bench.run({.opcode = kFreeze})));  // not while locked
}
END_TEST

START_TEST(frozen_from_the_start) {
  DriveBench bench(kSectors, true, {.model = "M", .serial = "S", .firmware = "F", .wwn = 5},
                   {.frozen = true});
  ck_assert_uint_eq(state(bench), kFrozen);
  power_cycle(bench);
  ck_assert_uint_eq(state(bench), kFrozen);
}
END_TEST

// ATA8-ACS, security mode command actions: a locked drive ends these aborted, and takes those.
START_TEST(commands_while_locked) {
  DriveBench bench;
  ck_assert(send(bench, kSetPassword, {.text = "secret"}).good());
  power_cycle(bench);
  for (uint8_t opcode :
       {0x06, 0x20, 0x24, 0x25, 0x29, 0x30, 0x34, 0x35, 0x37, 0x39, 0x3D, 0x3F, 0x40,
        0x42, 0x57, 0xC4, 0xC5, 0xC8, 0xCA, 0xCE, 0xE7, 0xEA, 0xF1, 0xF5, 0xF6, 0xF9}) {
    FakeCommand &done = bench.run({.opcode = opcode, .count = 1, .features = 1}, 512);
    ck_assert_msg(aborted(done), "opcode 0x%02x", opcode);
  }
  for (bool write : {false, true}) {
    ck_assert(bench.run(queued(write, 3, 0, 8), 4096).ata.failed);
    ck_assert(bench.read_log(0x10).good());
  }
  for (uint8_t opcode : {0xEC, 0xE5, 0xE3, 0xE1, 0xF8, 0x27, 0x90})
    ck_assert_msg(!bench.run({.opcode = opcode}, 512).ata.failed, "opcode 0x%02x", opcode);
  ck_assert(bench.run({.opcode = 0xEF, .features = 0xAA}).good());
  ck_assert(bench.run({.opcode = 0xB0, .lba = 0xC24F00, .features = 0xD0}, 512).good());
  ck_assert(bench.run({.opcode = 0xE0}).good());
}
END_TEST

START_TEST(erase_wants_prepare_right_before) {
  DriveBench bench;
  ck_assert(send(bench, kSetPassword, {.text = "secret"}).good());
  ck_assert(aborted(send(bench, kErase, {.text = "secret"})));
  ck_assert(bench.run({.opcode = kPrepare}).good());
  ck_assert(bench.run({.opcode = 0xE5}).good());
  ck_assert(aborted(send(bench, kErase, {.text = "secret"})));
  ck_assert(aborted(erase(bench, {.text = "wrong"})));
  ck_assert(aborted(send(bench, kErase, {.text = "secret"})));  // the failed one used it up
  ck_assert(erase(bench, {.text = "secret"}).good());
}
END_TEST

// C039, C044: data is gone everywhere, also where a limit hides it; within the advertised time.
START_TEST(erase_destroys_data) {
  for (bool enhanced : {false, true}) {
    DriveBench bench(kSectors);
    for (uint64_t lba : {uint64_t{0}, kSectors / 2, kSectors - 1})
      write_marker(bench, lba);
    ck_assert(bench.run({.opcode = 0x27}).good());
    ck_assert(bench.run({.opcode = 0x37, .lba = kSectors / 4}).good());
    ck_assert(send(bench, kSetPassword, {.text = "secret"}).good());
    bench.media.records.clear();
    int64_t start_ns = bench.initiator.now_ns;
    FakeCommand &done = erase(bench, {.text = "secret", .enhanced = enhanced});
    ck_assert(done.good());
    ck_assert_int_gt(done.done_ns, start_ns);
    ck_assert_int_le(done.done_ns - start_ns, 120'000'000'000);
    for (uint64_t lba : {uint64_t{0}, kSectors / 2, kSectors - 1})
      ck_assert(bench.media.sector(lba) == FakeMedia::Sector{});
    ck_assert_uint_eq(state(bench), 0);
    uint64_t at = 0;
    ck_assert_uint_eq(bench.media.records.back().op, RD_BLOCK_FLUSH);
    bench.media.records.pop_back();
    for (const FakeMedia::Record &record : bench.media.records) {
      ck_assert_uint_eq(record.op, RD_BLOCK_WRITE_ZEROES);
      ck_assert_uint_eq(record.offset, at);
      ck_assert_uint_le(record.bytes, 256u << 20);
      at += record.bytes;
    }
    ck_assert_uint_eq(at, kSectors * 512);
    ck_assert_uint_eq(bench.counter("secure_erases"), 1);
    ck_assert(bench.rules_kept());
  }
}
END_TEST

// Larger drives take longer, and none longer than IDENTIFY says.
START_TEST(erase_time) {
  int64_t last_ns = 0;
  for (uint64_t gib : {1, 16, 120, 8000}) {
    DriveBench bench(gib << 21);
    ck_assert(send(bench, kSetPassword, {.text = "secret"}).good());
    ck_assert(bench.run({.opcode = kPrepare}).good());
    int64_t start_ns = bench.initiator.now_ns;
    FakeCommand &done = send(bench, kErase, {.text = "secret"});
    ck_assert(done.good());
    int64_t taken_ns = done.done_ns - start_ns;
    ck_assert_int_gt(taken_ns, last_ns);
    ck_assert_int_le(taken_ns, 121'000'000'000);
    last_ns = taken_ns;
  }
}
END_TEST

// The backend is asked piece by piece, and the command waits for it.
START_TEST(erase_waits_for_the_backend) {
  DriveBench bench(kSectors);
  ck_assert(send(bench, kSetPassword, {.text = "secret"}).good());
  bench.media.hold = true;
  FakeCommand &done = erase(bench, {.text = "secret"});
  for (int piece = 0; piece < 4; piece++) {  // three and the flush
    ck_assert(!done.done());
    ck_assert_uint_eq(bench.media.held(), 1);
    FakeCommand &meanwhile = bench.issue({.opcode = 0xEC}, 512);
    bench.initiator.run();
    ck_assert(aborted(meanwhile));
    bench.media.answer();
  }
  ck_assert(done.good());
  ck_assert(bench.rules_kept());
  ck_assert_uint_eq(state(bench), 0);
}
END_TEST

// Cut short by an error or taken back, the drive stays locked until an erase ends.
START_TEST(erase_cut_short) {
  for (bool error : {true, false}) {
    DriveBench bench(kSectors);
    ck_assert(send(bench, kSetPassword, {.text = "secret"}).good());
    bench.media.hold = true;
    FakeCommand &done = erase(bench, {.text = "secret"});
    bench.media.fail = [](const FakeMedia::Record &) { return -EIO; };
    bench.media.answer();
    if (error) {
      bench.media.answer();
      ck_assert(done.done() && done.ata.failed);
      ck_assert_uint_eq(done.status() & 0x20, 0x20);
    } else {
      bench.initiator.cancel(done);
    }
    bench.media.hold = false;
    bench.media.fail = [](const FakeMedia::Record &) { return 0; };
    ck_assert_uint_eq(state(bench), kEnabled | kLocked);
    ck_assert(aborted(send(bench, kUnlock, {.text = "secret"})));
    power_cycle(bench);
    ck_assert_uint_eq(state(bench), kEnabled | kLocked);
    ck_assert(aborted(send(bench, kUnlock, {.text = "secret"})));
    ck_assert(erase(bench, {.text = "secret"}).good());
    ck_assert_uint_eq(state(bench), 0);
    ck_assert(bench.rules_kept());
  }
}
END_TEST

START_TEST(short_data) {
  DriveBench bench;
  for (uint8_t opcode : {kSetPassword, kUnlock, kErase, kDisable}) {
    ck_assert(bench.run({.opcode = kPrepare}).good());
    FakeCommand &done = bench.run({.opcode = opcode}, 100);
    ck_assert(done.ata.failed && done.ata.data_short);
  }
  ck_assert_uint_eq(state(bench), 0);
}
END_TEST

START_TEST(saved_and_stored) {
  DriveBench bench;
  ck_assert(send(bench, kSetPassword, {.text = "boss", .master = true, .id = 77}).good());
  ck_assert(send(bench, kSetPassword, {.text = "secret", .maximum = true}).good());
  power_cycle(bench);
  ck_assert(aborted(send(bench, kUnlock, {.text = "wrong"})));

  StreamWriter saved;
  bench.drive->save(saved);
  DriveBench migrated;
  StreamReader in(saved.bytes());
  migrated.drive->load(in);
  ck_assert(in.ok() && in.at_end());
  for (int i = 0; i < 4; i++)
    ck_assert(aborted(send(migrated, kUnlock, {.text = "wrong"})));
  ck_assert_uint_eq(state(migrated), kEnabled | kLocked | kExpired | kMaximum);

  StreamWriter stored;
  bench.drive->save_persistent(stored, 0);
  DriveBench later;
  StreamReader from(stored.bytes());
  later.drive->load_persistent(from);
  ck_assert(from.ok());
  ck_assert_uint_eq(state(later), kEnabled | kLocked | kMaximum);
  ck_assert_uint_eq(word(later, 92), 77);
  ck_assert(send(later, kUnlock, {.text = "secret"}).good());
}
END_TEST

int main() {
  return test::run_tests(
      "ata_security",
      {as_shipped, lock_and_unlock, resets_keep_the_lock, five_attempts, master_password,
       master_identifier_reserved_values, frozen, frozen_from_the_start, commands_while_locked,
       erase_wants_prepare_right_before, erase_destroys_data, erase_time,
       erase_waits_for_the_backend, erase_cut_short, short_data, saved_and_stored});
}
