// SPDX-License-Identifier: GPL-2.0-or-later
//
// check.efi: looks at the card's SSDs as a boot loader sees them. Writes to the disk that is marked
// as scratch, and prints one verdict.
#include "check.h"

UINTN checks, failures;

BOOLEAN check(BOOLEAN holds, const CHAR8 *file, UINTN line, const CHAR8 *what) {
  checks++;
  if (!holds) {
    failures++;
    Print(L"FAILED %a:%d: %a\n", file, line, what);
  }
  return holds;
}

BOOLEAN check_status(EFI_STATUS status, EFI_STATUS wanted, const CHAR8 *file, UINTN line,
                     const CHAR8 *what) {
  checks++;
  if (status == wanted)
    return TRUE;
  failures++;
  Print(L"FAILED %a:%d: %a: %r, wanted %r\n", file, line, what, status, wanted);
  return FALSE;
}

static UINT8 byte_of(UINT64 lba, UINTN at, UINT8 salt) {
  return (UINT8)(lba * 7 + at + at / 256 + salt);
}

VOID fill(UINT8 *buffer, UINT64 lba, UINTN sectors, UINT8 salt) {
  for (UINTN i = 0; i < sectors * SECTOR; i++)
    buffer[i] = byte_of(lba + i / SECTOR, i % SECTOR, salt);
}

BOOLEAN filled(const UINT8 *buffer, UINT64 lba, UINTN sectors, UINT8 salt) {
  for (UINTN i = 0; i < sectors * SECTOR; i++) {
    if (buffer[i] != byte_of(lba + i / SECTOR, i % SECTOR, salt))
      return FALSE;
  }
  return TRUE;
}

// The whole disk whose sector 1 starts with the tag.
static BOOLEAN find_disk(const char *tag, Disk *disk) {
  static UINT8 sector[SECTOR];
  EFI_HANDLE *handles;
  UINTN count;
  BOOLEAN found = FALSE;

  if (EFI_ERROR(LibLocateHandle(ByProtocol, &gEfiBlockIoProtocolGuid, NULL, &count, &handles)))
    return FALSE;
  for (UINTN i = 0; i < count && !found; i++) {
    EFI_BLOCK_IO_PROTOCOL *block;

    if (EFI_ERROR(uefi_call_wrapper(BS->HandleProtocol, 3, handles[i], &gEfiBlockIoProtocolGuid,
                                    (VOID **)&block)) ||
        block->Media->LogicalPartition || !block->Media->MediaPresent ||
        EFI_ERROR(block->ReadBlocks(block, block->Media->MediaId, 1, SECTOR, sector)))
      continue;
    found = CompareMem(sector, tag, TAG_BYTES) == 0;
    disk->handle = handles[i];
    disk->block = block;
    CopyMem(&disk->sectors, sector + TAG_BYTES, sizeof(disk->sectors));
  }
  FreePool(handles);
  return found;
}

EFI_STATUS efi_main(EFI_HANDLE image, EFI_SYSTEM_TABLE *system) {
  Disk scratch, silent;

  InitializeLib(image, system);
  if (CHECK(find_disk(SCRATCH, &scratch))) {
    check_block_io(&scratch);
    check_block_io2(&scratch);
    if (!check_scsi(&scratch) && CHECK(find_disk(SILENT, &silent)))
      check_ata(&scratch, &silent);
  }
  Print(L"check.efi: %d checks, %d failed: %a\n", checks, failures, failures ? "BAD" : "GOOD");
  return failures ? EFI_ABORTED : EFI_SUCCESS;
}
