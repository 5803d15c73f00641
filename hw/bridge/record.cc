// SPDX-License-Identifier: GPL-2.0-or-later
//
// Accounting: a command's journey begins at its doorbell and ends when the guest is told of its
// completion. That is the interrupt; or at once while one is pending, as the guest is looking then;
// or the moment at which the guest shows that it has looked without one.
#include "bridge/record.h"

#include "bridge/core.h"
#include "revodrive/command_facts.h"

namespace revodrive {

using namespace regs;

rd_command_record CommandRecord::as_told() const {
  rd_command_record out{.port = port,
                        .kind = kind,
                        .opcode = opcode,
                        .tag = tag,
                        .error = error,
                        .slot = slot,
                        .lba = lba,
                        .bytes = bytes,
                        .start_ns = journey.start_ns(),
                        .end_ns = journey.at_ns(),
                        .stage_ns = {}};
  for (size_t i = 0; i < kJourneyStages; i++)
    out.stage_ns[i] = journey.stage_ns(static_cast<Stage>(i));
  return out;
}

void CommandRecord::save(StreamWriter &out) const {
  journey.save(out);
  out.put(port);
  out.put(static_cast<uint8_t>(kind));
  out.put(opcode);
  out.put(tag);
  out.put(error);
  out.put(slot);
  out.put(lba);
  out.put(bytes);
}

void CommandRecord::load(StreamReader &in) {
  journey.load(in);
  in.get(port);
  auto number = in.get<uint8_t>();
  in.get(opcode);
  in.get(tag);
  in.get(error);
  in.get(slot);
  in.get(lba);
  in.get(bytes);
  if (port >= RD_MAX_PORTS || number >= RD_COMMAND_KINDS || slot >= kSlots)
    return in.fail();
  kind = static_cast<rd_command_kind>(number);
}

// `again`: loaded; it waited for the machine to run.
void Core::begin_journey(Slot &slot, bool again) {
  Journey &journey = slot.command.journey;
  if (!again)
    return journey.start(now_ns());
  journey.cut(now_ns());
  journey.reach(Stage::kHost, now_ns());
}

// The completion was posted now: what was planned for later was cut short, and what is missing the
// host made it wait for.
void Core::keep_record(Slot &slot) {
  Journey &journey = slot.command.journey;
  journey.cut(now_ns());
  journey.reach(Stage::kHost, now_ns());
  CommandFacts facts = slot.ssp ? ssp_facts(slot) : command_facts(slot.command.h2d);
  unsigned phy = slot.phy == Slot::kNoPhy ? 0 : slot.phy;
  records_.push_back({.journey = journey,
                      .port = static_cast<uint8_t>(number_ * kPhysPerCore + phy),
                      .kind = facts.kind,
                      .opcode = facts.opcode,
                      .tag = facts.tag,
                      .error = slot.error_info != 0 || (slot.ssp && slot.scsi.status != 0),
                      .slot = slot.index,
                      .lba = facts.lba,
                      .bytes = facts.bytes});
}

// The guest is told of all completions that were posted.
void Core::report() {
  if (records_.empty())
    return;
  int64_t told_ns = now_ns();
  for (CommandRecord &record : records_) {
    record.journey.reach(Stage::kCoalescing, told_ns);
    parts_.latency.add(record.kind, record.journey);
    if (parts_.host.wants_commands())
      parts_.host.command_done(record.as_told());
  }
  records_.clear();
}

}  // namespace revodrive
