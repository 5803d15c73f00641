/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * At power-on: who a SAS drive is, and how large. A card in mode=vca has one, over all its SSDs.
 */
#include "bios.h"
#include "text.h"

#define INQUIRY 0x12
#define PAGE_SERIAL 0x80
#define INQUIRY_BYTES 36
#define READ_CAPACITY 0x9E /* (16), by its service action */
#define CAPACITY_ACTION 0x10
#define CAPACITY_BYTES 32
#define START_STOP 0x1B
#define START 0x01
#define ANSWER_MS 3000

/* The answer goes where IDENTIFY's does; at most 255 bytes. */
static INIT uint8_t ask(unsigned phy, struct ScsiCommand command, uint8_t bytes) {
  command.address = bytes ? (uint32_t)memory()->identify + rom_base : 0;
  command.bytes = bytes;
  command.timeout_ms = ANSWER_MS;
  clear(memory()->identify, sizeof(memory()->identify));
  return scsi_run(phy, &command);
}

static INIT void append(struct Text *text, const uint8_t *bytes, unsigned count) {
  while (count && (bytes[count - 1] == ' ' || !bytes[count - 1]))
    count--;
  for (unsigned i = 0; i < count; i++)
    put_char(text, bytes[i] < ' ' || bytes[i] > '~' ? ' ' : (char)bytes[i]);
}

static INIT bool read_inquiry(unsigned phy, struct Drive *drive) {
  const uint8_t *answer = (const uint8_t *)memory()->identify;
  struct Text model = {drive->model, sizeof(drive->model), 0};
  struct Text firmware = {drive->firmware, sizeof(drive->firmware), 0};
  struct Text serial = {drive->serial, sizeof(drive->serial), 0};

  if (ask(phy, (struct ScsiCommand){.cdb = {INQUIRY, 0, 0, 0, INQUIRY_BYTES}}, INQUIRY_BYTES) ||
      answer[0]) /* no disk */
    return false;
  append(&model, answer + 8, 8);
  put_char(&model, ' ');
  append(&model, answer + 16, 16);
  append(&firmware, answer + 32, 4);
  if (!ask(phy, (struct ScsiCommand){.cdb = {INQUIRY, 1, PAGE_SERIAL, 0, INQUIRY_BYTES}},
           INQUIRY_BYTES))
    append(&serial, answer + 4, answer[3] < 20 ? answer[3] : 20);
  return true;
}

static INIT uint8_t read_capacity(unsigned phy) {
  return ask(phy,
             (struct ScsiCommand){.cdb = {READ_CAPACITY, CAPACITY_ACTION, [13] = CAPACITY_BYTES}},
             CAPACITY_BYTES);
}

static INIT bool read_size(unsigned phy, struct Drive *drive) {
  const uint8_t *answer = (const uint8_t *)memory()->identify;
  uint8_t result = read_capacity(phy);

  if (result == STATUS_NOT_READY) {
    ask(phy, (struct ScsiCommand){.cdb = {START_STOP, 0, 0, 0, START}}, 0);
    result = read_capacity(phy);
  }
  if (result || answer[8] || answer[9] || answer[10] * 256u + answer[11] != SECTOR_BYTES)
    return false;
  for (unsigned i = 0; i < 8; i++)
    drive->sectors = drive->sectors << 8 | answer[i];
  return ++drive->sectors != 0;
}

INIT enum drive_state find_sas_drive(unsigned phy) {
  struct Drive *drive = &memory()->drives[phy];

  drive->is_sas = true;
  return read_inquiry(phy, drive) && read_size(phy, drive) ? DRIVE_READY : DRIVE_BAD;
}
