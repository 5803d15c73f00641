/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The glue between QEMU and the card: what its source files share.
 *
 *   plugin.c    how the library gets into QEMU, and the check that it belongs there
 *   card.c      the device types of the card: properties, life and death
 *   migrate.c   save and load
 *   config.c    PCI configuration space: capabilities, power states, resets, interrupts
 *   host.c      the host interface of the core (include/revodrive/host.h), all but block calls
 *   block.c     the block calls: one RevoBackend for each member
 *   image_data.c  what an image holds, for preset=image
 *   member.c    the bus of the card and the device "sf2281"
 *   state_store.c  the block node of state=: what outlives the power of the members
 *   boot.c      bootindex of a member
 *   rom.c       the option ROM
 *   storage.c   the simple forms drive= and drive0=..drive3=, which create members
 *   counters.c  counters of the core as read-only QOM properties
 *   faults.c    fault injection as a QOM property of a member
 *
 * Everything runs under QEMU's big lock. Block nodes stay in the main loop's context.
 */
#ifndef REVODRIVE_QEMU_GLUE_H
#define REVODRIVE_QEMU_GLUE_H

#include "compat.h"
#include "revodrive/host.h"

#define TYPE_REVO_HBA "revodrive-hba"     /* abstract: any card */
#define TYPE_REVO_BOARD "revodrive-board" /* abstract: a card that creates its members */
#define TYPE_REVO_BUS "revodrive-bus"
#define TYPE_REVO_MEMBER "sf2281"

#define REVO_MEMBER_MIN_BYTES (1024 * 1024) /* smallest image of a member */
#define REVO_REGION_ALIGN 4096              /* regions of drive= start and end on this */

typedef struct RevoCard RevoCard;
typedef struct RevoMember RevoMember;
typedef struct RevoRequest RevoRequest;
typedef struct RevoStore RevoStore;

/* What a card type is born with. */
typedef struct RevoModel {
  const char *type, *parent, *desc;
  uint16_t vendor_id, device_id, subsystem_vendor_id, subsystem_id;
  unsigned ports; /* phys that take a member */
} RevoModel;

/*
 * The transfers of one member. Those that the backend works on are counted in `inflight`. A
 * transfer is held back instead while the machine is stopped (also by werror=stop, which retries
 * then) and while the block layer has quiesced the node.
 */
typedef struct RevoBackend {
  RevoCard *card;
  unsigned port;
  BlockBackend *blk; /* borrowed from the member or the card */
  uint64_t offset_bytes;
  bool discard;
  bool quiesced;
  bool draining; /* nothing is held back: it ends with -ECANCELED */
  unsigned inflight;
  QSIMPLEQ_HEAD(, RevoRequest) held;
  QSIMPLEQ_HEAD(, RevoRequest) unused;
} RevoBackend;

struct RevoMember {
  DeviceState qdev;
  BlockConf conf;
  uint32_t port;
  char *model, *serial, *firmware;
  uint64_t wwn;
  uint8_t smart_life_left; /* percent */
  bool discard, frozen;
  char *trim_reads;
  char *preset; /* of the flash */
  bool panic;
  char *faults;    /* rules to start with */
  char *boot_path; /* boot.c: its entry in the boot order, NULL if none */
  /* A region of the card's node (drive=), set before realize; otherwise NULL and conf.blk counts.
   */
  BlockBackend *shared_blk;
  uint64_t region_offset, region_bytes;
  RevoBackend backend;
};

struct RevoCard {
  PCIDevice pci;
  BusState bus;
  MemoryRegion bar;
  QEMUTimer *timer;
  VMChangeStateEntry *vm_change;
  struct rd_card *core;
  RevoMember *members[RD_MAX_PORTS];
  bool vm_running;
  unsigned waiting; /* inside revo_backend_wait(), that is, inside a call of the core */

  /* config.c */
  bool irq_level; /* what the core wants, whatever the power state and the kind of interrupt */
  bool msi_live;  /* MSI is enabled and the function is in D0 */
  uint8_t power_state;

  /* migrate.c: the saved core on its way */
  uint8_t *state;
  uint32_t state_bytes;
  bool loading;

  RevoStore *store; /* state_store.c; NULL without state= */

  /* properties */
  char *profile, *profile_set, *serial;
  BlockBackend *state_blk;
  bool timing, trace;
  /* storage.c: of the members it creates, as are conf and drives */
  bool discard, frozen;
  char *trim_reads, *preset;
  char *mode, *policy; /* vca: the members are one volume */
  uint8_t vca_phys;    /* of its port; 0: 1 */
  uint64_t chunk;
  uint32_t backend_wait_ms;
  uint16_t vendor_id, device_id, subsystem_vendor_id, subsystem_id;
  uint8_t revision;
  BlockConf conf;
  BlockBackend *drives[RD_MAX_PORTS];
};

typedef struct RevoCardClass {
  PCIDeviceClass parent;
  const RevoModel *model; /* NULL in the abstract classes */
} RevoCardClass;

DECLARE_OBJ_CHECKERS(RevoCard, RevoCardClass, REVO_HBA, TYPE_REVO_HBA)
DECLARE_INSTANCE_CHECKER(RevoMember, REVO_MEMBER, TYPE_REVO_MEMBER)

/* A property and what "-device TYPE,help" says about it. */
typedef struct RevoHelp {
  const char *name, *text;
} RevoHelp;

/* Describes the properties of the table that the class has. */
void revo_describe(ObjectClass *klass, const RevoHelp *help, size_t count);
/* The same for the usual block properties. */
void revo_describe_block(ObjectClass *klass);

/* plugin.c calls these once, with QEMU's type system ready. */
void revo_register_card_types(void);
void revo_register_member_types(void);

bool revo_is_vca(RevoCard *card);

/* What this card is. */
const RevoModel *revo_model(RevoCard *card);
/* The name a user knows the card by: its id, or its type. */
const char *revo_name(RevoCard *card);

/* config.c */
bool revo_config_init(RevoCard *card, Error **errp);
void revo_config_exit(RevoCard *card);
void revo_config_write(PCIDevice *pci, uint32_t addr, uint32_t value, int len);
void revo_config_reset(RevoCard *card);
void revo_config_loaded(RevoCard *card);
void revo_irq_update(RevoCard *card);
bool revo_is_awake(const RevoCard *card);

/* migrate.c */
extern const VMStateDescription revo_vmstate;

/* host.c */
extern const struct rd_host_ops revo_host_ops;
void revo_timer_fired(void *opaque);

/* block.c */
void revo_backend_init(RevoBackend *backend, RevoCard *card, unsigned port, BlockBackend *blk,
                       uint64_t offset_bytes, bool discard);
void revo_backend_free(RevoBackend *backend);
void revo_backend_submit(RevoBackend *backend, enum rd_block_op op, uint64_t offset, uint64_t bytes,
                         const struct rd_iov *iov, unsigned niov, uint64_t token);
/* Ends each transfer: those held back with -ECANCELED, the others as the backend ends them. */
void revo_backend_drain(RevoBackend *backend);
/* Waits for the backend, at most max_ms of the host's time. */
void revo_backend_wait(RevoBackend *backend, uint32_t max_ms);
/* Starts what was held back, unless it still has to be. */
void revo_backend_kick(RevoBackend *backend);
void revo_backend_set_quiesced(RevoBackend *backend, bool quiesced);

/* image_data.c: what the node holds of a region, as struct rd_extent that count from its beginning;
 * in order, never without memory. NULL with *errp set. */
GArray *revo_image_data(const char *who, BlockBackend *blk, uint64_t offset_bytes, uint64_t bytes,
                        Error **errp);

/* state_store.c. Found: what an earlier card stored, NULL if nothing; it lives as long as the store
 * or until the next put. */
bool revo_store_open(RevoCard *card, Error **errp);
void revo_store_close(RevoCard *card);
const void *revo_store_found(RevoCard *card, size_t *len);
/* rd_host_ops::persist */
void revo_store_put(RevoCard *card, const void *bytes, size_t len, uint64_t token);
/* Something is being written. */
bool revo_store_busy(const RevoCard *card);
void revo_store_wait(RevoCard *card);
/* The machine runs (again). */
void revo_store_rescan(RevoCard *card);

/* member.c */
/* Readies a node for members: sector sizes, permissions, error policy. `who` starts messages. */
bool revo_prepare_blk(const char *who, BlockConf *conf, Error **errp);
/* The size of a writable node, checked to be whole sectors; negative with *errp set otherwise. */
int64_t revo_blk_bytes(const char *who, BlockBackend *blk, Error **errp);
const char *revo_blk_name(BlockBackend *blk);

/* storage.c */
bool revo_storage_init(RevoCard *card, Error **errp);
void revo_storage_exit(RevoCard *card);

/* boot.c: the entry of a realized member, if it has a bootindex. */
bool revo_boot_connect(RevoMember *member, Error **errp);
void revo_boot_disconnect(RevoMember *member);
void revo_boot_class_init(ObjectClass *klass);

/* rom.c */
bool revo_rom_init(RevoCard *card, Error **errp);

/* faults.c */
void revo_faults_class_init(ObjectClass *klass);
bool revo_faults_apply(RevoCard *card, unsigned port, const char *text, Error **errp);

/* counters.c: publishes what rd_card_query() names, without the prefix, on `obj`. */
void revo_counters_publish(RevoCard *card, Object *obj, const char *prefix);

#endif
