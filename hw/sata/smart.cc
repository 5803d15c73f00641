// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/smart.h"

#include <algorithm>
#include <cmath>

namespace revodrive {

namespace {

constexpr uint8_t kRevision = 10;      // of the data structure, as real drives report it
constexpr size_t kFirstAttribute = 2;  // offset in both pages
constexpr size_t kAttributeBytes = 12;
constexpr uint16_t kPreFail = 0x0001;
constexpr uint64_t kSectorsPerGib = (1u << 30) / ata::kSectorBytes;
constexpr uint64_t kBytesPerGib = 1u << 30;
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kMsPerHour = 3'600'000;
constexpr uint8_t kLifeLeft = 231;

// 100 less one for each `step`, as real drives' reports fit it.
uint8_t falling(uint64_t count, uint64_t step) {
  return static_cast<uint8_t>(100 - std::min<uint64_t>(count / step, 100));
}

}  // namespace

SmartTotals SmartTotals::operator+(const SmartTotals &other) const {
  return {read_sectors + other.read_sectors, written_sectors + other.written_sectors,
          nand_bytes + other.nand_bytes, uncorrectable + other.uncorrectable};
}

struct Smart::Attribute {
  uint8_t id;
  uint16_t flags;
  uint8_t value;  // best, or what never changes
  uint8_t threshold;
};

const std::array<Smart::Attribute, Smart::kAttributes> Smart::kTable = {{
    {1, 0x000F, 120, 50},          // Raw_Read_Error_Rate
    {5, 0x0033, 100, 3},           // Retired_Block_Count
    {9, 0x0032, 100, 0},           // Power_On_Hours_and_Msec
    {12, 0x0032, 100, 0},          // Power_Cycle_Count
    {171, 0x0032, 0, 0},           // Program_Fail_Count
    {172, 0x0032, 0, 0},           // Erase_Fail_Count
    {174, 0x0030, 0, 0},           // Unexpect_Power_Loss_Ct
    {177, 0x0000, 0, 0},           // Wear_Range_Delta
    {181, 0x0032, 0, 0},           // Program_Fail_Count
    {182, 0x0032, 0, 0},           // Erase_Fail_Count
    {187, 0x0032, 100, 0},         // Reported_Uncorrect
    {194, 0x0022, 30, 0},          // Temperature_Celsius
    {195, 0x001C, 100, 0},         // ECC_Uncorr_Error_Count
    {196, 0x0033, 100, 3},         // Reallocated_Event_Count
    {201, 0x001C, 100, 0},         // Unc_Soft_Read_Err_Rate
    {204, 0x001C, 100, 0},         // Soft_ECC_Correct_Rate
    {230, 0x0013, 100, 0},         // Life_Curve_Status
    {kLifeLeft, 0x0013, 100, 10},  // SSD_Life_Left
    {233, 0x0000, 0, 0},           // SandForce_Internal: flash writes
    {234, 0x0032, 0, 0},           // SandForce_Internal: host writes
    {241, 0x0032, 0, 0},           // Lifetime_Writes_GiB
    {242, 0x0032, 0, 0},           // Lifetime_Reads_GiB
}};

void Smart::advance(int64_t now_ns) {
  if (now_ns <= seen_ns_)
    return;
  power_on_ns_ += now_ns - seen_ns_;
  seen_ns_ = now_ns;
}

void Smart::power_cycle(const SmartTotals &now) {
  power_cycles_++;
  if (!parked_)
    power_losses_++;
  parked_ = false;
  this_cycle_ = now;
}

// Raw: sectors read in this power cycle in the low 32 bits, errors among them above. RevoDrive 3
// reports show 0/0 throughout, so nothing is shown before the first error. Value: Kingston's note
// on its SF-2000 drives has a logarithm of the error rate between 38 and 120; here ten times the
// decimal logarithm of the bits read for each error.
Smart::Reading Smart::read_error_rate(uint8_t best, const SmartTotals &now) const {
  uint64_t errors = now.uncorrectable - this_cycle_.uncorrectable;
  uint64_t sectors = now.read_sectors - this_cycle_.read_sectors;
  if (errors == 0)
    return {best, 0};
  double bits = static_cast<double>(std::max<uint64_t>(sectors, 1)) * ata::kSectorBytes * 8;
  double rate = 10 * std::log10(bits / static_cast<double>(errors));
  uint64_t raw = std::min<uint64_t>(sectors, UINT32_MAX) | std::min<uint64_t>(errors, 0xFFFFFF)
                                                               << 32;
  return {static_cast<uint8_t>(std::clamp(rate, 38.0, 120.0)), raw};
}

// Kingston's note on its SF-2000 drives: what is left of the blocks that were spare when new.
static uint8_t spares_left(const FlashHealth &flash) {
  uint64_t spare = std::max<uint64_t>(flash.spare_blocks, 1);
  return static_cast<uint8_t>(100 - std::min<uint64_t>(flash.retired_blocks * 100 / spare, 100));
}

Smart::Reading Smart::read(const Attribute &attribute, const SmartTotals &now,
                           const FlashHealth &flash) const {
  SmartTotals life = before_ + now;
  uint64_t ms = static_cast<uint64_t>(power_on_ns_) / kNsPerMs;
  uint64_t hours = ms / kMsPerHour;
  switch (attribute.id) {
    case 1:
    case 195:
    case 201:
    case 204:
      return read_error_rate(attribute.value, now);
    case 5:
    case 196:
      return {spares_left(flash), flash.retired_blocks};
    case 171:
    case 181:
      return {attribute.value, flash.program_fails};
    case 172:
    case 182:
      return {attribute.value, flash.erase_fails};
    case 177:
      return {attribute.value, flash.wear_range_percent};
    case 9:  // drive database: msec24hour32, the milliseconds are those within the hour
      return {falling(hours, 876), (hours & UINT32_MAX) | (ms % kMsPerHour) << 32};
    case 12:
      return {falling(power_cycles_, 1000), power_cycles_};
    case 174:
      return {attribute.value, power_losses_};
    case 187:
      return {falling(life.uncorrectable, 1), life.uncorrectable};
    case 194:
      return {attribute.value, 0x001E'001E'001E};  // no sensor: 30, lowest and highest 30
    case 230:
      return {attribute.value, 100};
    case kLifeLeft:
      return {std::min(falling(flash.endurance_used_percent, 1), life_left_limit_), 0};
    case 233:
      return {attribute.value, life.nand_bytes / kBytesPerGib};
    case 234:
    case 241:
      return {attribute.value, life.written_sectors / kSectorsPerGib};
    case 242:
      return {attribute.value, life.read_sectors / kSectorsPerGib};
    default:
      return {attribute.value, 0};
  }
}

// ATA8-ACS 7.53.6.
void Smart::fill_attributes(Page &page, const SmartTotals &now, const FlashHealth &flash) {
  page.put(0, kRevision, 2);
  size_t at = kFirstAttribute;
  for (size_t i = 0; i < kTable.size(); i++, at += kAttributeBytes) {
    const Attribute &attribute = kTable[i];
    Reading reading = read(attribute, now, flash);
    // A limit that a user has set is no history of the drive.
    if (attribute.id != kLifeLeft || life_left_limit_ == 100)
      worst_[i] = std::min(worst_[i], reading.value);
    page[at] = attribute.id;
    page.put(at + 1, attribute.flags, 2);
    page[at + 3] = reading.value;
    page[at + 4] = std::min(worst_[i], reading.value);
    page.put(at + 5, reading.raw, 7);
  }
}

Page Smart::threshold_page() const {
  Page page;
  page.put(0, kRevision, 2);
  size_t at = kFirstAttribute;
  for (const Attribute &attribute : kTable) {
    page[at] = attribute.id;
    page[at + 1] = attribute.threshold;
    at += kAttributeBytes;
  }
  page.seal();
  return page;
}

bool Smart::healthy(const SmartTotals &now, const FlashHealth &flash) const {
  return std::none_of(kTable.begin(), kTable.end(), [&](const Attribute &it) {
    return (it.flags & kPreFail) && it.threshold > 0 && read(it, now, flash).value <= it.threshold;
  });
}

namespace {

void put(StreamWriter &out, const SmartTotals &totals) {
  out.put(totals.read_sectors);
  out.put(totals.written_sectors);
  out.put(totals.nand_bytes);
  out.put(totals.uncorrectable);
}

void get(StreamReader &in, SmartTotals &totals) {
  in.get(totals.read_sectors);
  in.get(totals.written_sectors);
  in.get(totals.nand_bytes);
  in.get(totals.uncorrectable);
}

}  // namespace

void Smart::save(StreamWriter &out) const {
  out.section("SMRT");
  out.put(seen_ns_);
  out.put(life_left_limit_);
  put(out, this_cycle_);
  save_persistent(out, {});
}

void Smart::load(StreamReader &in) {
  in.section("SMRT");
  in.get(seen_ns_);
  in.get(life_left_limit_);
  get(in, this_cycle_);
  load_persistent(in);
  if (life_left_limit_ > 100 || seen_ns_ < 0)
    in.fail();
}

void Smart::save_persistent(StreamWriter &out, const SmartTotals &now) const {
  out.put(enabled_);
  out.put(autosave_);
  out.put(parked_);
  out.put(power_on_ns_);
  out.put(power_cycles_);
  out.put(power_losses_);
  put(out, before_ + now);
  out.put_bytes(worst_);
}

void Smart::load_persistent(StreamReader &in) {
  in.get(enabled_);
  in.get(autosave_);
  in.get(parked_);
  in.get(power_on_ns_);
  in.get(power_cycles_);
  in.get(power_losses_);
  get(in, before_);
  in.get_bytes(worst_);
  if (power_on_ns_ < 0 || power_on_ns_ > INT64_MAX / 2)
    in.fail();
}

}  // namespace revodrive
