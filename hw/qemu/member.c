/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bus of a card ("<id of the card>.0") and the device "sf2281" on it: one SSD on one phy.
 *
 * Its life is the member's: realize plugs it in (at start or hot), unrealize pulls it out without
 * asking the guest. Block properties that an ATA disk has no use for (min_io_size, opt_io_size,
 * discard_granularity) are accepted and have no effect.
 */
#include "glue.h"

#define PORT_ANY UINT32_MAX
#define SERIAL_PREFIX "OCZ-"
#define SERIAL_CHARS 16
#define TRIM_READS_PATTERN "pattern"
#define TRIM_READS_BACKEND "backend"
#define PRESET_IMAGE "image"

const char *revo_blk_name(BlockBackend *blk) {
  const char *name = blk_name(blk);

  if (!*name && blk_bs(blk))
    name = bdrv_get_node_name(blk_bs(blk));
  return *name ? name : "(unnamed)";
}

int64_t revo_blk_bytes(const char *who, BlockBackend *blk, Error **errp) {
  const char *name = revo_blk_name(blk);

  if (!blk_bs(blk) || !blk_is_inserted(blk)) {
    error_setg(errp, "%s: drive '%s' is empty; an SSD needs an image", who, name);
    return -ENOMEDIUM;
  }
  if (!blk_supports_write_perm(blk)) {
    error_setg(errp,
               "%s: block node '%s' is read-only; an SSD cannot be write protected, so it needs a "
               "writable node (read-only=off)",
               who, name);
    return -EROFS;
  }

  int64_t bytes = revo_exact_bytes(blk);
  if (bytes < 0) {
    error_setg_errno(errp, -bytes, "%s: the size of block node '%s' is not known", who, name);
    return bytes;
  }
  if (bytes % RD_SECTOR_BYTES) {
    error_setg(errp,
               "%s: block node '%s' has %" PRId64
               " bytes, which is not a multiple of %d (the "
               "sector size); %" PRId64 " or %" PRId64 " bytes would do",
               who, name, bytes, RD_SECTOR_BYTES, QEMU_ALIGN_DOWN(bytes, RD_SECTOR_BYTES),
               QEMU_ALIGN_UP(bytes, RD_SECTOR_BYTES));
    return -EINVAL;
  }
  return bytes;
}

/* Sector sizes of the host's disk are not taken over: the SSD has its own. */
static bool check_sector_sizes(const char *who, BlockConf *conf, Error **errp) {
  if (!conf->logical_block_size)
    conf->logical_block_size = RD_SECTOR_BYTES;
  if (!conf->physical_block_size)
    conf->physical_block_size = RD_SECTOR_BYTES;
  if (conf->logical_block_size != RD_SECTOR_BYTES) {
    error_setg(errp, "%s: logical_block_size=%" PRIu32 " is not supported; allowed: %d", who,
               conf->logical_block_size, RD_SECTOR_BYTES);
    return false;
  }
  if (conf->physical_block_size != RD_SECTOR_BYTES && conf->physical_block_size != 4096) {
    error_setg(errp, "%s: physical_block_size=%" PRIu32 " is not supported; allowed: %d, 4096", who,
               conf->physical_block_size, RD_SECTOR_BYTES);
    return false;
  }
  return true;
}

bool revo_prepare_blk(const char *who, BlockConf *conf, Error **errp) {
  if (!check_sector_sizes(who, conf, errp) || !blkconf_blocksizes(conf, errp) ||
      !blkconf_apply_backend_options(conf, false, false, errp))
    return false;
  blk_iostatus_enable(conf->blk);
  return true;
}

static void drained_begin(void *opaque) {
  RevoMember *member = opaque;

  revo_backend_set_quiesced(&member->backend, true);
}

static void drained_end(void *opaque) {
  RevoMember *member = opaque;

  revo_backend_set_quiesced(&member->backend, false);
}

static const BlockDevOps member_block_ops = {
    .drained_begin = drained_begin,
    .drained_end = drained_end,
};

static bool choose_port(RevoCard *card, RevoMember *member, Error **errp) {
  unsigned ports = revo_model(card)->ports;

  if (member->port == PORT_ANY) {
    for (member->port = 0; member->port < ports; member->port++)
      if (!card->members[member->port])
        return true;
    member->port = PORT_ANY;
    error_setg(errp, TYPE_REVO_MEMBER ": all %u ports of %s are taken", ports, revo_name(card));
    return false;
  }
  if (member->port >= ports) {
    error_setg(errp, TYPE_REVO_MEMBER ": port=%" PRIu32 ": %s has the ports 0 to %u", member->port,
               revo_name(card), ports - 1);
    return false;
  }
  if (card->members[member->port]) {
    error_setg(errp, TYPE_REVO_MEMBER ": port=%" PRIu32 " of %s is taken already", member->port,
               revo_name(card));
    return false;
  }
  return true;
}

/* Stable over runs as long as the card's serial, id or address is; different in each port. */
static char *default_serial(RevoCard *card, unsigned port) {
  static const char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  g_autofree char *path = qdev_get_dev_path(DEVICE(card));
  const char *key = card->serial ? card->serial : DEVICE(card)->id ? DEVICE(card)->id : path;
  g_autofree char *text = g_strdup_printf("%s/%u", key ? key : "", port);
  g_autoptr(GChecksum) hash = g_checksum_new(G_CHECKSUM_SHA256);
  uint8_t digest[32];
  gsize digest_bytes = sizeof(digest);
  char serial[SERIAL_CHARS + 1] = "";

  g_checksum_update(hash, (const guchar *)text, -1);
  g_checksum_get_digest(hash, digest, &digest_bytes);
  for (unsigned i = 0; i < SERIAL_CHARS; i++)
    serial[i] = kDigits[(digest[2 * i] << 8 | digest[2 * i + 1]) % 36];
  return g_strconcat(SERIAL_PREFIX, serial, NULL);
}

/* Sets region_bytes: the whole node, unless the card gave us a part of its own. */
static bool open_storage(RevoMember *member, const char *who, Error **errp) {
  if (member->shared_blk)
    return true;
  if (!member->conf.blk) {
    error_setg(errp, "%s: drive= is missing; it names the block node of the SSD", who);
    return false;
  }

  int64_t bytes = revo_blk_bytes(who, member->conf.blk, errp);
  if (bytes < 0)
    return false;
  if (bytes < REVO_MEMBER_MIN_BYTES) {
    error_setg(errp, "%s: block node '%s' has %" PRId64 " bytes; an SSD needs at least %d", who,
               revo_blk_name(member->conf.blk), bytes, REVO_MEMBER_MIN_BYTES);
    return false;
  }
  member->region_bytes = bytes;
  return revo_prepare_blk(who, &member->conf, errp);
}

static bool check_trim_reads(const char *who, RevoMember *member, Error **errp) {
  const char *value = member->trim_reads;

  if (!value || !strcmp(value, TRIM_READS_PATTERN) || !strcmp(value, TRIM_READS_BACKEND))
    return true;
  error_setg(errp, "%s: trim-reads=%s: allowed: " TRIM_READS_PATTERN ", " TRIM_READS_BACKEND, who,
             value);
  return false;
}

static bool attach(RevoCard *card, RevoMember *member, const char *who, Error **errp) {
  g_autoptr(GArray) data = NULL;
  struct rd_error error = {""};
  struct rd_member_config config = {
      .bytes = member->region_bytes,
      .discard = member->discard,
      .panic = member->panic,
      .frozen = member->frozen,
      .trim_backend = g_strcmp0(member->trim_reads, TRIM_READS_BACKEND) == 0,
      .model = member->model,
      .serial = member->serial,
      .firmware = member->firmware,
      .wwn = member->wwn,
      .preset = member->preset,
  };

  if (g_strcmp0(member->preset, PRESET_IMAGE) == 0) {
    data = revo_image_data(who, member->backend.blk, member->region_offset, member->region_bytes,
                           errp);
    if (!data)
      return false;
    config.data = (const struct rd_extent *)data->data;
    config.data_count = data->len;
  }
  card->members[member->port] = member; /* the core may use the port from inside the call */
  if (rd_card_attach(card->core, member->port, &config, &error) == 0) {
    rd_card_set(card->core, member->port, "smart_life_left", member->smart_life_left, NULL);
    return true;
  }
  card->members[member->port] = NULL;
  error_setg(errp, "%s: %s", who, error.text);
  return false;
}

static void member_realize(DeviceState *dev, Error **errp) {
  RevoMember *member = REVO_MEMBER(dev);
  RevoCard *card = REVO_HBA(dev->parent_bus->parent);

  if (!choose_port(card, member, errp))
    return;
  g_autofree char *who = g_strdup_printf("%s port %" PRIu32, revo_name(card), member->port);
  if (!check_trim_reads(who, member, errp) || !open_storage(member, who, errp))
    return;
  if (!member->serial)
    member->serial = default_serial(card, member->port);

  BlockBackend *blk = member->shared_blk ? member->shared_blk : member->conf.blk;
  revo_backend_init(&member->backend, card, member->port, blk, member->region_offset,
                    member->discard);
  if (!attach(card, member, who, errp)) {
    revo_backend_free(&member->backend);
    return;
  }
  if ((member->faults && !revo_faults_apply(card, member->port, member->faults, errp)) ||
      !revo_boot_connect(member, errp)) {
    rd_card_detach(card->core, member->port);
    card->members[member->port] = NULL;
    revo_backend_free(&member->backend);
    return;
  }
  if (!member->shared_blk)
    blk_set_dev_ops(blk, &member_block_ops, member);

  g_autofree char *prefix = g_strdup_printf("port%" PRIu32 ".", member->port);
  revo_counters_publish(card, OBJECT(dev), prefix);
}

static void member_unrealize(DeviceState *dev) {
  RevoMember *member = REVO_MEMBER(dev);
  RevoCard *card = member->backend.card;

  revo_boot_disconnect(member);
  rd_card_detach(card->core, member->port);
  revo_backend_drain(&member->backend);
  card->members[member->port] = NULL;
  if (!member->shared_blk)
    blk_set_dev_ops(member->conf.blk, NULL, NULL);
  revo_backend_free(&member->backend);
}

static void get_life_left(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp) {
  uint64_t percent = REVO_MEMBER(obj)->smart_life_left;

  visit_type_uint64(v, name, &percent, errp);
}

static void set_life_left(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp) {
  RevoMember *member = REVO_MEMBER(obj);
  struct rd_error error = {""};
  uint64_t percent;

  if (!visit_type_uint64(v, name, &percent, errp))
    return;
  if (percent > 100) {
    error_setg(errp, "%s=%" PRIu64 ": must be 0 to 100 (percent)", name, percent);
    return;
  }
  if (DEVICE(obj)->realized &&
      rd_card_set(member->backend.card->core, member->port, "smart_life_left", percent, &error)) {
    error_setg(errp, "%s", error.text);
    return;
  }
  member->smart_life_left = percent;
}

static void member_init(Object *obj) {
  RevoMember *member = REVO_MEMBER(obj);

  member->smart_life_left = 100;
  member->conf.bootindex = -1;
}

REVO_PROPERTIES member_properties[] = {
    DEFINE_BLOCK_PROPERTIES(RevoMember, conf),
    DEFINE_BLOCK_ERROR_PROPERTIES(RevoMember, conf),
    DEFINE_PROP_UINT32("port", RevoMember, port, PORT_ANY),
    DEFINE_PROP_STRING("model", RevoMember, model),
    DEFINE_PROP_STRING("serial", RevoMember, serial),
    DEFINE_PROP_STRING("firmware", RevoMember, firmware),
    DEFINE_PROP_UINT64("wwn", RevoMember, wwn, 0),
    DEFINE_PROP_BOOL("discard", RevoMember, discard, true),
    DEFINE_PROP_BOOL("panic-mode", RevoMember, panic, false),
    DEFINE_PROP_BOOL("frozen", RevoMember, frozen, false),
    DEFINE_PROP_STRING("trim-reads", RevoMember, trim_reads),
    DEFINE_PROP_STRING("preset", RevoMember, preset),
    REVO_PROPERTIES_END,
};

static void member_finalize(Object *obj) {
  g_free(REVO_MEMBER(obj)->faults);
}

static const RevoHelp member_help[] = {
    {"bootindex", "boot order of this SSD (-1: none)"},
    {"port", "phy of the card, from 0 (default: the first free one)"},
    {"model", "ATA model number, up to 40 characters (default: the profile's)"},
    {"serial",
     "ATA serial number, up to 20 characters (default: from the card's serial, id or "
     "address, and the port)"},
    {"firmware", "ATA firmware revision, up to 8 characters (default: the profile's)"},
    {"wwn", "NAA-5 world wide name (0: from the serial number)"},
    {"faults", "rules of fault injection, also at run time by qom-set (docs/faults.md)"},
    {"smart-life-left",
     "the most that SMART attribute 231 shows, in percent, also at run time by qom-set; 10 or "
     "less: failing (default: 100)"},
    {"panic-mode", "the firmware has crashed: a generic name, 32 KiB, nothing works"},
    {"discard", "TRIM of the guest discards in the image (off: TRIM succeeds and the image stays)"},
    {"frozen", "security is frozen at power-on, as firmware leaves it"},
    {"trim-reads",
     "what trimmed sectors read as: pattern (0xff, as the drive) or backend (what the image has)"},
    {"preset",
     "flash at the start: fresh, full (written once), steady (written at random) or image (what is "
     "in the image)"},
};

static void member_class_init(ObjectClass *klass, RevoClassData data) {
  DeviceClass *dc = DEVICE_CLASS(klass);

  dc->desc = "SSD with SandForce SF-2281 controller, on a RevoDrive or 88SE9485 card";
  dc->bus_type = TYPE_REVO_BUS;
  dc->fw_name = "disk";
  dc->realize = member_realize;
  dc->unrealize = member_unrealize;
  set_bit(DEVICE_CATEGORY_STORAGE, dc->categories);
  device_class_set_props(dc, member_properties);
  revo_boot_class_init(klass);
  revo_faults_class_init(klass);
  object_class_property_add(klass, "smart-life-left", "uint64", get_life_left, set_life_left, NULL,
                            NULL);
  revo_describe(klass, member_help, ARRAY_SIZE(member_help));
  revo_describe_block(klass);
}

static char *bus_fw_dev_path(DeviceState *dev) {
  return g_strdup_printf("%s@%" PRIx32, qdev_fw_name(dev), REVO_MEMBER(dev)->port);
}

static void bus_print_dev(Monitor *mon, DeviceState *dev, int indent) {
  RevoMember *member = REVO_MEMBER(dev);

  monitor_printf(mon, "%*sphy %" PRIu32 ", %" PRIu64 " bytes at offset %" PRIu64 " of '%s'\n",
                 indent, "", member->port, member->region_bytes, member->region_offset,
                 revo_blk_name(member->backend.blk));
}

static void bus_class_init(ObjectClass *klass, RevoClassData data) {
  BusClass *bc = BUS_CLASS(klass);

  bc->get_fw_dev_path = bus_fw_dev_path;
  bc->print_dev = bus_print_dev;
  bc->max_dev = RD_MAX_PORTS;
}

void revo_register_member_types(void) {
  static const TypeInfo bus_info = {
      .name = TYPE_REVO_BUS,
      .parent = TYPE_BUS,
      .instance_size = sizeof(BusState),
      .class_init = bus_class_init,
  };
  static const TypeInfo member_info = {
      .name = TYPE_REVO_MEMBER,
      .parent = TYPE_DEVICE,
      .instance_size = sizeof(RevoMember),
      .instance_init = member_init,
      .instance_finalize = member_finalize,
      .class_init = member_class_init,
  };

  type_register_static(&bus_info);
  type_register_static(&member_info);
}
