// SPDX-License-Identifier: GPL-2.0-or-later
#include "hba.h"

#include "boot.h"

#define MS 1000u

enum {
  BAR = 2,
  CORE_BASE = 0x20000,
  CORE_STRIDE = 0x4000,
};

// Registers of a core.
enum {
  CTL = 0x100,
  PCS = 0x104,
  CMD_LIST = 0x108,
  RX_FIS = 0x110,
  REGISTER_SETS = 0x118,
  TX_CFG = 0x120,
  TX_BASE = 0x124,
  TX_PROD = 0x12C,
  RX_CFG = 0x134,
  RX_BASE = 0x138,
  INT_COAL = 0x148,
  INT_STAT = 0x150,
  INT_MASK = 0x154,
  PHY_EVENTS = 0x180,  // 8 bytes a phy: status, mask
  PHY_SERIAL = 0x1D0,  // 4 bytes a phy
  PHY_CFG = 0x200,     // 8 bytes a phy: address, data
  PHY_VSR = 0x250,     // 8 bytes a phy: address, data
  ALL_VSR = 0x290,     // address, data: all phys at once
};

enum {
  CTL_RESET = 1 << 5,
  CTL_BYTE_ORDER = 0x05,
  PCS_RUN = 0x59,
  PCS_DROP_QUEUE = 1 << 1,
  RING_ENABLE = 1 << 16,
  TX_ENTRIES = 2048,
  RX_ENTRIES = 1024,
  RX_NONE = 0xFFF,
  RX_SLOT = 0xFFF,
  SERIAL_RESET = 1 << 0,
  SERIAL_READY = 1 << 20,
  EVENT_SIGNATURE = 1 << 16,
  VSR_CONFIG = 0x08,
  VSR_DISABLED = 0x0084FFFE,
  VSR_ENABLED = 0x0004FFFF,
  VSR_TYPE = 0x0C,
  TYPE_MASK = 0x3F0000,
  TYPE_SAS = 0x100000,
  CFG_ATTACHED_ADDRESS = 0x128,
};

// Of the delivery ring's entries and of command headers.
enum {
  ENTRY_SSP = 0x30000000,
  ENTRY_STP = 0x70000000,
  LENGTHS_STP = 0x01000005,  // dwords: response 256, command 5
  LENGTHS_SSP = 0x0100000D,
  FLAGS_SSP = 0x200,  // transport layer retries
  ENTRY_ERROR = 0x20000,
  ENTRY_RESPONSE = 0x40000,
};

// SSP frames (SAS-2, 9.2).
enum {
  FRAME_COMMAND = 0x06,
  CDB_AT = 24 + 12,
  RESPONSE_AT = 8,  // in the status buffer, behind the bridge's own error information
  DATA_PRESENT_AT = RESPONSE_AT + 10,
  SCSI_STATUS_AT = RESPONSE_AT + 11,
  SENSE_LENGTH_AT = RESPONSE_AT + 18,  // 16 of its 32 bits
  SENSE_AT = RESPONSE_AT + 24,
  DATA_SENSE = 2,
};

// A core's memory. One command at a time needs one slot; the rings have the driver's sizes.
enum {
  SLOT = 0,
  HEADER_BYTES = 64,
  LIST_AT = 0x0000,
  TX_AT = 0x1000,
  FIS_AT = 0x3000,
  RX_AT = 0x5000,
  TABLE_AT = 0x7000,
  OPEN_FRAME_AT = TABLE_AT + 0x060,
  PRD_AT = TABLE_AT + 0x0A0,
  STATUS_AT = TABLE_AT + 0xC94,
  MEMORY_BYTES = 0x9000,
  REPLY_AT = FIS_AT + 0x840,  // of register set 0; the others follow
  REPLY_STRIDE = 0x100,
};

// After each address of an indirect register the driver waits 10 ms before the data.
#define INDIRECT_US (10 * MS)
#define RESET_US (10 * MS)
#define LINK_US (450 * MS)
#define FIRST_POLL_US 10u
#define LONGEST_POLL_US MS
// A firmware has other disks to boot from: it waits neither for ever, nor half a minute for a read,
// as some callers would. An erase may take its time.
#define LONGEST_US 600000000ull
#define LONGEST_TRANSFER_US 10000000ull
#define STATUS_BAD 0xA9  // BSY, DF, DRQ, ERR
#define STATUS_READY 0x40

static UINT32 reg(const Hba *hba, const HbaCore *core, UINT32 offset) {
  UINT32 value = 0xFFFFFFFF;

  hba->pci->Mem.Read(hba->pci, EfiPciIoWidthUint32, BAR, core->base + offset, 1, &value);
  return value;
}

static VOID set_reg(const Hba *hba, const HbaCore *core, UINT32 offset, UINT32 value) {
  hba->pci->Mem.Write(hba->pci, EfiPciIoWidthUint32, BAR, core->base + offset, 1, &value);
}

static VOID set_address(const Hba *hba, const HbaCore *core, UINT32 offset, UINTN at) {
  UINT64 bus = core->bus + at;

  set_reg(hba, core, offset, (UINT32)bus);
  set_reg(hba, core, offset + 4, (UINT32)(bus >> 32));
}

static VOID put32(HbaCore *core, UINTN at, UINT32 value) {
  *(volatile UINT32 *)(core->memory + at) = value;
}

static VOID put64(HbaCore *core, UINTN at, UINT64 value) {
  put32(core, at, (UINT32)value);
  put32(core, at + 4, (UINT32)(value >> 32));
}

static UINT32 rx_last(const HbaCore *core) {
  return *(volatile UINT32 *)(core->memory + RX_AT) & 0xFFF;
}

static HbaCore *core_of(Hba *hba, UINTN port) {
  return &hba->cores[port / HBA_PHYS];
}

// Memory

static EFI_STATUS allocate(Hba *hba, HbaCore *core) {
  EFI_PCI_IO_PROTOCOL *pci = hba->pci;
  UINTN bytes = MEMORY_BYTES;
  VOID *memory;
  EFI_STATUS status = pci->AllocateBuffer(pci, AllocateAnyPages, EfiBootServicesData,
                                          EFI_SIZE_TO_PAGES(MEMORY_BYTES), &memory, 0);

  if (EFI_ERROR(status))
    return status;
  status = pci->Map(pci, EfiPciIoOperationBusMasterCommonBuffer, memory, &bytes, &core->bus,
                    &core->mapping);
  if (!EFI_ERROR(status) && bytes < MEMORY_BYTES) {
    pci->Unmap(pci, core->mapping);
    status = EFI_OUT_OF_RESOURCES;
  }
  if (EFI_ERROR(status)) {
    pci->FreeBuffer(pci, EFI_SIZE_TO_PAGES(MEMORY_BYTES), memory);
    return status;
  }
  core->memory = memory;
  return EFI_SUCCESS;
}

static VOID release(Hba *hba, HbaCore *core) {
  if (!core->memory)
    return;
  hba->pci->Unmap(hba->pci, core->mapping);
  hba->pci->FreeBuffer(hba->pci, EFI_SIZE_TO_PAGES(MEMORY_BYTES), core->memory);
  core->memory = NULL;
}

// Start and stop

static EFI_STATUS reset_core(Hba *hba, HbaCore *core) {
  set_reg(hba, core, CTL, (reg(hba, core, CTL) & 0xFFFF) | CTL_RESET);
  for (UINTN waited = 0; reg(hba, core, CTL) & CTL_RESET; waited += MS) {
    if (waited >= RESET_US)
      return EFI_DEVICE_ERROR;
    stall(MS);
  }
  return EFI_SUCCESS;
}

static VOID write_all_vsr(Hba *hba, UINT32 value) {
  for (UINTN i = 0; i < HBA_CORES; i++)
    set_reg(hba, &hba->cores[i], ALL_VSR, VSR_CONFIG);
  stall(INDIRECT_US);
  for (UINTN i = 0; i < HBA_CORES; i++)
    set_reg(hba, &hba->cores[i], ALL_VSR + 4, value);
}

static VOID enable_phys(Hba *hba) {
  for (UINTN port = 0; port < HBA_PORTS; port++)
    set_reg(hba, core_of(hba, port), PHY_VSR + 8 * (port % HBA_PHYS), VSR_CONFIG);
  stall(INDIRECT_US);
  for (UINTN port = 0; port < HBA_PORTS; port++)
    set_reg(hba, core_of(hba, port), PHY_VSR + 8 * (port % HBA_PHYS) + 4, VSR_ENABLED);
}

static VOID start_rings(Hba *hba, HbaCore *core) {
  set_mem(core->memory, MEMORY_BYTES, 0);
  put32(core, RX_AT, RX_NONE);
  core->tx_next = 0;
  core->rx_last = RX_NONE;
  set_address(hba, core, CMD_LIST, LIST_AT);
  set_address(hba, core, RX_FIS, FIS_AT);
  set_reg(hba, core, TX_CFG, TX_ENTRIES);
  set_address(hba, core, TX_BASE, TX_AT);
  set_reg(hba, core, RX_CFG, RX_ENTRIES);
  set_address(hba, core, RX_BASE, RX_AT);
  set_reg(hba, core, CTL, CTL_BYTE_ORDER);
  set_reg(hba, core, PCS, PCS_DROP_QUEUE);
  set_reg(hba, core, INT_COAL, 0);
  set_reg(hba, core, INT_MASK, 0);
  set_reg(hba, core, TX_CFG, 0);
  set_reg(hba, core, TX_CFG, TX_ENTRIES | RING_ENABLE);
  set_reg(hba, core, RX_CFG, RX_ENTRIES | RING_ENABLE);
  set_reg(hba, core, PCS, PCS_RUN);
  // Register set n belongs to phy n.
  set_reg(hba, core, REGISTER_SETS, (1 << HBA_PHYS) - 1);
}

static BOOLEAN is_up(Hba *hba, UINTN port) {
  HbaCore *core = core_of(hba, port);
  UINTN phy = port % HBA_PHYS;

  return (reg(hba, core, PHY_SERIAL + 4 * phy) & SERIAL_READY) &&
         (hba_has_volume(hba, port) || (reg(hba, core, PHY_EVENTS + 8 * phy) & EVENT_SIGNATURE));
}

static UINT32 read_indirect(Hba *hba, UINTN port, UINT32 space, UINT32 at) {
  HbaCore *core = core_of(hba, port);

  space += (UINT32)(8 * (port % HBA_PHYS));
  set_reg(hba, core, space, at);
  stall(INDIRECT_US);
  return reg(hba, core, space + 4);
}

static VOID find_volume(Hba *hba, UINTN port) {
  if (hba_has(hba, port) ||
      !(reg(hba, core_of(hba, port), PHY_SERIAL + 4 * (port % HBA_PHYS)) & SERIAL_READY) ||
      (read_indirect(hba, port, PHY_VSR, VSR_TYPE) & TYPE_MASK) != TYPE_SAS)
    return;
  for (UINT32 at = 0; at < SAS_ADDRESS_BYTES; at += 4) {
    UINT32 part = read_indirect(hba, port, PHY_CFG, CFG_ATTACHED_ADDRESS + at);

    copy_mem(hba->addresses[port] + at, &part, sizeof(part));
  }
  hba->volumes |= 1 << port;
}

// An empty port cannot be told from a slow SSD, so this always lasts as long as the slowest may
// take.
static VOID find_ssds(Hba *hba) {
  hba->attached = hba->volumes = 0;
  for (UINTN waited = 0; waited <= LINK_US && hba->attached != 0xFF; waited += 5 * MS) {
    stall(5 * MS);
    for (UINTN port = 0; port < HBA_PORTS; port++) {
      if (!hba_has(hba, port) && is_up(hba, port))
        hba->attached |= 1 << port;
    }
  }
  for (UINTN port = 0; port < HBA_PORTS; port++)
    find_volume(hba, port);
}

EFI_STATUS hba_open(Hba *hba, EFI_PCI_IO_PROTOCOL *pci) {
  EFI_STATUS status = EFI_SUCCESS;

  set_mem(hba, sizeof(*hba), 0);
  hba->pci = pci;
  for (UINTN i = 0; i < HBA_CORES && !EFI_ERROR(status); i++) {
    hba->cores[i].base = (UINT32)(CORE_BASE + i * CORE_STRIDE);
    status = reset_core(hba, &hba->cores[i]);
    if (!EFI_ERROR(status))
      status = allocate(hba, &hba->cores[i]);
  }
  if (EFI_ERROR(status)) {
    for (UINTN i = 0; i < HBA_CORES; i++)
      release(hba, &hba->cores[i]);
    return status;
  }
  write_all_vsr(hba, VSR_DISABLED);
  for (UINTN i = 0; i < HBA_CORES; i++)
    start_rings(hba, &hba->cores[i]);
  enable_phys(hba);
  find_ssds(hba);
  return EFI_SUCCESS;
}

VOID hba_quiesce(Hba *hba) {
  for (UINTN i = 0; i < HBA_CORES; i++) {
    HbaCore *core = &hba->cores[i];

    set_reg(hba, core, PCS, PCS_DROP_QUEUE);
    set_reg(hba, core, PCS, 0);
    set_reg(hba, core, TX_CFG, 0);
    set_reg(hba, core, RX_CFG, 0);
    set_reg(hba, core, REGISTER_SETS, 0);
    set_reg(hba, core, CTL, CTL_RESET);
    for (UINT32 at = CMD_LIST; at <= RX_FIS + 4; at += 4)
      set_reg(hba, core, at, 0);
    set_reg(hba, core, TX_BASE, 0);
    set_reg(hba, core, TX_BASE + 4, 0);
    set_reg(hba, core, RX_BASE, 0);
    set_reg(hba, core, RX_BASE + 4, 0);
  }
  hba->attached = hba->volumes = 0;
}

VOID hba_close(Hba *hba) {
  hba_quiesce(hba);
  for (UINTN i = 0; i < HBA_CORES; i++)
    release(hba, &hba->cores[i]);
}

// Commands

EFI_STATUS hba_map(Hba *hba, VOID *buffer, HbaTransfer *transfer, VOID **mapping) {
  EFI_PCI_IO_PROTOCOL *pci = hba->pci;
  UINTN bytes = transfer->bytes;

  *mapping = NULL;
  if (transfer->bytes == 0)
    return EFI_SUCCESS;
  if (EFI_ERROR(pci->Map(
          pci, transfer->to_host ? EfiPciIoOperationBusMasterWrite : EfiPciIoOperationBusMasterRead,
          buffer, &bytes, &transfer->data, mapping)))
    return EFI_OUT_OF_RESOURCES;
  if (bytes == transfer->bytes)
    return EFI_SUCCESS;
  pci->Unmap(pci, *mapping);
  return EFI_OUT_OF_RESOURCES;
}

EFI_STATUS hba_unmap(Hba *hba, VOID *mapping) {
  return mapping ? hba->pci->Unmap(hba->pci, mapping) : EFI_SUCCESS;
}

UINT64 hba_limit_us(UINT64 timeout, UINT32 bytes) {
  UINT64 longest = bytes > 0 ? LONGEST_TRANSFER_US : LONGEST_US;
  UINT64 wanted = timeout / 10;

  return timeout == 0 || wanted > longest ? longest : wanted;
}

static UINT32 write_prds(HbaCore *core, const HbaTransfer *transfer) {
  UINT32 count = 0;

  for (UINT32 at = 0; at < transfer->bytes; count++) {
    UINT32 bytes = transfer->bytes - at;

    if (bytes > HBA_PRD_BYTES)
      bytes = HBA_PRD_BYTES;
    put64(core, PRD_AT + 12 * count, transfer->data + at);
    put32(core, PRD_AT + 12 * count + 8, bytes);
    at += bytes;
  }
  return count;
}

static VOID write_header(HbaCore *core, UINT32 flags, UINT32 lengths, UINT32 prds,
                         const HbaTransfer *transfer) {
  UINTN header = LIST_AT + HEADER_BYTES * SLOT;

  put32(core, header, prds << 16 | flags);
  put32(core, header + 4, lengths);
  put32(core, header + 8, SLOT);
  put32(core, header + 12, transfer->bytes);
  put64(core, header + 0x10, core->bus + TABLE_AT);
  put64(core, header + 0x18, core->bus + OPEN_FRAME_AT);
  put64(core, header + 0x20, core->bus + STATUS_AT);
  put64(core, header + 0x28, prds > 0 ? core->bus + PRD_AT : 0);
}

static VOID write_slot(HbaCore *core, UINTN port, const HbaCommand *command) {
  static const UINT8 frame[4] = {0xA1, 0x0A, 0x00, 0x01};
  UINT32 prds;

  set_mem(core->memory + TABLE_AT, MEMORY_BYTES - TABLE_AT, 0);
  copy_mem(core->memory + TABLE_AT, command->fis, HBA_FIS_BYTES);
  copy_mem(core->memory + OPEN_FRAME_AT, frame, sizeof(frame));
  core->memory[OPEN_FRAME_AT + 3] = (UINT8)(port % HBA_PHYS + 1);
  core->memory[OPEN_FRAME_AT + 4] = (UINT8)port;
  prds = write_prds(core, &command->transfer);
  // The driver states 255 entries for each transfer to the host, whatever there are.
  if (command->transfer.to_host && prds > 0)
    prds = HBA_MAX_PRDS;
  set_mem(core->memory + REPLY_AT + REPLY_STRIDE * (port % HBA_PHYS), HBA_FIS_BYTES, 0);
  write_header(core, 0, LENGTHS_STP, prds, &command->transfer);
}

static VOID write_ssp_slot(HbaCore *core, UINTN port, const UINT8 *address,
                           const HbaScsiCommand *command) {
  static const UINT8 frame[4] = {0x91, 0x0A, 0x00, 0x01};
  UINT8 *table = core->memory + TABLE_AT;
  UINT32 hash = sas_hash(address);

  set_mem(table, MEMORY_BYTES - TABLE_AT, 0);
  table[0] = FRAME_COMMAND;
  for (UINTN i = 0; i < 3; i++)
    table[1 + i] = table[5 + i] = (UINT8)(hash >> (16 - 8 * i));
  copy_mem(table + CDB_AT, command->cdb, HBA_CDB_BYTES);
  copy_mem(core->memory + OPEN_FRAME_AT, frame, sizeof(frame));
  core->memory[OPEN_FRAME_AT + 3] = (UINT8)(port % HBA_PHYS + 1);
  copy_mem(core->memory + OPEN_FRAME_AT + 4, address, SAS_ADDRESS_BYTES);
  write_header(core, FLAGS_SSP, LENGTHS_SSP, write_prds(core, &command->transfer),
               &command->transfer);
}

static VOID ring_doorbell(Hba *hba, HbaCore *core, UINT32 entry) {
  UINT32 index = core->tx_next;

  core->tx_next = (index + 1) % TX_ENTRIES;
  put32(core, TX_AT + 4 * index, entry);
  __asm__ volatile("mfence" ::: "memory");
  set_reg(hba, core, TX_PROD, index);
}

// Takes completions off the ring; true when one is of the slot.
static BOOLEAN take_completion(Hba *hba, HbaCore *core) {
  BOOLEAN mine = FALSE;
  UINT32 last = rx_last(core);

  if (last == core->rx_last || last >= RX_ENTRIES)
    return FALSE;
  while (core->rx_last != last) {
    core->rx_last = core->rx_last == RX_NONE ? 0 : (core->rx_last + 1) % RX_ENTRIES;
    UINT32 entry = *(volatile UINT32 *)(core->memory + RX_AT + 4 + 4 * core->rx_last);

    if ((entry & RX_SLOT) == SLOT) {
      core->entry = entry;
      mine = TRUE;
    }
  }
  // Tells the bridge that these entries may be overwritten.
  set_reg(hba, core, INT_STAT, reg(hba, core, INT_STAT));
  return mine;
}

static EFI_STATUS outcome(HbaCore *core, UINTN phy, HbaCommand *command) {
  copy_mem(command->reply, core->memory + REPLY_AT + REPLY_STRIDE * phy, HBA_FIS_BYTES);
  UINT8 status = command->reply[2];

  return (status & STATUS_BAD) || !(status & STATUS_READY) ? EFI_DEVICE_ERROR : EFI_SUCCESS;
}

// Looks often at first and seldom later, so that the pauses are nearly all of the time that passes.
static UINTN pause(UINT64 waited) {
  UINT64 us = FIRST_POLL_US + waited / 16;

  if (us > LONGEST_POLL_US)
    us = LONGEST_POLL_US;
  stall((UINTN)us);
  return (UINTN)us;
}

// The slot is filled. EFI_TIMEOUT: no answer, the link was reset.
static EFI_STATUS deliver(Hba *hba, UINTN port, UINT32 kind, UINT64 timeout_us) {
  HbaCore *core = core_of(hba, port);

  ring_doorbell(hba, core, kind | 1 << (12 + port % HBA_PHYS) | SLOT);
  for (UINT64 waited = 0; waited <= timeout_us; waited += pause(waited)) {
    if (take_completion(hba, core))
      return EFI_SUCCESS;
  }
  hba_reset_port(hba, port);
  return EFI_TIMEOUT;
}

EFI_STATUS hba_run(Hba *hba, UINTN port, HbaCommand *command) {
  UINT32 phy = port % HBA_PHYS;
  HbaCore *core;

  set_mem(command->reply, HBA_FIS_BYTES, 0);
  if (!hba_has(hba, port) || command->transfer.bytes > HBA_MAX_BYTES)
    return EFI_INVALID_PARAMETER;
  core = core_of(hba, port);
  core->rx_last = rx_last(core);
  write_slot(core, port, command);
  // The register set is the phy's.
  EFI_STATUS status = deliver(hba, port, ENTRY_STP | phy << 20, command->transfer.timeout_us);

  return EFI_ERROR(status) ? status : outcome(core, phy, command);
}

static EFI_STATUS scsi_outcome(const HbaCore *core, HbaScsiCommand *command) {
  const UINT8 *answer = core->memory + STATUS_AT;

  if (core->entry & ENTRY_ERROR)
    return EFI_DEVICE_ERROR;
  if (!(core->entry & ENTRY_RESPONSE))
    return EFI_SUCCESS;
  command->status = answer[SCSI_STATUS_AT];
  if ((answer[DATA_PRESENT_AT] & 3) != DATA_SENSE)
    return EFI_SUCCESS;
  UINTN bytes = (UINTN)answer[SENSE_LENGTH_AT] << 8 | answer[SENSE_LENGTH_AT + 1];

  command->sense_bytes = (UINT8)(bytes > HBA_SENSE_BYTES ? HBA_SENSE_BYTES : bytes);
  copy_mem(command->sense, answer + SENSE_AT, command->sense_bytes);
  return EFI_SUCCESS;
}

EFI_STATUS hba_run_scsi(Hba *hba, UINTN port, HbaScsiCommand *command) {
  HbaCore *core;

  command->status = command->sense_bytes = 0;
  if (!hba_has_volume(hba, port) || command->transfer.bytes > HBA_MAX_BYTES)
    return EFI_INVALID_PARAMETER;
  core = core_of(hba, port);
  core->rx_last = rx_last(core);
  write_ssp_slot(core, port, hba->addresses[port], command);
  EFI_STATUS status = deliver(hba, port, ENTRY_SSP, command->transfer.timeout_us);

  return EFI_ERROR(status) ? status : scsi_outcome(core, command);
}

// Cancels what the port does: neither completion nor DMA of it follows.
EFI_STATUS hba_reset_port(Hba *hba, UINTN port) {
  HbaCore *core;
  UINTN phy = port % HBA_PHYS;

  if (!hba_has(hba, port) && !hba_has_volume(hba, port))
    return EFI_INVALID_PARAMETER;
  core = core_of(hba, port);
  set_reg(hba, core, PHY_EVENTS + 8 * phy, reg(hba, core, PHY_EVENTS + 8 * phy));
  set_reg(hba, core, PHY_SERIAL + 4 * phy, reg(hba, core, PHY_SERIAL + 4 * phy) | SERIAL_RESET);
  for (UINTN waited = 0; waited <= LINK_US; waited += 5 * MS) {
    stall(5 * MS);
    if (is_up(hba, port))
      return EFI_SUCCESS;
  }
  return EFI_DEVICE_ERROR;
}
