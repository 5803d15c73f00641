// SPDX-License-Identifier: GPL-2.0-or-later
//
// Ext SCSI Pass Thru of a card with mode=vca: enumeration, device paths, sense data, limits.
#include "scsi_pass_thru.h"

#include "check.h"

enum { INQUIRY = 0x12, READ_16 = 0x88, CHECK_CONDITION = 2, ILLEGAL_REQUEST = 5 };
enum { INQUIRY_BYTES = 36, OUT_OF_RANGE = 0x21 };
#define SECOND 10000000ull  // in units of 100 ns

static UINT8 cdb[16], sense[96];

static ScsiPacket packet_for(UINT8 opcode, VOID *buffer, UINT32 bytes) {
  ScsiPacket packet = {.timeout = SECOND,
                       .in_buffer = buffer,
                       .sense = sense,
                       .cdb = cdb,
                       .in_length = bytes,
                       .cdb_length = opcode >= 0x80 ? 16 : 6,
                       .sense_length = sizeof(sense)};

  SetMem(cdb, sizeof(cdb), 0);
  cdb[0] = opcode;
  return packet;
}

static ScsiPacket read_packet(UINT64 lba, VOID *buffer) {
  ScsiPacket packet = packet_for(READ_16, buffer, SECTOR);

  for (UINTN i = 0; i < 8; i++)
    cdb[2 + i] = (UINT8)(lba >> (56 - 8 * i));
  cdb[13] = 1;
  return packet;
}

static VOID check_targets(ScsiPassThru *scsi) {
  UINT8 bytes[SCSI_TARGET_BYTES], *target = bytes;
  EFI_DEVICE_PATH_PROTOCOL *path;
  UINT64 lun = 99;

  SetMem(bytes, sizeof(bytes), 0xFF);
  CHECK_STATUS(scsi->get_next_target_lun(scsi, &target, &lun), EFI_SUCCESS);
  CHECK(bytes[0] == 0 && lun == 0);
  CHECK_STATUS(scsi->build_device_path(scsi, target, lun, &path), EFI_SUCCESS);
  CHECK_STATUS(scsi->get_target_lun(scsi, path, &target, &lun), EFI_SUCCESS);
  CHECK(bytes[0] == 0 && lun == 0);
  FreePool(path);
  CHECK_STATUS(scsi->get_next_target_lun(scsi, &target, &lun), EFI_NOT_FOUND);
  CHECK_STATUS(scsi->build_device_path(scsi, target, 1, &path), EFI_NOT_FOUND);
  bytes[0] = 9;
  CHECK_STATUS(scsi->get_next_target(scsi, &target), EFI_INVALID_PARAMETER);
  CHECK_STATUS(scsi->reset_target_lun(scsi, target, 0), EFI_INVALID_PARAMETER);
}

static VOID check_packets(ScsiPassThru *scsi, UINT64 sectors, UINT8 *buffer) {
  UINT8 target[SCSI_TARGET_BYTES] = {0};
  ScsiPacket packet = packet_for(INQUIRY, buffer, INQUIRY_BYTES);

  cdb[4] = INQUIRY_BYTES;
  CHECK_STATUS(scsi->pass_thru(scsi, target, 0, &packet, NULL), EFI_SUCCESS);
  CHECK(packet.target_status == 0 && packet.host_status == SCSI_HOST_OK);
  CHECK(CompareMem(buffer + 8, "OCZ     REVODRIVE3 X2   ", 24) == 0);
  CHECK_STATUS(scsi->pass_thru(scsi, target, 1, &packet, NULL), EFI_INVALID_PARAMETER);
  CHECK_STATUS(scsi->pass_thru(scsi, target, 0, NULL, NULL), EFI_INVALID_PARAMETER);
  packet.cdb_length = 17;
  CHECK_STATUS(scsi->pass_thru(scsi, target, 0, &packet, NULL), EFI_INVALID_PARAMETER);
  packet = read_packet(0, NULL);
  CHECK_STATUS(scsi->pass_thru(scsi, target, 0, &packet, NULL), EFI_INVALID_PARAMETER);
  packet = read_packet(0, buffer);
  packet.in_length = 0x40000000;
  CHECK_STATUS(scsi->pass_thru(scsi, target, 0, &packet, NULL), EFI_BAD_BUFFER_SIZE);
  CHECK(packet.in_length > 0 && packet.in_length < 0x40000000);
  packet = read_packet(sectors, buffer);
  CHECK_STATUS(scsi->pass_thru(scsi, target, 0, &packet, NULL), EFI_SUCCESS);
  CHECK(packet.target_status == CHECK_CONDITION && packet.sense_length >= 14);
  CHECK((sense[2] & 0x0F) == ILLEGAL_REQUEST && sense[12] == OUT_OF_RANGE);
}

// News of a reset come before the next command's data, once.
static VOID check_reset(ScsiPassThru *scsi, UINT8 *buffer) {
  UINT8 target[SCSI_TARGET_BYTES] = {0};
  ScsiPacket packet;
  UINTN tries = 0;

  CHECK_STATUS(scsi->reset_target_lun(scsi, target, 0), EFI_SUCCESS);
  CHECK_STATUS(scsi->reset_channel(scsi), EFI_SUCCESS);
  do {
    packet = read_packet(7, buffer);
    CHECK_STATUS(scsi->pass_thru(scsi, target, 0, &packet, NULL), EFI_SUCCESS);
  } while (packet.target_status == CHECK_CONDITION && ++tries < 4);
  CHECK(packet.target_status == 0);
}

BOOLEAN check_scsi(const Disk *disk) {
  EFI_GUID guid = SCSI_PASS_THRU_GUID;
  EFI_DEVICE_PATH *path = DevicePathFromHandle(disk->handle);
  UINT8 bytes[SCSI_TARGET_BYTES], *target = bytes, *buffer = AllocatePool(SECTOR);
  EFI_HANDLE handle;
  ScsiPassThru *scsi;
  UINT64 lun;

  if (!CHECK(buffer != NULL) ||
      EFI_ERROR(uefi_call_wrapper(BS->LocateDevicePath, 3, &guid, &path, &handle)) ||
      EFI_ERROR(uefi_call_wrapper(BS->HandleProtocol, 3, handle, &guid, (VOID **)&scsi)))
    return FALSE;
  CHECK_STATUS(scsi->get_target_lun(scsi, path, &target, &lun), EFI_SUCCESS);
  check_targets(scsi);
  check_packets(scsi, disk->sectors, buffer);
  check_reset(scsi, buffer);
  FreePool(buffer);
  return TRUE;
}
