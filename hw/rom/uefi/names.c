// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which cards the driver knows, and what a firmware's menus call them. The ids are the rows of
// Linux's mvsas table for this chip (mv_init.c); an id outside it would leave the system that is
// booted without a driver. The SSDs get their names (model and serial number) from the firmware's
// own ATA stack.
#include "boot.h"
#include "card.h"

typedef struct {
  UINT16 vendor;
  UINT16 device;
  CHAR16 *name;
} CardName;

static const CardName names[] = {
    {0x1B85, 0x1041, L"OCZ RevoDrive 3 X2"}, {0x1B85, 0x1021, L"OCZ RevoDrive 3"},
    {0x1B85, 0x1022, L"OCZ RevoDrive"},      {0x1B85, 0x1040, L"OCZ RevoDrive"},
    {0x1B85, 0x1042, L"OCZ RevoDrive"},      {0x1B85, 0x1043, L"OCZ RevoDrive"},
    {0x1B85, 0x1044, L"OCZ Z-Drive"},        {0x1B85, 0x1080, L"OCZ RevoDrive"},
    {0x1B85, 0x1083, L"OCZ RevoDrive"},      {0x1B85, 0x1084, L"OCZ Z-Drive"},
    {0x1B4B, 0x9485, L"Marvell 88SE9485"},
};
static CHAR16 driver_name[] = L"RevoDrive 3 SAS Bridge Driver";

CHAR16 *card_name(UINT16 vendor, UINT16 device) {
  for (UINTN i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (names[i].vendor == vendor && names[i].device == device)
      return names[i].name;
  }
  return NULL;
}

static BOOLEAN same(const CHAR8 *a, const CHAR8 *b, UINTN count) {
  for (UINTN i = 0; i < count; i++) {
    if (a[i] != b[i])
      return FALSE;
    if (!a[i])
      break;
  }
  return TRUE;
}

static EFI_STATUS controller_name(EFI_HANDLE controller, EFI_HANDLE child, CHAR16 **name) {
  AtaPassThru *ata;
  UINT16 ids[2];

  if (!controller || !name)
    return EFI_INVALID_PARAMETER;
  // Children are made, and named, by the firmware's ATA stack.
  if (child ||
      EFI_ERROR(boot_services->HandleProtocol(controller, &ata_pass_thru_guid, (VOID **)&ata)) ||
      !ata_is_ours(ata))
    return EFI_UNSUPPORTED;
  EFI_PCI_IO_PROTOCOL *pci = ((Card *)ata)->hba.pci;
  EFI_STATUS status = pci->Pci.Read(pci, EfiPciIoWidthUint16, 0, 2, ids);

  if (EFI_ERROR(status))
    return status;
  *name = card_name(ids[0], ids[1]);
  return *name ? EFI_SUCCESS : EFI_UNSUPPORTED;
}

static EFI_STATUS get_driver_name(const CHAR8 *language, CHAR16 **name, const CHAR8 *ours) {
  if (!language || !name)
    return EFI_INVALID_PARAMETER;
  if (!same(language, ours, 4))
    return EFI_UNSUPPORTED;
  *name = driver_name;
  return EFI_SUCCESS;
}

// Component Name has ISO 639-2 codes, Component Name 2 RFC 4646 ones; "en-US" is English too.
#define ISO_ENGLISH ((CHAR8 *)"eng")
#define RFC_ENGLISH ((CHAR8 *)"en")

static BOOLEAN is_english(const CHAR8 *language) {
  return same(language, RFC_ENGLISH, 2) && (language[2] == 0 || language[2] == '-');
}

static EFI_STATUS EFIAPI driver_name1(EFI_COMPONENT_NAME_PROTOCOL *self, CHAR8 *language,
                                      CHAR16 **name) {
  (void)self;
  return get_driver_name(language, name, ISO_ENGLISH);
}

static EFI_STATUS EFIAPI controller_name1(EFI_COMPONENT_NAME_PROTOCOL *self, EFI_HANDLE controller,
                                          EFI_HANDLE child, CHAR8 *language, CHAR16 **name) {
  (void)self;
  if (!language)
    return EFI_INVALID_PARAMETER;
  return same(language, ISO_ENGLISH, 4) ? controller_name(controller, child, name)
                                        : EFI_UNSUPPORTED;
}

static EFI_STATUS EFIAPI driver_name2(EFI_COMPONENT_NAME2_PROTOCOL *self, CHAR8 *language,
                                      CHAR16 **name) {
  (void)self;
  return get_driver_name(language && is_english(language) ? RFC_ENGLISH : language, name,
                         RFC_ENGLISH);
}

static EFI_STATUS EFIAPI controller_name2(EFI_COMPONENT_NAME2_PROTOCOL *self, EFI_HANDLE controller,
                                          EFI_HANDLE child, CHAR8 *language, CHAR16 **name) {
  (void)self;
  if (!language)
    return EFI_INVALID_PARAMETER;
  return is_english(language) ? controller_name(controller, child, name) : EFI_UNSUPPORTED;
}

EFI_COMPONENT_NAME_PROTOCOL component_name = {driver_name1, controller_name1, ISO_ENGLISH};
EFI_COMPONENT_NAME2_PROTOCOL component_name2 = {driver_name2, controller_name2, RFC_ENGLISH};
