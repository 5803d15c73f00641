// SPDX-License-Identifier: GPL-2.0-or-later
//
// The bridge (88SE94xx) as a firmware needs it: start it, run one ATA command at a time by polling,
// reset a link, stop it. The order of register accesses is that of Linux's driver (drivers/scsi/
// mvsas: mv_94xx.c, mv_sas.c); interrupts stay masked throughout.
//
// A port is a phy: 0 to 3 on core 0, 4 to 7 on core 1. All functions run at TPL_NOTIFY or below and
// none waits without a limit. Nothing here allocates after hba_open().
#ifndef REVODRIVE_ROM_UEFI_HBA_H
#define REVODRIVE_ROM_UEFI_HBA_H

#include <efi.h>
#include <efilib.h>

enum {
  HBA_CORES = 2,
  HBA_PHYS = 4,
  HBA_PORTS = HBA_CORES * HBA_PHYS,
  HBA_FIS_BYTES = 20,
  // A transfer is one piece of bus memory, cut into PRDs whose length has 22 bits.
  HBA_PRD_BYTES = 0x200000,
  HBA_MAX_PRDS = 255,
};
#define HBA_MAX_BYTES ((UINT32)HBA_PRD_BYTES * HBA_MAX_PRDS)

typedef struct {
  UINT32 base;  // of its registers, in BAR 2
  UINT8 *memory;
  EFI_PHYSICAL_ADDRESS bus;  // of memory, as the bridge sees it
  VOID *mapping;
  UINT32 tx_next;
  UINT32 rx_last;
} HbaCore;

typedef struct {
  EFI_PCI_IO_PROTOCOL *pci;
  HbaCore cores[HBA_CORES];
  UINT8 attached;  // bitmap of ports that have an SSD
} Hba;

typedef struct {
  UINT8 fis[HBA_FIS_BYTES];    // host to device
  UINT8 reply[HBA_FIS_BYTES];  // device to host; zeros when there was none
  EFI_PHYSICAL_ADDRESS data;   // bus address
  UINT32 bytes;                // up to HBA_MAX_BYTES
  BOOLEAN to_host;
  UINT64 timeout_us;
} HbaCommand;

// Gets memory for DMA, starts both cores and finds out who is there; takes half a second.
EFI_STATUS hba_open(Hba *hba, EFI_PCI_IO_PROTOCOL *pci);
// Stops all DMA; allowed while boot services end. Whoever comes next finds a chip after reset.
VOID hba_quiesce(Hba *hba);
// Quiesces and gives the memory back.
VOID hba_close(Hba *hba);

// EFI_DEVICE_ERROR: the SSD said so, see reply; EFI_TIMEOUT: no answer, the link was reset.
EFI_STATUS hba_run(Hba *hba, UINTN port, HbaCommand *command);
// EFI_DEVICE_ERROR: the link does not come back.
EFI_STATUS hba_reset_port(Hba *hba, UINTN port);

static inline BOOLEAN hba_has(const Hba *hba, UINTN port) {
  return port < HBA_PORTS && (hba->attached >> port & 1);
}

#endif
