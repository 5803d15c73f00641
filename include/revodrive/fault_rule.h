// SPDX-License-Identifier: GPL-2.0-or-later
//
// One rule of fault injection as a user writes it, and the text orders that add, clear and release
// rules. The grammar, with an example for each kind of fault, is docs/faults.md. Parsing happens
// here and nowhere else; a rule that was accepted is complete and makes sense.
#ifndef REVODRIVE_FAULT_RULE_H
#define REVODRIVE_FAULT_RULE_H

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "revodrive/host.h"

namespace revodrive {

// Where in the life of a command a rule acts, in the order of a read.
enum class FaultStage : uint8_t { kFetch, kDecode, kMedia, kLink, kCompletion };
enum class FaultAction : uint8_t {
  kNone,
  kHold,
  kDelay,
  kDrop,
  kFail,
  kCorrupt,
  kHang,
  kLinkDown,
};
enum class FaultDirection : uint8_t { kNone, kIn, kOut };

// What a drive reports: bits of the error register, bits of the status register beside ERR.
struct FaultError {
  uint8_t error = 0;
  uint8_t status = 0;
};

struct FaultRule {
  static constexpr uint64_t kAlways = uint64_t{1} << 32;
  static constexpr uint64_t kMaxHealSectors = 65536;

  std::string text;  // canonical: parses to the same rule
  std::string name;
  std::bitset<256> ops;
  bool any_op = true;      // none was named: a rule with lba= then means the medium's commands
  bool log10 = false;      // READ LOG (DMA) EXT of page 10h, beside `ops`
  bool immediate = false;  // op=now: acts when it is added, matches no command
  std::optional<uint64_t> lba_first;
  uint64_t lba_last = 0;
  std::optional<uint8_t> tag;
  std::optional<FaultDirection> direction;
  uint64_t nth = 0;           // 0: each
  uint64_t every = 0;         // 0: each
  uint64_t chance = kAlways;  // of 2^32
  uint64_t seed = 1;
  uint64_t count = 0;  // 0: no limit
  FaultStage stage = FaultStage::kDecode;
  FaultAction action = FaultAction::kNone;
  FaultError error;
  int64_t delay_ns = 0;
  unsigned bits = 1;
  bool heals = false;  // writing or trimming a sector mends it
};

// "clear" and "release" choose rules by name (empty: all), "release" also commands.
struct FaultOrder {
  enum class Kind : uint8_t { kAdd, kClear, kRelease } kind = Kind::kAdd;
  FaultRule rule;  // kAdd
  std::string name;
  uint64_t count = UINT64_MAX;  // kRelease: at most so many commands, oldest first
  std::optional<uint8_t> tag;
  std::optional<uint64_t> lba;
};

// Orders are separated by ';' or newlines, keys of one by ',' or blanks. False with a message that
// names key, value and what is allowed: then nothing of the text counts.
bool parse_fault_orders(std::string_view text, std::vector<FaultOrder> *orders, rd_error *error);

std::string_view fault_stage_name(FaultStage stage);

}  // namespace revodrive
#endif
