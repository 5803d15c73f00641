// SPDX-License-Identifier: GPL-2.0-or-later
#include "sf2281/unit_log.h"

namespace revodrive {

uint32_t UnitLog::take() {
  uint32_t number = free_;
  if (number != 0) {
    free_ = chunk(number).next;
  } else {
    if (fresh_ == blocks_.size() * kBlockChunks)
      blocks_.push_back(std::make_unique_for_overwrite<Block>());
    number = ++fresh_;
  }
  chunk(number).next = 0;
  return number;
}

uint32_t UnitLog::recycle(uint32_t number) {
  uint32_t following = chunk(number).next;
  chunk(number).next = free_;
  free_ = number;
  return following;
}

void UnitLog::append(List &list, uint32_t unit) {
  if (list.tail == 0 || list.used == kEntries) {
    uint32_t number = take();
    if (list.tail == 0)
      list.head = number;
    else
      chunk(list.tail).next = number;
    list.tail = number;
    list.used = 0;
  }
  chunk(list.tail).units[list.used++] = unit;
  list.count++;
  entries_++;
}

void UnitLog::drop(List &list) {
  entries_ -= list.count;
  for (uint32_t number = list.head; number != 0;)
    number = recycle(number);
  list = {};
}

bool UnitLog::next(const List &list, Cursor &cursor, uint32_t *unit) const {
  if (cursor.chunk == 0)
    return false;
  if (cursor.chunk == list.tail && cursor.index == list.used)
    return false;
  if (cursor.index == kEntries) {
    cursor.chunk = chunk(cursor.chunk).next;
    cursor.index = 0;
  }
  *unit = chunk(cursor.chunk).units[cursor.index++];
  return true;
}

void UnitLog::clear() {
  blocks_.clear();
  free_ = fresh_ = 0;
  entries_ = 0;
}

}  // namespace revodrive
