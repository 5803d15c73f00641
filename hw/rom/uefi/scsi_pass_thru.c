// SPDX-License-Identifier: GPL-2.0-or-later
//
// Ext SCSI Pass Thru over the bridge, for the volume of a card with mode=vca. The target is the
// phy. Only LUN 0 is shown: it is the disk, the others stand for single SSDs. Commands run one at a
// time, by polling; with an event the command has ended when the call returns, and the event is
// signaled all the same.
#include "boot.h"
#include "card.h"

static Card *card_of(ScsiPassThru *self) {
  return (Card *)((UINT8 *)self - __builtin_offsetof(Card, scsi));
}

static BOOLEAN is_filled(const UINT8 *target, UINTN from, UINT8 value) {
  for (UINTN i = from; i < SCSI_TARGET_BYTES; i++) {
    if (target[i] != value)
      return FALSE;
  }
  return TRUE;
}

static BOOLEAN is_disk(ScsiPassThru *self, const UINT8 *target, UINT64 lun) {
  return target && is_filled(target, 1, 0) && hba_has_volume(&card_of(self)->hba, target[0]) &&
         lun == 0;
}

// Lengths, buffers and CDB of a packet, which is left as it is when they are no good.
static EFI_STATUS plan(ScsiPacket *packet, HbaScsiCommand *command, VOID **buffer) {
  UINT32 *length = packet->direction == SCSI_READ ? &packet->in_length : &packet->out_length;

  *buffer = packet->direction == SCSI_READ ? packet->in_buffer : packet->out_buffer;
  if (packet->direction > SCSI_WRITE || !packet->cdb || packet->cdb_length == 0 ||
      packet->cdb_length > HBA_CDB_BYTES || (*length > 0 && !*buffer))
    return EFI_INVALID_PARAMETER;
  if (*length > HBA_MAX_BYTES) {
    *length = HBA_MAX_BYTES;
    return EFI_BAD_BUFFER_SIZE;
  }
  set_mem(command, sizeof(*command), 0);
  copy_mem(command->cdb, packet->cdb, packet->cdb_length);
  command->transfer.bytes = *length;
  command->transfer.to_host = packet->direction == SCSI_READ;
  command->transfer.timeout_us = hba_limit_us(packet->timeout, *length);
  return EFI_SUCCESS;
}

static VOID report(ScsiPacket *packet, const HbaScsiCommand *command, EFI_STATUS status) {
  packet->target_status = command->status;
  packet->host_status = !EFI_ERROR(status)      ? SCSI_HOST_OK
                        : status == EFI_TIMEOUT ? SCSI_HOST_TIMEOUT_COMMAND
                                                : SCSI_HOST_OTHER;
  if (packet->sense_length > command->sense_bytes)
    packet->sense_length = command->sense_bytes;
  if (packet->sense && packet->sense_length > 0)
    copy_mem(packet->sense, command->sense, packet->sense_length);
}

static EFI_STATUS run_packet(Hba *hba, UINT8 port, ScsiPacket *packet) {
  HbaScsiCommand command;
  VOID *buffer, *mapping;
  EFI_STATUS status = plan(packet, &command, &buffer);

  if (EFI_ERROR(status))
    return status;
  status = hba_map(hba, buffer, &command.transfer, &mapping);
  if (EFI_ERROR(status))
    return status;
  status = hba_run_scsi(hba, port, &command);
  EFI_STATUS unmapped = hba_unmap(hba, mapping);

  report(packet, &command, status);
  return EFI_ERROR(status) ? status : unmapped;
}

static EFI_STATUS EFIAPI pass_thru(ScsiPassThru *self, UINT8 *target, UINT64 lun,
                                   ScsiPacket *packet, EFI_EVENT event) {
  if (!is_disk(self, target, lun) || !packet)
    return EFI_INVALID_PARAMETER;
  EFI_TPL old = boot_services->RaiseTPL(TPL_NOTIFY);
  EFI_STATUS status = run_packet(&card_of(self)->hba, target[0], packet);

  boot_services->RestoreTPL(old);
  if (event && !EFI_ERROR(status))
    boot_services->SignalEvent(event);
  return status;
}

// All ones asks for the first.
static EFI_STATUS EFIAPI get_next_target(ScsiPassThru *self, UINT8 **target) {
  Hba *hba = &card_of(self)->hba;
  UINTN next = 0;

  if (!target || !*target)
    return EFI_INVALID_PARAMETER;
  if (!is_filled(*target, 0, 0xFF)) {
    if (!is_disk(self, *target, 0))
      return EFI_INVALID_PARAMETER;
    next = (*target)[0] + 1u;
  }
  while (next < HBA_PORTS && !hba_has_volume(hba, next))
    next++;
  if (next == HBA_PORTS)
    return EFI_NOT_FOUND;
  set_mem(*target, SCSI_TARGET_BYTES, 0);
  (*target)[0] = (UINT8)next;
  return EFI_SUCCESS;
}

static EFI_STATUS EFIAPI get_next_target_lun(ScsiPassThru *self, UINT8 **target, UINT64 *lun) {
  if (!lun)
    return EFI_INVALID_PARAMETER;
  EFI_STATUS status = get_next_target(self, target);

  if (!EFI_ERROR(status))
    *lun = 0;
  return status;
}

static EFI_STATUS EFIAPI build_device_path(ScsiPassThru *self, UINT8 *target, UINT64 lun,
                                           EFI_DEVICE_PATH_PROTOCOL **path) {
  SCSI_DEVICE_PATH *node;

  if (!path)
    return EFI_INVALID_PARAMETER;
  if (!is_disk(self, target, lun))
    return EFI_NOT_FOUND;
  if (EFI_ERROR(boot_services->AllocatePool(EfiBootServicesData, sizeof(*node), (VOID **)&node)))
    return EFI_OUT_OF_RESOURCES;
  set_mem(node, sizeof(*node), 0);
  node->Header.Type = MESSAGING_DEVICE_PATH;
  node->Header.SubType = MSG_SCSI_DP;
  node->Header.Length[0] = sizeof(*node);
  node->Pun = target[0];
  *path = (EFI_DEVICE_PATH_PROTOCOL *)node;
  return EFI_SUCCESS;
}

static EFI_STATUS EFIAPI get_target_lun(ScsiPassThru *self, EFI_DEVICE_PATH_PROTOCOL *path,
                                        UINT8 **target, UINT64 *lun) {
  SCSI_DEVICE_PATH *node = (SCSI_DEVICE_PATH *)path;

  if (!path || !target || !*target || !lun)
    return EFI_INVALID_PARAMETER;
  if (path->Type != MESSAGING_DEVICE_PATH || path->SubType != MSG_SCSI_DP ||
      path->Length[0] != sizeof(*node) || path->Length[1] != 0)
    return EFI_UNSUPPORTED;
  if (node->Lun != 0 || !hba_has_volume(&card_of(self)->hba, node->Pun))
    return EFI_NOT_FOUND;
  set_mem(*target, SCSI_TARGET_BYTES, 0);
  (*target)[0] = (UINT8)node->Pun;
  *lun = 0;
  return EFI_SUCCESS;
}

static EFI_STATUS EFIAPI reset_target_lun(ScsiPassThru *self, UINT8 *target, UINT64 lun) {
  if (!is_disk(self, target, lun))
    return EFI_INVALID_PARAMETER;
  EFI_TPL old = boot_services->RaiseTPL(TPL_NOTIFY);
  EFI_STATUS status = hba_reset_port(&card_of(self)->hba, target[0]);

  boot_services->RestoreTPL(old);
  return status;
}

static EFI_STATUS EFIAPI reset_channel(ScsiPassThru *self) {
  UINT8 target[SCSI_TARGET_BYTES] = {0};
  EFI_STATUS status = EFI_SUCCESS;

  for (UINT8 port = 0; port < HBA_PORTS; port++) {
    target[0] = port;
    if (is_disk(self, target, 0) && EFI_ERROR(reset_target_lun(self, target, 0)))
      status = EFI_DEVICE_ERROR;
  }
  return status;
}

VOID scsi_init(Card *card) {
  card->scsi_mode.attributes = SCSI_MODE_PHYSICAL | SCSI_MODE_LOGICAL | SCSI_MODE_NONBLOCKING;
  card->scsi_mode.adapter = 0xFFFFFFFF;  // takes no target's number
  card->scsi.mode = &card->scsi_mode;
  card->scsi.pass_thru = pass_thru;
  card->scsi.get_next_target_lun = get_next_target_lun;
  card->scsi.build_device_path = build_device_path;
  card->scsi.get_target_lun = get_target_lun;
  card->scsi.reset_channel = reset_channel;
  card->scsi.reset_target_lun = reset_target_lun;
  card->scsi.get_next_target = get_next_target;
}
