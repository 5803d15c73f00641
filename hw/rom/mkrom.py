#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Joins images into one PCI expansion ROM: mkrom.py [--legacy FILE] [--efi FILE] OUTPUT

A legacy image is code that starts with a ROM header (55 AA) and holds a PCIR structure; this tool fills in
what only the joined ROM knows: ids, lengths, the mark of the last image, the checksum. An EFI image is a plain
.efi driver for x64; it gets a header and a PCIR structure of its own. Images stand in the order legacy, EFI:
a BIOS wants the first one, UEFI takes any.

OUTPUT ending in .c becomes a C source with the bytes, anything else the bytes themselves. The plugin puts the
ids of the card it belongs to over --vendor and --device when a card is created.

Layouts: PCI Firmware Specification 3.0, 5.1; UEFI Specification 2.10, 14.4.2.
"""

import argparse
import pathlib
import struct
import sys

UNIT = 512
MAX_LEGACY_BYTES = 127 * UNIT  # its length is one byte of units; the sum must stay below 64 KiB
MAX_EFI_BYTES = 0xFFFF * UNIT
CODE_X86, CODE_EFI = 0, 3
LAST_IMAGE = 0x80
CHECKSUM_AT = 6  # QEMU's own tools use this byte as well

PCIR = struct.Struct("<4sHHHHB3sHHBBH")  # signature to the reserved word at the end
EFI_HEADER = struct.Struct("<HHIHHH8sHH")
EFI_HEADER_BYTES = 0x20
MACHINE_X64 = 0x8664


class RomError(Exception):
    pass


def padded(data, unit=UNIT):
    return bytes(data) + bytes(-len(data) % unit)


def pcir(ids, units, code_type):
    """A PCIR structure of PCI 2.x (24 bytes); the class code is written lowest byte first."""
    return PCIR.pack(b"PCIR", ids.vendor, ids.device, 0, PCIR.size, 0, ids.klass.to_bytes(3, "little"), units,
                     ids.revision, code_type, 0, 0)


def legacy_image(code, ids):
    if code[:2] != b"\x55\xaa":
        raise RomError("the legacy image does not start with 55 AA")
    image = bytearray(padded(code))
    if len(image) > MAX_LEGACY_BYTES:
        raise RomError(f"the legacy image has {len(image)} bytes; at most {MAX_LEGACY_BYTES} fit")
    at = struct.unpack_from("<H", image, 0x18)[0]
    if image[at:at + 4] != b"PCIR" or at % 4:
        raise RomError(f"the legacy image has no aligned PCIR structure at {at:#x}, where its header points")
    units = len(image) // UNIT
    image[2] = units
    image[at:at + PCIR.size] = pcir(ids, units, CODE_X86)
    return image


def efi_subsystem(efi):
    """The subsystem of the PE file (11: boot service driver), after a check that it is one for x64."""
    at = struct.unpack_from("<I", efi, 0x3C)[0] if efi[:2] == b"MZ" and len(efi) > 0x40 else len(efi)
    if efi[at:at + 4] != b"PE\0\0":
        raise RomError("the EFI image is no PE file")
    machine = struct.unpack_from("<H", efi, at + 4)[0]
    if machine != MACHINE_X64:
        raise RomError(f"the EFI image is for machine {machine:#x}; it must be for x64 ({MACHINE_X64:#x})")
    return struct.unpack_from("<H", efi, at + 24 + 68)[0]


def efi_image(efi, ids):
    start = (EFI_HEADER_BYTES + PCIR.size + 7) & ~7
    image = bytearray(padded(bytes(start) + efi))
    if len(image) > MAX_EFI_BYTES:
        raise RomError(f"the EFI image has {len(image)} bytes; at most {MAX_EFI_BYTES} fit")
    units = len(image) // UNIT
    EFI_HEADER.pack_into(image, 0, 0xAA55, units, 0x0EF1, efi_subsystem(efi), MACHINE_X64, 0, bytes(8), start,
                         EFI_HEADER_BYTES)
    image[EFI_HEADER_BYTES:EFI_HEADER_BYTES + PCIR.size] = pcir(ids, units, CODE_EFI)
    return image


def indicator_at(image):
    return struct.unpack_from("<H", image, 0x18)[0] + 21


def join(images):
    """The images one after the other; the last one is marked, and a legacy one sums up to 0."""
    if not images:
        raise RomError("no image: give --legacy, --efi or both")
    images[-1][indicator_at(images[-1])] |= LAST_IMAGE
    for image in images:
        if image[indicator_at(image) - 1] == CODE_X86:
            image[CHECKSUM_AT] = 0
            image[CHECKSUM_AT] = -sum(image) & 0xFF
    return b"".join(images)


def c_source(rom):
    rows = (rom[at:at + 16] for at in range(0, len(rom), 16))
    body = "\n".join("  " + " ".join(f"{byte}," for byte in row) for row in rows)
    return ('#include "rom/rom.h"\n\n'
            f"const uint8_t revo_rom_image[] = {{\n{body}\n}};\n"
            f"const uint32_t revo_rom_image_bytes = {len(rom)};\n")


def number(text):
    return int(text, 0)


def parse_arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--legacy", type=pathlib.Path, help="image for a PC BIOS (flat binary)")
    parser.add_argument("--efi", type=pathlib.Path, help="driver for UEFI (x64 .efi)")
    parser.add_argument("--vendor", type=number, default=0x1B85)
    parser.add_argument("--device", type=number, default=0x1041)
    parser.add_argument("--class", dest="klass", type=number, default=0x010700, help="class code, 24 bits")
    parser.add_argument("--revision", type=number, default=0, help="revision of the code, 16 bits")
    parser.add_argument("output", type=pathlib.Path)
    return parser.parse_args(argv)


def main(argv):
    arguments = parse_arguments(argv)
    try:
        images = []
        if arguments.legacy:
            images.append(legacy_image(arguments.legacy.read_bytes(), arguments))
        if arguments.efi:
            images.append(efi_image(arguments.efi.read_bytes(), arguments))
        rom = join(images)
    except (RomError, OSError) as error:
        return f"mkrom.py: {error}"
    if arguments.output.suffix == ".c":
        arguments.output.write_text(c_source(rom))
    else:
        arguments.output.write_bytes(rom)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
