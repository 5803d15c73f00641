/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What INT 13h leaves alone, and what it says when a drive does not do its part. */
#include "checks.h"

#define BUFFER 0x30000
#define BDA_TICKS 0x46C
#define BDA_DISKS 0x475
#define PORT_A20 0x92

void check_registers(void) {
  begin("registers");
  frame = (struct Frame){0xABCD0201,  0x12340000, 0x56780002, 0x9ABC0000u | boot_drive,
                         0xDEF01111,  0x13572222, 0x24683333, 0x4444,
                         BUFFER >> 4, 0x0202};
  call_int13();
  check((frame.eax & 0xFFFF00FF) == 0xABCD0001, "eax", frame.eax);
  check(frame.ebx == 0x12340000 && frame.ecx == 0x56780002, "ebx, ecx", frame.ebx);
  check(frame.edx == (0x9ABC0000u | boot_drive), "edx", frame.edx);
  check(frame.esi == 0xDEF01111 && frame.edi == 0x13572222, "esi, edi", frame.esi);
  check(frame.ebp == 0x24683333, "ebp", frame.ebp);
  check(frame.ds == 0x4444 && frame.es == BUFFER >> 4, "ds, es", frame.ds);
  check((frame.flags & 0x0601) == 0x0200, "flags", frame.flags);
  frame = (struct Frame){.eax = 0x0201, .ecx = 2, .edx = boot_drive, .es = BUFFER >> 4};
  frame.flags = 0x0402; /* interrupts off, direction down */
  call_int13();
  check((frame.flags & 0x0601) == 0x0400, "flags, interrupts off", frame.flags);
}

static uint8_t a20(void) {
  uint8_t value;

  __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(PORT_A20));
  return value & 2;
}

static void set_a20(uint8_t value) {
  __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(PORT_A20));
}

void check_machine_state(void) {
  struct {
    uint16_t limit;
    uint32_t base;
  } __attribute__((packed)) strange = {0x1237, 0x00054320}, seen;
  uint32_t cr0;

  begin("machine");
  __asm__ volatile("lgdtl %0" : : "m"(strange));
  set_a20(0);
  uint16_t status = call_packet(0x42, boot_drive, SCRATCH_LBA, 64, BUFFER);
  check(!status && has_pattern(BUFFER, 0, SCRATCH_LBA, 64), "read with A20 off", status);
  check(!a20(), "A20 off", a20());
  set_a20(2);
  status = call_packet(0x42, boot_drive, SCRATCH_LBA + 1, 64, BUFFER);
  check(!status && has_pattern(BUFFER, 0, SCRATCH_LBA + 1, 64), "read with A20 on", status);
  check(a20(), "A20 on", a20());
  __asm__ volatile("sgdtl %0" : "=m"(seen));
  check(seen.limit == strange.limit && seen.base == strange.base, "GDT", seen.base);
  __asm__ volatile("movl %%cr0, %0" : "=r"(cr0));
  check(!(cr0 & 1), "real mode", cr0);
  for (uint32_t ticks = peek32(BDA_TICKS), n = 0; peek32(BDA_TICKS) - ticks < 3; n++)
    status = call_packet(0x42, boot_drive, SCRATCH_LBA + n % 64, 127, BUFFER);
  check(!status, "reading while the clock ticks", status);
}

/* Drives that are not the card's belong to the BIOS. */
void check_other_drives(void) {
  uint8_t disks = (uint8_t)peek32(BDA_DISKS);

  begin("other drives");
  check(disks == boot_drive - 0x80 + plan.drives, "number of disks", disks);
  check(call(0x0201, 1, 0x80 + disks, BUFFER) == FAILED(0x01), "one too many", frame.eax);
  check(call(0x1500, 0, 0xFF, BUFFER) & 0x100 || !(frame.eax & 0xFF00), "FFh", frame.eax);
  check(call(0x1500, 0, 0x7F, BUFFER) & 0x100 || !(frame.eax & 0xFF00), "7Fh", frame.eax);
  for (unsigned i = 0x80; i < boot_drive; i++)
    check(!call(0x0201, 1, (uint16_t)i, BUFFER), "a disk in front", frame.eax);
}

void check_bad_sector(void) {
  if (!plan.bad_lba)
    return;
  begin("bad sector");
  uint16_t status = call_packet(0x42, boot_drive, plan.bad_lba, 1, BUFFER);
  check(status == FAILED(0x10) && moved == 0, "alone", status);
  status = call_packet(0x42, boot_drive, plan.bad_lba - 5, 10, BUFFER);
  check(status == FAILED(0x10) && moved == 5, "among others", (uint32_t)moved << 16 | status);
  status = call_packet(0x44, boot_drive, plan.bad_lba, 1, BUFFER);
  check(status == FAILED(0x10), "verify", status);
  check(call(0x0100, 0, boot_drive, 0) == FAILED(0x10), "01h", frame.eax);
  status = call_packet(0x42, boot_drive, plan.bad_lba + 1, 10, BUFFER);
  check(!status && has_pattern(BUFFER, 0, (uint32_t)plan.bad_lba + 1, 10), "next ones", status);
}

void check_silent_drive(void) {
  if (!plan.silent_lba)
    return;
  begin("silent drive");
  uint32_t ticks = peek32(BDA_TICKS);
  uint16_t status = call_packet(0x42, boot_drive, plan.silent_lba, 1, BUFFER);
  check(status == FAILED(0x80) && moved == 0, "timeout", status);
  check(peek32(BDA_TICKS) - ticks >= 90, "interrupts go on meanwhile", peek32(BDA_TICKS) - ticks);
  status = call_packet(0x42, boot_drive, plan.silent_lba, 1, BUFFER);
  check(!status && has_pattern(BUFFER, 0, (uint32_t)plan.silent_lba, 1), "again", status);
}
