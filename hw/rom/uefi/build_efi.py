#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds a UEFI image for x64 with gcc, gnu-efi's start-up code and objcopy.

Usage: build_efi.py driver|application [-I FOLDER]... OUTPUT SOURCE...

The images are position independent ELF objects first; start-up code relocates them, objcopy gives them
their PE header. A driver is an EFI boot service driver; an application may use gnu-efi's library.
"""
import os
import subprocess
import sys
import tempfile

TARGETS = {"driver": "efi-bsdrv-x86_64", "application": "efi-app-x86_64"}
CFLAGS = ["-std=gnu11", "-Os", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fpic", "-fshort-wchar",
          "-fvisibility=hidden", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-mno-red-zone",
          "-mgeneral-regs-only", "-maccumulate-outgoing-args", "-DGNU_EFI_USE_MS_ABI",
          "-isystem", "/usr/include/efi", "-isystem", "/usr/include/efi/x86_64"]
LDFLAGS = ["-nostdlib", "-shared", "-Wl,-Bsymbolic", "-Wl,--build-id=none", "-Wl,-z,nocombreloc",
           "-Wl,-z,noexecstack", "-Wl,-T,/usr/lib/elf_x86_64_efi.lds", "/usr/lib/crt0-efi-x86_64.o"]
SECTIONS = [".text", ".sdata", ".data", ".dynamic", ".dynsym", ".rel*", ".rela*", ".reloc"]


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def main():
    kind, *words = sys.argv[1:]
    includes = []
    while words[0] == "-I":
        includes += words[:2]
        words = words[2:]
    output, *sources = words
    libraries = ["-lefi", "-lgnuefi"] if kind == "application" else ["-lgnuefi"]
    with tempfile.TemporaryDirectory() as folder:
        linked = os.path.join(folder, "image.so")
        run("gcc", *CFLAGS, *LDFLAGS, "-o", linked, *includes, *sources, *libraries)
        undefined = run("nm", "-u", linked)
        if undefined:
            sys.exit(f"{output}: nothing defines these symbols:\n{undefined}")
        run("objcopy", *[f"--only-section={name}" for name in SECTIONS], f"--target={TARGETS[kind]}",
            linked, output)


main()
