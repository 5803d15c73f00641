# SPDX-License-Identifier: GPL-2.0-or-later
"""One core of the bridge: its rings, command slots and register sets, as mvsas handles them.

Step numbers in chip_init() are those of the driver's own order of register accesses (revision C0).
The values are the ones it writes.
"""
import dataclasses

from . import ata, regs
from .memory import write_command
from .phy import BUSY_WAIT_NS, Phy

SLOT_BYTES = 8192
TABLE, OPEN_FRAME, PRD_TABLE, STATUS = 0x000, 0x060, 0x0A0, 0xC94  # inside a slot buffer (mv_sas.h)
FIS_BYTES = 20
POISON = 0xEE
INTERNAL_SLOTS = 4  # reserved for the driver's own commands; block requests use tag + 4


@dataclasses.dataclass(eq=False)
class Request:
    """A command in a slot of the core. `completion` is None while it is outstanding."""
    command: ata.Command
    slot: int
    phy: int
    register_set: int
    buffer: int           # slot buffer
    prds: list            # (address, bytes)
    issue_ns: int
    completion: ata.Completion = None
    released: bool = False  # given up by the driver; a completion would be an error

    def done(self):
        return self.completion is not None or self.released


class Core:
    def __init__(self, bridge, index):
        self.bridge = bridge
        self.machine = bridge.machine
        self.index = index
        self.base = bridge.bar + regs.CORE_BASE[index]
        self.phys = [Phy(self, i) for i in range(regs.PHYS_PER_CORE)]
        self.requests = {}      # slot -> Request
        self.stray = []         # entries for idle slots
        self._slot_buffers = {}
        self._data_buffers = {}
        self._sets = {}         # phy -> (register set, commands using it)
        self.reset_rings()

    # Registers

    def read(self, offset):
        return self.machine.readl(self.base + offset)

    def write(self, offset, value):
        self.machine.writel(self.base + offset, value)

    def modify(self, offset, clear, set_bits):
        self.write(offset, self.read(offset) & ~clear | set_bits)

    def cmd_read(self, address):
        self.write(regs.CMD_ADDR, address)
        return self.read(regs.CMD_DATA)

    def cmd_write(self, address, value):
        self.write(regs.CMD_ADDR, address)
        self.write(regs.CMD_DATA, value)

    def cmd_modify(self, address, clear, set_bits):
        self.cmd_write(address, self.cmd_read(address) & ~clear | set_bits)

    def write_pair(self, offset, address):
        self.write(offset, address & 0xFFFFFFFF)
        self.write(offset + 4, address >> 32)

    # Probe

    def allocate(self, high=False):
        """The memory of the rings; once in a driver's life."""
        alloc = self.machine.memory.alloc
        self.command_list = alloc(regs.TX_ENTRIES * 64, align=4096, high=high)
        self.rx_fis = alloc(regs.RX_FIS_BYTES, align=4096, high=high)
        self.tx_ring = alloc(regs.TX_ENTRIES * 4, align=4096, high=high)
        self.rx_ring = alloc((regs.RX_ENTRIES + 1) * 4, align=4096, high=high)

    def reset_rings(self):
        """The driver's side of starting both rings."""
        self.tx_next = 0
        self.rx_seen = regs.RX_NONE
        self._sets.clear()
        self.requests.clear()

    def chip_init(self):
        self._init_reset()
        self._init_timers()
        self._init_addresses()
        for phy in self.phys:
            phy.start()  # 16
        for phy in self.phys:
            phy.first_look()  # 17
        self._init_run()

    def _init_reset(self):
        if not self.read(regs.CTL) & regs.CTL_RESET:  # 1
            self.write(regs.CTL, self.read(regs.CTL) & 0xFFFF | regs.CTL_RESET)
            self.read(regs.CTL)
        self.write(regs.PORTS_IMP, 0xFF)  # 2
        self._pa_write(regs.VSR_PHY_CONFIG, 0x0084FFFE)  # 3
        for offset in (regs.PCS, regs.STP_REG_SET, regs.STP_REG_SET + 4):  # 4
            self.write(offset, 0)

    def _pa_write(self, address, value):
        self.write(regs.PA_VSR_ADDR, address)
        self.machine.clock_step(BUSY_WAIT_NS)
        self.write(regs.PA_VSR_PORT, value)

    def _init_timers(self):
        self.cmd_modify(0x118, 1 << 9, 1 << 10)  # 5
        self.cmd_write(0x128, 0x00007F7F)  # 6
        self.cmd_modify(0x124, 0xFFFF, 0x3FFF)  # 7
        self.cmd_write(0x13C, 0x007A0000)  # 8
        self.cmd_write(0x1A4, 0xFFEFBF7D)  # 9
        self.cmd_modify(0x128, 0xFFFF, 0x007F)  # 10
        self.write(regs.PA_VSR_ADDR, 0x30)  # 11
        self.machine.clock_step(BUSY_WAIT_NS)
        self.modify(regs.PA_VSR_PORT, 0xFF00, 0x3300)

    def _init_addresses(self):
        self.machine.write(self.rx_ring, regs.RX_NONE.to_bytes(4, "little"))
        self.write_pair(regs.CMD_LIST, self.command_list)  # 12
        self.write_pair(regs.RX_FIS, self.rx_fis)  # 13
        self.write(regs.TX_CFG, regs.TX_ENTRIES)  # 14
        self.write_pair(regs.TX_BASE, self.tx_ring)
        self.write(regs.RX_CFG, regs.RX_ENTRIES)  # 15
        self.write_pair(regs.RX_BASE, self.rx_ring)

    def _init_run(self):
        self.modify(regs.CTL, 0x02, 0x05)  # 18
        self.read(regs.CTL)
        self.modify(regs.PCS, 0x20, regs.PCS_CMD_RST)  # 19
        self.set_coalescing(0x000101FF, 0x00010080)  # 20
        self.start_rings()  # 21, 22
        self.write(regs.PCS, regs.PCS_RUN)  # 23
        self.write(regs.INT_MASK, regs.INT_RUN_MASK)  # 24
        self.cmd_modify(0x1E4, 0, 0xFFFF0000)  # 25
        self.cmd_write(0x138, 0x003F003F)
        self.cmd_modify(0x1E0, 0, 0xFFFF007F)
        self.cmd_modify(0x1BC, 1, 0x300)
        self.write(regs.INT_MASK_SRS, 0xFFFF)  # 26

    def start_rings(self):
        self.write(regs.TX_CFG, 0)
        self.write(regs.TX_CFG, regs.TX_ENTRIES | regs.RING_ENABLE)
        self.write(regs.RX_CFG, regs.RX_ENTRIES | regs.RING_ENABLE)
        self.reset_rings()

    def set_coalescing(self, count, timeout):
        self.write(regs.INT_COAL, count)
        self.write(regs.INT_COAL_TMOUT, timeout)

    # Delivery

    def free_slot(self, internal=False):
        slots = range(INTERNAL_SLOTS) if internal else range(INTERNAL_SLOTS, regs.TX_ENTRIES)
        return next(slot for slot in slots if slot not in self.requests)

    def data_buffer(self, slot, length):
        """A buffer that belongs to the slot; as large as the largest command it has carried."""
        address, size = self._data_buffers.get(slot, (0, 0))
        if size < length:
            address = self.machine.memory.alloc(length, align=4096)
            self._data_buffers[slot] = (address, length)
        return address

    def slot_buffer(self, slot):
        if slot not in self._slot_buffers:
            self._slot_buffers[slot] = self.machine.memory.alloc(SLOT_BYTES)
        return self._slot_buffers[slot]

    def issue(self, phy, command, slot=None):
        """Builds the command in a slot and rings the doorbell. Returns the Request."""
        request, lines = self.build(phy, command, slot)
        self.machine.batch([*lines, *self.doorbell_lines(self.tx_entry(request))])
        return request

    def build(self, phy, command, slot=None):
        """The Request and the memory writes that make it, without TX entry and doorbell."""
        if slot is None:
            slot = self.free_slot(command.tag is None and command.opcode == ata.IDENTIFY)
        prds = command.prds
        if prds is None:
            prds = [(self.data_buffer(slot, command.length), command.length)] if command.length else []
        request = Request(command, slot, phy, self._acquire_set(phy), self.slot_buffer(slot), prds,
                          self.machine.now_ns)
        lines = [f"memset {request.buffer:#x} {SLOT_BYTES:#x} 0x0"]
        if command.data is not None:
            lines += _scatter(prds, command.data)
        table = command.fis().ljust(OPEN_FRAME, b"\0") + self._open_frame(phy)
        table = table.ljust(PRD_TABLE, b"\0") + b"".join(prd_entry(*prd) for prd in prds)
        lines += [write_command(request.buffer, table),
                  write_command(self.command_list + 64 * slot, self._header(request))]
        self.requests[slot] = request
        return request, lines

    def tx_entry(self, request):
        return (regs.TX_SATA | regs.TX_INITIATOR | request.register_set << 20
                | 1 << (12 + request.phy) | request.slot)

    def doorbell_lines(self, entry):
        """TX entry at the next index, then the index itself: it names the last valid entry."""
        index = self.tx_next
        self.tx_next = (index + 1) % regs.TX_ENTRIES
        return [f"writel {self.tx_ring + 4 * index:#x} {entry:#x}",
                f"writel {self.base + regs.TX_PROD_IDX:#x} {index:#x}"]

    def _header(self, request):
        command, buffer = request.command, request.buffer
        count = command.prd_count
        if count is None:
            count = regs.MAX_PRD_READ if command.direction == ata.IN else len(request.prds)
        flags = count << 16 | (regs.HDR_FPDMA if command.tag is not None else 0)
        length = command.length if command.stated_length is None else command.stated_length
        tag = request.slot if command.tag is None else command.tag
        dwords = [flags, 0x01000005, tag, length, buffer + TABLE, buffer + OPEN_FRAME,
                  buffer + STATUS, buffer + PRD_TABLE if request.prds else 0]
        sizes = [4] * 4 + [8] * 4
        return b"".join(d.to_bytes(n, "little") for d, n in zip(dwords, sizes)).ljust(64, b"\0")

    def _open_frame(self, phy):
        address = bytes((self.index * regs.PHYS_PER_CORE + phy,)) + bytes(7)
        return bytes((0xA1, 0x0A, 0, phy + 1)) + address

    def _acquire_set(self, phy):
        number, users = self._sets.get(phy, (None, 0))
        if number is None:
            used = {n for n, _ in self._sets.values()}
            number = next(n for n in range(64) if n not in used)
        self._sets[phy] = (number, users + 1)
        if not users:
            self._write_sets()
        return number

    def _release_set(self, phy):
        number, users = self._sets.get(phy, (0, 0))
        if users > 1:
            self._sets[phy] = (number, users - 1)
        elif users:
            del self._sets[phy]
            self._write_sets()

    def _write_sets(self):
        bitmap = sum(1 << number for number, _ in self._sets.values())
        self.write_pair(regs.STP_REG_SET, bitmap)

    # Completion

    def receive(self):
        """Takes new entries off the RX ring (mvs_int_rx); returns the completed requests."""
        mirror = self.machine.readl(self.rx_ring)
        assert mirror < regs.RX_ENTRIES or mirror == regs.RX_NONE, f"RX mirror holds {mirror:#x}"
        if mirror == regs.RX_NONE:
            return []
        if mirror == self.rx_seen:
            mirror = self.read(regs.RX_CONS_IDX) & 0xFFF
        done = []
        while self.rx_seen != mirror:
            self.rx_seen = (self.rx_seen + 1) % regs.RX_ENTRIES
            entry = self.machine.readl(self.rx_ring + 4 + 4 * self.rx_seen)
            request = self._complete(entry)
            if request:
                done.append(request)
        return done

    def _complete(self, entry):
        slot = entry & regs.RX_SLOT_MASK
        request = self.requests.pop(slot, None)
        if request is None:
            self.stray.append(entry)
            return None
        fis = self.machine.read(self.rx_fis + regs.d2h_offset(request.register_set), FIS_BYTES)
        error_info = bytes(8)
        if entry & regs.RX_ERR:
            error_info = self.machine.read(request.buffer + STATUS, 8)
            self.command_active(slot)
        request.completion = ata.Completion(slot, entry, fis, error_info, self.machine.now_ns)
        self._release_set(request.phy)
        return request

    def command_active(self, slot):
        """Whether the card still holds the slot; the address is not aligned, as in the driver."""
        return bool(self.cmd_read(regs.COMMAND_ACTIVE + (slot >> 3)) >> slot % 32 & 1)

    def release(self, request):
        """mvs_release_task: takes a command back; the card must let go of it at once."""
        address = regs.COMMAND_ACTIVE + (request.slot >> 3)
        bit = 1 << request.slot % 32
        if self.cmd_read(address) & bit:
            self.cmd_write(address, bit)
            assert not self.cmd_read(address) & bit, f"slot {request.slot} stays active"
        if self.requests.get(request.slot) is request:
            del self.requests[request.slot]
            self._release_set(request.phy)
        request.released = True

    def poison(self, *requests):
        """Marks the data buffers of commands that are cancelled: nothing may write there any more."""
        for request in requests:
            for address, length in request.prds:
                self.machine.batch([f"memset {address:#x} {length:#x} {POISON:#x}"])

    def untouched(self, *requests):
        """Whether the buffers still hold what poison() left there."""
        return all(set(self.data_of(r)) <= {POISON} for r in requests)

    def data_of(self, request):
        """What is in the command's buffers."""
        return b"".join(self.machine.read(*prd) for prd in request.prds)


def prd_entry(address, length):
    """12 bytes: bus address, length in bits 21:0."""
    return address.to_bytes(8, "little") + length.to_bytes(4, "little")


def _scatter(prds, data):
    lines = []
    for address, length in prds:
        part, data = data[:length], data[length:]
        if part:
            lines.append(write_command(address, part))
    return lines
