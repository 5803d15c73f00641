/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The 88SE94xx as far as a BIOS needs it: slot 0, register set 0, the first entry of each ring, no
 * interrupts. The rings run only while a command does, so nothing of the card touches memory
 * between two calls, and an operating system finds the chip at rest. Registers: docs/registers.md.
 */
#include "bios.h"

#define CORE0 0x20000
#define CORE_STRIDE 0x4000
#define GLOBAL_ENABLE 0x1020C

#define CTL 0x100
#define CTL_RESET 0x20
#define PCS 0x104
#define PCS_RUN 0x11  /* take delivery entries, receive FISes */
#define PCS_DROP 0x02 /* forget all commands */
#define CMD_LIST 0x108
#define RX_FIS 0x110
#define TX_CFG 0x120
#define TX_BASE 0x124
#define TX_PROD 0x12C
#define RX_CFG 0x134
#define RX_BASE 0x138
#define RING_ENABLE 0x10000
#define INT_COAL 0x148
#define INT_STAT 0x150
#define INT_MASK 0x154
#define PORT_STAT 0x180 /* + 8 * phy */
#define PORT_MASK 0x184
#define PORT_SIGNATURE 0x10000
#define SER_CTLSTAT 0x1D0 /* + 4 * phy */
#define SER_RESET 0x01
#define SER_READY 0x100000
#define CFG_ADDR 0x200 /* + 8 * phy */
#define CFG_ATTACHED_ADDRESS 0x128
#define VSR_ADDR 0x250 /* + 8 * phy */
#define VSR_CONFIG 0x08
#define VSR_TYPE 0x0C
#define TYPE_MASK 0x3F0000
#define TYPE_SAS 0x100000
#define VSR_DISABLED 0x0084FFFE
#define VSR_ENABLED 0x0004FFFF

#define RX_NONE 0xFFF
#define CANCEL_LINK_MS 200

static volatile uint32_t *reg(uint32_t offset) {
  return at(memory()->registers + offset);
}

static volatile uint32_t *core_reg(unsigned phy, uint32_t offset) {
  return reg(CORE0 + phy / PHYS_PER_CORE * CORE_STRIDE + offset);
}

static uint32_t physical(const volatile void *pointer) {
  return (uint32_t)pointer + rom_base;
}

/* ---------------------------------------------------------------------------------------- clock */

static uint64_t clock_now(void) {
  return __builtin_ia32_rdtsc();
}

static uint8_t in8(uint16_t port) {
  uint8_t value;

  __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
  return value;
}

static void out8(uint16_t port, uint8_t value) {
  __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

/* Channel 0 of the interval timer counts down with 1193182 Hz. */
static uint16_t pit_count(void) {
  out8(0x43, 0x00);
  uint8_t low = in8(0x40);
  return (uint16_t)(in8(0x40) << 8 | low);
}

#define PIT_TICKS_2MS 2386
#define PIT_READS_MAX 1000000

void delay_start(void) {
  uint16_t from = pit_count();
  uint64_t start = clock_now();

  for (uint32_t reads = 0; (uint16_t)(from - pit_count()) < PIT_TICKS_2MS && reads < PIT_READS_MAX;)
    reads++;
  uint32_t ticks = (uint32_t)(clock_now() - start) / 2;
  memory()->tsc_per_ms = ticks ? ticks : 1;
}

uint64_t deadline_after(uint32_t ms) {
  return clock_now() + (uint64_t)memory()->tsc_per_ms * ms;
}

bool is_past(uint64_t deadline) {
  return clock_now() >= deadline;
}

/* ---------------------------------------------------------------------------------------- links */

static void set_address(unsigned phy, uint32_t offset, const volatile void *pointer) {
  *core_reg(phy, offset) = physical(pointer);
  *core_reg(phy, offset + 4) = 0;
}

static void rings_off(unsigned phy) {
  *core_reg(phy, PCS) = 0;
  *core_reg(phy, TX_CFG) = RING_ENTRIES;
  *core_reg(phy, RX_CFG) = RING_ENTRIES;
}

static void core_start(unsigned first_phy) {
  struct Memory *m = memory();

  *core_reg(first_phy, CTL) = CTL_RESET;
  rings_off(first_phy);
  *core_reg(first_phy, INT_MASK) = 0;
  *core_reg(first_phy, INT_COAL) = 0;
  set_address(first_phy, CMD_LIST, m->header);
  set_address(first_phy, RX_FIS, m->fis);
  set_address(first_phy, TX_BASE, m->tx);
  set_address(first_phy, RX_BASE, &m->rx_mirror);
  for (unsigned phy = 0; phy < PHYS_PER_CORE; phy++) {
    *core_reg(first_phy, PORT_MASK + 8 * phy) = 0;
    *core_reg(first_phy, VSR_ADDR + 8 * phy) = VSR_CONFIG;
    *core_reg(first_phy, VSR_ADDR + 8 * phy + 4) = VSR_DISABLED;
    *core_reg(first_phy, PORT_STAT + 8 * phy) = 0xFFFFFFFF;
    *core_reg(first_phy, VSR_ADDR + 8 * phy + 4) = VSR_ENABLED;
  }
}

void bridge_start(void) {
  *reg(GLOBAL_ENABLE) = 0;
  for (unsigned phy = 0; phy < PHYS; phy += PHYS_PER_CORE)
    core_start(phy);
}

bool bridge_link_up(unsigned phy) {
  return *core_reg(phy, SER_CTLSTAT + 4 * (phy % PHYS_PER_CORE)) & SER_READY;
}

unsigned bridge_link_rate(unsigned phy) {
  return *core_reg(phy, SER_CTLSTAT + 4 * (phy % PHYS_PER_CORE)) >> 16 & 3;
}

bool bridge_has_signature(unsigned phy) {
  return *core_reg(phy, PORT_STAT + 8 * (phy % PHYS_PER_CORE)) & PORT_SIGNATURE;
}

static uint32_t read_indirect(unsigned phy, uint32_t space, uint32_t offset) {
  *core_reg(phy, space + 8 * (phy % PHYS_PER_CORE)) = offset;
  return *core_reg(phy, space + 8 * (phy % PHYS_PER_CORE) + 4);
}

bool bridge_is_sas(unsigned phy, uint8_t *address) {
  if ((read_indirect(phy, VSR_ADDR, VSR_TYPE) & TYPE_MASK) != TYPE_SAS)
    return false;
  for (unsigned i = 0; i < SAS_ADDRESS_BYTES; i++)
    address[i] =
        (uint8_t)(read_indirect(phy, CFG_ADDR, CFG_ATTACHED_ADDRESS + i / 4 * 4) >> (8 * (i % 4)));
  return true;
}

/* ------------------------------------------------------------------------------------- commands */

void clear(volatile void *memory, uint32_t bytes) {
  for (volatile uint8_t *byte = memory; bytes; bytes--)
    *byte++ = 0;
}

static void fill_slot(const struct Delivery *delivery) {
  struct Memory *m = memory();

  clear(m->header, sizeof(m->header));
  clear(m->status, sizeof(m->status));
  m->header[0] = delivery->flags | delivery->prds << 16;
  m->header[1] = delivery->lengths;
  m->header[3] = delivery->bytes;
  m->header[4] = physical(m->table);
  m->header[6] = physical(m->table + OPEN_FRAME_AT);
  m->header[8] = physical(m->status);
  m->header[10] = delivery->prds ? physical(m->prd) : 0;
  m->prd[0] = delivery->address;
  m->prd[1] = 0;
  m->prd[2] = delivery->bytes;
  m->prd[3] = 0;
}

static void start(unsigned phy, uint32_t kind) {
  struct Memory *m = memory();

  m->tx[0] = kind << 29 | 1u << 28 | 1u << (12 + phy % PHYS_PER_CORE);
  m->rx_mirror = RX_NONE;
  __asm__ volatile("" : : : "memory");
  *core_reg(phy, RX_CFG) = RING_ENTRIES | RING_ENABLE;
  *core_reg(phy, TX_CFG) = RING_ENTRIES | RING_ENABLE;
  *core_reg(phy, PCS) = PCS_RUN;
  *core_reg(phy, TX_PROD) = 0;
}

static bool wait_done(uint32_t timeout_ms) {
  const volatile uint32_t *mirror = &memory()->rx_mirror;
  uint64_t end = deadline_after(timeout_ms), breath = deadline_after(1);

  while (*mirror == RX_NONE) {
    if (is_past(end))
      return false;
    if (is_past(breath)) {
      yield();
      breath = deadline_after(1);
    }
  }
  return true;
}

/* The chip forgets the command, the drive gets a reset. The other links stay as they are. */
static void cancel(unsigned phy) {
  *core_reg(phy, PCS) = PCS_DROP;
  rings_off(phy);
  *core_reg(phy, SER_CTLSTAT + 4 * (phy % PHYS_PER_CORE)) |= SER_RESET;
  for (uint64_t end = deadline_after(CANCEL_LINK_MS); !bridge_link_up(phy) && !is_past(end);)
    ;
}

uint8_t bridge_deliver(unsigned phy, const struct Delivery *delivery, uint32_t *entry) {
  if (!bridge_link_up(phy))
    return STATUS_NOT_READY;
  fill_slot(delivery);
  start(phy, delivery->kind);
  if (!wait_done(delivery->timeout_ms)) {
    cancel(phy);
    return STATUS_TIMEOUT;
  }
  rings_off(phy);
  *core_reg(phy, INT_STAT) = *core_reg(phy, INT_STAT);
  *entry = *(volatile uint32_t *)&memory()->rx[0];
  return STATUS_OK;
}
