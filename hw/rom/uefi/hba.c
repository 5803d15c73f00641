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
         (reg(hba, core, PHY_EVENTS + 8 * phy) & EVENT_SIGNATURE);
}

// An empty port cannot be told from a slow SSD, so this always lasts as long as the slowest may
// take.
static VOID find_ssds(Hba *hba) {
  hba->attached = 0;
  for (UINTN waited = 0; waited <= LINK_US && hba->attached != 0xFF; waited += 5 * MS) {
    stall(5 * MS);
    for (UINTN port = 0; port < HBA_PORTS; port++) {
      if (!hba_has(hba, port) && is_up(hba, port))
        hba->attached |= 1 << port;
    }
  }
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
  hba->attached = 0;
}

VOID hba_close(Hba *hba) {
  hba_quiesce(hba);
  for (UINTN i = 0; i < HBA_CORES; i++)
    release(hba, &hba->cores[i]);
}

// Commands

static UINT32 write_prds(HbaCore *core, const HbaCommand *command) {
  UINT32 count = 0;

  for (UINT32 at = 0; at < command->bytes; count++) {
    UINT32 bytes = command->bytes - at;

    if (bytes > HBA_PRD_BYTES)
      bytes = HBA_PRD_BYTES;
    put64(core, PRD_AT + 12 * count, command->data + at);
    put32(core, PRD_AT + 12 * count + 8, bytes);
    at += bytes;
  }
  return count;
}

static VOID write_slot(HbaCore *core, UINTN port, const HbaCommand *command) {
  static const UINT8 frame[4] = {0xA1, 0x0A, 0x00, 0x01};
  UINTN header = LIST_AT + HEADER_BYTES * SLOT;
  UINT32 prds;

  set_mem(core->memory + TABLE_AT, MEMORY_BYTES - TABLE_AT, 0);
  copy_mem(core->memory + TABLE_AT, command->fis, HBA_FIS_BYTES);
  copy_mem(core->memory + OPEN_FRAME_AT, frame, sizeof(frame));
  core->memory[OPEN_FRAME_AT + 3] = (UINT8)(port % HBA_PHYS + 1);
  core->memory[OPEN_FRAME_AT + 4] = (UINT8)port;
  prds = write_prds(core, command);
  // The driver states 255 entries for each transfer to the host, whatever there are.
  if (command->to_host && prds > 0)
    prds = HBA_MAX_PRDS;
  put32(core, header, prds << 16);
  put32(core, header + 4, 0x01000005);  // dwords: response 256, command 5
  put32(core, header + 8, SLOT);
  put32(core, header + 12, command->bytes);
  put64(core, header + 0x10, core->bus + TABLE_AT);
  put64(core, header + 0x18, core->bus + OPEN_FRAME_AT);
  put64(core, header + 0x20, core->bus + STATUS_AT);
  put64(core, header + 0x28, prds > 0 ? core->bus + PRD_AT : 0);
}

static VOID ring_doorbell(Hba *hba, HbaCore *core, UINTN phy) {
  UINT32 index = core->tx_next;

  core->tx_next = (index + 1) % TX_ENTRIES;
  // STP, initiator, register set of the phy, phy, slot
  put32(core, TX_AT + 4 * index, (UINT32)(0x70000000 | phy << 20 | 1 << (12 + phy) | SLOT));
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

    mine |= (entry & RX_SLOT) == SLOT;
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

EFI_STATUS hba_run(Hba *hba, UINTN port, HbaCommand *command) {
  UINTN phy = port % HBA_PHYS;
  HbaCore *core;

  set_mem(command->reply, HBA_FIS_BYTES, 0);
  if (!hba_has(hba, port) || command->bytes > HBA_MAX_BYTES)
    return EFI_INVALID_PARAMETER;
  core = core_of(hba, port);
  core->rx_last = rx_last(core);
  write_slot(core, port, command);
  ring_doorbell(hba, core, phy);
  for (UINT64 waited = 0; waited <= command->timeout_us; waited += pause(waited)) {
    if (take_completion(hba, core))
      return outcome(core, phy, command);
  }
  hba_reset_port(hba, port);
  return EFI_TIMEOUT;
}

// Cancels what the port does: neither completion nor DMA of it follows.
EFI_STATUS hba_reset_port(Hba *hba, UINTN port) {
  HbaCore *core;
  UINTN phy = port % HBA_PHYS;

  if (!hba_has(hba, port))
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
