// SPDX-License-Identifier: GPL-2.0-or-later
//
// One card under the driver: what Start() makes and Stop() takes away.
#ifndef REVODRIVE_ROM_UEFI_CARD_H
#define REVODRIVE_ROM_UEFI_CARD_H

#include "ata_pass_thru.h"
#include "hba.h"
#include "scsi_pass_thru.h"

typedef struct {
  AtaPassThru ata;  // first: the protocol's own pointer finds the card
  AtaMode mode;
  ScsiPassThru scsi;  // published when there is a volume
  ScsiMode scsi_mode;
  Hba hba;
  EFI_EVENT exit_event;
  UINT64 old_attributes;  // of the PCI function
} Card;

// pass_thru.c: fills the protocol of a card.
VOID ata_init(Card *card);
BOOLEAN ata_is_ours(const AtaPassThru *ata);

// scsi_pass_thru.c: the same.
VOID scsi_init(Card *card);

// names.c
extern EFI_COMPONENT_NAME_PROTOCOL component_name;
extern EFI_COMPONENT_NAME2_PROTOCOL component_name2;
// The card's name, or NULL for ids that are not of such a card.
CHAR16 *card_name(UINT16 vendor, UINT16 device);

extern EFI_GUID ata_pass_thru_guid;
extern EFI_GUID pci_io_guid;

#endif
