// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the driver uses of the boot services, under short names. boot_services is set at entry.
#ifndef REVODRIVE_ROM_UEFI_BOOT_H
#define REVODRIVE_ROM_UEFI_BOOT_H

#include <efi.h>
#include <efilib.h>

extern EFI_BOOT_SERVICES *boot_services;

static inline VOID stall(UINTN us) {
  boot_services->Stall(us);
}

static inline VOID set_mem(VOID *to, UINTN bytes, UINT8 value) {
  boot_services->SetMem(to, bytes, value);
}

static inline VOID copy_mem(VOID *to, const VOID *from, UINTN bytes) {
  boot_services->CopyMem(to, (VOID *)from, bytes);
}

#endif
