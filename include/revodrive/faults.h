// SPDX-License-Identifier: GPL-2.0-or-later
//
// Fault injection for one member: the rules in force, and what they did to a command so far. The
// bridge asks at the stages fetch and completion, the drive at decode, media and link and for the
// outcome; who asks also does what the answer says. Docs: docs/faults.md.
//
// The set is the drive's. It keeps no pointer to a command: a command that rests carries the id of
// the rule that stopped it, and the bridge finds it by that. Everything is deterministic: chance
// comes from a generator of each rule whose state is saved.
#ifndef REVODRIVE_FAULTS_H
#define REVODRIVE_FAULTS_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "revodrive/fault_rule.h"
#include "revodrive/host.h"
#include "revodrive/stream.h"

namespace revodrive {

struct AtaCommand;
struct FaultFacts;

// Part of an AtaCommand. The initiator clears it when it takes a new command, and not when it
// executes again one that rested or was loaded.
struct FaultState {
  uint8_t asked = 0;  // a bit for each stage that was passed
  // kNone: the command goes its way. Otherwise it rests at `stage`, stopped by `rule`.
  FaultAction stop = FaultAction::kNone;
  FaultStage stage = FaultStage::kFetch;
  uint32_t rule = 0;
  uint64_t order = 0;  // of resting commands: the smaller, the longer it rests
  // The outcome, unless something else fails before.
  bool fails = false;
  FaultError error;
  uint64_t lba = 0;
  int64_t delay_ns = 0;  // of stages inside the drive: the end of this execution comes later
  // Bits of the data to turn over, within sectors of the command.
  uint8_t flip_bits = 0;
  uint64_t flip_seed = 0;
  uint32_t flip_first = 0, flip_sectors = 0;
  // What is written instead of the guest's data while a transfer runs.
  std::unique_ptr<std::vector<uint8_t>> scratch;
  rd_iov scratch_iov{};

  bool touched() const { return asked != 0 || stop != FaultAction::kNone; }
  void clear() { *this = {}; }
  void save(StreamWriter &out) const;
  void load(StreamReader &in);
};

struct FaultHit {
  FaultAction action = FaultAction::kNone;
  uint32_t rule = 0;
  int64_t delay_ns = 0;  // kDelay; kLinkDown: 0 until released
};

// Which resting commands an order means.
struct FaultChoice {
  uint32_t rule = 0;
  uint64_t count = UINT64_MAX;  // the oldest so many
  std::optional<uint8_t> tag;
  std::optional<uint64_t> lba;

  bool fits(const AtaCommand &command) const;
};

class FaultSet {
 public:
  static constexpr size_t kMaxRules = 64;

  bool active() const { return !rules_.empty(); }
  uint64_t hits() const { return hits_; }

  // Takes the command to `stage`: kFail and kCorrupt are noted in command.fault, the others are for
  // the caller to do; those that stop have filled command.fault too. kNone for a stage that the
  // command has passed before.
  FaultHit ask(FaultStage stage, AtaCommand &command);
  // Stops `command` because of the hang that is in force.
  void rest(FaultStage stage, AtaCommand &command);
  // These sectors were written or trimmed.
  void written(uint64_t lba, uint64_t sectors);

  // The rule by which the drive hangs until its link is reset, 0: it does not.
  uint32_t hung() const { return hung_; }
  void set_hung(uint32_t rule) { hung_ = rule; }

  // False with a message. A rule without a name gets one.
  bool add(FaultRule rule, rd_error *error);
  struct Known {
    uint32_t id;
    const FaultRule *rule;
  };
  // The rules of that name, or all for an empty one; oldest first.
  std::vector<Known> find(std::string_view name) const;
  void remove(uint32_t id);
  bool knows(uint32_t id) const;
  // Forgets all rules and the hang; what rests is the caller's concern.
  void clear();
  // One line: the rule, what it saw and did.
  std::string describe(uint32_t id) const;

  void save(StreamWriter &out) const;
  void load(StreamReader &in);

 private:
  struct Range {
    uint64_t first, last;
  };
  struct Entry {
    FaultRule rule;
    uint32_t id = 0;
    uint64_t seen = 0;  // commands that matched
    uint64_t hits = 0;  // those it acted on
    uint64_t random = 0;
    std::vector<Range> bad;  // heal=write: what is left of lba=
  };
  static bool matches(const Entry &entry, const FaultFacts &facts);
  static bool matches_lba(const Entry &entry, const FaultFacts &facts);
  static uint64_t first_bad(const Entry &entry, const FaultFacts &facts);
  static bool fires(Entry &entry);
  static void restore_bad(Entry &entry, StreamReader &in);
  void note(Entry &entry, FaultStage stage, const FaultFacts &facts, FaultState &state);

  std::vector<Entry> rules_;
  uint32_t next_id_ = 1;
  uint64_t next_order_ = 1;
  uint32_t hung_ = 0;
  uint64_t hits_ = 0;
};

}  // namespace revodrive
#endif
