# SPDX-License-Identifier: GPL-2.0-or-later
"""SeaBIOS, GRUB from sector 0, Debian: all from the card."""

import pathlib

import pytest

import others
from takeover import boot

ROOT = pathlib.Path(__file__).resolve().parents[2]
DISK_BOOT = "Booting from Hard Disk"


def restart_twice(guest, member):
    for number in range(3):
        if number:
            guest.reboot()
        assert boot(guest, DISK_BOOT, "GRUB") == member
    guest.power_off()


def test_pc_boots_and_restarts(machine, system):
    """The board's first SSD, without any bootindex."""
    restart_twice(machine([system], machine="pc"), 0)


def test_q35_boots_and_restarts_beside_others(machine, system, tmp_path):
    """A second card, whose SSDs can boot too, and an AHCI disk that can; both have lower PCI addresses."""
    guest = machine([None, system], boot_member=1, bus="port1",
                    qemu=[*others.second_card(tmp_path), *others.ahci_disk(tmp_path)])
    guest.expect("OCZ RevoDrive 3 X2 BIOS")
    guest.expect("Marvell 88SE9485 BIOS")
    restart_twice(guest, 1)


@pytest.mark.parametrize("first, words", [(0, "booted the small system"), (2, DISK_BOOT)])
def test_c045_bootindex_chooses_between_two_systems(machine, system, tmp_path, first, words):
    """C045: bootindex=0 at a member with a small system, then at the one with Debian."""
    small = others.small_system(tmp_path / "small.img", "booted the small system")
    guest = machine([small, None, system], boot_member=first)
    if first == 0:
        guest.expect(words)
    else:
        assert boot(guest, words) == first
        assert "booted the small system" not in guest.console()


def test_c045_root_on_the_card_without_the_rom(machine, system):
    """C045: no ROM, no boot from the card; but QEMU's -kernel and -initrd with the root file system on the card."""
    tree = ROOT / ".deps" / "system" / "tree"
    guest = machine([None, system], card="romfile=", qemu=[
        "-kernel", str(tree / "vmlinuz"), "-initrd", str(tree / "initrd.img"),
        "-append", "root=LABEL=root ro console=ttyS0,115200 tsc=reliable norandmaps"])
    assert boot(guest) == 1
    assert "BIOS 0." not in guest.console() and "GRUB" not in guest.console()
    guest.power_off()
