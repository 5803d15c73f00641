/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the assembler and the C part of the BIOS image share: sizes and numbers, no declarations.
 */
#ifndef REVODRIVE_ROM_IMAGE_H
#define REVODRIVE_ROM_IMAGE_H

#define PHYS 8           /* of both cores */
#define NO_NUMBER 0x7f   /* no hard disk of a BIOS */
#define PRODUCT_BYTES 64 /* text of a drive in the boot menu */

/* Asked from PMM: struct Memory, and the stack of the 32-bit code behind it. */
#define MEMORY_BYTES 0x4000

#define KEY_DETAILS 0x12 /* Ctrl-R */

#define CALL_BUSY 0xffffffff

/* Status of INT 13h. */
#define STATUS_OK 0x00
#define STATUS_INVALID 0x01
#define STATUS_NOT_FOUND 0x04
#define STATUS_UNCORRECTABLE 0x10
#define STATUS_CONTROLLER 0x20
#define STATUS_TIMEOUT 0x80
#define STATUS_NOT_READY 0xaa
#define STATUS_WRITE_FAULT 0xcc

#endif
