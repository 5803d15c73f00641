# SPDX-License-Identifier: GPL-2.0-or-later
"""OVMF, GRUB from the EFI system partition, Debian: all from the card."""

import re

import others
from takeover import boot


def test_bootx64_then_the_entry_of_grub_install(machine, system, tmp_path):
    """Fresh variables: the firmware finds EFI/BOOT/BOOTX64.EFI on the card, beside an AHCI disk. grub-install writes an
    entry; two restarts from inside go through it, so the device path of the card is the same again."""
    guest = machine([None, None, None, system], firmware="uefi", boot_member=3, qemu=others.ahci_disk(tmp_path))
    assert boot(guest, r'starting Boot[0-9A-F]{4} "UEFI OCZ-REVODRIVE3 X2 ') == 3
    guest.run("mount /sys/firmware/efi/efivars && grub-install --target=x86_64-efi", check=True)
    entry = re.search(r"Boot([0-9A-F]{4})\* debian", guest.run("efibootmgr", check=True).output).group(1)
    for _ in range(2):
        guest.reboot()
        assert boot(guest, f'starting Boot{entry} "debian" from HD\\(2,GPT,') == 3
        current = guest.run("mount /sys/firmware/efi/efivars && efibootmgr", check=True).output
        assert f"BootCurrent: {entry}" in current
    guest.power_off()
