// SPDX-License-Identifier: GPL-2.0-or-later
//
// EFI_ATA_PASS_THRU_PROTOCOL (UEFI specification 2.10, section 13.12), which gnu-efi's headers
// lack. Through it the firmware's own ATA stack sends commands to the SSDs of the card, and
// publishes Block I/O, Block I/O 2, Disk Info and Storage Security for each.
#ifndef REVODRIVE_ROM_UEFI_ATA_PASS_THRU_H
#define REVODRIVE_ROM_UEFI_ATA_PASS_THRU_H

#include <efi.h>
#include <efilib.h>

#define ATA_PASS_THRU_GUID                           \
  {                                                  \
    0x1d3de7f0, 0x0807, 0x424f, {                    \
      0xaa, 0x69, 0x11, 0xa5, 0x4e, 0x19, 0xa4, 0x6f \
    }                                                \
  }

enum {
  ATA_MODE_PHYSICAL = 1,
  ATA_MODE_LOGICAL = 2,
  ATA_MODE_NONBLOCKING = 4,
};

// Packet.Protocol
enum {
  ATA_HARDWARE_RESET = 0x00,
  ATA_SOFTWARE_RESET = 0x01,
  ATA_NON_DATA = 0x02,
  ATA_PIO_IN = 0x04,
  ATA_PIO_OUT = 0x05,
  ATA_DMA = 0x06,
  ATA_UDMA_IN = 0x0A,
  ATA_UDMA_OUT = 0x0B,
};

// Packet.Length
enum {
  ATA_LENGTH_IN_BYTES = 0x80,  // else in blocks of 512 bytes
  ATA_LENGTH_MASK = 0x70,
  ATA_LENGTH_NO_DATA = 0x00,
};

// Command and status registers. Bytes 2 to 13 are those of the register FISes (Serial
// ATA 3.0, 10.3).
typedef struct {
  UINT8 reserved1[2];
  UINT8 registers[12];
  UINT8 reserved2[6];
} AtaBlock;

typedef struct {
  AtaBlock *status;
  AtaBlock *command;
  UINT64 timeout;  // 100 ns; 0: none
  VOID *in_buffer;
  VOID *out_buffer;
  UINT32 in_length;
  UINT32 out_length;
  UINT8 protocol;
  UINT8 length;
} AtaPacket;

typedef struct {
  UINT32 attributes;
  UINT32 io_align;
} AtaMode;

typedef struct AtaPassThru AtaPassThru;
struct AtaPassThru {
  AtaMode *mode;
  EFI_STATUS(EFIAPI *pass_thru)
  (AtaPassThru *self, UINT16 port, UINT16 multiplier, AtaPacket *packet, EFI_EVENT event);
  EFI_STATUS(EFIAPI *get_next_port)(AtaPassThru *self, UINT16 *port);
  EFI_STATUS(EFIAPI *get_next_device)(AtaPassThru *self, UINT16 port, UINT16 *multiplier);
  EFI_STATUS(EFIAPI *build_device_path)
  (AtaPassThru *self, UINT16 port, UINT16 multiplier, EFI_DEVICE_PATH_PROTOCOL **path);
  EFI_STATUS(EFIAPI *get_device)
  (AtaPassThru *self, EFI_DEVICE_PATH_PROTOCOL *path, UINT16 *port, UINT16 *multiplier);
  EFI_STATUS(EFIAPI *reset_port)(AtaPassThru *self, UINT16 port);
  EFI_STATUS(EFIAPI *reset_device)(AtaPassThru *self, UINT16 port, UINT16 multiplier);
};

#endif
