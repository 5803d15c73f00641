# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots a small Linux guest with the card and runs commands in it.

    from harness import Guest, Options

    with Guest(Options(card="timing=off")) as guest:
        print(guest.run("lsblk -dno NAME,SIZE,MODEL").stdout)

Options says what the machine is made of, Guest is the running machine, Result and Job are commands in it. Whatever
goes wrong is a GuestError whose text holds the end of the guest's console. scripts/guest is this on a command line.
"""

from .errors import CommandFailed, DeviceBroken, DriverMissing, GuestError, GuestTimeout
from .guest import Guest
from .options import Options

__all__ = ["CommandFailed", "DeviceBroken", "DriverMissing", "Guest", "GuestError", "GuestTimeout", "Options"]
