// SPDX-License-Identifier: GPL-2.0-or-later
//
// ATA Pass Thru of the card and Disk Info of an SSD: enumeration, device paths, errors of the SSD,
// limits, a command that is never answered.
#include "check.h"

enum { READ_DMA_EXT = 0x25, IDENTIFY = 0xEC, ERR = 0x01, DRDY = 0x40, IDNF = 0x10 };
#define NO_PORT 0xFFFF
#define SECOND 10000000ull  // in units of 100 ns

// EFI_DISK_INFO_PROTOCOL (UEFI Platform Initialization 1.7, volume 5, 11.1)
typedef struct DiskInfo DiskInfo;
struct DiskInfo {
  EFI_GUID interface;
  EFI_STATUS(EFIAPI *inquiry)(DiskInfo *self, VOID *data, UINT32 *bytes);
  EFI_STATUS(EFIAPI *identify)(DiskInfo *self, VOID *data, UINT32 *bytes);
  EFI_STATUS(EFIAPI *sense_data)(DiskInfo *self, VOID *data, UINT32 *bytes, UINT8 *count);
  EFI_STATUS(EFIAPI *which_ide)(DiskInfo *self, UINT32 *channel, UINT32 *device);
};
#define DISK_INFO_GUID                               \
  {                                                  \
    0xd432a67f, 0x14dc, 0x484b, {                    \
      0xb3, 0xbb, 0x3f, 0x02, 0x91, 0x84, 0x93, 0x27 \
    }                                                \
  }

static AtaBlock command, status;

static AtaPacket read_packet(UINT64 lba, UINT8 *buffer, UINT32 sectors) {
  AtaPacket packet = {&status, &command, SECOND, buffer, NULL, sectors, 0, ATA_UDMA_IN, 0x20};

  SetMem(&command, sizeof(command), 0);
  command.registers[0] = READ_DMA_EXT;
  for (UINTN i = 0; i < 3; i++) {
    command.registers[2 + i] = (UINT8)(lba >> (8 * i));
    command.registers[6 + i] = (UINT8)(lba >> (24 + 8 * i));
  }
  command.registers[5] = 0x40;
  command.registers[10] = (UINT8)sectors;
  command.registers[11] = (UINT8)(sectors >> 8);
  return packet;
}

// The protocol of the card that a disk belongs to, and the disk's port; NULL when there is none.
static AtaPassThru *card_of(const Disk *disk, UINT16 *port) {
  EFI_GUID guid = ATA_PASS_THRU_GUID;
  EFI_DEVICE_PATH *path = DevicePathFromHandle(disk->handle);
  EFI_HANDLE handle;
  AtaPassThru *ata;
  UINT16 multiplier;

  if (!CHECK_STATUS(uefi_call_wrapper(BS->LocateDevicePath, 3, &guid, &path, &handle),
                    EFI_SUCCESS) ||
      !CHECK_STATUS(uefi_call_wrapper(BS->HandleProtocol, 3, handle, &guid, (VOID **)&ata),
                    EFI_SUCCESS))
    return NULL;
  return CHECK_STATUS(ata->get_device(ata, path, port, &multiplier), EFI_SUCCESS) ? ata : NULL;
}

static VOID check_ports(AtaPassThru *ata) {
  UINT16 port = NO_PORT, count = 0;

  while (ata->get_next_port(ata, &port) == EFI_SUCCESS) {
    UINT16 multiplier = NO_PORT, back = 0;
    EFI_DEVICE_PATH_PROTOCOL *path;

    CHECK(port == count++);
    CHECK_STATUS(ata->get_next_device(ata, port, &multiplier), EFI_SUCCESS);
    CHECK_STATUS(ata->build_device_path(ata, port, multiplier, &path), EFI_SUCCESS);
    CHECK_STATUS(ata->get_device(ata, path, &back, &multiplier), EFI_SUCCESS);
    CHECK(back == port);
    FreePool(path);
    CHECK_STATUS(ata->get_next_device(ata, port, &multiplier), EFI_NOT_FOUND);
  }
  CHECK(count == 4);
  port = 9;
  CHECK_STATUS(ata->get_next_port(ata, &port), EFI_INVALID_PARAMETER);
  CHECK_STATUS(ata->reset_port(ata, 9), EFI_INVALID_PARAMETER);
}

static VOID check_packets(AtaPassThru *ata, UINT16 port, UINT64 sectors, UINT8 *buffer) {
  AtaPacket packet = read_packet(0, buffer, 1);

  CHECK_STATUS(ata->pass_thru(ata, port, 0, &packet, NULL), EFI_SUCCESS);
  CHECK((status.registers[0] & (DRDY | ERR)) == DRDY && packet.in_length == 1);
  CHECK_STATUS(ata->pass_thru(ata, 9, 0, &packet, NULL), EFI_INVALID_PARAMETER);
  CHECK_STATUS(ata->pass_thru(ata, port, 3, &packet, NULL), EFI_INVALID_PARAMETER);
  CHECK_STATUS(ata->pass_thru(ata, port, 0, NULL, NULL), EFI_INVALID_PARAMETER);
  packet = read_packet(0, NULL, 1);
  CHECK_STATUS(ata->pass_thru(ata, port, 0, &packet, NULL), EFI_INVALID_PARAMETER);
  packet = read_packet(sectors, buffer, 1);
  CHECK_STATUS(ata->pass_thru(ata, port, 0, &packet, NULL), EFI_DEVICE_ERROR);
  CHECK((status.registers[0] & ERR) && (status.registers[1] & IDNF) && packet.in_length == 0);
  packet = read_packet(0, buffer, 0x400000);
  CHECK_STATUS(ata->pass_thru(ata, port, 0, &packet, NULL), EFI_BAD_BUFFER_SIZE);
  CHECK(packet.in_length > 0 && packet.in_length < 0x400000);
  packet = read_packet(0, buffer, 1);
  packet.protocol = 0x0C;  // queued
  CHECK_STATUS(ata->pass_thru(ata, port, 0, &packet, NULL), EFI_UNSUPPORTED);
  CHECK_STATUS(ata->reset_device(ata, port, 0), EFI_SUCCESS);
  packet = read_packet(0, buffer, 1);
  CHECK_STATUS(ata->pass_thru(ata, port, 0, &packet, NULL), EFI_SUCCESS);
}

// The test has told this SSD to swallow reads of sector 70001, once.
static VOID check_silence(AtaPassThru *ata, UINT16 port, UINT8 *buffer) {
  AtaPacket packet = read_packet(70001, buffer, 1);

  packet.timeout = SECOND / 5;
  CHECK_STATUS(ata->pass_thru(ata, port, 0, &packet, NULL), EFI_TIMEOUT);
  packet = read_packet(70001, buffer, 1);
  CHECK_STATUS(ata->pass_thru(ata, port, 0, &packet, NULL), EFI_SUCCESS);
}

static VOID check_disk_info(const Disk *disk, UINT16 port) {
  EFI_GUID guid = DISK_INFO_GUID;
  UINT8 data[SECTOR];
  UINT32 bytes = sizeof(data), channel = 99, device;
  DiskInfo *info;

  if (!CHECK_STATUS(uefi_call_wrapper(BS->HandleProtocol, 3, disk->handle, &guid, (VOID **)&info),
                    EFI_SUCCESS))
    return;
  CHECK_STATUS(info->identify(info, data, &bytes), EFI_SUCCESS);
  CHECK(bytes == sizeof(data) && CompareMem(data + 54, "CO-ZEROVRDVI3EX ", 16) == 0);
  CHECK_STATUS(info->which_ide(info, &channel, &device), EFI_SUCCESS);
  CHECK(channel == port);
}

VOID check_ata(const Disk *disk, const Disk *silent) {
  UINT16 port, silent_port;
  AtaPassThru *ata = card_of(disk, &port);
  UINT8 *buffer = AllocatePool(SECTOR);

  if (!ata || !CHECK(buffer != NULL))
    return;
  check_ports(ata);
  check_packets(ata, port, disk->sectors, buffer);
  check_disk_info(disk, port);
  if (card_of(silent, &silent_port))
    check_silence(ata, silent_port, buffer);
  FreePool(buffer);
}
