# SPDX-License-Identifier: GPL-2.0-or-later
"""The SAS disk of mode=vca as a driver of SSP commands sees it."""
import dataclasses

from . import core as layout
from . import regs

TX_SSP = 1 << 29
HDR_RETRY, HDR_TASK = 0x200, 0x2000
RX_RESPONSE, RX_GOOD = 1 << 18, 1 << 23
PRD_TABLE, STATUS = 0x0A0, 0xC94  # inside a slot buffer


@dataclasses.dataclass
class Scsi:
    """What core.Request wants of a command."""
    length: int = 0
    tag: int = None
    opcode: int = 0


class ScsiError(Exception):
    def __init__(self, sense):
        super().__init__(f"sense key {sense[2] & 15:x}, code {sense[12]:02x}/{sense[13]:02x}")
        self.key, self.code = sense[2] & 15, sense[12] << 8 | sense[13]
        self.information = int.from_bytes(sense[3:7], "big")


def card(policy, *more):
    """QEMU's words for a card that makes a volume of the nodes d0 to d3."""
    drives = [f"drive{i}=d{i}" for i in range(4)]
    return ["-device", ",".join(("revodrive3-x2,id=card,addr=4,mode=vca", f"policy={policy}", *drives, *more))]


class Volume:
    def __init__(self, bridge, phy=0):
        self.bridge, self.core, self.phy = bridge, bridge.cores[0], phy

    def issue(self, cdb, data=b"", length=0, lun=0, slot=None):
        """`data` goes out, `length` bytes come in. Returns the Request."""
        unit = lun.to_bytes(2, "big").ljust(12, b"\0") + bytes(cdb).ljust(16, b"\0")
        return self._frame(b"\x06".ljust(24, b"\0") + unit, 0, data, length, slot)

    def task(self, function, tag=0, lun=0):
        """Task management; returns the response code."""
        unit = lun.to_bytes(2, "big").ljust(10, b"\0") + bytes((function, 0)) + tag.to_bytes(2, "big")
        request = self._frame(b"\x16".ljust(24, b"\0") + unit.ljust(28, b"\0"), HDR_TASK, b"", 0, 0)
        self.bridge.wait(request)
        return self.response(request)[27]

    def _frame(self, table, flags, data, length, slot):
        core, machine = self.core, self.core.machine
        slot = core.free_slot() if slot is None else slot
        size = len(data) or length
        prds = [(core.data_buffer(slot, size), size)] if size else []
        request = layout.Request(Scsi(size), slot, self.phy, 0, core.slot_buffer(slot), prds, machine.now_ns)
        table = table.ljust(PRD_TABLE, b"\0") + b"".join(layout.prd_entry(*prd) for prd in prds)
        words = [(len(prds) << 16 | HDR_RETRY | flags, 4), (0x0100000D, 4), (slot, 4), (size, 4),
                 (request.buffer, 8), (request.buffer + 0x60, 8), (request.buffer + STATUS, 8),
                 (request.buffer + PRD_TABLE if prds else 0, 8)]
        header = b"".join(value.to_bytes(count, "little") for value, count in words).ljust(64, b"\0")
        lines = [f"memset {request.buffer:#x} {layout.SLOT_BYTES:#x} 0x0"]
        if data:
            lines.append(layout.write_command(prds[0][0], data))
        lines += [layout.write_command(request.buffer, table),
                  layout.write_command(core.command_list + 64 * slot, header)]
        core.requests[slot] = request
        entry = TX_SSP | regs.TX_INITIATOR | 1 << (12 + self.phy) | slot
        machine.batch([*lines, *core.doorbell_lines(entry)])
        return request

    def response(self, request):
        return self.core.machine.read(request.buffer + STATUS + 8, 96)

    def finish(self, request):
        """Waits; gives the data, or raises ScsiError."""
        self.bridge.wait(request)
        entry = request.completion.entry
        if entry & RX_RESPONSE:
            raise ScsiError(self.response(request)[24:])
        assert entry & RX_GOOD, f"completion entry {entry:#x}"
        return self.core.data_of(request)

    def run(self, cdb, data=b"", length=0, lun=0):
        return self.finish(self.issue(cdb, data, length, lun))

    def clear_attention(self):
        try:
            self.run([0])
        except ScsiError as error:
            assert error.key == 6

    def capacity(self):
        return int.from_bytes(self.run([0x25], length=8)[:4], "big") + 1

    def read_cdb(self, lba, blocks):
        return [0x28, 0, *lba.to_bytes(4, "big"), 0, *blocks.to_bytes(2, "big")]

    def write_cdb(self, lba, blocks):
        return [0x2A, *self.read_cdb(lba, blocks)[1:]]

    def read(self, lba, blocks):
        return self.run(self.read_cdb(lba, blocks), length=512 * blocks)

    def write(self, lba, data):
        self.run(self.write_cdb(lba, len(data) // 512), data)
