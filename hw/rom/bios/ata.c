/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands of a SATA drive: the FIS that asks, the FIS that answers (Serial ATA 3.0, 10.3).
 */
#include "bios.h"

#define D2H_AT 0x840 /* in the FIS area */
#define FIS_BYTES 20
#define FIS_H2D 0x27
#define FIS_COMMAND 0x80
#define LENGTHS 0x01000005 /* of a FIS and of a response, in dwords */
/* The driver of the chip states so many PRDs for each transfer to the host, whatever there are. */
#define PRDS_TO_HOST 255

#define ATA_IDENTIFY 0xEC
#define ATA_READ_DMA 0xC8
#define ATA_READ_DMA_EXT 0x25
#define ATA_WRITE_DMA 0xCA
#define ATA_WRITE_DMA_EXT 0x35
#define ATA_VERIFY 0x40
#define ATA_VERIFY_EXT 0x42
#define DEVICE_LBA 0x40

#define ATA_ERR 0x01
#define ATA_DF 0x20
#define ATA_BUSY 0x88 /* BSY, DRQ */
#define ERROR_UNC 0x40
#define ERROR_IDNF 0x10
#define ERROR_ICRC 0x80

struct Command {
  uint8_t opcode, device;
  uint16_t count;
  uint64_t lba;
  uint32_t address, bytes;
  bool is_write;
  uint32_t timeout_ms;
};

static void fill_fis(uint8_t *fis, const struct Command *command) {
  fis[0] = FIS_H2D;
  fis[1] = FIS_COMMAND;
  fis[2] = command->opcode;
  fis[7] = command->device;
  for (unsigned i = 0; i < 3; i++) {
    fis[4 + i] = (uint8_t)(command->lba >> (8 * i));
    fis[8 + i] = (uint8_t)(command->lba >> (24 + 8 * i));
  }
  fis[12] = (uint8_t)command->count;
  fis[13] = (uint8_t)(command->count >> 8);
}

static uint32_t sectors_moved(const struct Command *command, const volatile uint8_t *d2h) {
  uint32_t low = d2h[4] | (uint32_t)d2h[5] << 8 | (uint32_t)d2h[6] << 16 | (uint32_t)d2h[8] << 24;
  uint32_t moved = low - (uint32_t)command->lba;

  return moved < command->count ? moved : 0;
}

static uint8_t outcome(const struct Command *command, const volatile uint8_t *d2h, bool is_error) {
  uint8_t status = d2h[2], error = d2h[3];

  if (status & ATA_DF)
    return command->is_write ? STATUS_WRITE_FAULT : STATUS_CONTROLLER;
  if (!(status & (ATA_ERR | ATA_BUSY)))
    return is_error ? STATUS_CONTROLLER : STATUS_OK;
  if (error & (ERROR_UNC | ERROR_ICRC))
    return STATUS_UNCORRECTABLE;
  return error & ERROR_IDNF ? STATUS_NOT_FOUND : STATUS_CONTROLLER;
}

static uint8_t run(unsigned phy, const struct Command *command, uint32_t *moved) {
  struct Memory *m = memory();
  volatile uint8_t *d2h = m->fis + D2H_AT;
  uint32_t entry;
  struct Delivery delivery = {
      .kind = KIND_STP,
      .lengths = LENGTHS,
      .prds = !command->bytes     ? 0
              : command->is_write ? 1
                                  : PRDS_TO_HOST,
      .address = command->address,
      .bytes = command->bytes,
      .timeout_ms = command->timeout_ms,
  };

  *moved = 0;
  clear(m->table, sizeof(m->table));
  clear(d2h, FIS_BYTES);
  fill_fis(m->table, command);
  uint8_t result = bridge_deliver(phy, &delivery, &entry);
  if (result)
    return result;
  result = outcome(command, d2h, entry & RX_ERROR);
  if (result == STATUS_UNCORRECTABLE)
    *moved = sectors_moved(command, d2h);
  if (result == STATUS_OK)
    *moved = command->count;
  return result;
}

uint8_t ata_identify(unsigned phy, uint32_t timeout_ms) {
  uint32_t moved;
  struct Command command = {
      .opcode = ATA_IDENTIFY,
      .address = (uint32_t)memory()->identify + rom_base,
      .bytes = SECTOR_BYTES,
      .timeout_ms = timeout_ms,
  };

  return run(phy, &command, &moved);
}

uint8_t ata_access(unsigned phy, enum access access, const struct Range *range, uint32_t *moved) {
  static const uint8_t plain[] = {ATA_READ_DMA, ATA_WRITE_DMA, ATA_VERIFY};
  static const uint8_t extended[] = {ATA_READ_DMA_EXT, ATA_WRITE_DMA_EXT, ATA_VERIFY_EXT};
  const struct Drive *drive = &memory()->drives[phy];
  struct Command command = {
      .opcode = drive->lba48 ? extended[access] : plain[access],
      .device = DEVICE_LBA,
      .count = (uint16_t)range->count,
      .lba = range->lba,
      .address = range->address,
      .bytes = access == ACCESS_VERIFY ? 0 : range->count * SECTOR_BYTES,
      .is_write = access == ACCESS_WRITE,
      .timeout_ms = TIMEOUT_MS,
  };

  if (!drive->lba48) {
    command.device |= (uint8_t)(range->lba >> 24 & 0x0F);
    command.lba &= 0xFFFFFF;
  }
  return run(phy, &command, moved);
}
