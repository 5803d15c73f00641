/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device types of the card: their properties, realize and unrealize, reset.
 *
 *   revodrive-hba (abstract)            everything but storage
 *     marvell-88se9485                  bare bridge; members are added as -device sf2281
 *     revodrive-board (abstract)        creates its members: see storage.c
 *       revodrive3-x2, revodrive3
 */
#include "glue.h"

#include "hw/pci/pci_ids.h"

#define BAR_INDEX 2
#define BAR_BYTES (256 * KiB)
#define CLASS_SAS 0x0107
#define REVISION_C0 0x02

#define MODE_JBOD "jbod"
#define MODE_VCA "vca"
#define POLICY_STRIPE "stripe"
#define POLICY_DISPATCH "dispatch"

#define VENDOR_OCZ 0x1b85
#define VENDOR_MARVELL_EXT 0x1b4b

static const RevoModel models[] = {
    {"marvell-88se9485", TYPE_REVO_HBA,
     "Marvell 88SE9485 SAS/SATA 6 Gb/s controller (add -device sf2281)", VENDOR_MARVELL_EXT, 0x9485,
     VENDOR_MARVELL_EXT, 0x9485, 8},
    {"revodrive3-x2", TYPE_REVO_BOARD, "OCZ RevoDrive 3 X2 PCI Express SSD (four SF-2281)",
     VENDOR_OCZ, 0x1041, VENDOR_OCZ, 0x1041, 4},
    {"revodrive3", TYPE_REVO_BOARD, "OCZ RevoDrive 3 PCI Express SSD (two SF-2281)", VENDOR_OCZ,
     0x1021, VENDOR_OCZ, 0x1021, 2},
};

const RevoModel *revo_model(RevoCard *card) {
  return REVO_HBA_GET_CLASS(card)->model;
}

const char *revo_name(RevoCard *card) {
  return DEVICE(card)->id ? DEVICE(card)->id : object_get_typename(OBJECT(card));
}

bool revo_is_vca(RevoCard *card) {
  return card->mode && strcmp(card->mode, MODE_VCA) == 0;
}

/* What makes the members one volume or four disks. */
static bool check_mode(RevoCard *card, Error **errp) {
  const char *policy = card->policy;

  if (card->mode && strcmp(card->mode, MODE_JBOD) && !revo_is_vca(card)) {
    error_setg(errp, "%s: mode=%s: allowed: " MODE_JBOD ", " MODE_VCA, revo_name(card), card->mode);
    return false;
  }
  if (!revo_is_vca(card) && (policy || card->chunk || card->vca_phys)) {
    error_setg(errp, "%s: %s= needs mode=" MODE_VCA, revo_name(card),
               policy        ? "policy"
               : card->chunk ? "chunk"
                             : "vca-phys");
    return false;
  }
  if (policy && strcmp(policy, POLICY_STRIPE) && strcmp(policy, POLICY_DISPATCH)) {
    error_setg(errp, "%s: policy=%s: allowed: " POLICY_STRIPE ", " POLICY_DISPATCH, revo_name(card),
               policy);
    return false;
  }
  if (card->chunk > UINT32_MAX) {
    error_setg(errp, "%s: chunk=%" PRIu64 ": must be a power of two from 4 KiB to 16 MiB",
               revo_name(card), card->chunk);
    return false;
  }
  return true;
}

/* ------------------------------------------------------------------------------------ registers */

static uint64_t bar_read(void *opaque, hwaddr addr, unsigned size) {
  RevoCard *card = opaque;

  return revo_is_awake(card) ? rd_card_mmio_read(card->core, addr) : UINT32_MAX;
}

static void bar_write(void *opaque, hwaddr addr, uint64_t value, unsigned size) {
  RevoCard *card = opaque;

  if (revo_is_awake(card))
    rd_card_mmio_write(card->core, addr, value);
}

static const MemoryRegionOps bar_ops = {
    .read = bar_read,
    .write = bar_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = {.min_access_size = 4, .max_access_size = 8},
    .impl = {.min_access_size = 4, .max_access_size = 4},
};

/* ------------------------------------------------------------------------------ life and death */

static void vm_state_changed(void *opaque, bool running, RunState state) {
  RevoCard *card = opaque;

  card->vm_running = running;
  if (!running) {
    rd_card_store(card->core);
    revo_store_wait(card);
    return;
  }
  revo_store_rescan(card);
  rd_card_store(card->core);
  rd_card_resume(card->core);
  for (unsigned port = 0; port < RD_MAX_PORTS; port++)
    if (card->members[port])
      revo_backend_kick(&card->members[port]->backend);
}

static bool create_core(RevoCard *card, Error **errp) {
  struct rd_error error = {""};
  struct rd_card_config config = {
      .profile = card->profile,
      .profile_set = card->profile_set,
      .ports = revo_model(card)->ports,
      .timing = card->timing,
      .vca = revo_is_vca(card),
      .policy = card->policy && strcmp(card->policy, POLICY_DISPATCH) == 0 ? RD_POLICY_DISPATCH
                                                                           : RD_POLICY_STRIPE,
      .chunk_bytes = card->chunk,
      .vca_phys = card->vca_phys,
  };

  config.persistent = revo_store_found(card, &config.persistent_len);
  card->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, revo_timer_fired, card);
  card->core = rd_card_create(&config, &revo_host_ops, card, &error);
  if (card->core)
    return true;
  error_setg(errp, "%s: %s", revo_name(card), error.text);
  g_clear_pointer(&card->timer, timer_free);
  return false;
}

static void destroy_core(RevoCard *card) {
  timer_del(card->timer);
  rd_card_destroy(card->core);
  revo_store_wait(card);
  card->core = NULL;
  g_clear_pointer(&card->timer, timer_free);
  g_clear_pointer(&card->state, free);
}

static void card_exit(PCIDevice *pci) {
  RevoCard *card = REVO_HBA(pci);

  revo_storage_exit(card);
  qemu_del_vm_change_state_handler(card->vm_change);
  destroy_core(card);
  revo_store_close(card);
  revo_config_exit(card);
}

static void card_realize(PCIDevice *pci, Error **errp) {
  RevoCard *card = REVO_HBA(pci);

  if (!check_mode(card, errp) || !revo_store_open(card, errp))
    return;
  if (!create_core(card, errp)) {
    revo_store_close(card);
    return;
  }
  if (!revo_config_init(card, errp)) {
    destroy_core(card);
    revo_store_close(card);
    return;
  }
  memory_region_init_io(&card->bar, OBJECT(card), &bar_ops, card, "revodrive-registers", BAR_BYTES);
  pci_register_bar(pci, BAR_INDEX, PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64,
                   &card->bar);
  qbus_init(&card->bus, sizeof(card->bus), TYPE_REVO_BUS, DEVICE(card), NULL);
  qbus_set_hotplug_handler(&card->bus, OBJECT(card));
  card->vm_running = runstate_is_running();
  card->vm_change = qdev_add_vm_change_state_handler(DEVICE(card), vm_state_changed, card);
  if (!revo_storage_init(card, errp) || !revo_rom_init(card, errp)) {
    card_exit(pci);
    return;
  }
  revo_counters_publish(card, OBJECT(card), "");
}

static void card_reset(DeviceState *dev) {
  RevoCard *card = REVO_HBA(dev);

  rd_card_reset(card->core, RD_RESET_BUS);
  revo_config_reset(card);
  revo_irq_update(card);
}

/* Surprise removal needs nobody's consent. */
static void member_unplug(HotplugHandler *handler, DeviceState *dev, Error **errp) {
  if (REVO_HBA(handler)->waiting) {
    error_setg(errp, "%s is waiting for a block node; try again", revo_name(REVO_HBA(handler)));
    return;
  }
  qdev_simple_device_unplug_cb(handler, dev, errp);
}

/* ---------------------------------------------------------------------- properties and classes */

#define ID_PROPERTY(name, field) \
  DEFINE_PROP_UNSIGNED_NODEFAULT(name, RevoCard, field, qdev_prop_uint16, uint16_t)
#define DRIVE_PROPERTY(port) DEFINE_PROP_DRIVE("drive" #port, RevoCard, drives[port])

/* The ids are set from the model in card_init(), hence without default. */
REVO_PROPERTIES hba_properties[] = {
    DEFINE_PROP_STRING("profile", RevoCard, profile),
    DEFINE_PROP_STRING("profile-set", RevoCard, profile_set),
    DEFINE_PROP_BOOL("timing", RevoCard, timing, true),
    DEFINE_PROP_STRING("serial", RevoCard, serial),
    DEFINE_PROP_DRIVE("state", RevoCard, state_blk),
    ID_PROPERTY("vendor-id", vendor_id),
    ID_PROPERTY("device-id", device_id),
    ID_PROPERTY("subsystem-vendor-id", subsystem_vendor_id),
    ID_PROPERTY("subsystem-id", subsystem_id),
    DEFINE_PROP_UINT8("revision", RevoCard, revision, REVISION_C0),
    DEFINE_PROP_UINT32("backend-wait-ms", RevoCard, backend_wait_ms, 10000),
    DEFINE_PROP_BOOL("x-trace", RevoCard, trace, false),
    REVO_PROPERTIES_END,
};

static const RevoHelp hba_help[] = {
    {"profile", "numbers of the timing model: name of a built-in profile, or a file"},
    {"profile-set", "single numbers over the profile's: section.key=value;..."},
    {"timing", "off: behave the same, but complete as soon as the block node does"},
    {"serial",
     "text that the SSDs' default serial numbers and names are made from (default: the "
     "card's id, or its PCI address)"},
    {"state",
     "node name or id of the block device that keeps what outlives the SSDs' power (SMART, "
     "security, ...), at least 2 MiB; without it that lasts as long as the process"},
    {"vendor-id", "PCI vendor id"},
    {"device-id", "PCI device id"},
    {"subsystem-vendor-id", "PCI subsystem vendor id"},
    {"subsystem-id", "PCI subsystem id"},
    {"revision", "PCI revision (Linux mvsas: 2 is C0; A0 0xa0 and B0 1 make it use workarounds)"},
    {"backend-wait-ms",
     "under -icount and qtest: longest wait of virtual time for a block node, "
     "in ms of host time (0: virtual time never waits)"},
    {"x-trace", "print what the model does to stderr, for its developers"},
    /* Of QEMU's PCI devices, which leave these without a text. */
    {"acpi-index", "number in the guest's name of the device (0: none)"},
    {"failover_pair_id", "for network devices only"},
    {"rombar", "0: no option ROM (one of romfile= goes to the firmware without a BAR)"},
    {"romfile", "file with an option ROM in place of the card's own (empty: none)"},
    {"romsize", "bytes of the ROM BAR, a power of two (default: 256 KiB, or from the file)"},
};

REVO_PROPERTIES board_properties[] = {
    DEFINE_BLOCK_PROPERTIES(RevoCard, conf),
    DEFINE_BLOCK_ERROR_PROPERTIES(RevoCard, conf),
    DEFINE_PROP_INT32("bootindex", RevoCard, conf.bootindex, -1),
    DEFINE_PROP_BOOL("discard", RevoCard, discard, true),
    DEFINE_PROP_BOOL("frozen", RevoCard, frozen, false),
    DEFINE_PROP_STRING("trim-reads", RevoCard, trim_reads),
    DEFINE_PROP_STRING("mode", RevoCard, mode),
    DEFINE_PROP_STRING("policy", RevoCard, policy),
    DEFINE_PROP_SIZE("chunk", RevoCard, chunk, 0),
    DEFINE_PROP_UINT8("vca-phys", RevoCard, vca_phys, 0),
    DEFINE_PROP_STRING("preset", RevoCard, preset),
    REVO_PROPERTIES_END,
};

static const RevoHelp board_help[] = {
    {"bootindex", "boot order of the first SSD, or of the volume (-1: none)"},
    {"discard", "TRIM of the guest discards in the image (off: TRIM succeeds and the image stays)"},
    {"frozen", "security of the SSDs is frozen at power-on, as firmware leaves it"},
    {"trim-reads",
     "what trimmed sectors read as: pattern (0xff, as the drive) or backend (what the image has)"},
    {"mode", "jbod: each SSD is a SATA disk (default); vca: all of them are one SAS disk"},
    {"policy",
     "vca: where blocks go; stripe (default): chunks go round the SSDs; dispatch: to the SSD that "
     "is "
     "free, by a map at the end of the SSDs"},
    {"chunk",
     "vca: bytes of a chunk (dispatch: that go to one SSD at most), a power of two from 4 KiB to "
     "16 MiB (0: 64 KiB)"},
    {"vca-phys", "vca: phys of the disk's port: 1, or 4 for a wide port (0: 1)"},
    {"preset",
     "flash at the start: fresh, full (written once), steady (written at random) or image (what is "
     "in the image)"},
};

REVO_PROPERTIES x2_properties[] = {
    DRIVE_PROPERTY(0), DRIVE_PROPERTY(1), DRIVE_PROPERTY(2), DRIVE_PROPERTY(3), REVO_PROPERTIES_END,
};

REVO_PROPERTIES two_properties[] = {
    DRIVE_PROPERTY(0),
    DRIVE_PROPERTY(1),
    REVO_PROPERTIES_END,
};

static const RevoHelp drive_help[] = {
    {"drive0", "node name or id of the block device of the SSD on phy 0"},
    {"drive1", "node name or id of the block device of the SSD on phy 1"},
    {"drive2", "node name or id of the block device of the SSD on phy 2"},
    {"drive3", "node name or id of the block device of the SSD on phy 3"},
};

static const RevoHelp block_help[] = {
    {"drive", "node name or id of a block device (a board: cut into its SSDs)"},
    {"backend_defaults", "take sizes left out from the block device"},
    {"logical_block_size", "bytes; allowed: 512"},
    {"physical_block_size", "bytes; allowed: 512, 4096"},
    {"min_io_size", "accepted, no effect"},
    {"opt_io_size", "accepted, no effect"},
    {"discard_granularity", "accepted, no effect"},
    {"write-cache", "write cache of the block device"},
    {"share-rw", "let others write to the block device too"},
    {"account-invalid", "count invalid requests in the block statistics"},
    {"account-failed", "count failed requests in the block statistics"},
    {"rerror", "when a read fails: report, ignore, stop, auto"},
    {"werror", "when a write fails: report, ignore, stop, enospc, auto"},
};

/* An inherited property belongs to the parent: it gets a text only if it has none. */
void revo_describe(ObjectClass *klass, const RevoHelp *help, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ObjectProperty *property = object_class_property_find(klass, help[i].name);
    ObjectClass *owner = klass;

    if (!property)
      continue;
    while (object_class_property_find(object_class_get_parent(owner), help[i].name))
      owner = object_class_get_parent(owner);
    if (owner == klass || !property->description || !*property->description)
      object_class_property_set_description(owner, help[i].name, help[i].text);
  }
}

void revo_describe_block(ObjectClass *klass) {
  revo_describe(klass, block_help, ARRAY_SIZE(block_help));
}

static void card_init(Object *obj) {
  RevoCard *card = REVO_HBA(obj);
  const RevoModel *model = revo_model(card);

  card->vendor_id = model->vendor_id;
  card->device_id = model->device_id;
  card->subsystem_vendor_id = model->subsystem_vendor_id;
  card->subsystem_id = model->subsystem_id;
  /* Before realize, so that a conventional bus has the Express capability as well. */
  PCI_DEVICE(obj)->cap_present |= QEMU_PCI_CAP_EXPRESS;
}

static void hba_class_init(ObjectClass *klass, RevoClassData data) {
  DeviceClass *dc = DEVICE_CLASS(klass);
  PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);

  pc->realize = card_realize;
  pc->exit = card_exit;
  pc->config_write = revo_config_write;
  pc->class_id = CLASS_SAS;
  dc->vmsd = &revo_vmstate;
  revo_set_reset(dc, card_reset);
  set_bit(DEVICE_CATEGORY_STORAGE, dc->categories);
  HOTPLUG_HANDLER_CLASS(klass)->unplug = member_unplug;
  device_class_set_props(dc, hba_properties);
  revo_describe(klass, hba_help, ARRAY_SIZE(hba_help));
}

static void board_class_init(ObjectClass *klass, RevoClassData data) {
  device_class_set_props(DEVICE_CLASS(klass), board_properties);
  revo_describe_block(klass);
  revo_describe(klass, board_help, ARRAY_SIZE(board_help));
}

static void model_class_init(ObjectClass *klass, RevoClassData data) {
  const RevoModel *model = data;
  DeviceClass *dc = DEVICE_CLASS(klass);
  PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);

  REVO_HBA_CLASS(klass)->model = model;
  dc->desc = model->desc;
  pc->vendor_id = model->vendor_id;
  pc->device_id = model->device_id;
  if (strcmp(model->parent, TYPE_REVO_BOARD) == 0)
    device_class_set_props(dc, model->ports == 4 ? x2_properties : two_properties);
  revo_describe(klass, drive_help, ARRAY_SIZE(drive_help));
}

void revo_register_card_types(void) {
  static const InterfaceInfo interfaces[] = {
      {TYPE_HOTPLUG_HANDLER},
      {INTERFACE_PCIE_DEVICE},
      {INTERFACE_CONVENTIONAL_PCI_DEVICE},
      {},
  };
  static const TypeInfo hba_info = {
      .name = TYPE_REVO_HBA,
      .parent = TYPE_PCI_DEVICE,
      .instance_size = sizeof(RevoCard),
      .class_size = sizeof(RevoCardClass),
      .abstract = true,
      .instance_init = card_init,
      .class_init = hba_class_init,
      .interfaces = (InterfaceInfo *)interfaces,
  };
  static const TypeInfo board_info = {
      .name = TYPE_REVO_BOARD,
      .parent = TYPE_REVO_HBA,
      .abstract = true,
      .class_init = board_class_init,
  };

  type_register_static(&hba_info);
  type_register_static(&board_info);
  for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
    TypeInfo info = {
        .name = models[i].type,
        .parent = models[i].parent,
        .class_init = model_class_init,
        .class_data = (void *)&models[i],
    };
    type_register(&info);
  }
}
