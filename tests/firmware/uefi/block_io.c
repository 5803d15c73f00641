// SPDX-License-Identifier: GPL-2.0-or-later
//
// Block I/O and Block I/O 2: edges of the disk, bad parameters, odd buffers, transfers of many
// sizes.
#include "check.h"

#define BIG_SECTORS 20001u  // more than one ATA command, not a multiple of its size
#define PIECE_SECTORS 4096u

static EFI_STATUS read(const Disk *disk, EFI_LBA lba, UINTN bytes, VOID *buffer) {
  return disk->block->ReadBlocks(disk->block, disk->block->Media->MediaId, lba, bytes, buffer);
}

static EFI_STATUS write(const Disk *disk, EFI_LBA lba, UINTN bytes, VOID *buffer) {
  return disk->block->WriteBlocks(disk->block, disk->block->Media->MediaId, lba, bytes, buffer);
}

static VOID check_media(const Disk *disk) {
  EFI_BLOCK_IO_MEDIA *media = disk->block->Media;

  CHECK(media->BlockSize == SECTOR);
  CHECK(media->LastBlock == disk->sectors - 1);
  CHECK(!media->RemovableMedia && !media->ReadOnly && media->MediaPresent);
  CHECK(media->IoAlign <= 1);
}

static VOID check_edges(const Disk *disk, UINT8 *buffer) {
  UINT64 last = disk->sectors - 1;

  fill(buffer, last, 1, 3);
  CHECK_STATUS(write(disk, last, SECTOR, buffer), EFI_SUCCESS);
  SetMem(buffer, 2 * SECTOR, 0);
  CHECK_STATUS(read(disk, last, SECTOR, buffer), EFI_SUCCESS);
  CHECK(filled(buffer, last, 1, 3));
  CHECK_STATUS(read(disk, last + 1, SECTOR, buffer), EFI_INVALID_PARAMETER);
  CHECK_STATUS(read(disk, last, 2 * SECTOR, buffer), EFI_INVALID_PARAMETER);
  CHECK_STATUS(write(disk, last + 1, SECTOR, buffer), EFI_INVALID_PARAMETER);
  CHECK_STATUS(read(disk, 1ull << 62, SECTOR, buffer), EFI_INVALID_PARAMETER);
}

static VOID check_parameters(const Disk *disk, UINT8 *buffer) {
  EFI_BLOCK_IO_PROTOCOL *block = disk->block;

  CHECK_STATUS(read(disk, 8, 0, buffer), EFI_SUCCESS);
  CHECK_STATUS(read(disk, 8, SECTOR - 1, buffer), EFI_BAD_BUFFER_SIZE);
  CHECK_STATUS(write(disk, 8, SECTOR + 1, buffer), EFI_BAD_BUFFER_SIZE);
  CHECK_STATUS(read(disk, 8, SECTOR, NULL), EFI_INVALID_PARAMETER);
  CHECK_STATUS(block->ReadBlocks(block, block->Media->MediaId + 1, 8, SECTOR, buffer),
               EFI_MEDIA_CHANGED);
  CHECK_STATUS(block->WriteBlocks(block, block->Media->MediaId + 1, 8, SECTOR, buffer),
               EFI_MEDIA_CHANGED);
  CHECK_STATUS(block->FlushBlocks(block), EFI_SUCCESS);
  CHECK_STATUS(block->Reset(block, FALSE), EFI_SUCCESS);
  CHECK_STATUS(read(disk, 8, SECTOR, buffer), EFI_SUCCESS);
}

// Nothing before or behind an odd buffer is touched.
static VOID check_odd_buffers(const Disk *disk, UINT8 *buffer) {
  enum { SECTORS = 9, LBA = 100 };
  const UINTN bytes = SECTORS * SECTOR;

  for (UINTN offset = 1; offset < 8; offset += 2) {
    fill(buffer + offset, LBA, SECTORS, (UINT8)offset);
    CHECK_STATUS(write(disk, LBA, bytes, buffer + offset), EFI_SUCCESS);
    SetMem(buffer, bytes + 16, 0xEE);
    CHECK_STATUS(read(disk, LBA, bytes, buffer + offset), EFI_SUCCESS);
    CHECK(filled(buffer + offset, LBA, SECTORS, (UINT8)offset));
    CHECK(buffer[offset - 1] == 0xEE && buffer[offset + bytes] == 0xEE);
  }
}

static VOID check_sizes(const Disk *disk, UINT8 *buffer) {
  static const UINTN sizes[] = {1, 2, 127, 128, 129, 255, 256, 257, 4096, BIG_SECTORS};
  UINT64 lba = 2048;

  for (UINTN i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    fill(buffer, lba, sizes[i], (UINT8)i);
    CHECK_STATUS(write(disk, lba, sizes[i] * SECTOR, buffer), EFI_SUCCESS);
    SetMem(buffer, sizes[i] * SECTOR, 0);
    CHECK_STATUS(read(disk, lba, sizes[i] * SECTOR, buffer), EFI_SUCCESS);
    CHECK(filled(buffer, lba, sizes[i], (UINT8)i));
    lba += sizes[i];
  }
}

static UINT64 ticks(VOID) {
  UINT32 low, high;

  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (UINT64)high << 32 | low;
}

// The whole disk by long reads, as a boot loader gets a kernel.
static VOID measure_reads(const Disk *disk, UINT8 *buffer) {
  const UINTN stall_us = 20000;
  UINT64 pieces = disk->sectors / PIECE_SECTORS;
  UINT64 start = ticks();

  uefi_call_wrapper(BS->Stall, 1, stall_us);
  UINT64 ticks_per_us = (ticks() - start) / stall_us;
  start = ticks();
  for (UINT64 i = 0; i < pieces; i++)
    CHECK_STATUS(read(disk, i * PIECE_SECTORS, PIECE_SECTORS * SECTOR, buffer), EFI_SUCCESS);
  UINT64 us = (ticks() - start) / ticks_per_us;
  Print(L"check.efi: reads at %ld MB/s\n", pieces * PIECE_SECTORS * SECTOR / us);
}

VOID check_block_io(const Disk *disk) {
  UINT8 *buffer = AllocatePool(BIG_SECTORS * SECTOR + 16);

  if (!CHECK(buffer != NULL))
    return;
  check_media(disk);
  check_edges(disk, buffer);
  check_parameters(disk, buffer);
  check_odd_buffers(disk, buffer);
  check_sizes(disk, buffer);
  measure_reads(disk, buffer);
  FreePool(buffer);
}

static VOID check_token(EFI_BLOCK_IO2_PROTOCOL *block, UINT64 sectors, UINT8 *buffer) {
  EFI_BLOCK_IO2_TOKEN token = {NULL, EFI_NOT_READY};
  UINT32 media = block->Media->MediaId;
  UINTN index;

  if (!CHECK_STATUS(
          uefi_call_wrapper(BS->CreateEvent, 5, 0, TPL_CALLBACK, NULL, NULL, &token.Event),
          EFI_SUCCESS))
    return;
  fill(buffer, 5000, 300, 77);
  CHECK_STATUS(block->WriteBlocksEx(block, media, 5000, &token, 300 * SECTOR, buffer), EFI_SUCCESS);
  CHECK_STATUS(uefi_call_wrapper(BS->WaitForEvent, 3, 1, &token.Event, &index), EFI_SUCCESS);
  CHECK(token.TransactionStatus == EFI_SUCCESS);
  SetMem(buffer, 300 * SECTOR, 0);
  CHECK_STATUS(block->ReadBlocksEx(block, media, 5000, &token, 300 * SECTOR, buffer), EFI_SUCCESS);
  CHECK_STATUS(uefi_call_wrapper(BS->WaitForEvent, 3, 1, &token.Event, &index), EFI_SUCCESS);
  CHECK(token.TransactionStatus == EFI_SUCCESS && filled(buffer, 5000, 300, 77));
  CHECK_STATUS(block->ReadBlocksEx(block, media, sectors, &token, SECTOR, buffer),
               EFI_INVALID_PARAMETER);
  CHECK_STATUS(block->FlushBlocksEx(block, &token), EFI_SUCCESS);
  uefi_call_wrapper(BS->CloseEvent, 1, token.Event);
}

VOID check_block_io2(const Disk *disk) {
  EFI_GUID guid = EFI_BLOCK_IO2_PROTOCOL_GUID;
  EFI_BLOCK_IO2_PROTOCOL *block;
  UINT8 *buffer = AllocatePool(300 * SECTOR);

  if (!CHECK(buffer != NULL) ||
      !CHECK_STATUS(uefi_call_wrapper(BS->HandleProtocol, 3, disk->handle, &guid, (VOID **)&block),
                    EFI_SUCCESS))
    return;
  UINT32 media = block->Media->MediaId;

  check_token(block, disk->sectors, buffer);
  // Without a token, or without an event in it, the call blocks.
  SetMem(buffer, SECTOR, 0);
  CHECK_STATUS(block->ReadBlocksEx(block, media, 5299, NULL, SECTOR, buffer), EFI_SUCCESS);
  CHECK(filled(buffer, 5299, 1, 77));
  CHECK_STATUS(block->ReadBlocksEx(block, media + 1, 5299, NULL, SECTOR, buffer),
               EFI_MEDIA_CHANGED);
  CHECK_STATUS(block->ReadBlocksEx(block, media, 5299, NULL, 7, buffer), EFI_BAD_BUFFER_SIZE);
  FreePool(buffer);
}
