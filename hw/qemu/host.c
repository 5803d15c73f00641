/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host interface of the core (include/revodrive/host.h), served by QEMU. `host` is the
 * RevoCard.
 *
 * Guest memory is reached through the address space of the PCI function: an IOMMU and the bus
 * master bit are in it already. A function that sleeps (D3hot) does no DMA and raises no interrupt.
 */
#include "glue.h"

#if !REVO_QEMU_AT_LEAST(10, 0)
#include "sysemu/dma.h"
#else
#include "system/dma.h"
#endif

static RevoBackend *backend_of(RevoCard *card, unsigned port) {
  return port < RD_MAX_PORTS && card->members[port] ? &card->members[port]->backend : NULL;
}

static int64_t now_ns(void *host) {
  return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static int dma_read(void *host, uint64_t addr, void *buf, size_t len) {
  RevoCard *card = host;

  if (!revo_is_awake(card))
    return -EIO;
  return pci_dma_read(&card->pci, addr, buf, len) == MEMTX_OK ? 0 : -EIO;
}

static int dma_write(void *host, uint64_t addr, const void *buf, size_t len) {
  RevoCard *card = host;

  if (!revo_is_awake(card))
    return -EIO;
  return pci_dma_write(&card->pci, addr, buf, len) == MEMTX_OK ? 0 : -EIO;
}

static DMADirection direction(bool to_guest) {
  return to_guest ? DMA_DIRECTION_FROM_DEVICE : DMA_DIRECTION_TO_DEVICE;
}

/* Only plain memory: anything else would go through QEMU's one bounce buffer, which may be taken.
 */
static void *dma_map(void *host, uint64_t addr, size_t *len, bool to_guest) {
  RevoCard *card = host;
  AddressSpace *as = pci_get_address_space(&card->pci);
  hwaddr where, mapped = *len;

  if (!revo_is_awake(card) || mapped == 0)
    return NULL;
  RCU_READ_LOCK_GUARD();
  MemoryRegion *mr =
      address_space_translate(as, addr, &where, &mapped, to_guest, MEMTXATTRS_UNSPECIFIED);
  if (mapped == 0 || !revo_is_direct(mr, to_guest))
    return NULL;
  dma_addr_t mapped_dma = mapped;
  void *ptr = dma_memory_map(as, addr, &mapped_dma, direction(to_guest), MEMTXATTRS_UNSPECIFIED);
  if (ptr && mapped_dma == 0) {
    dma_memory_unmap(as, ptr, 0, direction(to_guest), 0);
    return NULL;
  }
  *len = mapped_dma;
  return ptr;
}

static void dma_unmap(void *host, void *ptr, size_t len, bool to_guest, size_t accessed) {
  RevoCard *card = host;

  dma_memory_unmap(pci_get_address_space(&card->pci), ptr, len, direction(to_guest), accessed);
}

static void set_irq(void *host, bool level) {
  RevoCard *card = host;

  card->irq_level = level;
  if (!card->loading)
    revo_irq_update(card);
}

static void send_msi(void *host) {
  RevoCard *card = host;

  if (card->msi_live)
    msi_notify(&card->pci, 0);
}

static void arm_timer(void *host, int64_t deadline_ns) {
  RevoCard *card = host;

  if (deadline_ns == RD_NEVER)
    timer_del(card->timer);
  else
    timer_mod_ns(card->timer, deadline_ns);
}

void revo_timer_fired(void *opaque) {
  RevoCard *card = opaque;

  rd_card_timer_fired(card->core);
}

static void block_submit(void *host, unsigned port, enum rd_block_op op, uint64_t offset,
                         uint64_t bytes, const struct rd_iov *iov, unsigned niov, uint64_t token) {
  RevoCard *card = host;
  RevoBackend *backend = backend_of(card, port);

  if (backend)
    revo_backend_submit(backend, op, offset, bytes, iov, niov, token);
  else
    rd_card_block_done(card->core, token, -ENODEV);
}

static void block_drain(void *host, unsigned port) {
  RevoBackend *backend = backend_of(host, port);

  if (backend)
    revo_backend_drain(backend);
}

/* With a repeatable clock the guest must not see how fast the host is. */
static void block_wait(void *host, unsigned port) {
  RevoCard *card = host;
  RevoBackend *backend = backend_of(card, port);

  if (backend && (icount_enabled() || qtest_enabled()))
    revo_backend_wait(backend, card->backend_wait_ms);
}

static void persist(void *host, const void *bytes, size_t len, uint64_t token) {
  revo_store_put(host, bytes, len, token);
}

static void log_text(void *host, enum rd_log_level level, const char *text) {
  RevoCard *card = host;

  switch (level) {
    case RD_LOG_GUEST_ERROR:
      qemu_log_mask(LOG_GUEST_ERROR, "%s: %s\n", revo_name(card), text);
      break;
    case RD_LOG_WARNING:
      warn_report("%s: %s", revo_name(card), text);
      break;
    case RD_LOG_UNIMP:
      qemu_log_mask(LOG_UNIMP, "%s: %s\n", revo_name(card), text);
      break;
    case RD_LOG_TRACE:
      if (card->trace)
        fprintf(stderr, "%s %" PRId64 ": %s\n", revo_name(card), now_ns(card), text);
      break;
  }
}

const struct rd_host_ops revo_host_ops = {
    .now_ns = now_ns,
    .dma_read = dma_read,
    .dma_write = dma_write,
    .dma_map = dma_map,
    .dma_unmap = dma_unmap,
    .set_irq = set_irq,
    .msi_notify = send_msi,
    .arm_timer = arm_timer,
    .block_submit = block_submit,
    .block_drain = block_drain,
    .block_wait = block_wait,
    .persist = persist,
    .log = log_text,
};
