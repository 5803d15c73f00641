// SPDX-License-Identifier: GPL-2.0-or-later
//
// EFI_EXT_SCSI_PASS_THRU_PROTOCOL (UEFI specification 2.10, section 15.7), which gnu-efi's headers
// lack. Through it the firmware's own SCSI stack sends commands to the volume of a card with
// mode=vca, and publishes Block I/O, Block I/O 2 and Disk Info for it.
#ifndef REVODRIVE_ROM_UEFI_SCSI_PASS_THRU_H
#define REVODRIVE_ROM_UEFI_SCSI_PASS_THRU_H

#include <efi.h>
#include <efilib.h>

#define SCSI_PASS_THRU_GUID                          \
  {                                                  \
    0x143b7632, 0xb81b, 0x4cb7, {                    \
      0xab, 0xd3, 0xb6, 0x25, 0xa5, 0xb9, 0xbf, 0xfe \
    }                                                \
  }

enum { SCSI_TARGET_BYTES = 16 };  // of a target's id, little endian

// Mode.attributes
enum {
  SCSI_MODE_PHYSICAL = 1,
  SCSI_MODE_LOGICAL = 2,
  SCSI_MODE_NONBLOCKING = 4,
};

// Packet.direction
enum {
  SCSI_READ = 0,
  SCSI_WRITE = 1,
};

// Packet.host_status
enum {
  SCSI_HOST_OK = 0x00,
  SCSI_HOST_TIMEOUT_COMMAND = 0x09,
  SCSI_HOST_OVERRUN = 0x12,
  SCSI_HOST_OTHER = 0x7F,
};

typedef struct {
  UINT64 timeout;  // 100 ns; 0: none
  VOID *in_buffer;
  VOID *out_buffer;
  VOID *sense;
  VOID *cdb;
  UINT32 in_length;
  UINT32 out_length;
  UINT8 cdb_length;
  UINT8 direction;
  UINT8 host_status;
  UINT8 target_status;
  UINT8 sense_length;
} ScsiPacket;

typedef struct {
  UINT32 adapter;
  UINT32 attributes;
  UINT32 io_align;
} ScsiMode;

typedef struct ScsiPassThru ScsiPassThru;
struct ScsiPassThru {
  ScsiMode *mode;
  EFI_STATUS(EFIAPI *pass_thru)
  (ScsiPassThru *self, UINT8 *target, UINT64 lun, ScsiPacket *packet, EFI_EVENT event);
  EFI_STATUS(EFIAPI *get_next_target_lun)(ScsiPassThru *self, UINT8 **target, UINT64 *lun);
  EFI_STATUS(EFIAPI *build_device_path)
  (ScsiPassThru *self, UINT8 *target, UINT64 lun, EFI_DEVICE_PATH_PROTOCOL **path);
  EFI_STATUS(EFIAPI *get_target_lun)
  (ScsiPassThru *self, EFI_DEVICE_PATH_PROTOCOL *path, UINT8 **target, UINT64 *lun);
  EFI_STATUS(EFIAPI *reset_channel)(ScsiPassThru *self);
  EFI_STATUS(EFIAPI *reset_target_lun)(ScsiPassThru *self, UINT8 *target, UINT64 lun);
  EFI_STATUS(EFIAPI *get_next_target)(ScsiPassThru *self, UINT8 **target);
};

#endif
