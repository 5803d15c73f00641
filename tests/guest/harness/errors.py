# SPDX-License-Identifier: GPL-2.0-or-later
"""What can go wrong with a guest. The message is complete: what, where the logs are, the end of the console."""


class GuestError(Exception):
    """The machine could not be started, or ended, or made no sense."""

    exit_status = 125


class GuestTimeout(GuestError):
    """The guest or a command in it did not come to an end in time."""

    exit_status = 124


class DriverMissing(GuestError):
    """The card's PCI function is there, but this guest has no driver for it: not the card's fault."""

    exit_status = 120


class DeviceBroken(GuestError):
    """The driver is there and tried, but the card or its disks did not come up."""

    exit_status = 121


class CommandFailed(GuestError):
    """A command that had to succeed did not."""

    exit_status = 125
