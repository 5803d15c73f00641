// SPDX-License-Identifier: GPL-2.0-or-later
//
// Matches and literals of a chunk, found as a fast compressor of the LZ77 family does, and counted.
// The first half of an estimate of its compressed size (estimate.h).
#ifndef REVODRIVE_SF2281_MATCH_SURVEY_H
#define REVODRIVE_SF2281_MATCH_SURVEY_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace revodrive {

// Numbers by magnitude: those below 16 one by one, two ranges for each power of two above.
struct Magnitudes {
  std::array<uint32_t, 32> count = {};

  // How many bits tell the number from others of its range.
  uint32_t add(uint32_t number, uint32_t weight);
};

class MatchSurvey {
 public:
  static constexpr size_t kMaxBytes = 4096;
  static constexpr size_t kMinBytes = 16;

  // `chunk`: kMinBytes to kMaxBytes, not kept beyond the call.
  void run(std::span<const uint8_t> chunk);

  uint32_t sequences() const { return sequences_; }    // a run of literals and a match each
  uint32_t extra_bits() const { return extra_bits_; }  // of the numbers below within their ranges
  const Magnitudes &runs() const { return runs_; }
  const Magnitudes &lengths() const { return lengths_; }
  const std::array<uint32_t, 16> &offsets() const { return offsets_; }  // [0]: as the one before

  uint32_t literals() const { return literals_; }  // how many there are
  // Those that were seen: all of them or, where stretches stand for others, a part.
  std::span<const uint8_t> seen_literals() const { return std::span(kept_).first(kept_count_); }

 private:
  // Runs and matches of 16 bytes are copied whole; so much more is written than counts.
  static constexpr size_t kSlack = 16;
  static constexpr unsigned kHashBits = 12;

  struct Match {
    size_t at;
    size_t from;
  };
  static unsigned hash(uint64_t five_bytes);
  void remember(size_t at);
  void remember_all(size_t begin, size_t end);
  uint32_t search(size_t stop, size_t end, uint32_t weight);
  bool probe(size_t at, Match &match);
  void count_sequence(Match match, size_t length, uint32_t weight);
  size_t take_match(Match match, size_t end, uint32_t weight);
  void take_literals(size_t end, uint32_t weight);
  void sample(uint32_t weight);

  const uint8_t *data_ = nullptr;
  size_t size_ = 0;
  size_t limit_ = 0;    // where eight bytes can be read below
  size_t at_ = 0;       // next to look at
  size_t anchor_ = 0;   // first byte not yet accounted for
  size_t repeat_ = 1;   // offset of the last match
  size_t resumed_ = 0;  // where it was last gone on after bytes that were left out
  uint32_t sequences_ = 0;
  uint32_t extra_bits_ = 0;
  uint32_t literals_ = 0;
  uint32_t kept_count_ = 0;
  Magnitudes runs_;
  Magnitudes lengths_;
  std::array<uint32_t, 16> offsets_ = {};
  std::array<uint16_t, 1 << kHashBits> table_ = {};  // by hash: where those bytes were last
  std::array<uint8_t, kMaxBytes + kSlack> kept_;     // not set but where it is filled
};

}  // namespace revodrive
#endif
