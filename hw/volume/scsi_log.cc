// SPDX-License-Identifier: GPL-2.0-or-later
//
// LOG SENSE (SPC-4 6.8, 7.3; SBC-3 6.4): health of the members as one. The values come from the
// members' own SMART at the time of the command. The vendor page 36h has a parameter for the volume
// (code 0: bit 0 set when degraded, bit 1 when its map cannot be used) and one for each member
// (code 1 and up: MemberState).
#include <algorithm>

#include "revodrive/ata.h"
#include "volume/scsi_device.h"

namespace revodrive {

namespace {

enum LogPage : uint8_t {
  kSupported = 0x00,
  kWriteErrors = 0x02,
  kReadErrors = 0x03,
  kTemperature = 0x0D,
  kSelfTests = 0x10,
  kSolidState = 0x11,
  kBackground = 0x15,
  kExceptions = 0x2F,
  kMembers = 0x36,
};
constexpr uint8_t kPages[] = {kSupported,  kWriteErrors, kReadErrors, kTemperature, kSelfTests,
                              kSolidState, kBackground,  kExceptions, kMembers};
constexpr uint8_t kUnknownTemperature = 0xFF;
constexpr uint8_t kBinaryList = 0x03;  // format and linking of a parameter

constexpr uint8_t kSmartLow = 0x4F, kSmartHigh = 0xC2;
constexpr uint8_t kFailingLow = 0xF4, kFailingHigh = 0x2C;
constexpr uint8_t kTemperatureAttribute = 194, kLifeLeftAttribute = 231;
constexpr size_t kSmartBytes = 512;

struct Attribute {
  uint8_t value = 0;
  uint8_t raw = 0;
};

// Nothing: the member did not answer, or has no such attribute.
std::optional<Attribute> attribute(std::span<const uint8_t> data, uint8_t id) {
  constexpr size_t kFirst = 2, kBytes = 12, kCount = 30;
  for (size_t i = 0; i < kCount; i++) {
    size_t at = kFirst + i * kBytes;
    if (data[at] == id)
      return Attribute{data[at + 3], data[at + 5]};
  }
  return {};
}

// One more parameter of so many bytes, which are 0; where they begin.
size_t add_parameter(std::vector<uint8_t> &bytes, uint8_t code, uint8_t size) {
  size_t header = bytes.size();
  bytes.resize(header + 4 + size);
  bytes[header + 1] = code;
  bytes[header + 2] = kBinaryList;
  bytes[header + 3] = size;
  return header + 4;
}

Fis smart(uint8_t feature) {
  return {0x27, 0x80, ata::kSmart, feature, 0, kSmartLow, kSmartHigh, 0x40, 0, 0, 0, 0, 1};
}

std::optional<uint8_t> hottest(const ScsiTask &task, unsigned members) {
  std::optional<uint8_t> most;
  for (unsigned i = 0; i < members; i++) {
    auto one = attribute(std::span(task.buffer.bytes).subspan(i * kSmartBytes, kSmartBytes),
                         kTemperatureAttribute);
    if (one)
      most = std::max(most.value_or(0), one->raw);
  }
  return most;
}

}  // namespace

bool ScsiDevice::degraded() const {
  for (unsigned i = 0; i < volume_.members(); i++) {
    if (volume_.state(i) != MemberState::kReady)
      return true;
  }
  return false;
}

void ScsiDevice::log_sense(ScsiTask &task) {
  constexpr uint8_t kThreshold = 0, kCumulative = 1;
  uint8_t page = task.cdb(2) & 0x3F, subpage = task.cdb(3);
  unsigned control = task.cdb(2) >> 6;
  if (std::find(std::begin(kPages), std::end(kPages), page) == std::end(kPages))
    return bad_field(task, 2, 5);
  if (subpage != 0)
    return bad_field(task, 3);
  if (control != kCumulative && control != kThreshold)
    return bad_field(task, 2, 7);
  task.buffer.bytes.assign(kMaxMembers * kSmartBytes, 0);
  bool asks = page == kTemperature || page == kSolidState || page == kExceptions;
  if (!asks || !volume_.formed() || erasing_ != 0)
    return log_answer(task);
  task.data = &task.buffer;
  task.data_bytes = kSmartBytes;
  task.data_apart = true;
  submit_each(task, smart(ata::kSmartReadData), &ScsiDevice::log_health);
}

// PARAMETER POINTER: the page begins with the parameter of that code, or the next one. False: there
// is none.
bool ScsiDevice::skip_parameters(uint8_t page, uint64_t first, Bytes *body) {
  constexpr size_t kHeaderBytes = 4;
  if (first == 0)
    return true;
  if (page == kSupported)
    return false;  // it has pages
  size_t at = 0;
  while (at < body->size() && (uint64_t{(*body)[at]} << 8 | (*body)[at + 1]) < first)
    at += kHeaderBytes + (*body)[at + 3];
  body->erase(body->begin(), body->begin() + static_cast<ptrdiff_t>(at));
  return !body->empty();
}

// A member that does not answer has nothing to say: the page tells of the others.
void ScsiDevice::log_health(ScsiTask &task) {
  if ((task.cdb(2) & 0x3F) != kExceptions)
    return log_answer(task);
  task.data = nullptr;
  task.data_bytes = 0;
  submit_each(task, smart(ata::kSmartReturnStatus), &ScsiDevice::log_answer);
}

void ScsiDevice::log_answer(ScsiTask &task) {
  uint8_t page = task.cdb(2) & 0x3F;
  Bytes body;
  switch (page) {
    case kSupported:
      body.assign(std::begin(kPages), std::end(kPages));
      break;
    case kWriteErrors:
      body = log_errors(moved_[1]);
      break;
    case kReadErrors:
      body = log_errors(moved_[0]);
      break;
    case kSelfTests:
      body = log_self_tests();
      break;
    case kBackground:
      body = log_background();
      break;
    case kTemperature:
      body = log_temperature(task);
      break;
    case kSolidState:
      body = log_solid_state(task);
      break;
    case kExceptions:
      body = log_exceptions(task);
      break;
    case kMembers:
      body = log_members();
      break;
  }
  if (!skip_parameters(page, task.be(5, 2), &body))
    return bad_field(task, 5);
  Bytes bytes{page, 0, 0, 0};
  put_be(bytes, 2, 2, body.size());
  bytes.insert(bytes.end(), body.begin(), body.end());
  reply(task, bytes, task.be(7, 2));
}

// Of this power-on: bytes that were moved, requests that failed at the medium.
ScsiDevice::Bytes ScsiDevice::log_errors(const Moved &moved) {
  constexpr uint8_t kBytesCode = 5, kUncorrectedCode = 6;
  Bytes bytes;
  put_be(bytes, add_parameter(bytes, kBytesCode, 8), 8, moved.bytes);
  put_be(bytes, add_parameter(bytes, kUncorrectedCode, 8), 8, moved.failed);
  return bytes;
}

// Twenty places for results of tests that the volume does not have; the SSDs have theirs.
ScsiDevice::Bytes ScsiDevice::log_self_tests() {
  constexpr uint8_t kResults = 20, kResultBytes = 16;
  Bytes bytes;
  for (uint8_t i = 1; i <= kResults; i++)
    add_parameter(bytes, i, kResultBytes);
  return bytes;
}

// No scan is running, and none has been.
ScsiDevice::Bytes ScsiDevice::log_background() {
  constexpr uint8_t kStatusBytes = 12;
  Bytes bytes;
  add_parameter(bytes, 0, kStatusBytes);
  return bytes;
}

ScsiDevice::Bytes ScsiDevice::log_temperature(const ScsiTask &task) const {
  uint8_t now = hottest(task, volume_.members()).value_or(kUnknownTemperature);
  return {0, 0, kBinaryList, 2, 0, now, 0, 1, kBinaryList, 2, 0, kUnknownTemperature};
}

// Percentage used: that of the member with the least life left.
ScsiDevice::Bytes ScsiDevice::log_solid_state(const ScsiTask &task) const {
  uint8_t used = 0;
  for (unsigned i = 0; i < volume_.members(); i++) {
    auto life = attribute(std::span(task.buffer.bytes).subspan(i * kSmartBytes, kSmartBytes),
                          kLifeLeftAttribute);
    if (life && life->value <= 100)
      used = std::max<uint8_t>(used, static_cast<uint8_t>(100 - life->value));
  }
  return {0, 1, kBinaryList, 4, 0, 0, 0, used};
}

ScsiDevice::Bytes ScsiDevice::log_exceptions(const ScsiTask &task) const {
  uint16_t code = degraded() || volume_.damaged() ? scsi::kDriveLost : scsi::kNothing;
  for (const Fis &answer : task.answers) {
    if (code == scsi::kNothing && answer[5] == kFailingLow && answer[6] == kFailingHigh)
      code = scsi::kFailurePredicted;
  }
  uint8_t now = hottest(task, volume_.members()).value_or(kUnknownTemperature);
  Bytes bytes{0, 0, kBinaryList, 4, 0, 0, now, 0};
  put_be(bytes, 4, 2, code);
  return bytes;
}

ScsiDevice::Bytes ScsiDevice::log_members() const {
  auto state = static_cast<uint8_t>((degraded() ? 1 : 0) | (volume_.damaged() ? 2 : 0));
  Bytes bytes;
  bytes[add_parameter(bytes, 0, 1)] = state;
  for (unsigned i = 0; i < volume_.members(); i++)
    bytes[add_parameter(bytes, static_cast<uint8_t>(i + 1), 1)] =
        static_cast<uint8_t>(volume_.state(i));
  return bytes;
}

}  // namespace revodrive
