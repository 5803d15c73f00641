// SPDX-License-Identifier: GPL-2.0-or-later
//
// Checks of a small UEFI program: each prints a line when it fails, and counts. The disks of a run
// are told by their first sector but one, which the test has written: see Card.
#ifndef REVODRIVE_TESTS_FIRMWARE_UEFI_CHECK_H
#define REVODRIVE_TESTS_FIRMWARE_UEFI_CHECK_H

#include <efi.h>
#include <efilib.h>

#include "ata_pass_thru.h"

#define SECTOR 512u

// What a disk is for: text of 17 bytes at the start of sector 1, then its sectors, 64 bits.
#define SCRATCH "REVODRIVE-SCRATCH"
#define SILENT "REVODRIVE-SILENT!"
#define TAG_BYTES 17

typedef struct {
  EFI_HANDLE handle;
  EFI_BLOCK_IO_PROTOCOL *block;
  UINT64 sectors;  // as the test made it
} Disk;

extern UINTN checks, failures;

// TRUE when it holds.
BOOLEAN check(BOOLEAN holds, const CHAR8 *file, UINTN line, const CHAR8 *what);
BOOLEAN check_status(EFI_STATUS status, EFI_STATUS wanted, const CHAR8 *file, UINTN line,
                     const CHAR8 *what);
#define CHECK(holds) check((holds) != 0, (const CHAR8 *)__FILE__, __LINE__, (const CHAR8 *)#holds)
#define CHECK_STATUS(call, wanted) \
  check_status(call, wanted, (const CHAR8 *)__FILE__, __LINE__, (const CHAR8 *)#call)

// Bytes that tell the sector and the position in it.
VOID fill(UINT8 *buffer, UINT64 lba, UINTN sectors, UINT8 salt);
BOOLEAN filled(const UINT8 *buffer, UINT64 lba, UINTN sectors, UINT8 salt);

VOID check_block_io(const Disk *disk);
VOID check_block_io2(const Disk *disk);
VOID check_ata(const Disk *disk, const Disk *silent);
// FALSE: the disk is no SCSI disk.
BOOLEAN check_scsi(const Disk *disk);

#endif
