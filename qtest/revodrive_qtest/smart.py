# SPDX-License-Identifier: GPL-2.0-or-later
"""SMART of a disk (ATA8-ACS 7.53): commands, and its data as numbers."""
import dataclasses

from . import ata

READ_DATA, READ_THRESHOLDS, EXECUTE_OFFLINE, READ_LOG, WRITE_LOG = 0xD0, 0xD1, 0xD4, 0xD5, 0xD6
ENABLE, DISABLE, RETURN_STATUS = 0xD8, 0xD9, 0xDA
KEY, FAILING = 0xC24F, 0x2CF4


@dataclasses.dataclass
class Attribute:
    flags: int
    value: int
    worst: int
    raw: int


def command(feature, low=0, data=None, sectors=0):
    """`data`: what a WRITE LOG sends; `sectors`: what is read."""
    if data is not None:
        return ata.Command(ata.SMART, KEY << 8 | low, len(data) // 512, feature, direction=ata.OUT,
                           length=len(data), data=data)
    return ata.Command(ata.SMART, KEY << 8 | low, sectors, feature,
                       direction=ata.IN if sectors else None, length=sectors * 512)


def read_data(disk):
    data = disk.execute(command(READ_DATA, sectors=1))[1]
    assert sum(data) % 256 == 0
    return data


def attributes(disk):
    """The attributes by their ids."""
    data = read_data(disk)
    found = {}
    for at in range(2, 362, 12):
        if data[at]:
            found[data[at]] = Attribute(int.from_bytes(data[at + 1:at + 3], "little"), data[at + 3],
                                        data[at + 4], int.from_bytes(data[at + 5:at + 12], "little"))
    return found


def verdict(disk):
    """KEY or FAILING."""
    return disk.execute(command(RETURN_STATUS))[0].lba >> 8 & 0xFFFF


def start_test(disk, subcommand):
    disk.execute(command(EXECUTE_OFFLINE, subcommand))


def read_log(disk, address, sectors=1):
    return disk.execute(command(READ_LOG, address, sectors=sectors))[1]


def write_log(disk, address, data):
    disk.execute(command(WRITE_LOG, address, data))
