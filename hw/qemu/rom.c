/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's own option ROM, from the plugin's bytes. QEMU's romfile= takes its place (and romfile=
 * with nothing leaves the card without one), as does rombar=0. The size of the ROM BAR is fixed, so
 * that snapshots stay loadable when the ROM grows.
 */
#include "glue.h"
#include "rom/rom.h"

#define ROM_BYTES (256 * KiB)
#define ROM_SIZE_UNSET UINT32_MAX

/* Offsets of the PCI expansion ROM header and of the PCIR structure. */
#define HEADER_UNITS 0x02
#define HEADER_CHECKSUM 0x06
#define HEADER_PCIR 0x18
#define PCIR_IDS 0x04
#define PCIR_UNITS 0x10
#define PCIR_TYPE 0x14
#define PCIR_INDICATOR 0x15
#define TYPE_X86 0
#define LAST_IMAGE 0x80
#define UNIT_BYTES 512

static void seal(uint8_t *image) {
  uint8_t sum = 0;

  image[HEADER_CHECKSUM] = 0;
  for (uint32_t i = 0; i < image[HEADER_UNITS] * UNIT_BYTES; i++)
    sum += image[i];
  image[HEADER_CHECKSUM] = -sum;
}

/* Firmware takes an image only if its ids are the function's. */
static void put_ids(uint8_t *rom, const uint8_t *config) {
  for (uint32_t at = 0; at < revo_rom_image_bytes;) {
    uint8_t *image = rom + at;
    uint8_t *pcir = image + pci_get_word(image + HEADER_PCIR);

    memcpy(pcir + PCIR_IDS, config + PCI_VENDOR_ID, 4);
    if (pcir[PCIR_TYPE] == TYPE_X86)
      seal(image);
    if (pcir[PCIR_INDICATOR] & LAST_IMAGE)
      return;
    at += pci_get_word(pcir + PCIR_UNITS) * UNIT_BYTES;
  }
}

bool revo_rom_init(RevoCard *card, Error **errp) {
  ERRP_GUARD();
  PCIDevice *pci = &card->pci;

  if (pci->romfile || !pci->rom_bar)
    return true;
  if (pci->romsize == ROM_SIZE_UNSET)
    pci->romsize = ROM_BYTES;
  if (pci->romsize < revo_rom_image_bytes) {
    error_setg(errp, "%s: romsize=%" PRIu32 ": the card's option ROM has %" PRIu32 " bytes",
               revo_name(card), pci->romsize, revo_rom_image_bytes);
    return false;
  }
  memory_region_init_rom(&pci->rom, OBJECT(card), "revodrive.rom", pci->romsize, errp);
  if (*errp)
    return false;

  uint8_t *rom = memory_region_get_ram_ptr(&pci->rom);
  memcpy(rom, revo_rom_image, revo_rom_image_bytes);
  put_ids(rom, pci->config);
  pci->has_rom = true; /* QEMU takes it away with the function */
  pci_register_bar(pci, PCI_ROM_SLOT, 0, &pci->rom);
  return true;
}
