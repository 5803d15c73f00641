/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "text.h"

INIT void put_char(struct Text *text, char c) {
  if (text->used + 1u >= text->size)
    return;
  text->at[text->used++] = c;
  text->at[text->used] = 0;
}

INIT void put(struct Text *text, const char *string) {
  while (*string)
    put_char(text, *string++);
}

INIT void put_padded(struct Text *text, const char *string, unsigned width) {
  unsigned length = 0;

  for (; string[length]; length++)
    put_char(text, string[length]);
  for (; length < width; length++)
    put_char(text, ' ');
}

INIT void put_number(struct Text *text, uint32_t number, unsigned width) {
  char digits[10];
  unsigned count = 0;

  do {
    digits[count++] = (char)('0' + number % 10);
    number /= 10;
  } while (number);
  for (unsigned i = count; i < width; i++)
    put_char(text, ' ');
  while (count)
    put_char(text, digits[--count]);
}

INIT void put_hex(struct Text *text, uint32_t number, unsigned digits) {
  while (digits--)
    put_char(text, "0123456789abcdef"[number >> (4 * digits) & 15]);
}

INIT void put_size(struct Text *text, uint64_t sectors) {
  if (sectors >> 21) {
    uint32_t tenths = ((uint32_t)sectors & 0x1FFFFF) / 0x8000 * 10 / 64;
    put_number(text, (uint32_t)(sectors >> 21), 4);
    put_char(text, '.');
    put_number(text, tenths, 0);
    put(text, " GiB");
  } else {
    put_number(text, (uint32_t)sectors >> 11, 6);
    put(text, " MiB");
  }
}
