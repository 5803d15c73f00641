/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hashed SAS address of an SSP frame's header (SAS-2, 4.2.3 and annex E): the remainder of the
 * address by the generator of a BCH code. For both images of the ROM.
 */
#ifndef REVODRIVE_ROM_SAS_HASH_H
#define REVODRIVE_ROM_SAS_HASH_H

#include <stdint.h>

#define SAS_ADDRESS_BYTES 8

static inline uint32_t sas_hash(const uint8_t *address) {
  const uint32_t generator = 0x1DB2777, carry = 0x1000000;
  uint32_t hash = 0;

  for (unsigned i = 0; i < 8 * SAS_ADDRESS_BYTES; i++) {
    uint32_t bit = address[i / 8] >> (7 - i % 8) & 1;
    hash = hash << 1 ^ bit * carry;
    if (hash & carry)
      hash ^= generator;
  }
  return hash;
}

#endif
