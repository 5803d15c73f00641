/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * At power-on: takes the card into use, asks each drive who it is, and leaves two texts for the
 * screen and a PnP header for each phy up to the last one that has a drive to boot from. The
 * position of a header is the phy: so a BIOS that counts them finds the drive that bootindex names.
 */
#include "bios.h"
#include "text.h"

#define PCI_ADDRESS 0xCF8
#define PCI_DATA 0xCFC
#define PCI_ID 0x00
#define PCI_COMMAND 0x04
#define PCI_COMMAND_MEMORY_MASTER 0x06
#define PCI_BAR2 0x18
#define PCI_BAR2_HIGH 0x1C

#define LINK_QUIET_MS 100 /* no link came up for so long: no more will */
#define SIGNATURE_MS 2000
#define IDENTIFY_MS 3000

#define CYLINDERS_MAX 1024

#define PNP_BYTES 32
#define PNP_NEXT 6 /* word */
#define PNP_CHECKSUM 9
/* Result of the init call (PnP BIOS 1.0A, 3.3): a device to boot from, with INT 13h. */
#define INIT_HAS_DISKS 0x0120

extern uint8_t resident_end[];

#define TEXT_BYTES 1024
char text[TEXT_BYTES], details[TEXT_BYTES];

static struct Text sign_on = {text, TEXT_BYTES, 0}, more = {details, TEXT_BYTES, 0};

struct Product {
  uint32_t id;
  const char *name;
  uint8_t phys;
};

static const struct Product known_products[] = {
    {0x10411B85, "OCZ RevoDrive 3 X2", 4},
    {0x10211B85, "OCZ RevoDrive 3", 2},
    {0, "Marvell 88SE9485", PHYS}, /* any other id */
};

/* ------------------------------------------------------------------------------------------ PCI */

static INIT uint32_t config_read(uint8_t offset) {
  uint32_t value;

  __asm__ volatile("outl %0, %1"
                   :
                   : "a"(1u << 31 | (uint32_t)bdf << 8 | offset), "Nd"(PCI_ADDRESS));
  __asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(PCI_DATA));
  return value;
}

static INIT void config_write(uint8_t offset, uint32_t value) {
  __asm__ volatile("outl %0, %1"
                   :
                   : "a"(1u << 31 | (uint32_t)bdf << 8 | offset), "Nd"(PCI_ADDRESS));
  __asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(PCI_DATA));
}

static INIT const struct Product *find_product(void) {
  const struct Product *product = known_products;
  uint32_t id = config_read(PCI_ID);

  while (product->id && product->id != id)
    product++;
  return product;
}

/* NULL, or what is wrong. */
static INIT const char *open_registers(void) {
  uint32_t bar = config_read(PCI_BAR2);
  bool is_64bit = (bar & 0x06) == 0x04;

  if (is_64bit && config_read(PCI_BAR2_HIGH))
    return "its registers are above 4 GiB, out of the BIOS's reach";
  if (bar < 0x100000)
    return "the BIOS gave its registers no address";
  memory()->registers = bar & ~0x0Fu;
  config_write(PCI_COMMAND, (config_read(PCI_COMMAND) & 0xFFFF) | PCI_COMMAND_MEMORY_MASTER);
  return NULL;
}

/* --------------------------------------------------------------------------------------- drives */

static INIT unsigned links_up(unsigned phys) {
  unsigned count = 0;

  for (unsigned phy = 0; phy < phys; phy++)
    count += bridge_link_up(phy);
  return count;
}

static INIT void wait_for_links(unsigned phys) {
  unsigned count = 0;
  uint64_t end = deadline_after(LINK_QUIET_MS);

  while (count < phys && !is_past(end)) {
    unsigned now = links_up(phys);
    if (now != count)
      end = deadline_after(LINK_QUIET_MS);
    count = now;
    yield();
  }
}

/* ATA strings have the bytes of each word swapped, and spaces at the end. */
static INIT void take_string(char *to, unsigned word, unsigned bytes) {
  const uint16_t *identify = memory()->identify;

  for (unsigned i = 0; i < bytes; i++) {
    uint16_t pair = identify[word + i / 2];
    char c = (char)(i % 2 ? pair & 0xFF : pair >> 8);
    to[i] = c < ' ' || c > '~' ? ' ' : c;
  }
  to[bytes] = 0;
  while (bytes && to[bytes - 1] == ' ')
    to[--bytes] = 0;
}

/* As much as 1024 cylinders of the usual translations hold ("LBA assist"). */
static INIT void choose_geometry(struct Drive *drive) {
  uint32_t sectors = drive->sectors >> 32 ? UINT32_MAX : (uint32_t)drive->sectors;
  uint32_t tracks = sectors / SECTORS_PER_TRACK, heads = 16;

  while (heads < 128 && tracks / heads > CYLINDERS_MAX)
    heads *= 2;
  if (tracks / heads > CYLINDERS_MAX)
    heads = 255;
  uint32_t cylinders = tracks / heads;
  drive->heads = (uint16_t)heads;
  drive->cylinders = (uint16_t)(cylinders > CYLINDERS_MAX ? CYLINDERS_MAX
                                : cylinders               ? cylinders
                                                          : 1);
}

static INIT enum drive_state read_identity(struct Drive *drive) {
  const uint16_t *identify = memory()->identify;

  take_string(drive->serial, 10, 20);
  take_string(drive->firmware, 23, 8);
  take_string(drive->model, 27, 40);
  drive->lba48 = identify[83] >> 10 & 1;
  drive->sectors = identify[60] | (uint32_t)identify[61] << 16;
  if (drive->lba48)
    drive->sectors = (uint64_t)identify[102] << 32 | (uint32_t)identify[101] << 16 | identify[100];
  if (!drive->sectors ||
      (identify[106] & 0xD000) == 0x5000) /* logical sectors are not of 512 bytes */
    return DRIVE_BAD;
  choose_geometry(drive);
  return identify[128] & 4 ? DRIVE_LOCKED : DRIVE_READY;
}

static INIT enum drive_state find_sata_drive(unsigned phy) {
  for (uint64_t end = deadline_after(SIGNATURE_MS); !bridge_has_signature(phy); yield())
    if (is_past(end))
      return DRIVE_BAD;
  if (ata_identify(phy, IDENTIFY_MS))
    return DRIVE_BAD;
  return read_identity(&memory()->drives[phy]);
}

static INIT enum drive_state find_drive(unsigned phy) {
  struct Drive *drive = &memory()->drives[phy];

  if (!bridge_link_up(phy))
    return DRIVE_NONE;
  if (!bridge_is_sas(phy, drive->address))
    return find_sata_drive(phy);
  enum drive_state state = find_sas_drive(phy);
  if (state == DRIVE_READY)
    choose_geometry(drive);
  return state;
}

/* ---------------------------------------------------------------------------------------- texts */

static INIT void put_address(struct Text *out) {
  put_hex(out, bdf >> 8, 2);
  put_char(out, ':');
  put_hex(out, bdf >> 3 & 0x1F, 2);
  put_char(out, '.');
  put_hex(out, bdf & 7, 1);
}

static INIT void describe(unsigned phy) {
  const struct Drive *drive = &memory()->drives[phy];

  if (drive->state == DRIVE_NONE)
    return;
  put_number(&sign_on, phy, 3);
  put(&sign_on, "  ");
  if (drive->state == DRIVE_BAD && !drive->model[0]) {
    put(&sign_on, "a drive that does not answer\r\n");
    return;
  }
  put_padded(&sign_on, drive->model, 24);
  put_padded(&sign_on, drive->firmware, 8);
  put_size(&sign_on, drive->sectors);
  if (drive->state == DRIVE_BAD)
    put(&sign_on, ", cannot be used");
  if (drive->state == DRIVE_LOCKED)
    put(&sign_on, ", locked by its password");
  put(&sign_on, "\r\n");
}

static INIT void describe_details(unsigned phy) {
  static const char *const rates[] = {"1.5", "3.0", "6.0", "?"};
  const struct Drive *drive = &memory()->drives[phy];

  if (drive->state < DRIVE_LOCKED)
    return;
  put_number(&more, phy, 3);
  put(&more, "  serial ");
  put_padded(&more, drive->serial, 20);
  put(&more, " geometry ");
  put_number(&more, drive->cylinders, 0);
  put_char(&more, '/');
  put_number(&more, drive->heads, 0);
  put_char(&more, '/');
  put_number(&more, SECTORS_PER_TRACK, 0);
  put(&more, ", ");
  put(&more, rates[bridge_link_rate(phy)]);
  put(&more, " Gb/s\r\n");
}

static INIT void fill_details(void) {
  put(&more, "Registers at ");
  put_hex(&more, memory()->registers, 8);
  put(&more, ", ROM at ");
  put_hex(&more, rom_base, 8);
  put(&more, ", 16 KiB of memory at ");
  put_hex(&more, memory_base, 8);
  put(&more, "\r\n");
  for (unsigned phy = 0; phy < PHYS; phy++)
    describe_details(phy);
  put(&more, "Any key goes on\r\n");
}

/* -------------------------------------------------------------------------------------- headers */

static INIT void set_word(uint8_t *to, uint32_t value) {
  to[0] = (uint8_t)value;
  to[1] = (uint8_t)(value >> 8);
}

static INIT void fill_header(unsigned phy, unsigned last) {
  const struct Drive *drive = &memory()->drives[phy];
  uint8_t *header = pnp_headers + PNP_BYTES * phy;
  struct Text name = {products[phy], PRODUCT_BYTES, 0};
  uint8_t sum = 0;

  put(&name, "RevoDrive phy ");
  put_number(&name, phy, 0);
  put(&name, drive->state == DRIVE_READY ? ": " : ": no drive to boot from");
  if (drive->state == DRIVE_READY) {
    put(&name, drive->model);
    put_size(&name, drive->sectors);
  }
  set_word(header + PNP_NEXT, phy < last ? (uint32_t)header + PNP_BYTES : 0);
  header[PNP_CHECKSUM] = 0;
  for (unsigned i = 0; i < PNP_BYTES; i++)
    sum = (uint8_t)(sum + header[i]);
  header[PNP_CHECKSUM] = (uint8_t)-sum;
}

/* The number of drives to boot from. */
static INIT unsigned offer_drives(void) {
  unsigned count = 0, last = 0;

  for (unsigned phy = 0; phy < PHYS; phy++) {
    if (memory()->drives[phy].state != DRIVE_READY)
      continue;
    last = phy;
    count++;
  }
  for (unsigned phy = 0; phy <= last; phy++)
    fill_header(phy, last);
  return count;
}

static INIT unsigned find_drives(const struct Product *product) {
  unsigned links = 0;

  delay_start();
  bridge_start();
  wait_for_links(product->phys);
  for (unsigned phy = 0; phy < PHYS; phy++) {
    struct Drive *drive = &memory()->drives[phy];
    drive->state = (uint8_t)find_drive(phy);
    links += drive->state != DRIVE_NONE;
    describe(phy);
  }
  if (!links)
    put(&sign_on, "  no drives\r\n");
  fill_details();
  return offer_drives();
}

/* The result goes to the BIOS; 0: nothing to boot from, the ROM is not needed any more. */
INIT uint32_t startup(void) {
  const struct Product *product = find_product();

  for (uint8_t *byte = at(memory_base), *end = byte + sizeof(struct Memory); byte < end; byte++)
    *byte = 0;
  put(&sign_on, "\r\n");
  put(&sign_on, product->name);
  put(&sign_on, " BIOS " ROM_VERSION ", PCI ");
  put_address(&sign_on);
  put(&sign_on, ", Ctrl-R: details\r\n");

  const char *trouble = open_registers();
  if (trouble) {
    put(&sign_on, "  ");
    put(&sign_on, trouble);
    put(&sign_on, "\r\n");
    return 0;
  }
  unsigned count = find_drives(product);
  memory_ready = 1;
  rom_start[UNITS_AT] = (uint8_t)((uint32_t)resident_end / 512);
  rom_seal();
  return count ? INIT_HAS_DISKS : 0;
}
