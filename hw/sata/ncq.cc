// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/ncq.h"

#include <bit>
#include <cassert>

namespace revodrive {

void NcqQueue::add(uint8_t tag, AtaCommand &command) {
  assert(tag < kTags && !commands_[tag]);
  commands_[tag] = &command;
  used_ |= 1u << tag;
}

uint32_t NcqQueue::bit_of(const AtaCommand &command) const {
  uint8_t tag = TaskFile::tag_of(command.h2d);
  return commands_[tag] == &command ? 1u << tag : 0;
}

void NcqQueue::remove(const AtaCommand &command) {
  uint32_t bit = bit_of(command);
  if (bit == 0)
    return;
  commands_[static_cast<size_t>(std::countr_zero(bit))] = nullptr;
  used_ &= ~bit;
  aborted_ &= ~bit;
}

bool NcqQueue::holds(const AtaCommand &command) const {
  return bit_of(command) != 0;
}

bool NcqQueue::aborted(const AtaCommand &command) const {
  return (bit_of(command) & aborted_) != 0;
}

AtaCommand *NcqQueue::idle_aborted() const {
  for (uint32_t left = aborted_; left != 0; left &= left - 1) {
    AtaCommand *command = commands_[static_cast<size_t>(std::countr_zero(left))];
    if (command->media_pending == 0)
      return command;
  }
  return nullptr;
}

void NcqQueue::stop(const NcqError &error) {
  error_ = error;
  stopped_ = true;
  aborted_ = used_;
}

Page NcqQueue::error_page() const {
  Page page;
  constexpr uint8_t kNotQueued = 0x80;
  page[0] = error_.queued ? error_.tag : kNotQueued;
  Fis fis = make_d2h(error_.status, error_.error, error_.outputs);
  for (size_t i = 2; i <= 13; i++)
    page[i] = fis[i];  // the page repeats the FIS, byte for byte
  page.seal();
  return page;
}

void NcqQueue::reset() {
  commands_ = {};
  used_ = aborted_ = 0;
  stopped_ = false;
  error_ = {};
}

void NcqQueue::save(StreamWriter &out) const {
  out.section("NCQ ");
  out.put(stopped_);
  out.put(error_.queued);
  out.put(error_.tag);
  out.put(error_.status);
  out.put(error_.error);
  out.put(error_.outputs.lba);
  out.put(error_.outputs.count);
  out.put(error_.outputs.device);
}

void NcqQueue::load(StreamReader &in) {
  reset();
  in.section("NCQ ");
  in.get(stopped_);
  in.get(error_.queued);
  in.get(error_.tag);
  in.get(error_.status);
  in.get(error_.error);
  in.get(error_.outputs.lba);
  in.get(error_.outputs.count);
  in.get(error_.outputs.device);
  if (error_.tag >= kTags)
    in.fail();
  if (!in.ok())
    reset();
}

}  // namespace revodrive
