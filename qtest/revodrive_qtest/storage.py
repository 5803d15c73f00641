# SPDX-License-Identifier: GPL-2.0-or-later
"""Command-line pieces and image files for the card's backends."""
import json
import pathlib
import subprocess

SECTOR = 512
MIB = 1 << 20


def node(name, driver, **options):
    """`-blockdev` words for one block node; `_` in option names means `-`."""
    described = {"node-name": name, "driver": driver}
    described.update({k.replace("_", "-"): v for k, v in options.items()})
    return ["-blockdev", json.dumps(described)]


def raw_node(name, path, **options):
    return node(name, "raw", file={"driver": "file", "filename": str(path)}, discard="unmap", **options)


def null_node(name, size=64 * MIB, **options):
    return node(name, "null-co", size=size, read_zeroes=True, **options)


def faulty_node(name, rule, size=64 * MIB):
    """Zeros behind a blkdebug that follows one inject-error rule; raw on top names the events."""
    return node(name, "raw", file={
        "driver": "blkdebug", "inject-error": [rule],
        "image": {"driver": "null-co", "size": size, "read-zeroes": True}})


def stamp(lba, sectors=1, salt=0):
    """Content that tells which sector it is: each sector repeats its own address."""
    return b"".join((lba + i << 8 | salt & 0xFF).to_bytes(8, "little") * (SECTOR // 8)
                    for i in range(sectors))


def raw_image(path, size=64 * MIB, stamped_sectors=2048):
    """A sparse image whose first sectors are stamped."""
    path = pathlib.Path(path)
    with open(path, "wb") as image:
        image.write(stamp(0, min(stamped_sectors, size // SECTOR)))
        image.truncate(size)
    return path


def qcow2_image(path, size=64 * MIB):
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(path), str(size)], check=True)
    return pathlib.Path(path)
