# SPDX-License-Identifier: GPL-2.0-or-later
"""What else is in a machine that has the system on one SSD of its card: disks with a boot sector that only says its
name."""

from pc import block_node, boot_sector

MIB = 1 << 20


def small_system(path, text):
    path.write_bytes(boot_sector(text).ljust(4 * MIB, b"\0"))
    return str(path)


def second_card(folder):
    """A card in slot 3, and a root port "port1" behind it for the first one."""
    words, drives = ["-device", "pcie-root-port,id=port0,chassis=1,addr=3", "-device",
                     "pcie-root-port,id=port1,chassis=2,addr=5"], []
    for number in range(4):
        name = f"other{number}"
        words += block_node(name, small_system(folder / f"{name}.img", f"booted the other card's SSD {number}"))
        drives.append(f"drive{number}={name}")
    return [*words, "-device", ",".join(["revodrive3-x2", "id=card1", "bus=port0", *drives])]


def ahci_disk(folder):
    return [*block_node("ahci", small_system(folder / "ahci.img", "booted the AHCI disk")),
            "-device", "ich9-ahci,id=sata,addr=2", "-device", "ide-hd,drive=ahci,bus=sata.0,bootindex=1"]
