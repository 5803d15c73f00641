// SPDX-License-Identifier: GPL-2.0-or-later
//
// What data of known kinds costs in flash, and what follows for the pages that are programmed.
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "drive_bench.h"
#include "runner.h"
#include "sf2281/compressor.h"

using namespace revodrive;

namespace {

Journey journey;

constexpr uint32_t kFloorPermille = 140;

std::vector<uint8_t> random_bytes(size_t size) {
  std::mt19937_64 random(test::seed());
  std::vector<uint8_t> bytes(size);
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>(random());
  return bytes;
}

// As fio lays out buffer_compress_percentage: each 4 KiB is random first and zero for the rest.
std::vector<uint8_t> mixed_bytes(size_t size, unsigned compressible_percent) {
  std::vector<uint8_t> bytes = random_bytes(size);
  size_t zeros = 4096 * compressible_percent / 100;
  for (size_t at = 0; at < size; at += 4096)
    std::memset(bytes.data() + at + 4096 - zeros, 0, zeros);
  return bytes;
}

double ratio(std::vector<uint8_t> bytes) {
  Compressor compressor(kFloorPermille);
  rd_iov piece{bytes.data(), bytes.size()};
  uint64_t stored = compressor.stored_bytes({&piece, 1}, bytes.size());
  return static_cast<double>(stored) / static_cast<double>(bytes.size());
}

START_TEST(zeros_cost_the_floor_and_noise_its_size) {
  double zeros = ratio(std::vector<uint8_t>(1 << 20));
  ck_assert_double_ge(zeros, 0.140);
  ck_assert_double_le(zeros, 0.141);
  ck_assert_double_eq(ratio(random_bytes(1 << 20)), 1.0);
}
END_TEST

START_TEST(ratio_follows_the_compressible_share) {
  double before = 1.01;
  for (unsigned percent = 0; percent <= 100; percent += 10) {
    double now = ratio(mixed_bytes(1 << 18, percent));
    double expected = std::max(1.0 - percent / 100.0, 0.14);
    ck_assert_double_le(now, before);
    ck_assert_double_ge(now, expected - 0.01);
    ck_assert_double_le(now, expected + 0.02);
    before = now;
  }
}
END_TEST

// The profile's choice: zstd measures, or its size is estimated; both honour the floor.
START_TEST(both_measures_agree) {
  DedupeOptions none;
  Compressor estimating(kFloorPermille, none, CompressMeasure::kEstimate);
  Compressor measuring(kFloorPermille, none, CompressMeasure::kZstd);
  bool differ = false;
  for (unsigned percent = 0; percent <= 100; percent += 5) {
    std::vector<uint8_t> bytes = mixed_bytes(1 << 16, percent);
    rd_iov piece{bytes.data(), bytes.size()};
    auto estimate = static_cast<double>(estimating.stored_bytes({&piece, 1}, bytes.size()));
    auto measured = static_cast<double>(measuring.stored_bytes({&piece, 1}, bytes.size()));
    ck_assert_double_le(std::fabs(estimate - measured), 0.01 * (1 << 16));
    differ |= estimate != measured;
    if (percent == 100)
      ck_assert(estimate == measured && measured == 16 * 574);
  }
  ck_assert(differ);
}
END_TEST

START_TEST(pieces_do_not_matter) {
  std::mt19937_64 random(test::seed());
  std::vector<uint8_t> bytes = mixed_bytes(1 << 16, 50);
  Compressor compressor(kFloorPermille);
  rd_iov whole{bytes.data(), bytes.size()};
  uint64_t expected = compressor.stored_bytes({&whole, 1}, bytes.size());
  for (unsigned round = 0; round < 200; round++) {
    std::vector<rd_iov> pieces;
    for (size_t at = 0; at < bytes.size();) {
      size_t len = std::min<size_t>(1 + random() % 9000, bytes.size() - at);
      pieces.push_back({bytes.data() + at, len});
      at += len;
    }
    ck_assert_uint_eq(compressor.stored_bytes(pieces, bytes.size()), expected);
  }
}
END_TEST

START_TEST(tails_and_missing_data) {
  Compressor compressor(kFloorPermille);
  std::vector<uint8_t> zeros(5000);
  rd_iov piece{zeros.data(), zeros.size()};
  ck_assert_uint_eq(compressor.stored_bytes({&piece, 1}, 4096 + 512), 574 + 72);
  ck_assert_uint_eq(compressor.stored_bytes({&piece, 1}, 512), 72);
  ck_assert_uint_eq(compressor.stored_bytes({}, 8192), 8192);
  Compressor none(0);
  ck_assert_uint_eq(none.stored_bytes({&piece, 1}, 4096), 4096);
}
END_TEST

uint64_t stored(Compressor &compressor, std::vector<uint8_t> &chunk) {
  rd_iov piece{chunk.data(), chunk.size()};
  return compressor.stored_bytes({&piece, 1}, chunk.size());
}

// Some chunks of all kinds and sizes.
std::vector<std::vector<uint8_t>> many_chunks(std::mt19937_64 &random, size_t count) {
  std::vector<std::vector<uint8_t>> chunks;
  for (size_t i = 0; i < count; i++) {
    std::vector<uint8_t> chunk(random() % 4 ? 4096 : 512 * (1 + random() % 8));
    size_t noise = random() % (chunk.size() + 1);
    for (size_t at = 0; at < noise; at++)
      chunk[at] = static_cast<uint8_t>(random());
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

// What was measured before never changes what is measured: each answer is that of a new compressor.
START_TEST(memory_changes_nothing) {
  std::mt19937_64 random(test::seed());
  auto chunks = many_chunks(random, 300);
  Compressor old(kFloorPermille);
  for (unsigned i = 0; i < 3000; i++) {
    auto &chunk = chunks[random() % chunks.size()];
    if (random() % 8 == 0)
      chunk[random() % chunk.size()] ^= 1;
    Compressor fresh(kFloorPermille);
    ck_assert_uint_eq(stored(old, chunk), stored(fresh, chunk));
  }
}
END_TEST

START_TEST(almost_zeros_are_not_zeros) {
  Compressor compressor(1);
  std::vector<uint8_t> chunk(4096), noise = random_bytes(64);
  uint64_t zeros = stored(compressor, chunk);
  for (size_t at : {0, 1, 63, 64, 2047, 4096 - 64}) {
    std::memcpy(&chunk[at], noise.data(), noise.size());
    ck_assert_uint_ge(stored(compressor, chunk), zeros + 32);
    std::memset(&chunk[at], 0, noise.size());
    ck_assert_uint_eq(stored(compressor, chunk), zeros);
  }
  std::vector<uint8_t> small(512);
  ck_assert_uint_le(stored(compressor, small), zeros);
  ck_assert_uint_eq(stored(compressor, chunk), zeros);
}
END_TEST

START_TEST(known_chunks_cost_a_reference) {
  Compressor compressor(kFloorPermille, {.window_chunks = 1024, .reference_bytes = 16});
  std::vector<uint8_t> noise = random_bytes(4096);
  ck_assert_uint_eq(stored(compressor, noise), 4096);
  ck_assert_uint_eq(stored(compressor, noise), 16);
  std::vector<uint8_t> zeros(4096);
  ck_assert_uint_eq(stored(compressor, zeros), 574);
  ck_assert_uint_eq(stored(compressor, zeros), 16);
  std::vector<uint8_t> twice = random_bytes(2 * 4096);
  std::memcpy(&twice[0], &twice[4096], 4096);
  ck_assert_uint_eq(stored(compressor, twice), 4096 + 16);
  compressor.power_cycle();
  ck_assert_uint_eq(stored(compressor, noise), 4096);
  ck_assert_uint_eq(stored(compressor, noise), 16);
  // One that has gone out of the window is stored in full.
  std::mt19937_64 random(test::seed());
  for (unsigned i = 0; i < 20000; i++) {
    std::vector<uint8_t> other(512);
    for (uint8_t &byte : other)
      byte = static_cast<uint8_t>(random());
    stored(compressor, other);
  }
  ck_assert_uint_eq(stored(compressor, noise), 4096);
  Compressor none(kFloorPermille);
  stored(none, noise);
  ck_assert_uint_eq(stored(none, noise), 4096);
}
END_TEST

START_TEST(window_is_part_of_the_state) {
  std::mt19937_64 random(test::seed());
  auto chunks = many_chunks(random, 200);
  DedupeOptions options{.window_chunks = 100, .reference_bytes = 16};
  Compressor one(kFloorPermille, options), two(kFloorPermille, options);
  for (auto &chunk : chunks)
    stored(one, chunk);
  StreamWriter out;
  one.save(out);
  StreamReader in(out.bytes());
  two.load(in);
  ck_assert(in.ok() && in.at_end());
  uint64_t references = 0;
  for (unsigned i = 0; i < 1000; i++) {
    auto &chunk = chunks[random() % chunks.size()];
    uint64_t size = stored(one, chunk);
    ck_assert_uint_eq(size, stored(two, chunk));
    references += size == 16;
  }
  ck_assert_uint_gt(references, 100);
  Compressor other(kFloorPermille, {.window_chunks = 99, .reference_bytes = 16});
  StreamReader wrong(out.bytes());
  other.load(wrong);
  ck_assert(!wrong.ok());
}
END_TEST

// Case C037: an hour of compressible writes gave 182 GB of flash writes for 1301 GB of the host.
START_TEST(c037_write_amplification) {
  constexpr uint32_t kSectors = 256;
  constexpr unsigned kCommands = 512;
  FlashProfile profile = test_flash();
  profile.store_floor_permille = kFloorPermille;
  for (bool zeros : {true, false}) {
    FlashController flash(profile, 1 << 20, true);
    std::vector<uint8_t> bytes =
        zeros ? std::vector<uint8_t>(kSectors * 512) : random_bytes(kSectors * 512);
    rd_iov piece{bytes.data(), bytes.size()};
    int64_t at_ns = 0;
    for (unsigned i = 0; i < kCommands; i++)
      at_ns = flash.write(at_ns, uint64_t{i} * kSectors, kSectors, {&piece, 1}, journey);
    at_ns = flash.flush(at_ns, journey);
    double amplification =
        static_cast<double>(flash.nand_bytes_written()) / (double{kCommands} * kSectors * 512);
    ck_assert_double_ge(amplification, zeros ? 0.14 : 1.0);
    ck_assert_double_le(amplification, zeros ? 0.15 : 1.01);
  }
}
END_TEST

// The reason why people cared: what compresses is written faster.
START_TEST(compressible_writes_are_faster) {
  FlashProfile profile = test_flash();
  profile.store_floor_permille = kFloorPermille;
  int64_t before_ns = INT64_MAX;
  for (unsigned percent : {0u, 25u, 50u, 75u, 100u}) {
    FlashController flash(profile, 1 << 20, true);
    std::vector<uint8_t> bytes = mixed_bytes(256 * 512, percent);
    rd_iov piece{bytes.data(), bytes.size()};
    int64_t at_ns = 0;
    for (unsigned i = 0; i < 512; i++)
      at_ns = flash.write(at_ns, 256 * i, 256, {&piece, 1}, journey);
    at_ns = flash.flush(at_ns, journey);
    ck_assert_int_lt(at_ns, before_ns);
    before_ns = at_ns;
  }
}
END_TEST

}  // namespace

int main() {
  return test::run_tests(
      "compressor",
      {both_measures_agree, zeros_cost_the_floor_and_noise_its_size,
       ratio_follows_the_compressible_share, pieces_do_not_matter, tails_and_missing_data,
       memory_changes_nothing, almost_zeros_are_not_zeros, known_chunks_cost_a_reference,
       window_is_part_of_the_state, c037_write_amplification, compressible_writes_are_faster});
}
