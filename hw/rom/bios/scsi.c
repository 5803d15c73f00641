/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands of a SAS drive: the SSP frame that asks (SAS-2, 9.2), the sense data that tell what was
 * wrong (SPC-4, 4.5).
 */
#include "bios.h"

#define FRAME_COMMAND 0x06
#define UNIT_AT 24 /* of the COMMAND information unit: LUN, attribute, CDB */
#define CDB_AT (UNIT_AT + 12)
#define OPEN_SSP 0x91  /* initiator, SSP, open address frame */
#define OPEN_RATE 0x0A /* 6 Gb/s */
#define FLAG_TRANSPORT_RETRY 0x200
#define LENGTHS 0x0100000D /* of frame and response, in dwords */

/* RESPONSE information unit. */
#define DATA_PRESENT_AT 10
#define DATA_SENSE 2
#define SCSI_STATUS_AT 11
#define SENSE_AT 24
#define CHECK_CONDITION 2

#define READ_16 0x88
#define WRITE_16 0x8A
#define VERIFY_16 0x8F

enum sense_key {
  KEY_RECOVERED = 1,
  KEY_NOT_READY = 2,
  KEY_MEDIUM = 3,
  KEY_HARDWARE = 4,
  KEY_ILLEGAL = 5,
  KEY_ATTENTION = 6,
};
#define CODE_OUT_OF_RANGE 0x21
/* The drive has news, which come before any command; more than so many are no news. */
#define ATTENTIONS 8

static void fill_table(unsigned phy, const struct ScsiCommand *command) {
  uint8_t *table = memory()->table, *open = table + OPEN_FRAME_AT;
  const uint8_t *address = memory()->drives[phy].address;
  uint32_t hash = sas_hash(address);

  clear(table, sizeof(memory()->table));
  table[0] = FRAME_COMMAND;
  for (unsigned i = 0; i < 3; i++)
    table[1 + i] = table[5 + i] = (uint8_t)(hash >> (16 - 8 * i));
  for (unsigned i = 0; i < sizeof(command->cdb); i++)
    table[CDB_AT + i] = command->cdb[i];
  open[0] = OPEN_SSP;
  open[1] = OPEN_RATE;
  open[3] = (uint8_t)(phy + 1);
  for (unsigned i = 0; i < SAS_ADDRESS_BYTES; i++)
    open[4 + i] = address[i];
}

static const volatile uint8_t *sense(void) {
  return memory()->status + RESPONSE_AT + SENSE_AT;
}

static bool has_descriptors(void) {
  return (sense()[0] & 0x7F) >= 0x72;
}

static uint8_t explain(const struct ScsiCommand *command, bool *is_news) {
  uint8_t key = (has_descriptors() ? sense()[1] : sense()[2]) & 0x0F;
  uint8_t code = has_descriptors() ? sense()[2] : sense()[12];

  *is_news = key == KEY_ATTENTION;
  switch (key) {
    case 0:
    case KEY_RECOVERED:
      return STATUS_OK;
    case KEY_NOT_READY:
      return STATUS_NOT_READY;
    case KEY_MEDIUM:
      return command->is_write ? STATUS_WRITE_FAULT : STATUS_UNCORRECTABLE;
    case KEY_HARDWARE:
      return command->is_write ? STATUS_WRITE_FAULT : STATUS_CONTROLLER;
    case KEY_ILLEGAL:
      return code == CODE_OUT_OF_RANGE ? STATUS_NOT_FOUND : STATUS_CONTROLLER;
    default:
      return STATUS_CONTROLLER;
  }
}

static uint8_t outcome(const struct ScsiCommand *command, uint32_t entry, bool *is_news) {
  const volatile uint8_t *response = memory()->status + RESPONSE_AT;

  if (entry & RX_ERROR)
    return STATUS_CONTROLLER;
  if (!(entry & RX_RESPONSE) || !response[SCSI_STATUS_AT])
    return STATUS_OK;
  if (response[SCSI_STATUS_AT] != CHECK_CONDITION || (response[DATA_PRESENT_AT] & 3) != DATA_SENSE)
    return STATUS_CONTROLLER;
  return explain(command, is_news);
}

uint8_t scsi_run(unsigned phy, const struct ScsiCommand *command) {
  struct Delivery delivery = {
      .kind = KIND_SSP,
      .flags = FLAG_TRANSPORT_RETRY,
      .lengths = LENGTHS,
      .prds = command->bytes ? 1 : 0,
      .address = command->address,
      .bytes = command->bytes,
      .timeout_ms = command->timeout_ms,
  };
  uint8_t result = STATUS_CONTROLLER;
  bool is_news = true;

  for (unsigned tries = 0; is_news && tries < ATTENTIONS; tries++) {
    uint32_t entry;
    is_news = false;
    fill_table(phy, command);
    result = bridge_deliver(phy, &delivery, &entry);
    if (!result)
      result = outcome(command, entry, &is_news);
  }
  return result;
}

/* Where the sector is that failed, as far as the drive tells it in sense data of the fixed kind. */
static uint32_t sectors_moved(const struct Range *range) {
  const volatile uint8_t *bytes = sense();
  uint32_t lba = 0;

  if (has_descriptors() || !(bytes[0] & 0x80))
    return 0;
  for (unsigned i = 0; i < 4; i++)
    lba = lba << 8 | bytes[3 + i];
  uint32_t moved = lba - (uint32_t)range->lba;
  return moved < range->count ? moved : 0;
}

uint8_t scsi_access(unsigned phy, enum access access, const struct Range *range, uint32_t *moved) {
  static const uint8_t opcodes[] = {READ_16, WRITE_16, VERIFY_16};
  struct ScsiCommand command = {
      .cdb = {opcodes[access]},
      .address = range->address,
      .bytes = access == ACCESS_VERIFY ? 0 : range->count * SECTOR_BYTES,
      .timeout_ms = TIMEOUT_MS,
      .is_write = access == ACCESS_WRITE,
  };

  for (unsigned i = 0; i < 8; i++)
    command.cdb[2 + i] = (uint8_t)(range->lba >> (56 - 8 * i));
  command.cdb[12] = (uint8_t)(range->count >> 8);
  command.cdb[13] = (uint8_t)range->count;
  *moved = 0;
  uint8_t result = scsi_run(phy, &command);
  if (result == STATUS_UNCORRECTABLE)
    *moved = sectors_moved(range);
  if (result == STATUS_OK)
    *moved = range->count;
  return result;
}
