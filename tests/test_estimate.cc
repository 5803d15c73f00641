// SPDX-License-Identifier: GPL-2.0-or-later
//
// How far the estimate of compressed sizes is from what zstd makes of the same data.
#include "sf2281/estimate.h"

#include <check.h>
#include <zstd.h>

#include <cmath>
#include <cstring>

#include "chunk_samples.h"
#include "runner.h"

using namespace revodrive;
using namespace revodrive::test;

namespace {

// As shares of the chunk.
constexpr double kMeanBound = 0.03;
constexpr double kUsualBound = 0.05;  // of 9 in 10
constexpr double kBound = 0.12;

uint32_t by_zstd(const Bytes &chunk) {
  Bytes out(chunk.size());
  size_t size = ZSTD_compress(out.data(), out.size(), chunk.data(), chunk.size(), 1);
  return static_cast<uint32_t>(ZSTD_isError(size) ? chunk.size() : size);
}

// The error's mean is bounded with its sign: what is stored in the end is a sum.
void check_kind(const Samples &kind) {
  double sum = 0, worst = 0;
  size_t far = 0;
  for (const Bytes &chunk : kind.chunks) {
    uint32_t estimate = estimate_compressed_bytes(chunk);
    ck_assert_uint_le(estimate, chunk.size());
    double error = (1.0 * estimate - by_zstd(chunk)) / static_cast<double>(chunk.size());
    sum += error;
    far += std::fabs(error) > kUsualBound;
    worst = std::fabs(error) > std::fabs(worst) ? error : worst;
  }
  double mean = sum / static_cast<double>(kind.chunks.size());
  std::printf("%-28s mean %+6.2f %%, worst %+6.2f %%\n", kind.name.c_str(), 100 * mean,
              100 * worst);
  ck_assert_msg(std::fabs(mean) <= kMeanBound, "%s: mean error %.4f", kind.name.c_str(), mean);
  ck_assert_msg(10 * far <= kind.chunks.size(), "%s: %zu errors are large", kind.name.c_str(), far);
  ck_assert_msg(std::fabs(worst) <= kBound, "%s: an error of %.4f", kind.name.c_str(), worst);
}

START_TEST(close_to_zstd) {
  Random random(seed());
  for (const Samples &kind : all_samples(random))
    check_kind(kind);
}
END_TEST

START_TEST(tails_are_close_to_zstd) {
  Random random(seed());
  for (const Samples &kind : tails(random, all_samples(random)))
    check_kind(kind);
}
END_TEST

START_TEST(fio_percentages_are_near_exact_and_monotone) {
  Random random(seed());
  uint64_t before = 0;
  for (unsigned percent = 0; percent <= 100; percent += 5) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < 20; i++) {
      Bytes chunk = fio_mixed(random, percent);
      uint32_t size = estimate_compressed_bytes(chunk);
      ck_assert_double_le(std::fabs(1.0 * size - by_zstd(chunk)) / kChunk, 0.01);
      ck_assert_double_le(std::fabs(1.0 * size / kChunk - (1 - percent / 100.0)), 0.01);
      sum += size;
    }
    ck_assert(percent == 0 ? sum == 20 * kChunk : sum < before);
    before = sum;
  }
}
END_TEST

// Whatever its size.
START_TEST(noise_never_compresses) {
  Random random(seed());
  for (unsigned i = 0; i < 3000; i++) {
    Bytes chunk = noise(random, i % 2 ? kChunk : 1 + random() % kChunk);
    ck_assert_uint_eq(estimate_compressed_bytes(chunk), chunk.size());
  }
}
END_TEST

// Each piece of memory ends with the chunk, for the sanitizers; what lies around it and where it
// lies changes nothing.
START_TEST(any_bytes_of_any_size) {
  Random random(seed());
  auto samples = all_samples(random);
  for (unsigned i = 0; i < 3000; i++) {
    const auto &kind = samples[random() % samples.size()].chunks;
    const Bytes &chunk = kind[random() % kind.size()];
    size_t size = i < 100 ? i : random() % (kChunk + 1);
    auto begin = chunk.begin() + static_cast<ptrdiff_t>(random() % (kChunk - size + 1));
    Bytes piece(begin, begin + static_cast<ptrdiff_t>(size));
    piece.shrink_to_fit();
    uint32_t estimate = estimate_compressed_bytes(piece);
    ck_assert_uint_le(estimate, size);
    Bytes shifted(size + 8, 0x5A);
    std::copy(piece.begin(), piece.end(), shifted.begin() + 3);
    ck_assert_uint_eq(estimate_compressed_bytes(std::span(shifted).subspan(3, size)), estimate);
  }
  ck_assert_uint_eq(estimate_compressed_bytes(Bytes(kChunk + 1)), kChunk + 1);
}
END_TEST

// Known answers: a change of machine, compiler or options is not a change of the model.
START_TEST(same_on_each_machine) {
  Random random(1);
  uint64_t sum = 0;
  for (unsigned i = 0; i < 400; i++) {
    Bytes chunk(kChunk);
    uint64_t symbols = 1 + random() % 200, keep = random() % 100;
    for (size_t at = 0; at < kChunk; at++) {
      bool again = at >= 64 && random() % 100 < keep;
      chunk[at] = again ? chunk[at - 37] : static_cast<uint8_t>(random() % symbols);
    }
    sum = sum * 31 + estimate_compressed_bytes(chunk);
  }
  ck_assert_uint_eq(sum, 33296656813928581);
}
END_TEST

}  // namespace

int main() {
  return run_tests("estimate", {close_to_zstd, tails_are_close_to_zstd,
                                fio_percentages_are_near_exact_and_monotone, noise_never_compresses,
                                any_bytes_of_any_size, same_on_each_machine});
}
