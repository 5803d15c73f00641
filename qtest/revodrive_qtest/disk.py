# SPDX-License-Identifier: GPL-2.0-or-later
"""A SATA disk behind a phy: ATA commands as plain calls.

Calls wait for their command in virtual time and raise AtaError when the disk reports an error.
`ncq()` runs a batch of queued commands. Everything else is a Command given to `execute()`.
"""
from . import ata


class Disk:
    def __init__(self, bridge, phy):
        self.bridge = bridge
        self.core = phy.core
        self.phy = phy

    def issue(self, command, slot=None):
        """Starts a command; bridge.wait(request) waits for it."""
        return self.core.issue(self.phy.index, command, slot)

    def execute(self, command, check=True):
        """Runs one command; returns (completion, data read)."""
        request = self.issue(command)
        self.bridge.wait(request)
        if check and request.completion.failed:
            raise ata.AtaError(command, request.completion)
        data = self.core.data_of(request) if command.direction == ata.IN else b""
        return request.completion, data

    def identify(self):
        """The 512 bytes of IDENTIFY DEVICE."""
        return self.execute(ata.identify())[1]

    def sectors(self):
        data = self.identify()
        return int.from_bytes(data[200:208], "little")  # words 100..103

    def read(self, lba, sectors):
        return self.execute(ata.read_dma(lba, sectors))[1]

    def write(self, lba, data):
        self.execute(ata.write_dma(lba, data))

    def flush(self):
        self.execute(ata.Command(ata.FLUSH_CACHE_EXT, device=0x40))

    def trim(self, *ranges):
        """Ranges are (lba, sectors)."""
        self.execute(ata.trim(ranges))

    def ncq(self, commands, check=True):
        """Issues up to 32 queued commands at once; returns the requests in order of issue."""
        requests = [self.issue(c) for c in commands]
        self.bridge.wait(*requests)
        failed = [r for r in requests if r.completion.failed]
        if check and failed:
            raise ata.AtaError(failed[0].command, failed[0].completion)
        return requests

    def read_log(self, log, page=0, sectors=1, dma=False):
        return self.execute(ata.read_log(log, page, sectors, dma))[1]
