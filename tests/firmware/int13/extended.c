/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "checks.h"

#define BUFFER 0x30000

static uint8_t drive_number(unsigned index) {
  return (uint8_t)(boot_drive + index);
}

static uint16_t transfer(uint8_t function, unsigned index, uint64_t lba, uint16_t count,
                         uint32_t buffer) {
  return call_packet(function, drive_number(index), lba, count, buffer);
}

void check_extended_reads(unsigned index) {
  uint32_t last = (uint32_t)plan.sectors[index] - 1;

  begin("41h 42h 44h 47h");
  frame = (struct Frame){.eax = 0x4100, .ebx = 0x55AA, .edx = drive_number(index)};
  call_int13();
  check(!(frame.flags & CARRY) && (frame.ebx & 0xFFFF) == 0xAA55, "41h", frame.ebx);
  check((frame.eax & 0xFF00) == 0x3000 && (frame.ecx & 0xFFFF) == 5, "41h version", frame.eax);
  check(call(0x4100, 0, drive_number(index), 0) == FAILED(0x01), "41h without 55AA", frame.eax);

  check(!transfer(0x42, index, last, 1, BUFFER) && moved == 1, "last sector", moved);
  check(has_pattern(BUFFER, index, last, 1), "last sector, data", last);
  check(!transfer(0x42, index, SCRATCH_LBA, 127, BUFFER) && moved == 127, "127 sectors", moved);
  check(has_pattern(BUFFER, index, SCRATCH_LBA, 127), "127 sectors, data", 0);
  check(!transfer(0x42, index, last - 126, 127, BUFFER), "127 sectors up to the end", frame.eax);
  check(has_pattern(BUFFER, index, last - 126, 127), "127 sectors up to the end, data", 0);
  check(!transfer(0x42, index, 5, 0, BUFFER), "no sectors", frame.eax);
  check(!transfer(0x44, index, last - 126, 127, BUFFER) && moved == 127, "44h", moved);
  check(!transfer(0x47, index, last, 1, BUFFER), "47h", frame.eax);
  for (uint32_t lba = 3; lba < last && lba < 0x40000000; lba = lba * 7 + 1) {
    if (index == 0 && lba < SCRATCH_LBA)
      continue;
    check(!transfer(0x42, index, lba, 1, BUFFER) && has_pattern(BUFFER, index, lba, 1), "at", lba);
  }
}

void check_extended_refusals(unsigned index) {
  static const uint8_t functions[] = {0x42, 0x43, 0x44, 0x47};
  uint64_t end = plan.sectors[index];

  begin("42h refusals");
  poke32(BUFFER, 0x12345678);
  for (unsigned i = 0; i < sizeof(functions); i++) {
    uint8_t f = functions[i];
    check(transfer(f, index, end, 1, BUFFER) == FAILED(0x01) && !moved, "first after the end", f);
    check(transfer(f, index, end - 1, 2, BUFFER) == FAILED(0x01) && !moved, "over the end", f);
    check(transfer(f, index, 0x100000000, 1, BUFFER) == FAILED(0x01), "beyond 32 bits", f);
    check(transfer(f, index, UINT64_MAX, 2, BUFFER) == FAILED(0x01), "wraps", f);
    check(transfer(f, index, 0, 128, BUFFER) == FAILED(0x01), "128 sectors", f);
  }
  check(peek32(BUFFER) == 0x12345678, "buffer untouched", peek32(BUFFER));
}

/* A sector boundary at each odd place, over 64 KiB boundaries, high up in memory. */
void check_buffers(unsigned index) {
  static const uint32_t starts[] = {0x30001, 0x30003, 0x2F000, 0x2FFFE, 0x3FE01, 0x4FF10, 0x70000};
  static struct Packet packet;

  begin("buffers");
  for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
    poke32(starts[i] - 4, 0xA5A5A5A5);
    poke32(starts[i] + 127 * SECTOR_BYTES, 0x5A5A5A5A);
    check(!transfer(0x42, index, SCRATCH_LBA + i, 127, starts[i]), "read", starts[i]);
    check(has_pattern(starts[i], index, SCRATCH_LBA + i, 127), "data", starts[i]);
    check(peek32(starts[i] - 4) == 0xA5A5A5A5, "bytes before", starts[i]);
    check(peek32(starts[i] + 127 * SECTOR_BYTES) == 0x5A5A5A5A, "bytes after", starts[i]);
  }
  packet = (struct Packet){24, 2, 0xFFFF, 0xFFFF, SCRATCH_LBA + 9, BUFFER + 2};
  frame = (struct Frame){.eax = 0x4200, .edx = drive_number(index), .esi = (uint32_t)&packet};
  call_int13();
  check(!(frame.flags & CARRY) && has_pattern(BUFFER + 2, index, SCRATCH_LBA + 9, 2), "flat",
        frame.eax);
  packet.size = 8;
  frame = (struct Frame){.eax = 0x4200, .edx = drive_number(index), .esi = (uint32_t)&packet};
  call_int13();
  check((frame.flags & CARRY) && (frame.eax & 0xFF00) == 0x100, "packet too short", frame.eax);
}

static void fill(uint32_t buffer, unsigned sectors, uint32_t seed) {
  for (unsigned i = 0; i < sectors * SECTOR_BYTES / 4; i++)
    poke32(buffer + 4 * i, seed + i);
}

static bool is_filled(uint32_t buffer, unsigned sectors, uint32_t seed) {
  for (unsigned i = 0; i < sectors * SECTOR_BYTES / 4; i++)
    if (peek32(buffer + 4 * i) != seed + i)
      return false;
  return true;
}

void check_writes(unsigned index) {
  uint32_t at = SCRATCH_LBA + 300, seed = 0x01000000 * (index + 1);

  begin("43h 03h");
  fill(BUFFER + 6, 127, seed);
  check(!transfer(0x43, index, at, 127, BUFFER + 6) && moved == 127, "write", moved);
  check(!transfer(0x42, index, at, 127, 0x50000), "read back", frame.eax);
  check(is_filled(0x50000, 127, seed), "read back, data", 0);
  check(!transfer(0x42, index, at - 1, 1, BUFFER) && has_pattern(BUFFER, index, at - 1, 1),
        "sector before", at);
  check(!transfer(0x42, index, at + 127, 1, BUFFER) && has_pattern(BUFFER, index, at + 127, 1),
        "sector after", at);

  static struct Packet packet;
  fill(BUFFER, 1, ~seed);
  packet = (struct Packet){16, 1, 0, BUFFER >> 4, at + 200, 0};
  frame = (struct Frame){.eax = 0x4302, .edx = drive_number(index), .esi = (uint32_t)&packet};
  call_int13();
  check(!(frame.flags & CARRY), "write and verify", frame.eax);
  check(!transfer(0x42, index, at + 200, 1, 0x50000) && is_filled(0x50000, 1, ~seed),
        "write and verify, data", 0);
  frame = (struct Frame){.eax = 0x4303, .edx = drive_number(index), .esi = (uint32_t)&packet};
  call_int13();
  check((frame.flags & CARRY) && (frame.eax & 0xFF00) == 0x100, "43h AL=3", frame.eax);

  fill(BUFFER, 2, seed ^ 0x55);
  check(!call(0x0302, 0x0105, drive_number(index), BUFFER) && (frame.eax & 0xFF) == 2, "03h",
        frame.eax);
  check(!call(0x0202, 0x0105, drive_number(index), 0x50000) && is_filled(0x50000, 2, seed ^ 0x55),
        "03h, data", frame.eax);
}

static uint16_t parameters(unsigned index, uint8_t *buffer, uint16_t size) {
  for (unsigned i = 0; i < 80; i++)
    buffer[i] = 0xEE;
  buffer[0] = (uint8_t)size;
  buffer[1] = (uint8_t)(size >> 8);
  frame = (struct Frame){.eax = 0x4800, .edx = drive_number(index), .esi = (uint32_t)buffer};
  call_int13();
  return frame.flags & CARRY ? (uint16_t)FAILED(frame.eax >> 8 & 0xFF) : 0;
}

static bool is_text(const uint8_t *at, const char *text) {
  while (*text)
    if (*at++ != (uint8_t)*text++)
      return false;
  return true;
}

void check_drive_parameters(unsigned index) {
  static const uint16_t rooms[][2] = {{26, 26}, {29, 26}, {30, 30},  {65, 30},
                                      {66, 66}, {74, 74}, {200, 74}, {0xFFFF, 74}};
  static uint8_t buffer[80];

  begin("48h");
  for (unsigned i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
    uint8_t used = (uint8_t)rooms[i][1], sum = 0;
    check(!parameters(index, buffer, rooms[i][0]) && buffer[0] == used, "room", rooms[i][0]);
    check(buffer[used] == 0xEE, "bytes after", used);
    for (unsigned at = 30; used > 30 && at < used; at++)
      sum = (uint8_t)(sum + buffer[at]);
    check(!sum, "checksum", used);
  }
  uint64_t sectors = 0;
  for (unsigned i = 0; i < 8; i++)
    sectors |= (uint64_t)buffer[16 + i] << (8 * i);
  check(sectors == plan.sectors[index], "sectors", (uint32_t)sectors);
  check(buffer[24] == 0 && buffer[25] == 2, "sector size", buffer[25]);
  check(buffer[30] == 0xDD && buffer[31] == 0xBE && buffer[32] == 44, "path", buffer[32]);
  bool is_sas = plan.phys[index] & PHY_SAS;
  check(is_text(buffer + 36, is_sas ? "PCI SAS     " : "PCI SATA    "), "interface", buffer[40]);
  if (is_sas) /* an address of the IEEE's kind, on LUN 0 */
    check(buffer[56] >> 4 == 5 && buffer[64] == 0, "device path", buffer[56]);
  else
    check(buffer[56] == plan.phys[index], "device path", buffer[56]);
  check(parameters(index, buffer, 25) == FAILED(0x01), "no room", frame.eax);
  check(parameters(index, buffer, 0) == FAILED(0x01), "no room at all", frame.eax);
}
