/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters of the core as read-only QOM properties ("qom-get"): those of the card on the card,
 * those of a member on its device. A name of the core becomes a name of QEMU's style: late_ios is
 * late-ios.
 */
#include "glue.h"

typedef struct Counter {
  RevoCard *card;
  char *name; /* the core's */
} Counter;

typedef struct Lookup {
  const char *name;
  uint64_t value;
} Lookup;

static void match(void *opaque, const char *name, uint64_t value) {
  Lookup *lookup = opaque;

  if (strcmp(name, lookup->name) == 0)
    lookup->value = value;
}

static void get_counter(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp) {
  Counter *counter = opaque;
  Lookup lookup = {counter->name, 0};

  if (counter->card->core)
    rd_card_query(counter->card->core, match, &lookup);
  visit_type_uint64(v, name, &lookup.value, errp);
}

static void release_counter(Object *obj, const char *name, void *opaque) {
  Counter *counter = opaque;

  g_free(counter->name);
  g_free(counter);
}

typedef struct Publish {
  RevoCard *card;
  Object *obj;
  const char *prefix;
} Publish;

static void publish(void *opaque, const char *name, uint64_t value) {
  Publish *p = opaque;
  size_t skip = strlen(p->prefix);

  /* Without a prefix: what belongs to the card itself. */
  if (skip ? !g_str_has_prefix(name, p->prefix) : strchr(name, '.') != NULL)
    return;
  g_autofree char *property = g_strdelimit(g_strdup(name + skip), "_", '-');
  if (object_property_find(p->obj, property))
    return;
  Counter *counter = g_new(Counter, 1);
  *counter = (Counter){p->card, g_strdup(name)};
  object_property_add(p->obj, property, "uint64", get_counter, NULL, release_counter, counter);
}

/* A write of any value forgets what the card knows of latencies. */
static void reset_latency(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp) {
  RevoCard *card = opaque;
  uint64_t value;

  if (visit_type_uint64(v, name, &value, errp) && card->core)
    rd_card_set(card->core, RD_CARD, "reset_latency", value, NULL);
}

static void get_nothing(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp) {
  uint64_t value = 0;

  visit_type_uint64(v, name, &value, errp);
}

void revo_counters_publish(RevoCard *card, Object *obj, const char *prefix) {
  Publish p = {card, obj, prefix};

  rd_card_query(card->core, publish, &p);
  if (!*prefix)
    object_property_add(obj, "reset-latency", "uint64", get_nothing, reset_latency, NULL, card);
}
