// SPDX-License-Identifier: GPL-2.0-or-later
//
// ATA Pass Thru over the bridge. Commands run one at a time, by polling; with an event the command
// has ended when the call returns, and the event is signaled all the same.
#include "boot.h"
#include "card.h"

#define SECTOR 512u
#define NO_PORT 0xFFFF

static Card *card_of(AtaPassThru *self) {
  return (Card *)self;
}

// There are no port multipliers: 0 as the protocol asks for, NO_PORT as in device paths.
static BOOLEAN is_device(AtaPassThru *self, UINT16 port, UINT16 multiplier) {
  return hba_has(&card_of(self)->hba, port) && (multiplier == 0 || multiplier == NO_PORT);
}

// What a packet wants to move.
typedef struct {
  VOID *buffer;
  UINT32 bytes;
  UINT32 *length;  // of the packet, in its own unit
  BOOLEAN to_host;
} Transfer;

static EFI_STATUS plan_direction(AtaPacket *packet, Transfer *transfer) {
  switch (packet->protocol) {
    case ATA_NON_DATA:
      return EFI_SUCCESS;
    case ATA_PIO_IN:
    case ATA_UDMA_IN:
      transfer->to_host = TRUE;
      break;
    case ATA_PIO_OUT:
    case ATA_UDMA_OUT:
      transfer->to_host = FALSE;
      break;
    case ATA_DMA:
      transfer->to_host = packet->in_length != 0;
      break;
    default:
      return EFI_UNSUPPORTED;
  }
  transfer->buffer = transfer->to_host ? packet->in_buffer : packet->out_buffer;
  transfer->length = transfer->to_host ? &packet->in_length : &packet->out_length;
  return EFI_SUCCESS;
}

static EFI_STATUS plan_transfer(AtaPacket *packet, Transfer *transfer) {
  UINT32 unit = packet->length & ATA_LENGTH_IN_BYTES ? 1 : SECTOR;
  EFI_STATUS status = plan_direction(packet, transfer);

  if (EFI_ERROR(status) || !transfer->length)
    return status;
  if ((packet->length & ATA_LENGTH_MASK) == ATA_LENGTH_NO_DATA)
    return EFI_SUCCESS;
  if (*transfer->length > HBA_MAX_BYTES / unit) {
    *transfer->length = HBA_MAX_BYTES / unit;
    return EFI_BAD_BUFFER_SIZE;
  }
  transfer->bytes = *transfer->length * unit;
  return transfer->bytes > 0 && !transfer->buffer ? EFI_INVALID_PARAMETER : EFI_SUCCESS;
}

static EFI_STATUS run_mapped(Hba *hba, UINT16 port, HbaCommand *command, VOID *buffer) {
  VOID *mapping;
  EFI_STATUS status = hba_map(hba, buffer, &command->transfer, &mapping);

  if (EFI_ERROR(status))
    return status;
  status = hba_run(hba, port, command);
  EFI_STATUS unmapped = hba_unmap(hba, mapping);

  return EFI_ERROR(status) ? status : unmapped;
}

static EFI_STATUS run_packet(Hba *hba, UINT16 port, AtaPacket *packet) {
  HbaCommand command;
  Transfer transfer = {NULL, 0, NULL, FALSE};
  EFI_STATUS status = plan_transfer(packet, &transfer);

  if (EFI_ERROR(status))
    return status;
  set_mem(&command, sizeof(command), 0);
  command.fis[0] = 0x27;  // host to device
  command.fis[1] = 0x80;  // a command
  copy_mem(command.fis + 2, packet->command->registers, sizeof(packet->command->registers));
  command.transfer.bytes = transfer.bytes;
  command.transfer.to_host = transfer.to_host;
  command.transfer.timeout_us = hba_limit_us(packet->timeout, transfer.bytes);
  status = run_mapped(hba, port, &command, transfer.buffer);
  if (packet->status) {
    set_mem(packet->status, sizeof(*packet->status), 0);
    copy_mem(packet->status->registers, command.reply + 2, sizeof(packet->status->registers));
  }
  if (EFI_ERROR(status) && transfer.length)
    *transfer.length = 0;
  return status;
}

static EFI_STATUS EFIAPI pass_thru(AtaPassThru *self, UINT16 port, UINT16 multiplier,
                                   AtaPacket *packet, EFI_EVENT event) {
  Hba *hba = &card_of(self)->hba;
  EFI_STATUS status;

  if (!is_device(self, port, multiplier) || !packet || !packet->command)
    return EFI_INVALID_PARAMETER;
  EFI_TPL old = boot_services->RaiseTPL(TPL_NOTIFY);

  if (packet->protocol == ATA_HARDWARE_RESET || packet->protocol == ATA_SOFTWARE_RESET)
    status = hba_reset_port(hba, port);
  else
    status = run_packet(hba, port, packet);
  boot_services->RestoreTPL(old);
  if (event && !EFI_ERROR(status))
    boot_services->SignalEvent(event);
  return status;
}

static EFI_STATUS EFIAPI get_next_port(AtaPassThru *self, UINT16 *port) {
  UINTN next = 0;

  if (!port)
    return EFI_INVALID_PARAMETER;
  if (*port != NO_PORT) {
    if (!is_device(self, *port, 0))
      return EFI_INVALID_PARAMETER;
    next = *port + 1u;
  }
  while (next < HBA_PORTS && !hba_has(&card_of(self)->hba, next))
    next++;
  if (next == HBA_PORTS)
    return EFI_NOT_FOUND;
  *port = (UINT16)next;
  return EFI_SUCCESS;
}

static EFI_STATUS EFIAPI get_next_device(AtaPassThru *self, UINT16 port, UINT16 *multiplier) {
  if (!multiplier || !is_device(self, port, *multiplier))
    return EFI_INVALID_PARAMETER;
  if (*multiplier != NO_PORT)
    return EFI_NOT_FOUND;
  *multiplier = 0;
  return EFI_SUCCESS;
}

static EFI_STATUS EFIAPI build_device_path(AtaPassThru *self, UINT16 port, UINT16 multiplier,
                                           EFI_DEVICE_PATH_PROTOCOL **path) {
  SATA_DEVICE_PATH *node;
  EFI_STATUS status;

  if (!path)
    return EFI_INVALID_PARAMETER;
  if (!is_device(self, port, multiplier))
    return EFI_NOT_FOUND;
  status = boot_services->AllocatePool(EfiBootServicesData, sizeof(*node), (VOID **)&node);
  if (EFI_ERROR(status))
    return EFI_OUT_OF_RESOURCES;
  set_mem(node, sizeof(*node), 0);
  node->Header.Type = MESSAGING_DEVICE_PATH;
  node->Header.SubType = MSG_SATA_DP;
  node->Header.Length[0] = sizeof(*node);
  node->HBAPortNumber = port;
  node->PortMultiplierPortNumber = NO_PORT;
  *path = (EFI_DEVICE_PATH_PROTOCOL *)node;
  return EFI_SUCCESS;
}

static EFI_STATUS EFIAPI get_device(AtaPassThru *self, EFI_DEVICE_PATH_PROTOCOL *path, UINT16 *port,
                                    UINT16 *multiplier) {
  SATA_DEVICE_PATH *node = (SATA_DEVICE_PATH *)path;

  if (!path || !port || !multiplier)
    return EFI_INVALID_PARAMETER;
  if (path->Type != MESSAGING_DEVICE_PATH || path->SubType != MSG_SATA_DP ||
      path->Length[0] != sizeof(*node) || path->Length[1] != 0)
    return EFI_UNSUPPORTED;
  if (node->Lun != 0 || !is_device(self, node->HBAPortNumber, node->PortMultiplierPortNumber))
    return EFI_NOT_FOUND;
  *port = node->HBAPortNumber;
  *multiplier = 0;
  return EFI_SUCCESS;
}

static EFI_STATUS EFIAPI reset_device(AtaPassThru *self, UINT16 port, UINT16 multiplier) {
  if (!is_device(self, port, multiplier))
    return EFI_INVALID_PARAMETER;
  EFI_TPL old = boot_services->RaiseTPL(TPL_NOTIFY);
  EFI_STATUS status = hba_reset_port(&card_of(self)->hba, port);

  boot_services->RestoreTPL(old);
  return status;
}

static EFI_STATUS EFIAPI reset_port(AtaPassThru *self, UINT16 port) {
  return reset_device(self, port, 0);
}

VOID ata_init(Card *card) {
  // The SSDs are no parts of a RAID that the firmware should not see: physical and logical are one.
  card->mode.attributes = ATA_MODE_PHYSICAL | ATA_MODE_LOGICAL | ATA_MODE_NONBLOCKING;
  card->mode.io_align = 0;  // the bridge takes any address
  card->ata.mode = &card->mode;
  card->ata.pass_thru = pass_thru;
  card->ata.get_next_port = get_next_port;
  card->ata.get_next_device = get_next_device;
  card->ata.build_device_path = build_device_path;
  card->ata.get_device = get_device;
  card->ata.reset_port = reset_port;
  card->ata.reset_device = reset_device;
}

BOOLEAN ata_is_ours(const AtaPassThru *ata) {
  return ata->pass_thru == pass_thru;
}
