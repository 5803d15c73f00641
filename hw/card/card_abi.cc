// SPDX-License-Identifier: GPL-2.0-or-later
//
// The C face of Card. Nothing happens here but the crossing: an exception can only be a failed
// allocation, and at start-up that is an error message like any other.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>

#include "card/card.h"
#include "revodrive/error.h"

using revodrive::Card;
using revodrive::PersistentStore;
using revodrive::Profile;
using revodrive::set_error;

struct rd_card {
  Card card;
};

rd_card *rd_card_create(const rd_card_config *config, const rd_host_ops *ops, void *host,
                        rd_error *error) try {
  Profile profile;
  if (!Profile::load(config->profile, config->profile_set, &profile, error))
    return nullptr;
  if (config->ports < 1 || config->ports > RD_MAX_PORTS) {
    set_error(error, "ports=%u: must be 1 to %d", config->ports, RD_MAX_PORTS);
    return nullptr;
  }
  if (!Card::check(*config, error))
    return nullptr;
  PersistentStore stored;
  std::span bytes(static_cast<const uint8_t *>(config->persistent), config->persistent_len);
  if (config->persistent && !stored.decode(bytes, error))
    return nullptr;
  return new rd_card{Card(profile, *config, stored, *ops, host)};
} catch (const std::exception &e) {
  set_error(error, "cannot build the card: %s", e.what());
  return nullptr;
}

void rd_profile_list(rd_profile_fn *visit, void *opaque) {
  for (const std::string &name : Profile::builtin_names())
    visit(opaque, name.c_str());
}

int rd_profile_settings(const char *profile, const char *profile_set, rd_setting_fn *visit,
                        void *opaque, rd_error *error) try {
  Profile unused;
  auto tell = [&](const char *section, const char *key, const char *value) {
    visit(opaque, section, key, value);
  };
  return Profile::load(profile, profile_set, &unused, error, tell) ? 0 : -EINVAL;
} catch (const std::exception &e) {
  set_error(error, "cannot read the profile: %s", e.what());
  return -ENOMEM;
}

void rd_card_destroy(rd_card *card) {
  delete card;
}

int rd_card_attach(rd_card *card, unsigned port, const rd_member_config *member,
                   rd_error *error) try {
  return card->card.attach(port, *member, error);
} catch (const std::exception &e) {
  set_error(error, "cannot build the member: %s", e.what());
  return -ENOMEM;
}

void rd_card_detach(rd_card *card, unsigned port) {
  card->card.detach(port);
}

void rd_card_expect(rd_card *card, unsigned port, uint64_t lba) {
  card->card.expect(port, lba);
}

void rd_card_store(rd_card *card) {
  card->card.store_at_rest();
}

int rd_card_set(rd_card *card, unsigned port, const char *name, uint64_t value, rd_error *error) {
  return card->card.set(port, name, value, error);
}

uint32_t rd_card_mmio_read(rd_card *card, uint32_t offset) {
  return card->card.mmio_read(offset);
}

void rd_card_mmio_write(rd_card *card, uint32_t offset, uint32_t value) {
  card->card.mmio_write(offset, value);
}

void rd_card_timer_fired(rd_card *card) {
  card->card.timer_fired();
}

void rd_card_block_done(rd_card *card, uint64_t token, int error) {
  card->card.block_done(token, error);
}

void rd_card_reset(rd_card *card, rd_reset kind) {
  card->card.reset(kind);
}

int rd_card_save(rd_card *card, uint8_t **buf, size_t *len, rd_error *error) try {
  std::vector<uint8_t> bytes = card->card.save();
  *buf = static_cast<uint8_t *>(std::malloc(bytes.size()));
  if (!*buf)
    throw std::bad_alloc();
  std::memcpy(*buf, bytes.data(), bytes.size());
  *len = bytes.size();
  return 0;
} catch (const std::exception &e) {
  set_error(error, "cannot save the card: %s", e.what());
  return -ENOMEM;
}

int rd_card_load(rd_card *card, const uint8_t *buf, size_t len, rd_error *error) try {
  return card->card.load({buf, len}, error);
} catch (const std::exception &e) {
  set_error(error, "cannot load the card: %s", e.what());
  return -ENOMEM;
}

void rd_card_resume(rd_card *card) {
  card->card.resume();
}

void rd_card_query(rd_card *card, rd_query_fn *visit, void *opaque) {
  card->card.query(
      [&](const std::string &name, uint64_t value) { visit(opaque, name.c_str(), value); });
}

int rd_card_fault(rd_card *card, unsigned port, const char *text, rd_error *error) try {
  return card->card.fault(port, text, error);
} catch (const std::exception &e) {
  set_error(error, "faults: %s", e.what());
  return -ENOMEM;
}

void rd_card_list_faults(rd_card *card, unsigned port, rd_fault_fn *visit, void *opaque) {
  card->card.list_faults(port, [&](const std::string &line) { visit(opaque, line.c_str()); });
}
