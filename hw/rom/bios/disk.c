/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * INT 13h for the drives that connect() made disks of the BIOS. Addresses, counts and pointers are
 * the caller's: each is checked before use. Functions and error codes: docs/booting.md; layouts:
 * BIOS Enhanced Disk Drive specification 3.0 and T13 1572D (EDD-3).
 */
#include "bios.h"

#define CARRY 0x0001
#define BDA_STATUS 0x474
#define BDA_DISKS 0x475

#define CHS_SECTORS_MAX 128 /* 64 KiB */
#define EXT_SECTORS_MAX 127
union Register {
  uint32_t e;
  uint16_t x;
  struct {
    uint8_t l, h;
  };
};

/* What entry.S pushes, and what the processor pushed before. */
struct Frame {
  uint16_t es, ds;
  union Register di, si, bp, sp, b, d, c, a;
  uint16_t ip, cs, flags;
};

_Static_assert(offsetof(struct Frame, flags) == 40, "entry.S");

/* Disk address packet (EDD 3.0, table 1). */
struct Packet {
  uint8_t size, reserved;
  uint16_t count;
  uint16_t offset, segment;
  uint64_t lba;
  uint64_t flat; /* with size 24 or more and a pointer of all ones */
} __attribute__((packed));

/* Result of function 48h; the last part in the form of EDD-3. */
struct Parameters {
  uint16_t bytes, flags;
  uint32_t cylinders, heads, sectors_per_track;
  uint64_t sectors;
  uint16_t sector_bytes;
  uint32_t dpte;
  uint16_t key;
  uint8_t path_bytes, reserved[3];
  char bus[4], interface[8];
  uint8_t interface_path[8], device_path[16];
  uint8_t reserved2, checksum;
} __attribute__((packed));

_Static_assert(sizeof(struct Parameters) == 74, "EDD-3, table 15");

#define PARAMETERS_EDD1 26
#define PARAMETERS_EDD2 30
#define PARAMETERS_EDD3 66 /* a device path of 8 bytes */
#define PARAMETERS_EDD4 74

static uint32_t linear(uint16_t segment, uint16_t offset) {
  return (uint32_t)segment * 16 + offset;
}

/* --------------------------------------------------------------------------------------- access */

static uint8_t run(unsigned phy, enum access access, const struct Range *range, uint32_t *moved) {
  return memory()->drives[phy].is_sas ? scsi_access(phy, access, range, moved)
                                      : ata_access(phy, access, range, moved);
}

static bool is_inside(unsigned phy, const struct Range *range) {
  uint64_t sectors = memory()->drives[phy].sectors;

  return range->lba < sectors && range->count <= sectors - range->lba;
}

static uint8_t chs_range(const struct Frame *f, unsigned phy, struct Range *range) {
  const struct Drive *drive = &memory()->drives[phy];
  uint32_t sector = f->c.l & 0x3F, head = f->d.h;
  uint32_t cylinder = f->c.h | (f->c.l << 2 & 0x300);

  if (!sector || head >= drive->heads || cylinder >= drive->cylinders)
    return STATUS_INVALID;
  range->lba = (uint64_t)((cylinder * drive->heads + head) * SECTORS_PER_TRACK + sector - 1);
  range->count = f->a.l;
  range->address = linear(f->es, f->b.x);
  return STATUS_OK;
}

static uint8_t chs_access(struct Frame *f, unsigned phy, enum access access) {
  struct Range range;
  uint32_t moved;

  if (chs_range(f, phy, &range) || !range.count || range.count > CHS_SECTORS_MAX ||
      !is_inside(phy, &range)) {
    f->a.l = 0;
    return STATUS_INVALID;
  }
  uint8_t status = run(phy, access, &range, &moved);
  f->a.l = (uint8_t)moved;
  return status;
}

static uint8_t chs_seek(const struct Frame *f, unsigned phy) {
  struct Range range;

  return chs_range(f, phy, &range);
}

static bool packet_address(const struct Packet *packet, uint32_t *address) {
  *address = linear(packet->segment, packet->offset);
  if (packet->size < sizeof(*packet) || packet->offset != 0xFFFF || packet->segment != 0xFFFF)
    return true;
  *address = (uint32_t)packet->flat;
  return packet->flat >> 32 == 0 && *address <= UINT32_MAX - EXT_SECTORS_MAX * SECTOR_BYTES;
}

static uint8_t ext_access(struct Frame *f, unsigned phy, enum access access) {
  struct Packet *packet = at(linear(f->ds, f->si.x));
  struct Range range = {.lba = packet->lba, .count = packet->count};
  uint32_t moved = 0;

  if (packet->size < offsetof(struct Packet, flat) || range.count > EXT_SECTORS_MAX ||
      !packet_address(packet, &range.address) || !is_inside(phy, &range)) {
    packet->count = 0;
    return STATUS_INVALID;
  }
  if (!range.count || access == ACCESS_SEEK)
    return STATUS_OK;
  uint8_t status = run(phy, access, &range, &moved);
  packet->count = (uint16_t)moved;
  return status;
}

static uint8_t ext_write(struct Frame *f, unsigned phy) {
  if (f->a.l > 2) /* 0, 1: write, 2: write and verify */
    return STATUS_INVALID;
  uint16_t count = ((struct Packet *)at(linear(f->ds, f->si.x)))->count;
  uint8_t status = ext_access(f, phy, ACCESS_WRITE);
  if (status || f->a.l != 2 || !count)
    return status;
  return ext_access(f, phy, ACCESS_VERIFY);
}

/* ----------------------------------------------------------------------------------- parameters */

static uint8_t chs_parameters(struct Frame *f, unsigned phy) {
  const struct Drive *drive = &memory()->drives[phy];
  uint32_t last = drive->cylinders - 1u;

  f->a.l = 0;
  f->b.x = 0;
  f->c.h = (uint8_t)last;
  f->c.l = (uint8_t)((last >> 2 & 0xC0) | SECTORS_PER_TRACK);
  f->d.h = (uint8_t)(drive->heads - 1);
  f->d.l = *(uint8_t *)at(BDA_DISKS);
  return STATUS_OK;
}

/* The one function whose good end is not AH = 0. */
static void disk_type(struct Frame *f, unsigned phy) {
  uint64_t sectors = memory()->drives[phy].sectors;
  uint32_t shown = sectors >> 32 ? UINT32_MAX : (uint32_t)sectors;

  f->c.x = (uint16_t)(shown >> 16);
  f->d.x = (uint16_t)shown;
  f->a.h = 3; /* a fixed disk */
}

static void copy(void *to, const void *from, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i++)
    ((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
}

static void fill_path(struct Parameters *p, unsigned phy, bool is_long) {
  const struct Drive *drive = &memory()->drives[phy];
  const uint8_t *bytes = (const uint8_t *)&p->key;
  uint8_t path_bytes =
      is_long ? PARAMETERS_EDD4 - PARAMETERS_EDD2 : PARAMETERS_EDD3 - PARAMETERS_EDD2;
  uint8_t *checksum = is_long ? &p->checksum : &p->device_path[9];
  uint8_t sum = 0;

  p->key = 0xBEDD;
  p->path_bytes = path_bytes;
  copy(p->bus, "PCI ", 4);
  copy(p->interface, drive->is_sas ? "SAS     " : "SATA    ", 8);
  p->interface_path[0] = (uint8_t)(bdf >> 8);
  p->interface_path[1] = bdf >> 3 & 0x1F;
  p->interface_path[2] = bdf & 7;
  if (drive->is_sas)
    copy(p->device_path, drive->address, SAS_ADDRESS_BYTES); /* and LUN 0 */
  else
    p->device_path[0] = (uint8_t)phy;
  for (unsigned i = 0; i < path_bytes; i++)
    sum = (uint8_t)(sum + bytes[i]);
  *checksum = (uint8_t)-sum;
}

static uint8_t ext_parameters(struct Frame *f, unsigned phy) {
  struct Parameters *out = at(linear(f->ds, f->si.x));
  const struct Drive *drive = &memory()->drives[phy];
  uint16_t room = out->bytes;

  if (room < PARAMETERS_EDD1)
    return STATUS_INVALID;
  uint16_t bytes = room >= PARAMETERS_EDD4   ? PARAMETERS_EDD4
                   : room >= PARAMETERS_EDD3 ? PARAMETERS_EDD3
                   : room >= PARAMETERS_EDD2 ? PARAMETERS_EDD2
                                             : PARAMETERS_EDD1;
  struct Parameters p = {
      .bytes = bytes,
      .flags = 0x0003, /* DMA boundaries do not matter; the geometry is valid */
      .cylinders = drive->cylinders,
      .heads = drive->heads,
      .sectors_per_track = SECTORS_PER_TRACK,
      .sectors = drive->sectors,
      .sector_bytes = SECTOR_BYTES,
      .dpte = UINT32_MAX, /* no ports of an ATA host controller */
  };
  if (bytes > PARAMETERS_EDD2)
    fill_path(&p, phy, bytes == PARAMETERS_EDD4);
  copy(out, &p, bytes);
  return STATUS_OK;
}

static uint8_t ext_check(struct Frame *f) {
  if (f->b.x != 0x55AA)
    return STATUS_INVALID;
  f->b.x = 0xAA55;
  f->c.x = 0x0005; /* extended access, parameters */
  return STATUS_OK;
}

/* ------------------------------------------------------------------------------------- dispatch */

static uint8_t dispatch(struct Frame *f, unsigned phy) {
  switch (f->a.h) {
    case 0x00: /* reset */
    case 0x09: /* geometry is ours to choose */
    case 0x0D: /* reset */
    case 0x11: /* recalibrate */
    case 0x14: /* controller diagnostic */
      return bridge_link_up(phy) ? STATUS_OK : STATUS_NOT_READY;
    case 0x02:
      return chs_access(f, phy, ACCESS_READ);
    case 0x03:
      return chs_access(f, phy, ACCESS_WRITE);
    case 0x04:
      return chs_access(f, phy, ACCESS_VERIFY);
    case 0x08:
      return chs_parameters(f, phy);
    case 0x0C:
      return chs_seek(f, phy);
    case 0x10:
      return bridge_link_up(phy) ? STATUS_OK : STATUS_NOT_READY;
    case 0x41:
      return ext_check(f);
    case 0x42:
      return ext_access(f, phy, ACCESS_READ);
    case 0x43:
      return ext_write(f, phy);
    case 0x44:
      return ext_access(f, phy, ACCESS_VERIFY);
    case 0x47:
      return ext_access(f, phy, ACCESS_SEEK);
    case 0x48:
      return ext_parameters(f, phy);
    default:
      return STATUS_INVALID;
  }
}

static void finish(struct Frame *f, uint8_t status) {
  *(uint8_t *)at(BDA_STATUS) = status;
  f->flags = status ? f->flags | CARRY : f->flags & ~CARRY;
}

/* Called by entry.S with the address of the frame on the caller's stack. */
uint32_t int13(uint32_t frame_address) {
  struct Frame *f = at(frame_address);
  unsigned phy = 0;

  while (phy < PHYS - 1 && numbers[phy] != f->d.l)
    phy++;
  if (f->a.h == 0x01) { /* status of the last operation, which stays */
    uint8_t last = *(uint8_t *)at(BDA_STATUS);
    f->a.h = last;
    finish(f, last);
    return 0;
  }
  if (f->a.h == 0x15) {
    disk_type(f, phy);
    finish(f, STATUS_OK);
    return 0;
  }
  bool is_check = f->a.h == 0x41;
  uint8_t status = dispatch(f, phy);
  f->a.h = !status && is_check ? 0x30 : status; /* 30h: version EDD 3.0 */
  finish(f, status);
  return 0;
}
