// SPDX-License-Identifier: GPL-2.0-or-later
//
// DOWNLOAD MICROCODE: whole and in segments, good images and bad ones, and what outlives the power.
#include "drive_bench.h"
#include "runner.h"

using namespace revodrive;

namespace {

// The format of sata/firmware.h, made by hand; the checksum is zlib's CRC-32.
uint32_t crc32(const std::vector<uint8_t> &bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; bit++)
      crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

void put_u32(std::vector<uint8_t> &bytes, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; i++)
    bytes[at + i] = static_cast<uint8_t>(value >> (8 * i));
}

std::vector<uint8_t> image(const std::string &revision, size_t blocks) {
  std::vector<uint8_t> bytes(blocks * 512);
  for (size_t i = 24; i < bytes.size(); i++)
    bytes[i] = static_cast<uint8_t>(i * 31);
  std::memcpy(bytes.data(), "SF2281FW", 8);
  put_u32(bytes, 8, static_cast<uint32_t>(bytes.size()));
  std::string padded = revision + std::string(8 - revision.size(), ' ');
  std::memcpy(bytes.data() + 16, padded.data(), 8);
  put_u32(bytes, 12, crc32(bytes));
  return bytes;
}

FakeCommand &download(DriveBench &bench, uint8_t mode, size_t offset_blocks,
                      std::span<const uint8_t> data, uint8_t opcode = 0x92) {
  size_t blocks = data.size() / 512;
  return bench.run({.opcode = opcode,
                    .lba = (blocks >> 8 & 0xFF) | offset_blocks << 8,
                    .count = static_cast<uint16_t>(blocks & 0xFF),
                    .features = mode,
                    .device = 0},
                   static_cast<uint32_t>(data.size()), data.data());
}

std::string revision(DriveBench &bench) {
  FakeCommand &done = bench.run({.opcode = 0xEC}, 512);
  ck_assert(done.good());
  std::string text;
  for (size_t i = 0; i < 8; i++)
    text += static_cast<char>(done.window.data()[46 + (i ^ 1)]);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

uint16_t count_of(const FakeCommand &command) {
  return static_cast<uint16_t>(command.ata.d2h[12] | command.ata.d2h[13] << 8);
}

bool refused(const FakeCommand &command) {
  return command.done() && command.ata.failed && command.error() == 0x04;
}

}  // namespace

START_TEST(claims) {
  DriveBench bench;
  FakeCommand &done = bench.run({.opcode = 0xEC}, 512);
  const uint8_t *data = done.window.data();
  ck_assert_uint_ne(word_at(data, 83) & 1, 0);
  ck_assert_uint_ne(word_at(data, 86) & 1, 0);
  ck_assert_uint_ne(word_at(data, 119) & 0x10, 0);
  ck_assert_uint_ne(word_at(data, 120) & 0x10, 0);
  ck_assert_uint_ne(word_at(data, 69) & 0x100, 0);
  ck_assert_uint_eq(word_at(data, 234), 1);
  ck_assert_uint_eq(word_at(data, 235), 4096);
}
END_TEST

START_TEST(whole_image) {
  for (uint8_t opcode : {0x92, 0x93}) {
    DriveBench bench;
    test::check_text(revision(bench), "2.25");
    ck_assert(download(bench, 7, 0, image("2.50", 300), opcode).good());
    test::check_text(revision(bench), "2.50");
    bench.drive->reset(LinkReset::kPowerOn);
    test::check_text(revision(bench), "2.50");
    ck_assert(bench.rules_kept());
  }
}
END_TEST

// The count of the answer tells what hdparm reads: 1 more to come, 2 applied.
START_TEST(segments) {
  for (size_t step : {size_t{1}, size_t{3}, size_t{64}}) {
    DriveBench bench;
    std::vector<uint8_t> data = image("FW-3", 64);
    for (size_t at = 0; at < 64; at += step) {
      size_t blocks = std::min(step, 64 - at);
      FakeCommand &done = download(bench, 3, at, std::span(data).subspan(at * 512, blocks * 512));
      ck_assert(done.good());
      ck_assert_uint_eq(count_of(done), at + blocks == 64 ? 2 : 1);
    }
    test::check_text(revision(bench), "FW-3");
  }
}
END_TEST

START_TEST(bad_images) {
  for (uint8_t mode : {3, 7}) {
    DriveBench bench;
    std::vector<std::vector<uint8_t>> bad;
    bad.push_back(std::vector<uint8_t>(4096, 0));  // no magic
    bad.push_back(image("2.50", 8));
    bad.back()[2000] ^= 1;  // checksum
    bad.push_back(image("2.50", 8));
    bad.back().resize(8 * 512 + 512);  // longer than it says
    bad.push_back(image("2.50", 8));
    put_u32(bad.back(), 8, 0xFFFFFE00);  // size beyond all bounds
    bad.push_back(image("", 8));         // no revision
    bad.push_back(image("2\n", 8));      // not printable
    for (const auto &data : bad)
      ck_assert(refused(download(bench, mode, 0, data)));
    test::check_text(revision(bench), "2.25");
    ck_assert(download(bench, mode, 0, image("2.50", 8)).good());
  }
}
END_TEST

START_TEST(bad_offsets) {
  DriveBench bench;
  std::vector<uint8_t> data = image("2.50", 8);
  auto part = [&](size_t from, size_t to) {
    return std::span(data).subspan(from * 512, (to - from) * 512);
  };
  ck_assert(refused(download(bench, 3, 4, part(4, 8))));  // not from the start
  ck_assert(download(bench, 3, 0, part(0, 4)).good());
  ck_assert(refused(download(bench, 3, 5, part(5, 8))));  // a gap
  ck_assert(refused(download(bench, 3, 4, part(4, 8))));  // what came before is gone
  ck_assert(download(bench, 3, 0, part(0, 4)).good());
  ck_assert(download(bench, 3, 0, part(0, 6)).good());  // from the start again
  ck_assert(download(bench, 3, 6, part(6, 8)).good());
  test::check_text(revision(bench), "2.50");
}
END_TEST

START_TEST(other_modes_and_sizes) {
  DriveBench bench;
  std::vector<uint8_t> data = image("2.50", 8);
  for (uint8_t mode : {0x00, 0x01, 0x0E, 0x0F, 0xFF})
    ck_assert(refused(download(bench, mode, 0, data)));
  ck_assert(refused(download(bench, 7, 0, {})));
  FakeCommand &done = bench.run({.opcode = 0x92, .count = 8, .features = 7}, 512);
  ck_assert(done.ata.failed && done.ata.data_short);
  FakeCommand &huge = bench.run({.opcode = 0x92, .lba = 0xFF, .count = 0xFF, .features = 7}, 512);
  ck_assert(refused(huge));
}
END_TEST

// A reset ends a download that is under way.
START_TEST(reset_drops_segments) {
  DriveBench bench;
  std::vector<uint8_t> data = image("2.50", 8);
  ck_assert(download(bench, 3, 0, std::span(data).first(4 * 512)).good());
  bench.drive->reset(LinkReset::kComreset);
  ck_assert(refused(download(bench, 3, 4, std::span(data).subspan(4 * 512))));
}
END_TEST

START_TEST(saved_and_stored) {
  DriveBench bench;
  std::vector<uint8_t> data = image("2.50", 8);
  ck_assert(download(bench, 7, 0, image("2.30", 2)).good());
  ck_assert(download(bench, 3, 0, std::span(data).first(4 * 512)).good());
  StreamWriter saved, stored;
  bench.drive->save(saved);
  bench.drive->save_persistent(stored, 0);

  DriveBench migrated;
  StreamReader in(saved.bytes());
  migrated.drive->load(in);
  ck_assert(in.ok() && in.at_end());
  test::check_text(revision(migrated), "2.30");
  ck_assert(download(migrated, 3, 4, std::span(data).subspan(4 * 512)).good());
  test::check_text(revision(migrated), "2.50");

  DriveBench later;
  StreamReader from(stored.bytes());
  later.drive->load_persistent(from);
  ck_assert(from.ok());
  test::check_text(revision(later), "2.30");

  // The user has given it another revision since: that one counts.
  DriveBench other(1 << 20, true, {.model = "M", .serial = "S", .firmware = "9.99", .wwn = 5});
  StreamReader again(stored.bytes());
  other.drive->load_persistent(again);
  test::check_text(revision(other), "9.99");
}
END_TEST

int main() {
  return test::run_tests("ata_firmware",
                         {claims, whole_image, segments, bad_images, bad_offsets,
                          other_modes_and_sizes, reset_drops_segments, saved_and_stored});
}
