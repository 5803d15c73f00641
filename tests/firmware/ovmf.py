# SPDX-License-Identifier: GPL-2.0-or-later
"""UEFI machines for the tests: OVMF's files, and disks that its shell can read."""

import pathlib
import shutil
import subprocess

CODE = pathlib.Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
VARS = pathlib.Path("/usr/share/OVMF/OVMF_VARS_4M.fd")


def flash(variables):
    """QEMU's arguments for OVMF with these variables, which are made when they are missing."""
    if not variables.exists():
        shutil.copy(VARS, variables)
    return ["-drive", f"if=pflash,format=raw,readonly=on,file={CODE}",
            "-drive", f"if=pflash,format=raw,file={variables}"]


def fat_disk(path, files, mib=8):
    """A disk that is one FAT file system with these files: name -> text or path."""
    with open(path, "wb") as disk:
        disk.truncate(mib << 20)
    mtools("mformat", path, "-v", "TEST", "::")
    made = set()
    for name, content in files.items():
        for folder in reversed(pathlib.PurePosixPath(name).parents):
            if str(folder) not in (".", *made):
                mtools("mmd", path, f"::{folder}")
                made.add(str(folder))
        if isinstance(content, str):
            source = path.parent / "content"
            source.write_text(content.replace("\n", "\r\n"))
        else:
            source = content
        mtools("mcopy", path, str(source), f"::{name}")
    return path


def mtools(tool, disk, *arguments):
    subprocess.run([tool, "-i", str(disk), *arguments], check=True)
