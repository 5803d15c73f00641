// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/match_survey.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace revodrive {

namespace {

constexpr size_t kMinMatch = 4;
constexpr size_t kShortestLength = 3;  // of a match as the format counts

// A pair of places is probed, then so many bytes on the next one; more after each kRampBytes in
// which nothing was found.
constexpr size_t kFirstStep = 2;
constexpr size_t kLastStep = 24;
constexpr size_t kRampBytes = 128;

// So much is looked at before it is judged how dense matches are, in sequences of 256 bytes.
constexpr size_t kLookBytes = 256;
constexpr size_t kDense = 8;
constexpr size_t kVeryDense = 10;
constexpr uint32_t kDenseWeight = 2;  // stretches that one of them stands for
constexpr uint32_t kVeryDenseWeight = 4;
constexpr size_t kStretchBytes = 56;  // no divisor of what data is aligned to
constexpr size_t kLeastSampled = 2048;

uint64_t load64(const uint8_t *from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

uint32_t load32(const uint8_t *from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// How many bytes at `at` and `from` are the same, before `end`.
size_t common_bytes(const uint8_t *data, size_t at, size_t from, size_t end) {
  const size_t begin = at;
  for (; at + sizeof(uint64_t) <= end; at += sizeof(uint64_t), from += sizeof(uint64_t)) {
    uint64_t difference = load64(data + at) ^ load64(data + from);
    if (difference != 0)
      return at - begin + static_cast<size_t>(std::countr_zero(difference)) / 8;
  }
  while (at < end && data[at] == data[from])
    at++, from++;
  return at - begin;
}

}  // namespace

uint32_t Magnitudes::add(uint32_t number, uint32_t weight) {
  if (number < 16) {
    count[number] += weight;
    return 0;
  }
  auto power = static_cast<uint32_t>(std::bit_width(number)) - 1;
  count[8 + 2 * power + (number >> (power - 1) & 1)] += weight;
  return power - 1;
}

inline unsigned MatchSurvey::hash(uint64_t five_bytes) {
  return static_cast<unsigned>((five_bytes << 24) * 0x9E3779B185EBCA87 >> (64 - kHashBits));
}

inline void MatchSurvey::remember(size_t at) {
  if (at < limit_)
    table_[hash(load64(data_ + at))] = static_cast<uint16_t>(at);
}

void MatchSurvey::remember_all(size_t begin, size_t end) {
  end = std::min(end, limit_);
  for (size_t at = begin; at < end; at += 2)
    table_[hash(load64(data_ + at))] = static_cast<uint16_t>(at);
}

// Looks at two places, and one beyond them for the last offset again. What stands in the table is
// below `at`, and so is the last offset, so all of it is within the chunk.
inline bool MatchSurvey::probe(size_t at, Match &match) {
  uint64_t bytes = load64(data_ + at);
  unsigned first = hash(bytes), second = hash(bytes >> 8);
  size_t first_from = table_[first];
  table_[first] = static_cast<uint16_t>(at);
  size_t second_from = table_[second];
  table_[second] = static_cast<uint16_t>(at + 1);
  bool first_hit = load32(data_ + first_from) == static_cast<uint32_t>(bytes);
  bool second_hit = load32(data_ + second_from) == static_cast<uint32_t>(bytes >> 8);
  bool repeat_hit = load32(data_ + at + 2 - repeat_) == static_cast<uint32_t>(bytes >> 16);
  if (!(first_hit | second_hit | repeat_hit)) [[likely]]
    return false;
  if (first_hit)
    match = {at, first_from};
  else if (repeat_hit)
    match = {at + 2, at + 2 - repeat_};
  else
    match = {at + 1, second_from};
  return true;
}

// Bytes after `anchor_` and before `end` are literals.
inline void MatchSurvey::take_literals(size_t end, uint32_t weight) {
  size_t count = end - anchor_;
  uint8_t *to = kept_.data() + kept_count_;
  if (end + kSlack <= size_) {
    std::memcpy(to, data_ + anchor_, kSlack);
    for (size_t done = kSlack; done < count; done += kSlack)
      std::memcpy(to + done, data_ + anchor_ + done, kSlack);
  } else {
    std::memcpy(to, data_ + anchor_, count);
  }
  kept_count_ += static_cast<uint32_t>(count);
  literals_ += weight * static_cast<uint32_t>(count);
  anchor_ = end;
}

inline void MatchSurvey::count_sequence(Match match, size_t length, uint32_t weight) {
  auto run = static_cast<uint32_t>(match.at - anchor_);
  auto offset = static_cast<uint32_t>(match.at - match.from);
  take_literals(match.at, weight);
  uint32_t extra = runs_.add(run, weight);
  extra += lengths_.add(static_cast<uint32_t>(length - kShortestLength), weight);
  uint32_t power = 0;
  if (offset != repeat_)
    power = static_cast<uint32_t>(std::bit_width(offset + 3)) - 1;
  offsets_[power] += weight;
  extra_bits_ += weight * (extra + power);
  sequences_ += weight;
}

// The match in both directions; returns where it ends. One that begins where bytes were left out
// began among those.
inline size_t MatchSurvey::take_match(Match match, size_t end, uint32_t weight) {
  size_t length = kMinMatch;
  length += common_bytes(data_, match.at + kMinMatch, match.from + kMinMatch, size_);
  while (match.at > anchor_ && match.from > 0 && data_[match.at - 1] == data_[match.from - 1])
    match.at--, match.from--, length++;
  if (match.at != resumed_)
    count_sequence(match, length, weight);
  repeat_ = match.at - match.from;
  remember(match.at + 2);
  anchor_ = std::min(match.at + length, std::max(end, match.at + 1));
  remember(anchor_ - 2);
  return anchor_;
}

// Goes on to the first place at or after `stop`; no match goes beyond `end`. Returns how many
// sequences there were.
uint32_t MatchSurvey::search(size_t stop, size_t end, uint32_t weight) {
  size_t at = at_;
  uint32_t found = 0;
  size_t step = std::min(kFirstStep + (at - anchor_) / kRampBytes, kLastStep);
  size_t ramp = at + kRampBytes;
  for (Match match; at < stop;) {
    if (!probe(at, match)) [[likely]] {
      at += step;
      if (at >= ramp) {
        step += step < kLastStep;
        ramp += kRampBytes;
      }
      continue;
    }
    at = take_match(match, end, weight);
    found++;
    step = kFirstStep;
    ramp = at + kRampBytes;
  }
  at_ = at;
  return found;
}

// The rest of the chunk in stretches that stand for `weight` as many bytes each, until they are
// dense no longer.
void MatchSurvey::sample(uint32_t weight) {
  take_literals(at_, 1);
  size_t left = size_ - at_;
  size_t periods = (left + kStretchBytes * weight / 2) / (kStretchBytes * weight);
  size_t stretch = left / (periods * weight);
  for (; periods > 0; periods--) {
    size_t end = at_ + stretch;
    uint32_t found = search(std::min(end, limit_), end, weight);
    if (anchor_ < end)
      take_literals(end, weight);
    at_ = anchor_ = resumed_ = end + stretch * (weight - 1);
    remember_all(end, at_);
    if (found * 256 < kDense * stretch)
      return;
  }
}

void MatchSurvey::run(std::span<const uint8_t> chunk) {
  data_ = chunk.data();
  size_ = chunk.size();
  limit_ = size_ - sizeof(uint64_t);
  at_ = 1;
  while (at_ < limit_) {
    size_t begin = at_;
    size_t found = 256 * search(std::min(begin + kLookBytes, limit_), size_, 1);
    size_t seen = at_ - begin;
    if (at_ >= limit_ || size_ - at_ < kLeastSampled || found < kDense * seen)
      continue;
    sample(found < kVeryDense * seen ? kDenseWeight : kVeryDenseWeight);
  }
  if (anchor_ < size_)
    take_literals(size_, 1);
}

}  // namespace revodrive
