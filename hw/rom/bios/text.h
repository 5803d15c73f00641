/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Words and numbers into a buffer that ends with a 0. What does not fit is left out. Only for init:
 * the code is gone afterwards.
 */
#ifndef REVODRIVE_ROM_TEXT_H
#define REVODRIVE_ROM_TEXT_H

#include <stdint.h>

#define INIT __attribute__((section(".init.text")))

struct Text {
  char *at;
  uint16_t size, used;
};

void put_char(struct Text *text, char c);
void put(struct Text *text, const char *string);
/* Filled up with spaces to at least `width`. */
void put_padded(struct Text *text, const char *string, unsigned width);
/* Decimal, with spaces before it. */
void put_number(struct Text *text, uint32_t number, unsigned width);
void put_hex(struct Text *text, uint32_t number, unsigned digits);
/* In GiB with one decimal, or in MiB. */
void put_size(struct Text *text, uint64_t sectors);

#endif
