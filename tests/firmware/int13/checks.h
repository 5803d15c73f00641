/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The INT 13h test: what its files share. 16-bit code; a line goes to the first serial port for
 * each group of checks and for each check that fails, then the verdict.
 */
#ifndef REVODRIVE_TESTS_FIRMWARE_CHECKS_H
#define REVODRIVE_TESTS_FIRMWARE_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

#define SECTOR_BYTES 512
#define CARRY 0x0001

/* What the host wrote to sector PLAN_LBA of the boot drive (tests/firmware/test_int13.py). */
#define PLAN_LBA 100
#define PLAN_MAGIC 0x33314E49
#define PHY_SAS 0x80
struct Plan {
  uint32_t magic;
  uint8_t drives, phys[7]; /* BIOS drives of the card, and the phy of each; PHY_SAS: a volume */
  uint64_t sectors[8];
  uint64_t bad_lba;    /* of the boot drive: cannot be read; 0: none */
  uint64_t silent_lba; /* of the boot drive: a read is never answered, once; 0: none */
};

/* Sectors that the host filled by pattern() on each drive, and those the checks may write. */
#define SCRATCH_LBA 2048
#define SCRATCH_SECTORS 1024

struct Frame {
  uint32_t eax, ebx, ecx, edx, esi, edi, ebp;
  uint16_t ds, es, flags;
};

struct Packet {
  uint16_t size, count, offset, segment;
  uint64_t lba, flat;
};

extern struct Frame frame;
extern struct Plan plan;
extern uint8_t boot_drive;
void call_int13(void);

/* io.c */
void print(const char *text);
void print_hex(uint32_t value);
void begin(const char *group);
/* Counts; `name` and `seen` are printed if it is false. */
void check(bool is_good, const char *name, uint32_t seen);
void verdict(void);
uint32_t peek32(uint32_t address);
void poke32(uint32_t address, uint32_t value);

/* Calls with AX, CX, DX and ES:BX; the status: 0, or AH when carry is set (and bit 8). */
uint16_t call(uint16_t ax, uint16_t cx, uint16_t dx, uint32_t buffer);
/* An extended function with a packet. `moved` is the packet's count afterwards. */
uint16_t call_packet(uint8_t function, uint8_t drive, uint64_t lba, uint16_t count,
                     uint32_t buffer);
extern uint16_t moved;
#define FAILED(status) (0x100 | (status))

/* The word `index` of a sector that the host filled. */
uint32_t pattern(unsigned drive, uint32_t lba, unsigned index);
bool has_pattern(uint32_t buffer, unsigned drive, uint32_t lba, unsigned sectors);

/* chs.c, extended.c, machine.c: groups of checks */
void check_parameters(unsigned index);
void check_chs_reads(unsigned index);
void check_chs_refusals(unsigned index);
void check_small_functions(unsigned index);
void check_extended_reads(unsigned index);
void check_extended_refusals(unsigned index);
void check_buffers(unsigned index);
void check_writes(unsigned index);
void check_drive_parameters(unsigned index);
void check_registers(void);
void check_machine_state(void);
void check_other_drives(void);
void check_bad_sector(void);
void check_silent_drive(void);

#endif
