/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault injection: the property "faults" of a member. Before realize it holds the rules to start
 * with; afterwards a write is an order (add, clear, release: docs/faults.md) and a read the list.
 */
#include "glue.h"

static void add_line(void *opaque, const char *line) {
  GString *list = opaque;

  g_string_append_printf(list, "%s%s", list->len ? "\n" : "", line);
}

static char *get_faults(Object *obj, Error **errp) {
  RevoMember *member = REVO_MEMBER(obj);
  GString *list = g_string_new("");

  if (!DEVICE(obj)->realized)
    g_string_append(list, member->faults ? member->faults : "");
  else
    rd_card_list_faults(member->backend.card->core, member->port, add_line, list);
  return g_string_free(list, FALSE);
}

static void set_faults(Object *obj, const char *text, Error **errp) {
  RevoMember *member = REVO_MEMBER(obj);

  if (!DEVICE(obj)->realized) {
    g_free(member->faults);
    member->faults = g_strdup(text);
    return;
  }
  if (member->backend.card->waiting) {
    error_setg(errp, "%s is waiting for a block node; try again", revo_name(member->backend.card));
    return;
  }
  revo_faults_apply(member->backend.card, member->port, text, errp);
}

bool revo_faults_apply(RevoCard *card, unsigned port, const char *text, Error **errp) {
  struct rd_error error = {""};

  if (rd_card_fault(card->core, port, text, &error) == 0)
    return true;
  error_setg(errp, "%s port %u: %s", revo_name(card), port, error.text);
  return false;
}

void revo_faults_class_init(ObjectClass *klass) {
  object_class_property_add_str(klass, "faults", get_faults, set_faults);
}
