# SPDX-License-Identifier: GPL-2.0-or-later
"""The installed system on the volume of a card with mode=vca: firmware, GRUB, kernel and root file system see one disk
over all SSDs."""

import pytest

from pc import striped
from takeover import TROUBLE


@pytest.fixture(scope="module")
def members(system, tmp_path_factory):
    paths = striped(system, tmp_path_factory.mktemp("members"))
    yield [str(path) for path in paths]
    for path in paths:
        path.unlink()


@pytest.mark.parametrize("firmware, words", [
    ("bios", "Booting from Hard Disk"), ("uefi", 'starting Boot[0-9A-F]{4} "UEFI OCZ REVODRIVE3 X2 ')],
    ids=["bios", "uefi"])
def test_boots(machine, members, firmware, words):
    guest = machine(members, firmware=firmware, card="mode=vca,bootindex=0")
    guest.expect(words)
    guest.login()
    assert guest.run("findmnt -no SOURCE /; lsblk -dno VENDOR,SIZE /dev/sda").output.split() == [
        "/dev/sda3", "OCZ", "4G"]
    assert not TROUBLE.search(guest.run("dmesg").output)
    assert guest.counter("commands") == guest.counter("completions")
    assert (guest.counter("rejected"), guest.counter("volume-failed")) == (0, 0)
    guest.power_off()
