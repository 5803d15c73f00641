/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "checks.h"

#define BUFFER 0x30000
#define BDA_DISKS 0x475

static uint8_t drive_number(unsigned index) {
  return (uint8_t)(boot_drive + index);
}

struct Geometry {
  unsigned cylinders, heads, sectors;
};

static struct Geometry geometry(unsigned index) {
  call(0x0800, 0, drive_number(index), 0);
  return (struct Geometry){
      .cylinders = 1 + (frame.ecx >> 8 & 0xFF) + (frame.ecx << 2 & 0x300),
      .heads = 1 + (frame.edx >> 8 & 0xFF),
      .sectors = frame.ecx & 0x3F,
  };
}

/* CX of an address; the head goes to DH. */
static uint16_t cx_of(unsigned cylinder, unsigned sector) {
  return (uint16_t)((cylinder & 0xFF) << 8 | (cylinder >> 2 & 0xC0) | sector);
}

static uint16_t dx_of(unsigned index, unsigned head) {
  return (uint16_t)(head << 8 | drive_number(index));
}

void check_parameters(unsigned index) {
  begin("08h 15h");
  struct Geometry g = geometry(index);
  uint32_t capacity = (uint32_t)g.cylinders * g.heads * g.sectors;
  uint32_t sectors = (uint32_t)plan.sectors[index];

  check(!(frame.flags & CARRY), "08h", frame.eax);
  check((frame.edx & 0xFF) == (peek32(BDA_DISKS) & 0xFF), "08h number of disks", frame.edx);
  check(g.sectors == 63 && g.heads >= 16 && g.heads <= 255, "08h geometry", frame.edx);
  check(capacity <= sectors, "08h geometry beyond the disk", capacity);
  check(g.cylinders == 1024 || sectors - capacity < g.heads * g.sectors, "08h disk beyond geometry",
        capacity);
  call(0x1500, 0xFFFF, drive_number(index), 0);
  check(!(frame.flags & CARRY) && (frame.eax >> 8 & 0xFF) == 3, "15h type", frame.eax);
  check((frame.ecx << 16 | (frame.edx & 0xFFFF)) == sectors, "15h sectors", frame.ecx);
}

void check_chs_reads(unsigned index) {
  begin("02h 04h");
  struct Geometry g = geometry(index);
  uint16_t status = call(0x0201, cx_of(0, 2), dx_of(index, 0), BUFFER);

  check(index == 0 || (!status && has_pattern(BUFFER, index, 1, 1)), "02h sector 2", status);
  status = call(0x0201, cx_of(g.cylinders - 1, g.sectors), dx_of(index, g.heads - 1), BUFFER);
  uint32_t last = (uint32_t)g.cylinders * g.heads * g.sectors - 1;
  check(!status && (frame.eax & 0xFF) == 1, "02h last sector of the geometry", status);
  check(has_pattern(BUFFER, index, last, 1), "02h its data", last);

  uint32_t lba = SCRATCH_LBA;
  unsigned track = lba / g.sectors;
  uint16_t cx = cx_of(track / g.heads, lba % g.sectors + 1);
  status = call(0x0280, cx, dx_of(index, track % g.heads), BUFFER);
  check(!status && (frame.eax & 0xFF) == 128, "02h 128 sectors over tracks", status);
  check(has_pattern(BUFFER, index, lba, 128), "02h 128 sectors, data", 0);
  status = call(0x0480, cx, dx_of(index, track % g.heads), BUFFER);
  check(!status && (frame.eax & 0xFF) == 128, "04h", status);
}

void check_chs_refusals(unsigned index) {
  begin("02h refusals");
  struct Geometry g = geometry(index);

  poke32(BUFFER, 0x12345678);
  check(call(0x0201, cx_of(0, 0), dx_of(index, 0), BUFFER) == FAILED(0x01), "sector 0", frame.eax);
  check((frame.eax & 0xFF) == 0, "nothing moved", frame.eax);
  check(call(0x0200, cx_of(0, 1), dx_of(index, 0), BUFFER) == FAILED(0x01), "no sectors",
        frame.eax);
  check(call(0x0281, cx_of(0, 1), dx_of(index, 0), BUFFER) == FAILED(0x01), "129 sectors",
        frame.eax);
  if (g.heads < 256)
    check(call(0x0201, cx_of(0, 1), dx_of(index, g.heads), BUFFER) == FAILED(0x01), "head",
          frame.eax);
  if (g.cylinders < 1024)
    check(call(0x0201, cx_of(g.cylinders, 1), dx_of(index, 0), BUFFER) == FAILED(0x01), "cylinder",
          frame.eax);
  check(peek32(BUFFER) == 0x12345678, "buffer untouched", peek32(BUFFER));
  check(call(0x0100, 0, drive_number(index), 0) == FAILED(0x01), "01h after an error", frame.eax);
  call(0x0000, 0, drive_number(index), 0);
  check(call(0x0100, 0, drive_number(index), 0) == 0, "01h after a reset", frame.eax);
}

void check_small_functions(unsigned index) {
  static const uint8_t easy[] = {0x00, 0x09, 0x0D, 0x10, 0x11, 0x14};
  static const uint8_t unknown[] = {0x05, 0x06, 0x16, 0x40, 0x45, 0x46, 0x49, 0x4E, 0x50, 0xFF};

  begin("small functions");
  for (unsigned i = 0; i < sizeof(easy); i++)
    check(call((uint16_t)(easy[i] << 8), 0, drive_number(index), 0) == 0 && !(frame.eax & 0xFF00),
          "easy", easy[i] << 8 | (frame.eax >> 8 & 0xFF));
  for (unsigned i = 0; i < sizeof(unknown); i++)
    check(call((uint16_t)(unknown[i] << 8), 0, drive_number(index), 0) == FAILED(0x01), "unknown",
          unknown[i]);
  check(call(0x0C00, cx_of(1, 1), dx_of(index, 1), 0) == 0, "0Ch seek", frame.eax);
  check(call(0x0C00, cx_of(1, 0), dx_of(index, 1), 0) == FAILED(0x01), "0Ch sector 0", frame.eax);
}
