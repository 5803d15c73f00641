/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bootindex of a member: its entry in the boot order that QEMU hands to firmware. The form is one
 * that both firmwares understand without knowing the card:
 *
 *   <path of the card's bus>/pci8086,2922@SLOT:romPHY/drive@PHY/disk@0       (no :rom0)
 *
 * SeaBIOS looks at the part up to :romPHY, the instance of a boot vector in the option ROM of that
 * slot, which is the phy (hw/rom/bios/startup.c). OVMF takes the path for an AHCI disk and
 * translates it to the device path PciRoot()/Pci(SLOT)/Sata(PHY,0xFFFF,0x0). The card's real path
 * has neither, hence the entry in the name of the device above the card.
 *
 * With mode=vca the first member stands for the volume, in the form of a SCSI disk, which is
 * Scsi(0x0,0x0) in UEFI:
 *
 *   <path of the card's bus>/scsi@SLOT/channel@0/disk@0,0
 */
#include "glue.h"

static RevoCard *card_of(RevoMember *member) {
  return REVO_HBA(DEVICE(member)->parent_bus->parent);
}

static DeviceState *above(RevoCard *card) {
  return BUS(pci_get_bus(&card->pci))->parent;
}

static char *suffix_of(RevoCard *card, uint32_t port) {
  unsigned slot = PCI_SLOT(card->pci.devfn), function = PCI_FUNC(card->pci.devfn);
  g_autofree char *unit =
      function ? g_strdup_printf("%x,%x", slot, function) : g_strdup_printf("%x", slot);
  if (revo_is_vca(card))
    return g_strdup_printf("/scsi@%s/channel@0/disk@0,0", unit);
  g_autofree char *instance = port ? g_strdup_printf(":rom%x", port) : g_strdup("");

  return g_strdup_printf("/pci8086,2922@%s%s/drive@%x/disk@0", unit, instance, port);
}

bool revo_boot_connect(RevoMember *member, Error **errp) {
  RevoCard *card = card_of(member);
  ERRP_GUARD();

  if (member->conf.bootindex < 0)
    return true;
  if (revo_is_vca(card) && member->port > 0) {
    error_setg(errp,
               "%s: bootindex=%" PRId32
               " on the SSD of phy %u: with mode=vca the volume boots; give "
               "the card a bootindex",
               revo_name(card), member->conf.bootindex, member->port);
    return false;
  }
  check_boot_index(member->conf.bootindex, errp);
  if (*errp)
    return false;
  member->boot_path = suffix_of(card, member->port);
  add_boot_device_path(member->conf.bootindex, above(card), member->boot_path);
  return true;
}

void revo_boot_disconnect(RevoMember *member) {
  if (!member->boot_path)
    return;
  del_boot_device_path(above(card_of(member)), member->boot_path);
  g_clear_pointer(&member->boot_path, g_free);
}

static void get_bootindex(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp) {
  visit_type_int32(v, name, &REVO_MEMBER(obj)->conf.bootindex, errp);
}

static void set_bootindex(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp) {
  RevoMember *member = REVO_MEMBER(obj);
  int32_t old = member->conf.bootindex, index;

  if (!visit_type_int32(v, name, &index, errp))
    return;
  if (!DEVICE(obj)->realized) {
    member->conf.bootindex = index;
    return;
  }
  revo_boot_disconnect(member);
  member->conf.bootindex = index;
  if (revo_boot_connect(member, errp))
    return;
  member->conf.bootindex = old;
  revo_boot_connect(member, &error_abort); /* it was there a moment ago */
}

void revo_boot_class_init(ObjectClass *klass) {
  object_class_property_add(klass, "bootindex", "int32", get_bootindex, set_bootindex, NULL, NULL);
}
