# SPDX-License-Identifier: GPL-2.0-or-later
"""A driver for the RevoDrive card that runs outside the guest, over QEMU's qtest protocol.

It reads like the life of the real driver: start a Machine, find the PciFunction, probe the Bridge,
talk to a Disk. qtest/README.md starts with a complete example.
"""
from .ata import AtaError, Command
from .bridge import Bridge
from .disk import Disk
from .machine import Hang, Machine, Refused, refused
from .pci import PciFunction, card_of, cards_of

__all__ = ["AtaError", "Bridge", "Command", "Disk", "Hang", "Machine", "PciFunction", "Refused",
           "card_of", "cards_of", "refused"]
