// SPDX-License-Identifier: GPL-2.0-or-later
#include "sata/identify.h"

#include <algorithm>
#include <string_view>

#include "sata/firmware.h"
#include "sata/ncq.h"

namespace revodrive {

namespace {

// Commands and feature sets, words 82-84 (support), 85-87 (in use).
constexpr uint16_t kCmd82Smart = 1 << 0;
constexpr uint16_t kCmd82Security = 1 << 1;
constexpr uint16_t kCmd82Power = 1 << 3;
constexpr uint16_t kCmd82WriteCache = 1 << 5;
constexpr uint16_t kCmd82LookAhead = 1 << 6;
constexpr uint16_t kCmd82Hpa = 1 << 10;
constexpr uint16_t kCmd82Nop = 1 << 14;
constexpr uint16_t kCmd83Microcode = 1 << 0;
constexpr uint16_t kCmd83SetMaxSecurity = 1 << 8;
constexpr uint16_t kCmd119Segments = 1 << 4;  // DOWNLOAD MICROCODE subcommand 3
constexpr uint16_t kCmd83Apm = 1 << 3;
constexpr uint16_t kCmd83Lba48 = 1 << 10;
constexpr uint16_t kCmd83Flush = 1 << 12;
constexpr uint16_t kCmd83FlushExt = 1 << 13;
constexpr uint16_t kCmd84SelfTest = 1 << 1;
constexpr uint16_t kCmd84Logging = 1 << 5;
constexpr uint16_t kCmd84Fua = 1 << 6;
constexpr uint16_t kCmd84Wwn = 1 << 8;
constexpr uint16_t kCmd119LogDma = 1 << 3;
constexpr uint16_t kWordValid = 1 << 14;      // bits 15:14 = 01b
constexpr uint16_t kWord86Extends = 1 << 15;  // words 119 and 120 are valid

// ATA strings hold the first character in the high byte of each word; padded with spaces.
void put_string(Page &page, size_t word, size_t words, std::string_view text) {
  for (size_t i = 0; i < 2 * words; i++) {
    char c = i < text.size() ? text[i] : ' ';
    page[2 * word + (i ^ 1)] = static_cast<uint8_t>(c >= ' ' && c <= '~' ? c : ' ');
  }
}

// Cylinders, heads and sectors of old: 16 heads and 63 sectors a track (ATA8-ACS annex B).
void put_geometry(Page &page, uint64_t sectors) {
  constexpr uint16_t kHeads = 16;
  constexpr uint16_t kTrackSectors = 63;
  uint64_t cylinders = std::clamp<uint64_t>(sectors / (kHeads * kTrackSectors), 1, 16383);
  uint64_t reachable = std::min(sectors, cylinders * kHeads * kTrackSectors);
  for (size_t word : {1u, 54u})
    page.word(word, static_cast<uint16_t>(cylinders));
  page.word(3, kHeads);
  page.word(6, kTrackSectors);
  page.word(55, kHeads);
  page.word(56, kTrackSectors);
  page.put(2 * 57, reachable, 4);
}

void put_identity(Page &page, const DriveIdentity &identity, std::string_view firmware) {
  put_string(page, 10, 10, identity.serial);
  put_string(page, 23, 4, firmware);
  put_string(page, 27, 20, identity.model);
  for (size_t i = 0; i < 4; i++)
    page.word(108 + i, static_cast<uint16_t>(identity.wwn >> (48 - 16 * i)));
}

void put_transfer_modes(Page &page, const Settings &settings) {
  uint8_t mode = settings.transfer_mode;
  uint16_t multiword = mode < 0x40 ? static_cast<uint16_t>(0x0100 << (mode & 7)) : 0;
  uint16_t ultra = mode >= 0x40 ? static_cast<uint16_t>(0x0100 << (mode & 7)) : 0;
  page.word(63, static_cast<uint16_t>(0x0007 | multiword));
  page.word(64, 0x0003);  // PIO 3 and 4
  for (size_t word = 65; word <= 68; word++)
    page.word(word, 120);  // ns per cycle
  page.word(88, static_cast<uint16_t>(0x007F | ultra));
}

void put_serial_ata(Page &page, const IdentifyFacts &facts) {
  constexpr uint16_t kQueuing = 1 << 8;
  constexpr uint16_t kPhyCounters = 1 << 10;
  constexpr uint16_t kSettingsPreservation = 1 << 6;
  uint32_t generation = std::clamp(facts.sata_generation, 1u, 3u);
  uint32_t speeds = (2u << generation) - 2;  // bit n: generation n
  page.word(75, NcqQueue::kTags - 1);
  page.word(76, static_cast<uint16_t>(speeds | kQueuing | kPhyCounters));
  page.word(77, static_cast<uint16_t>(generation << 1));  // speed in use
  page.word(78, kSettingsPreservation);
  page.word(79, facts.settings.preserved ? kSettingsPreservation : 0);
  page.word(222, 0x103E);  // serial transport, SATA 1.0a to 3.0
}

void put_features(Page &page, const IdentifyFacts &facts) {
  constexpr uint16_t kWord83 =
      kWordValid | kCmd83Microcode | kCmd83Lba48 | kCmd83Flush | kCmd83FlushExt;
  constexpr uint16_t kWord84 = kWordValid | kCmd84SelfTest | kCmd84Logging | kCmd84Fua | kCmd84Wwn;
  const Settings &settings = facts.settings;
  uint16_t in_use = kCmd82Power | kCmd82Hpa | kCmd82Nop;
  page.word(82, in_use | kCmd82Smart | kCmd82Security | kCmd82WriteCache | kCmd82LookAhead);
  page.word(83, kWord83 | kCmd83Apm | kCmd83SetMaxSecurity);
  page.word(84, kWord84);
  if (facts.smart_enabled)
    in_use |= kCmd82Smart;
  if (facts.security.enabled())
    in_use |= kCmd82Security;
  if (settings.write_cache)
    in_use |= kCmd82WriteCache;
  if (settings.look_ahead)
    in_use |= kCmd82LookAhead;
  page.word(85, in_use);
  uint16_t word86 = (kWord83 & ~kWordValid) | kWord86Extends;
  word86 |= settings.apm ? kCmd83Apm : 0;
  word86 |= facts.max_address_password ? kCmd83SetMaxSecurity : 0;
  page.word(86, word86);
  page.word(87, kWord84);
  page.word(91, settings.apm ? settings.apm_level : 0);
  page.word(119, kWordValid | kCmd119LogDma | kCmd119Segments);
  page.word(120, kWordValid | kCmd119LogDma | kCmd119Segments);
}

// Blocks a segment of DOWNLOAD MICROCODE may have.
void put_microcode(Page &page) {
  page.word(234, 1);
  page.word(235, Firmware::kMaxBytes / ata::kSectorBytes);
}

void put_security(Page &page, const Security &security) {
  page.word(89, 1);  // normal erase: 2 minutes
  page.word(90, 1);  // enhanced erase: 2 minutes
  page.word(92, security.master_id());
  page.word(128, security.identify_word());
}

void put_trim(Page &page) {
  constexpr uint16_t kMicrocodeDma = 1 << 8;
  constexpr uint16_t kDeterministic = 1 << 14;
  page.word(69, kDeterministic | kMicrocodeDma);  // and not zero: bit 5 stays clear
  page.word(105, 1);                              // blocks of ranges per command
  page.word(169, 1);                              // TRIM
}

}  // namespace

Page identify_page(const IdentifyFacts &facts) {
  const Settings &settings = facts.settings;
  Page page;
  page.word(0, 0x0040);  // ATA device, fixed
  put_geometry(page, facts.sectors);
  put_identity(page, facts.identity, facts.firmware);
  page.word(47, 0x8000 | Settings::kMaxMultiple);
  page.word(48, kWordValid);
  page.word(49, 0x2F00);  // standard standby timer, IORDY that can be disabled, LBA, DMA
  page.word(50, kWordValid);
  page.word(53, 0x0007);  // words 54-58, 64-70 and 88 are valid
  page.word(59, settings.multiple ? 0x0100 | settings.multiple : 0);
  page.put(2 * 60, std::min(facts.sectors, ata::kLba28Sectors), 4);
  put_transfer_modes(page, settings);
  put_serial_ata(page, facts);
  page.word(80, 0x01F0);  // ATA/ATAPI-4 to ATA8-ACS
  page.word(81, 0x0110);  // ACS-2 T13/2015-D revision 3
  put_features(page, facts);
  put_security(page, facts.security);
  put_microcode(page);
  page.put(2 * 100, facts.sectors, 8);
  put_trim(page);
  page.word(106, kWordValid);  // one logical sector per physical sector
  page.word(206, 0x0021);      // SCT: commands and data tables
  page.word(209, kWordValid);  // aligned at 0
  page.word(217, 1);           // does not rotate
  page[2 * 255] = 0xA5;        // integrity word: signature, then the checksum in the last byte
  page.seal();
  return page;
}

}  // namespace revodrive
