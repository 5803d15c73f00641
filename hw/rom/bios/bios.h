/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The 32-bit part of the BIOS image: what its files share.
 *
 *   startup.c   at power-on: finds the drives, writes the sign-on and the PnP headers
 *   text.c      puts words and numbers into a buffer
 *   connect.c   makes a phy's drive a disk of the BIOS (boot connection vector)
 *   disk.c      INT 13h
 *   ata.c       commands of a SATA drive
 *   scsi.c      commands of a SAS drive, which is what a card with mode=vca has
 *   volume.c    at power-on: asks a SAS drive who it is
 *   bridge.c    the 88SE94xx: links, one command at a time, polled
 *
 * There is no heap, and no variable but those of entry.S (written at power-on only) and struct
 * Memory. Interrupts are off; yield() lets them in.
 */
#ifndef REVODRIVE_ROM_BIOS_H
#define REVODRIVE_ROM_BIOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image.h"
#include "../sas_hash.h"

#define SECTOR_BYTES 512
#define PHYS_PER_CORE 4

/* What a phy carries. */
enum drive_state {
  DRIVE_NONE,   /* no link */
  DRIVE_BAD,    /* a link, but no answer to IDENTIFY, or nonsense */
  DRIVE_LOCKED, /* ATA security */
  DRIVE_READY,
};

struct Drive {
  uint8_t state; /* enum drive_state */
  bool is_sas;
  uint8_t address[SAS_ADDRESS_BYTES]; /* of a SAS drive */
  uint8_t lba48;                      /* of a SATA drive */
  uint16_t cylinders, heads;          /* logical geometry, with SECTORS_PER_TRACK */
  uint64_t sectors;
  char model[41], serial[21], firmware[9];
};

#define SECTORS_PER_TRACK 63

/* Memory of the chip and of the running system, from PMM. Layouts: docs/registers.md. */
#define RING_ENTRIES 16
#define OPEN_FRAME_AT 0x40
#define RESPONSE_AT 8 /* in the status buffer, behind the error information */
#define STATUS_BYTES 128
struct Memory {
  uint32_t header[16]; /* command list of one slot */
  uint32_t tx[RING_ENTRIES];
  uint32_t rx_mirror, rx[RING_ENTRIES];
  uint32_t unused[3];
  uint8_t table[128]; /* H2D FIS or SSP frame first; the open address frame at OPEN_FRAME_AT */
  uint8_t status[STATUS_BYTES];
  uint32_t prd[4];
  uint16_t identify[256];
  uint8_t fis[0x900]; /* of register set 0 only */
  uint32_t tsc_per_ms;
  uint32_t registers; /* physical address of BAR 2 */
  struct Drive drives[PHYS];
};

/* entry.S */
extern uint8_t rom_start[]; /* the image; in its header: */
#define UNITS_AT 2
#define CHECKSUM_AT 6
extern uint32_t rom_base, memory_base, memory_ready, old_int13;
extern uint16_t bdf;
extern uint8_t numbers[PHYS];
extern char products[PHYS][PRODUCT_BYTES];
extern uint8_t pnp_headers[];
extern uint8_t int13_entry[];
void yield(void);

/* A pointer to a physical address. */
static inline void *at(uint32_t physical) {
  return (void *)(physical - rom_base);
}

static inline struct Memory *memory(void) {
  return at(memory_base);
}

/* connect.c: the checksum after a change of the image. */
void rom_seal(void);

/* bridge.c */
void bridge_start(void); /* resets the chip and starts the links */
bool bridge_link_up(unsigned phy);
unsigned bridge_link_rate(unsigned phy); /* 0, 1, 2: 1.5, 3, 6 Gb/s */
bool bridge_has_signature(unsigned phy);
void delay_start(void); /* measures the clock; everything below needs it */
uint64_t deadline_after(uint32_t ms);
bool is_past(uint64_t deadline);

/* What the chip gets told about a command whose table is filled. */
struct Delivery {
  uint32_t kind;           /* bits of the ring entry */
  uint32_t flags, lengths; /* of the command header */
  uint32_t prds;           /* as the header states them */
  uint32_t address, bytes; /* one physically contiguous buffer */
  uint32_t timeout_ms;
};

#define KIND_SSP 1
#define KIND_STP 3

#define RX_RESPONSE 0x40000
#define RX_ERROR 0x20000

/* STATUS_OK: the command has ended, with this entry of the completion ring. */
uint8_t bridge_deliver(unsigned phy, const struct Delivery *delivery, uint32_t *entry);

/* Whether the drive on a link that is up is a SAS one, and its address. */
bool bridge_is_sas(unsigned phy, uint8_t *address);

void clear(volatile void *memory, uint32_t bytes);

/* What INT 13h asks a drive for. */
enum access { ACCESS_READ, ACCESS_WRITE, ACCESS_VERIFY, ACCESS_SEEK };

struct Range {
  uint64_t lba;
  uint32_t count, address;
};

#define TIMEOUT_MS 10000

/* ata.c, scsi.c: STATUS_…; `moved`: sectors that were moved, or came before the one that failed. */
uint8_t ata_access(unsigned phy, enum access access, const struct Range *range, uint32_t *moved);
uint8_t scsi_access(unsigned phy, enum access access, const struct Range *range, uint32_t *moved);

/* IDENTIFY DEVICE, into struct Memory. */
uint8_t ata_identify(unsigned phy, uint32_t timeout_ms);

/* A SCSI command to LUN 0. */
struct ScsiCommand {
  uint8_t cdb[16];
  uint32_t address, bytes;
  uint32_t timeout_ms;
  bool is_write;
};

uint8_t scsi_run(unsigned phy, const struct ScsiCommand *command);

/* volume.c */
enum drive_state find_sas_drive(unsigned phy);

#endif
