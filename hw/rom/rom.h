/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The option ROM that the plugin carries: what mkrom.py joined, for the ids 1b85:1041. Each image
 * in it starts with a ROM header and has its ids in a PCIR structure.
 */
#ifndef REVODRIVE_ROM_ROM_H
#define REVODRIVE_ROM_ROM_H

#include <stdint.h>

extern const uint8_t revo_rom_image[];
extern const uint32_t revo_rom_image_bytes;

#endif
