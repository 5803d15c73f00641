/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Save and load: the PCI function as QEMU does it, then the core as one block of bytes, which has a
 * version of its own (include/revodrive/host.h). A stream comes from anywhere and is not trusted.
 */
#include "glue.h"

#define MAX_STATE_BYTES GiB /* of a saved card; anything above is a damaged stream */

static int card_pre_save(void *opaque) {
  RevoCard *card = opaque;
  struct rd_error error = {""};
  size_t len = 0;

  g_clear_pointer(&card->state, free);
  int ret = rd_card_save(card->core, &card->state, &len, &error);
  if (ret == 0 && len <= MAX_STATE_BYTES) {
    card->state_bytes = len;
    return 0;
  }
  error_report("%s: the card cannot be saved: %s", revo_name(card),
               ret ? error.text : "its state is larger than 1 GiB");
  return ret ? ret : -EFBIG;
}

static int card_post_save(void *opaque) {
  RevoCard *card = opaque;

  g_clear_pointer(&card->state, free);
  return 0;
}

static int card_pre_load(void *opaque) {
  RevoCard *card = opaque;

  g_clear_pointer(&card->state, free);
  return 0;
}

static bool state_size_is_sane(void *opaque, int version) {
  RevoCard *card = opaque;

  return card->state_bytes > 0 && card->state_bytes <= MAX_STATE_BYTES;
}

/* The message may quote the stream. */
static void make_printable(char *text) {
  for (; *text; text++)
    if (!g_ascii_isprint(*text))
      *text = '?';
}

static int card_post_load(void *opaque, int version) {
  RevoCard *card = opaque;
  bool irq_level = card->irq_level;
  struct rd_error error = {""};

  card->loading = true;
  int ret = rd_card_load(card->core, card->state, card->state_bytes, &error);
  card->loading = false;
  g_clear_pointer(&card->state, free);
  if (ret) {
    make_printable(error.text);
    error_report("%s: the saved card cannot be loaded: %s", revo_name(card), error.text);
    return ret;
  }
  card->irq_level = irq_level;
  revo_config_loaded(card);
  return 0;
}

const VMStateDescription revo_vmstate = {
    .name = "revodrive",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = card_pre_save,
    .post_save = card_post_save,
    .pre_load = card_pre_load,
    .post_load = card_post_load,
    .fields =
        (REVO_VMSTATE_FIELDS[]){
            VMSTATE_PCI_DEVICE(pci, RevoCard),
            VMSTATE_BOOL(irq_level, RevoCard),
            VMSTATE_UINT32(state_bytes, RevoCard),
            VMSTATE_VALIDATE("size of the card's state", state_size_is_sane),
            VMSTATE_VBUFFER_ALLOC_UINT32(state, RevoCard, 1, NULL, state_bytes),
            VMSTATE_END_OF_LIST(),
        },
};
