// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/estimate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "sf2281/match_survey.h"

namespace revodrive {

namespace {

// Bits are counted in 1/256.
constexpr unsigned kFractionBits = 8;
constexpr uint64_t kBit = 1 << kFractionBits;
constexpr unsigned kBytesShift = kFractionBits + 3;

// The logarithm to base 2 by repeated squaring.
consteval std::array<uint16_t, MatchSurvey::kMaxBytes + 1> logarithms() {
  std::array<uint16_t, MatchSurvey::kMaxBytes + 1> table = {};
  for (uint32_t number = 1; number < table.size(); number++) {
    auto whole = static_cast<uint32_t>(std::bit_width(number)) - 1;
    uint64_t mantissa = (uint64_t{number} << 31) >> whole;
    uint32_t fraction = 0;
    for (unsigned i = 0; i < kFractionBits; i++) {
      mantissa = mantissa * mantissa >> 31;
      auto bit = static_cast<uint32_t>(mantissa >> 32);
      mantissa >>= bit;
      fraction = fraction << 1 | bit;
    }
    table[number] = static_cast<uint16_t>(whole << kFractionBits | fraction);
  }
  return table;
}
constexpr auto kLog2 = logarithms();

uint64_t log2_of(uint32_t number) {
  return kLog2[std::min<size_t>(number, kLog2.size() - 1)];
}

// Order-0 entropy of `total` symbols, together.
uint64_t entropy(std::span<const uint32_t> counts, uint32_t total) {
  uint64_t sum = 0;
  for (uint32_t count : counts)
    sum += count * log2_of(count);
  uint64_t all = total * log2_of(total);
  return all - std::min(all, sum);
}

// How often each byte is among the literals, or among a part of them.
struct Histogram {
  static constexpr size_t kPiece = 16;
  static constexpr size_t kAllBelow = 2048;

  std::array<uint16_t, 256> count;
  uint32_t total = 0;

  explicit Histogram(std::span<const uint8_t> bytes) {
    // More tables than one: a byte that comes again at once does not wait for its own count.
    std::array<std::array<uint16_t, 256>, 4> part = {};
    uint32_t gap = 0;
    for (size_t at = 0; at + kPiece <= bytes.size();) {
      for (size_t i = 0; i < kPiece; i += 4) {
        part[0][bytes[at + i]]++;
        part[1][bytes[at + i + 1]]++;
        part[2][bytes[at + i + 2]]++;
        part[3][bytes[at + i + 3]]++;
      }
      total += kPiece;
      at += kPiece;
      // Gaps of changing size: data has periods of its own.
      gap = (gap * 5 + 3) % 32;
      if (bytes.size() >= kAllBelow)
        at += 48 + gap;
    }
    for (size_t i = 0; i < count.size(); i++)
      count[i] = static_cast<uint16_t>(part[0][i] + part[1][i] + part[2][i] + part[3][i]);
  }
};

// Literals are Huffman coded if that gains something. Of a part, the entropy is too small by half
// a bit (over ln 2) for each symbol but one (Miller and Madow's correction).
uint32_t literal_bytes(const MatchSurvey &survey) {
  constexpr uint32_t kFewest = 64;
  constexpr uint64_t kCorrection = 185;  // 1 / (2 ln 2)
  uint32_t all = survey.literals();
  uint32_t plain = all + 1 + (all > 31) + (all > 4095);
  if (all < kFewest || survey.seen_literals().size() < Histogram::kPiece)
    return plain;
  const Histogram histogram(survey.seen_literals());
  uint32_t total = histogram.total, used = 0, last = 0;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t count = histogram.count[i];
    sum += count * kLog2[count];
    used += count != 0;
    last = count != 0 ? i : last;
  }
  if (used == 1)
    return 4;
  uint64_t bits = total * log2_of(total) - sum;
  if (all > total)
    bits += (used - 1) * kCorrection * (all - total) / all;
  uint32_t tree = 4 + (3 * used + last) / 8;
  uint32_t header = 3 + (all >= 1024) + (all >= 256 ? 6 : 0);
  auto coded = static_cast<uint32_t>((bits * all / total) >> kBytesShift);
  uint32_t packed = header + tree + coded + all / 256;
  return packed + (all >> 6) + 2 < all ? packed : plain;
}

// Few sequences are coded by tables that the format knows; otherwise there are tables for them.
uint32_t sequence_bytes(const MatchSurvey &survey) {
  constexpr uint32_t kOwnOffsets = 36, kOwnLengths = 72;  // from so many sequences on
  uint32_t count = survey.sequences();
  uint64_t bits = survey.extra_bits() * kBit;
  uint32_t header = 1 + (count >= 128) + (count > 0);
  if (count < kOwnOffsets) {
    bits += 5 * kBit * count;
  } else {
    bits += entropy(survey.offsets(), count);
    header += 5;
  }
  if (count < kOwnLengths) {
    bits += 10 * kBit * count;
  } else {
    bits += entropy(survey.runs().count, count) + entropy(survey.lengths().count, count);
    header += 16;
  }
  return header + static_cast<uint32_t>(bits >> kBytesShift);
}

}  // namespace

uint32_t estimate_compressed_bytes(std::span<const uint8_t> chunk) {
  constexpr uint32_t kFrame = 10;  // headers of frame and block
  auto size = static_cast<uint32_t>(chunk.size());
  if (chunk.size() < MatchSurvey::kMinBytes || chunk.size() > MatchSurvey::kMaxBytes)
    return size;
  MatchSurvey survey;
  survey.run(chunk);
  uint32_t body = literal_bytes(survey) + sequence_bytes(survey);
  // A block that gains no more than this is kept as it is.
  if (body + (size >> 6) + 2 >= size)
    return size;
  return std::min(size, body + kFrame);
}

}  // namespace revodrive
