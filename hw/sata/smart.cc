// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/smart.h"

#include <algorithm>

namespace revodrive {

namespace {

constexpr uint8_t kRevision = 10;      // of the data structure, as real drives report it
constexpr size_t kFirstAttribute = 2;  // offset in both pages
constexpr size_t kAttributeBytes = 12;
constexpr uint16_t kPreFail = 0x0001;
constexpr uint64_t kSectorsPerGib = (1u << 30) / ata::kSectorBytes;

// low 32 bits hours, next 24 bits milliseconds within the hour (drive database: msec24hour32)
uint64_t power_on_time(int64_t now_ns) {
  constexpr uint64_t kNsPerMs = 1'000'000;
  constexpr uint64_t kMsPerHour = 3'600'000;
  uint64_t ms = static_cast<uint64_t>(std::max<int64_t>(now_ns, 0)) / kNsPerMs;
  return (ms / kMsPerHour & 0xFFFFFFFF) | ms % kMsPerHour << 32;
}

}  // namespace

struct Smart::Attribute {
  uint8_t id;
  uint16_t flags;
  uint8_t value;
  uint8_t threshold;
};

const Smart::Attribute Smart::kAttributes[] = {
    {1, 0x000F, 120, 50},    // Raw_Read_Error_Rate
    {5, 0x0033, 100, 3},     // Retired_Block_Count
    {9, 0x0032, 100, 0},     // Power_On_Hours_and_Msec
    {12, 0x0032, 100, 0},    // Power_Cycle_Count
    {171, 0x0032, 0, 0},     // Program_Fail_Count
    {172, 0x0032, 0, 0},     // Erase_Fail_Count
    {174, 0x0030, 0, 0},     // Unexpect_Power_Loss_Ct
    {177, 0x0000, 0, 0},     // Wear_Range_Delta
    {181, 0x0032, 0, 0},     // Program_Fail_Count
    {182, 0x0032, 0, 0},     // Erase_Fail_Count
    {187, 0x0032, 100, 0},   // Reported_Uncorrect
    {194, 0x0022, 30, 0},    // Temperature_Celsius
    {195, 0x001C, 100, 0},   // ECC_Uncorr_Error_Count
    {196, 0x0033, 100, 3},   // Reallocated_Event_Count
    {201, 0x001C, 100, 0},   // Unc_Soft_Read_Err_Rate
    {204, 0x001C, 100, 0},   // Soft_ECC_Correct_Rate
    {230, 0x0013, 100, 0},   // Life_Curve_Status
    {231, 0x0013, 100, 10},  // SSD_Life_Left
    {233, 0x0000, 0, 0},     // SandForce_Internal: flash writes
    {234, 0x0032, 0, 0},     // SandForce_Internal: host writes
    {241, 0x0032, 0, 0},     // Lifetime_Writes_GiB
    {242, 0x0032, 0, 0},     // Lifetime_Reads_GiB
};

Smart::Reading Smart::read(const Attribute &attribute, const SmartInputs &inputs) const {
  switch (attribute.id) {
    case 9:
      return {attribute.value, power_on_time(inputs.now_ns)};
    case 12:
      return {attribute.value, power_cycles_};
    case 187:
      return {attribute.value, inputs.uncorrectable};
    case 194:
      return {attribute.value, 0x001E'001E'001E};  // no sensor: 30, lowest and highest 30
    case 230:
      return {attribute.value, 100};
    case 233:
    case 234:
    case 241:
      return {attribute.value, inputs.written_sectors / kSectorsPerGib};
    case 242:
      return {attribute.value, inputs.read_sectors / kSectorsPerGib};
    default:
      return {attribute.value, 0};
  }
}

// ATA8-ACS 7.53.6.
Page Smart::data_page(const SmartInputs &inputs) const {
  Page page;
  page.put(0, kRevision, 2);
  size_t at = kFirstAttribute;
  for (const Attribute &attribute : kAttributes) {
    Reading reading = read(attribute, inputs);
    page[at] = attribute.id;
    page.put(at + 1, attribute.flags, 2);
    page[at + 3] = reading.value;
    page[at + 4] = reading.value;  // worst
    page.put(at + 5, reading.raw, 6);
    at += kAttributeBytes;
  }
  constexpr uint16_t kSavesOnPowerDown = 1 << 0;
  constexpr uint16_t kSavesByItself = 1 << 1;
  page.put(368, kSavesOnPowerDown | kSavesByItself, 2);
  page.seal();
  return page;
}

Page Smart::threshold_page() const {
  Page page;
  page.put(0, kRevision, 2);
  size_t at = kFirstAttribute;
  for (const Attribute &attribute : kAttributes) {
    page[at] = attribute.id;
    page[at + 1] = attribute.threshold;
    at += kAttributeBytes;
  }
  page.seal();
  return page;
}

bool Smart::healthy(const SmartInputs &inputs) const {
  return std::none_of(std::begin(kAttributes), std::end(kAttributes), [&](const Attribute &it) {
    return (it.flags & kPreFail) && it.threshold > 0 && read(it, inputs).value <= it.threshold;
  });
}

void Smart::save(StreamWriter &out) const {
  out.section("SMRT");
  out.put(enabled_);
  out.put(autosave_);
  out.put(power_cycles_);
}

void Smart::load(StreamReader &in) {
  in.section("SMRT");
  in.get(enabled_);
  in.get(autosave_);
  in.get(power_cycles_);
}

}  // namespace revodrive
