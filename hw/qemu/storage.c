/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The simple forms of a board: drive= (one node, cut into equal regions) or drive0=..drive3= (one
 * node for each member). Either creates the members as children "port0".. of the card, so that
 * "device_del <id of the card>/port0" pulls one out.
 *
 * drive= keeps the node attached to the card; the members share its BlockBackend, and with it the
 * error policy and the permissions. A region is the node's size divided by the ports, rounded down
 * to REVO_REGION_ALIGN; what is left at the end of the node is not used.
 * drive0= and so on are handed over: the node becomes the member's own.
 */
#include "glue.h"

static void set_all_quiesced(RevoCard *card, bool quiesced) {
  for (unsigned port = 0; port < RD_MAX_PORTS; port++)
    if (card->members[port] && card->members[port]->shared_blk)
      revo_backend_set_quiesced(&card->members[port]->backend, quiesced);
}

static void drained_begin(void *opaque) {
  set_all_quiesced(opaque, true);
}

static void drained_end(void *opaque) {
  set_all_quiesced(opaque, false);
}

static const BlockDevOps shared_block_ops = {
    .drained_begin = drained_begin,
    .drained_end = drained_end,
};

static bool has_drives(const RevoCard *card) {
  for (unsigned port = 0; port < RD_MAX_PORTS; port++)
    if (card->drives[port])
      return true;
  return false;
}

static bool has_all_drives(RevoCard *card, Error **errp) {
  for (unsigned port = 0; port < revo_model(card)->ports; port++) {
    if (card->drives[port])
      continue;
    error_setg(errp, "%s: drive%u= is missing: with mode=vca each of the %u SSDs is needed",
               revo_name(card), port, revo_model(card)->ports);
    return false;
  }
  return true;
}

static bool check_use(RevoCard *card, Error **errp) {
  const RevoModel *model = revo_model(card);

  if (card->conf.blk && has_drives(card)) {
    error_setg(errp,
               "%s: drive= and drive0=..drive%u= exclude each other: give one node for the whole "
               "card, or one for each SSD",
               revo_name(card), model->ports - 1);
    return false;
  }
  if (!card->conf.blk && !has_drives(card)) {
    error_setg(errp,
               "%s: no storage: set drive= (one block node, cut into %u SSDs) or drive0=..drive%u= "
               "(one block node for each SSD); a card without any is -device marvell-88se9485",
               revo_name(card), model->ports, model->ports - 1);
    return false;
  }
  return !revo_is_vca(card) || card->conf.blk || has_all_drives(card, errp);
}

/* A new member in that port, not realized yet; the card owns it. */
static RevoMember *new_member(RevoCard *card, unsigned port) {
  RevoMember *member = REVO_MEMBER(qdev_new(TYPE_REVO_MEMBER));
  int32_t bootindex = port == 0 ? card->conf.bootindex : -1;
  g_autofree char *name = g_strdup_printf("port%u", port);

  object_property_add_child(OBJECT(card), name, OBJECT(member));
  member->conf = card->conf;
  member->conf.blk = NULL;
  member->conf.bootindex = -1;
  member->port = port;
  member->discard = card->discard;
  member->frozen = card->frozen;
  member->trim_reads = g_strdup(card->trim_reads);
  member->preset = g_strdup(card->preset);
  if (bootindex >= 0)
    object_property_set_int(OBJECT(member), "bootindex", bootindex, &error_abort);
  return member;
}

static bool realize_member(RevoCard *card, RevoMember *member, Error **errp) {
  if (qdev_realize_and_unref(DEVICE(member), BUS(&card->bus), errp))
    return true;
  object_unparent(OBJECT(member));
  return false;
}

/* The node leaves the card before the member takes it: a node has one device. */
static bool hand_over(RevoCard *card, unsigned port, Error **errp) {
  RevoMember *member = new_member(card, port);
  BlockBackend *blk = card->drives[port];

  blk_ref(blk);
  blk_detach_dev(blk, DEVICE(card));
  card->drives[port] = NULL;
  bool ok = qdev_prop_set_drive_err(DEVICE(member), "drive", blk, errp);
  blk_unref(blk);
  if (!ok) {
    object_unparent(OBJECT(member));
    object_unref(OBJECT(member));
    return false;
  }
  return realize_member(card, member, errp);
}

static int64_t region_bytes(RevoCard *card, Error **errp) {
  const RevoModel *model = revo_model(card);
  int64_t bytes = revo_blk_bytes(revo_name(card), card->conf.blk, errp);

  if (bytes < 0)
    return bytes;
  int64_t region = QEMU_ALIGN_DOWN(bytes / model->ports, REVO_REGION_ALIGN);
  if (region < REVO_MEMBER_MIN_BYTES) {
    error_setg(errp,
               "%s: block node '%s' has %" PRId64 " bytes: cut into %u SSDs that is %" PRId64
               " bytes each, and an SSD needs at least %d, so the node needs at least %u",
               revo_name(card), revo_blk_name(card->conf.blk), bytes, model->ports, region,
               REVO_MEMBER_MIN_BYTES, REVO_MEMBER_MIN_BYTES * model->ports);
    return -EINVAL;
  }
  return region;
}

static bool cut_up(RevoCard *card, Error **errp) {
  int64_t region = region_bytes(card, errp);

  if (region < 0 || !revo_prepare_blk(revo_name(card), &card->conf, errp))
    return false;
  for (unsigned port = 0; port < revo_model(card)->ports; port++) {
    RevoMember *member = new_member(card, port);
    member->shared_blk = card->conf.blk;
    member->region_offset = port * region;
    member->region_bytes = region;
    if (!realize_member(card, member, errp))
      return false;
  }
  blk_set_dev_ops(card->conf.blk, &shared_block_ops, card);
  return true;
}

bool revo_storage_init(RevoCard *card, Error **errp) {
  if (!object_dynamic_cast(OBJECT(card), TYPE_REVO_BOARD))
    return true;
  if (!check_use(card, errp))
    return false;
  if (card->conf.blk)
    return cut_up(card, errp);
  for (unsigned port = 0; port < revo_model(card)->ports; port++)
    if (card->drives[port] && !hand_over(card, port, errp))
      return false;
  return true;
}

/* Also after a failed init. Members that were realized with the card are gone with the bus. */
void revo_storage_exit(RevoCard *card) {
  for (unsigned port = 0; port < RD_MAX_PORTS; port++)
    if (card->members[port])
      object_unparent(OBJECT(card->members[port]));
  if (card->conf.blk)
    blk_set_dev_ops(card->conf.blk, NULL, NULL);
}
