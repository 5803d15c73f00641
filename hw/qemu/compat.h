/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's headers, and every difference between the QEMU versions the glue is built for. Each source
 * file of this folder includes this first and holds no version check of its own.
 *
 * Known good: 7.2 (Debian 12). The branches for 10 follow its headers.
 *
 * The headers are configured with fewer features than the installed QEMU. Of the structures used
 * here only AioContext has members that depend on that (CONFIG_LINUX_AIO, CONFIG_LINUX_IO_URING):
 * treat it as opaque, and keep away from inline functions that look inside (aio_timer_new).
 */
#ifndef REVODRIVE_QEMU_COMPAT_H
#define REVODRIVE_QEMU_COMPAT_H

/* clang-format off */
#include "qemu/osdep.h"
/* clang-format on */

#include "weak_symbols.h"

#define REVO_QEMU_AT_LEAST(major, minor) \
  (QEMU_VERSION_MAJOR > (major) || (QEMU_VERSION_MAJOR == (major) && QEMU_VERSION_MINOR >= (minor)))

#include "block/aio-wait.h"
#include "block/block_int.h"
#include "hw/block/block.h"
#include "hw/pci/msi.h"
#include "hw/pci/pci.h"
#include "hw/pci/pci_bus.h"
#include "hw/qdev-core.h"
#include "hw/qdev-properties-system.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "monitor/monitor.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/coroutine.h"
#include "qemu/error-report.h"
#include "qemu/iov.h"
#include "qemu/log.h"
#include "qemu/memalign.h"
#include "qemu/module.h"
#include "qemu/queue.h"
#include "qemu/timer.h"
#include "qemu/units.h"

#if REVO_QEMU_AT_LEAST(8, 0)
#include "hw/pci/pci_device.h"
#endif

/* 10.0: sysemu/ became system/, exec/memory.h followed in 10.1. */
#if REVO_QEMU_AT_LEAST(10, 0)
#include "system/block-backend.h"
#include "system/cpu-timers.h"
#include "system/qtest.h"
#include "system/runstate.h"
#include "system/system.h"
#else
#include "sysemu/block-backend.h"
#include "sysemu/cpu-timers.h"
#include "sysemu/qtest.h"
#include "sysemu/runstate.h"
#include "sysemu/sysemu.h"
#endif

/* 10.0: property arrays are constant and have no end mark. */
#if REVO_QEMU_AT_LEAST(10, 0)
#define REVO_PROPERTIES static const Property
#define REVO_PROPERTIES_END
#else
#define REVO_PROPERTIES static Property
#define REVO_PROPERTIES_END DEFINE_PROP_END_OF_LIST()
#endif

/* 10.1: class_init takes constant data. */
#if REVO_QEMU_AT_LEAST(10, 1)
typedef const void *RevoClassData;
#else
typedef void *RevoClassData;
#endif

/* 8.2: the fields of a VMStateDescription are constant. */
#if REVO_QEMU_AT_LEAST(8, 2)
#define REVO_VMSTATE_FIELDS const VMStateField
#else
#define REVO_VMSTATE_FIELDS VMStateField
#endif

static inline void revo_set_reset(DeviceClass *dc, void (*reset)(DeviceState *dev)) {
#if REVO_QEMU_AT_LEAST(9, 2)
  device_class_set_legacy_reset(dc, reset);
#else
  dc->reset = reset;
#endif
}

/* Whether a transfer to or from that memory needs no callback, so that it can be mapped. */
static inline bool revo_is_direct(MemoryRegion *mr, bool is_write) {
#if REVO_QEMU_AT_LEAST(10, 0)
  return memory_access_is_direct(mr, is_write, MEMTXATTRS_UNSPECIFIED);
#else
  return memory_access_is_direct(mr, is_write);
#endif
}

/*
 * The size of the image to the byte, or a negative errno. The block layer rounds sizes up to whole
 * sectors, so the lowest node that holds the bytes is asked, below filters and plain raw format.
 */
static inline int64_t revo_exact_bytes(BlockBackend *blk) {
#if REVO_QEMU_AT_LEAST(8, 0)
  return blk_getlength(blk); /* asking a node itself wants a coroutine there: odd sizes pass */
#else
  BlockDriverState *bs = blk_bs(blk);

  while (bs && bs->drv && bs->file &&
         (bs->drv->is_filter || strcmp(bs->drv->format_name, "raw") == 0)) {
    bs = bs->file->bs;
  }
  if (!bs || !bs->drv || !bs->drv->bdrv_getlength || bs->drv->is_format) {
    return blk_getlength(blk);
  }
  return bs->drv->bdrv_getlength(bs);
#endif
}

#endif
