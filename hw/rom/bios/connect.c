/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The boot connection vectors: the BIOS calls one for each drive, in the order a user wants to boot
 * in, and each becomes the next disk of the BIOS. The image can still be written then.
 */
#include "bios.h"

#define BDA_DISKS 0x475
#define DISKS_MAX 0x40 /* numbers of a BIOS: 80h to BFh are hard disks, CDs come after */
#define IVT_INT13 (4 * 0x13)

void rom_seal(void) {
  uint8_t sum = 0;

  rom_start[CHECKSUM_AT] = 0;
  for (uint32_t i = 0; i < rom_start[UNITS_AT] * 512u; i++)
    sum = (uint8_t)(sum + rom_start[i]);
  rom_start[CHECKSUM_AT] = (uint8_t)-sum;
}

static void hook_int13(void) {
  uint32_t *vector = at(IVT_INT13);

  if (old_int13)
    return;
  old_int13 = *vector;
  *vector = rom_base << 12 | (uint32_t)int13_entry; /* segment, offset */
}

uint32_t connect(uint32_t phy) {
  uint8_t *disks = at(BDA_DISKS);

  if (memory()->drives[phy].state != DRIVE_READY || numbers[phy] != NO_NUMBER ||
      *disks >= DISKS_MAX)
    return 0;
  numbers[phy] = (uint8_t)(0x80 + *disks);
  (*disks)++;
  hook_int13();
  rom_seal();
  return 0;
}
