/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "checks.h"

#define SERIAL 0x3F8
#define DEBUG_EXIT 0xF4

struct Frame frame;
struct Plan plan;
uint16_t moved;

static unsigned good, bad;

static uint8_t in8(uint16_t port) {
  uint8_t value;

  __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}

static void out8(uint16_t port, uint8_t value) {
  __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static void put_char(char c) {
  while (!(in8(SERIAL + 5) & 0x20))
    ;
  out8(SERIAL, (uint8_t)c);
}

void print(const char *text) {
  while (*text)
    put_char(*text++);
}

void print_hex(uint32_t value) {
  for (int shift = 28; shift >= 0; shift -= 4)
    put_char("0123456789abcdef"[value >> shift & 15]);
}

void begin(const char *group) {
  print("group ");
  print(group);
  print("\r\n");
}

void check(bool is_good, const char *name, uint32_t seen) {
  if (is_good) {
    good++;
    return;
  }
  bad++;
  print("FAILED ");
  print(name);
  print(" saw ");
  print_hex(seen);
  print("\r\n");
}

void verdict(void) {
  print("VERDICT ");
  print(bad ? "BAD" : "GOOD");
  print(" checks ");
  print_hex(good + bad);
  print(" bad ");
  print_hex(bad);
  print("\r\n");
  out8(DEBUG_EXIT, bad ? 1 : 0);
}

uint32_t peek32(uint32_t address) {
  uint32_t value;

  __asm__ volatile("movw %w1, %%fs; movl %%fs:(%2), %0"
                   : "=r"(value)
                   : "r"(address >> 4), "r"(address & 15));
  return value;
}

void poke32(uint32_t address, uint32_t value) {
  __asm__ volatile("movw %w1, %%fs; movl %0, %%fs:(%2)"
                   :
                   : "r"(value), "r"(address >> 4), "r"(address & 15)
                   : "memory");
}

static uint16_t status(void) {
  return frame.flags & CARRY ? (uint16_t)FAILED(frame.eax >> 8 & 0xFF) : 0;
}

uint16_t call(uint16_t ax, uint16_t cx, uint16_t dx, uint32_t buffer) {
  frame = (struct Frame){.eax = ax, .ecx = cx, .edx = dx, .ebx = buffer & 15, .flags = 0x0202};
  frame.es = (uint16_t)(buffer >> 4);
  call_int13();
  return status();
}

uint16_t call_packet(uint8_t function, uint8_t drive, uint64_t lba, uint16_t count,
                     uint32_t buffer) {
  static struct Packet packet;

  packet = (struct Packet){.size = 16, .count = count, .lba = lba};
  packet.offset = buffer & 15;
  packet.segment = (uint16_t)(buffer >> 4);
  frame = (struct Frame){.eax = (uint32_t)function << 8, .edx = drive, .flags = 0x0202};
  frame.esi = (uint32_t)&packet;
  call_int13();
  moved = packet.count;
  return status();
}

uint32_t pattern(unsigned drive, uint32_t lba, unsigned index) {
  return lba * 0x9E3779B1u + index * 0x85EBCA6Bu + (drive + 1) * 0xC2B2AE35u;
}

bool has_pattern(uint32_t buffer, unsigned drive, uint32_t lba, unsigned sectors) {
  for (unsigned sector = 0; sector < sectors; sector++)
    for (unsigned index = 0; index < SECTOR_BYTES / 4; index++)
      if (peek32(buffer + SECTOR_BYTES * sector + 4 * index) != pattern(drive, lba + sector, index))
        return false;
  return true;
}
