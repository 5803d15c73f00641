// SPDX-License-Identifier: GPL-2.0-or-later
//
// The bridge (88SE94xx) as a firmware needs it: start it, run one ATA or SCSI command at a time by
// polling, reset a link, stop it. The order of register accesses is that of Linux's driver
// (drivers/scsi/ mvsas: mv_94xx.c, mv_sas.c); interrupts stay masked throughout.
//
// A port is a phy: 0 to 3 on core 0, 4 to 7 on core 1. All functions run at TPL_NOTIFY or below and
// none waits without a limit. Nothing here allocates after hba_open().
#ifndef REVODRIVE_ROM_UEFI_HBA_H
#define REVODRIVE_ROM_UEFI_HBA_H

#include <efi.h>
#include <efilib.h>

#include "../sas_hash.h"

enum {
  HBA_CORES = 2,
  HBA_PHYS = 4,
  HBA_PORTS = HBA_CORES * HBA_PHYS,
  HBA_FIS_BYTES = 20,
  HBA_CDB_BYTES = 16,
  HBA_SENSE_BYTES = 96,
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
  UINT32 entry;  // of the completion ring, that of the last command
} HbaCore;

typedef struct {
  EFI_PCI_IO_PROTOCOL *pci;
  HbaCore cores[HBA_CORES];
  UINT8 attached;  // bitmap of ports that have an SSD
  UINT8 volumes;   // ... of ports that have a SAS disk, which is a volume over SSDs (mode=vca)
  UINT8 addresses[HBA_PORTS][SAS_ADDRESS_BYTES];  // of volumes
} Hba;

// Where data are, and for how long to wait.
typedef struct {
  EFI_PHYSICAL_ADDRESS data;  // bus address
  UINT32 bytes;               // up to HBA_MAX_BYTES
  BOOLEAN to_host;
  UINT64 timeout_us;
} HbaTransfer;

typedef struct {
  UINT8 fis[HBA_FIS_BYTES];    // host to device
  UINT8 reply[HBA_FIS_BYTES];  // device to host; zeros when there was none
  HbaTransfer transfer;
} HbaCommand;

typedef struct {
  UINT8 cdb[HBA_CDB_BYTES];  // for LUN 0
  UINT8 status;              // SCSI status
  UINT8 sense[HBA_SENSE_BYTES];
  UINT8 sense_bytes;
  HbaTransfer transfer;
} HbaScsiCommand;

// Gets memory for DMA, starts both cores and finds out who is there; takes half a second.
EFI_STATUS hba_open(Hba *hba, EFI_PCI_IO_PROTOCOL *pci);
// Stops all DMA; allowed while boot services end. Whoever comes next finds a chip after reset.
VOID hba_quiesce(Hba *hba);
// Quiesces and gives the memory back.
VOID hba_close(Hba *hba);

// Makes the buffer one that the bridge can reach, for transfer.bytes and to_host; fills
// transfer.data. Nothing to unmap is a mapping of NULL.
EFI_STATUS hba_map(Hba *hba, VOID *buffer, HbaTransfer *transfer, VOID **mapping);
EFI_STATUS hba_unmap(Hba *hba, VOID *mapping);
// How long a command may take, when the caller gives it so many units of 100 ns (0: for ever).
UINT64 hba_limit_us(UINT64 timeout, UINT32 bytes);

// EFI_DEVICE_ERROR: the SSD said so, see reply; EFI_TIMEOUT: no answer, the link was reset.
EFI_STATUS hba_run(Hba *hba, UINTN port, HbaCommand *command);
// For a volume. EFI_SUCCESS: there was an answer, see status; EFI_DEVICE_ERROR: the bridge could
// not deliver it.
EFI_STATUS hba_run_scsi(Hba *hba, UINTN port, HbaScsiCommand *command);
// EFI_DEVICE_ERROR: the link does not come back.
EFI_STATUS hba_reset_port(Hba *hba, UINTN port);

static inline BOOLEAN hba_has(const Hba *hba, UINTN port) {
  return port < HBA_PORTS && (hba->attached >> port & 1);
}

static inline BOOLEAN hba_has_volume(const Hba *hba, UINTN port) {
  return port < HBA_PORTS && (hba->volumes >> port & 1);
}

#endif
