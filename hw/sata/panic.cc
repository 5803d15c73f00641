// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is left of an SF-2281 whose firmware has crashed: it answers IDENTIFY with a generic name
// and 32 KiB, takes what a host does to set a drive up, and aborts all else (gate.cc). Strings and
// size are those of owners' reports; SMART, NCQ and the rest are gone.
#include "sata/panic.h"

#include <string_view>

#include "revodrive/ata_drive.h"

namespace revodrive {

namespace {

void put_string(Page &page, size_t word, size_t words, std::string_view text) {
  for (size_t i = 0; i < 2 * words; i++)
    page[2 * word + (i ^ 1)] = static_cast<uint8_t>(i < text.size() ? text[i] : ' ');
}

}  // namespace

Page panic_identify_page(uint32_t sata_generation) {
  constexpr uint16_t kWordValid = 1 << 14;
  constexpr uint16_t kNoCommands = 1 << 14;  // NOP, the one bit that is always there
  Page page;
  page.word(0, 0x0040);
  page.word(1, 1);  // cylinders, heads, sectors
  page.word(3, 1);
  page.word(6, AtaDrive::kPanicSectors);
  put_string(page, 10, 10, "1");
  put_string(page, 23, 4, "402ABBR0");
  put_string(page, 27, 20, "SandForce{200026BB}");
  page.word(47, 0x8001);
  page.word(49, 0x2F00);
  page.word(53, 0x0006);
  page.word(60, AtaDrive::kPanicSectors);
  page.word(63, 0x0007);
  page.word(64, 0x0003);
  for (size_t word = 65; word <= 68; word++)
    page.word(word, 120);
  page.word(76, static_cast<uint16_t>((1u << (sata_generation + 1)) - 2));
  page.word(80, 0x01F0);
  page.word(82, kNoCommands);
  page.word(83, kWordValid);
  page.word(84, kWordValid);
  page.word(85, kNoCommands);
  page.word(87, kWordValid);
  page.word(88, 0x407F);
  page.word(106, kWordValid | 1 << 13 | 3);  // 8 logical sectors per physical sector
  page.word(217, 1);
  page[2 * 255] = 0xA5;
  page.seal();
  return page;
}

}  // namespace revodrive
