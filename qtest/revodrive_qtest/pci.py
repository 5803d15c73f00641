# SPDX-License-Identifier: GPL-2.0-or-later
"""PCI as firmware and the kernel's PCI core do it: find functions, place BARs, route interrupts.

Configuration space through ports 0xCF8/0xCFC (PCI 3.0, 3.2.2.3.2). Works for functions on the root
bus of q35 and pc, and one level behind a bridge or root port.
"""

VENDOR, DEVICE, COMMAND, STATUS, REVISION, CLASS = 0x00, 0x02, 0x04, 0x06, 0x08, 0x09
HEADER_TYPE, BAR0, SUBSYSTEM, CAPABILITIES, INTERRUPT_LINE, INTERRUPT_PIN = (
    0x0E, 0x10, 0x2C, 0x34, 0x3C, 0x3D)
COMMAND_MEMORY, COMMAND_MASTER, COMMAND_INTX_DISABLE = 0x2, 0x4, 0x400
STATUS_INTX = 0x8
CAP_PM, CAP_MSI, CAP_EXPRESS = 0x01, 0x05, 0x10

_WINDOW_BYTES = 0x200000
_FIRST_WINDOW = 0xE0000000
_PC_IRQ = 11


class PciFunction:
    """One function. `parent` is the bridge it sits behind, or None on the root bus."""

    def __init__(self, machine, bus, devfn, parent=None):
        self.machine = machine
        self.bus = bus
        self.devfn = devfn
        self.parent = parent

    def __repr__(self):
        return f"{self.bus:02x}:{self.devfn >> 3:02x}.{self.devfn & 7}"

    def read(self, offset, size):
        """A configuration read of 1, 2 or 4 bytes."""
        self._address(offset)
        return self.machine.inl(0xCFC + (offset & 3), size)

    def write(self, offset, value, size):
        self._address(offset)
        self.machine.outl(0xCFC + (offset & 3), value, size)

    def _address(self, offset):
        self.machine.outl(0xCF8, 0x80000000 | self.bus << 16 | self.devfn << 8 | offset & 0xFC)

    @property
    def ids(self):
        return self.read(VENDOR, 2), self.read(DEVICE, 2)

    def capabilities(self):
        """Capability id -> offset."""
        found = {}
        offset = self.read(CAPABILITIES, 1) & 0xFC
        while offset and len(found) < 48:
            found[self.read(offset, 1)] = offset
            offset = self.read(offset + 1, 1) & 0xFC
        return found

    def bar_size(self, index):
        """(bytes, low flag bits) of a BAR; keeps its content."""
        offset = BAR0 + 4 * index
        old = self.read(offset, 4)
        self.write(offset, 0xFFFFFFFF, 4)
        low = self.read(offset, 4)
        self.write(offset, old, 4)
        flags = low & 0xF
        return (-(low & ~0xF) & 0xFFFFFFFF, flags)

    def place_bars(self):
        """Gives each memory BAR an address; returns {index: address}."""
        placed = {}
        index = 0
        next_free = (self.parent or self).window
        while index < 6:
            size, flags = self.bar_size(index)
            if size and not flags & 1:
                address = (next_free + size - 1) // size * size
                self.write(BAR0 + 4 * index, address, 4)
                placed[index] = address
                next_free = address + size
            if flags & 6 == 4:
                index += 1
                self.write(BAR0 + 4 * index, 0, 4)
            index += 1
        return placed

    def enable(self, master=True):
        """pci_enable_device and pci_set_master; returns the BAR addresses."""
        if self.parent:
            self.parent.open_window()
        bars = self.place_bars()
        self.set_command(COMMAND_MEMORY | (COMMAND_MASTER if master else 0))
        return bars

    def set_command(self, value):
        self.write(COMMAND, value, 2)

    @property
    def window(self):
        """A memory window of its own for what sits at this place of the root bus."""
        return _FIRST_WINDOW + (self.devfn >> 3) * _WINDOW_BYTES

    def open_window(self):
        """Bridges only: forwards the memory window."""
        base = self.window >> 16
        last = (self.window + _WINDOW_BYTES - 1) >> 16
        self.write(0x20, (last & 0xFFF0) << 16 | base & 0xFFF0, 4)
        self.set_command(COMMAND_MEMORY | COMMAND_MASTER)

    def intx_line(self):
        """Routes INTA as firmware would and returns its IO-APIC input."""
        slot = (self.parent or self).devfn >> 3
        pin = self.read(INTERRUPT_PIN, 1) - 1
        assert pin >= 0, "the function has no interrupt pin"
        if self.parent:
            pin = ((self.devfn >> 3) + pin) % 4
        if self.machine.machine.startswith("pc"):
            PciFunction(self.machine, 0, 1 << 3).write(0x60, _PC_IRQ * 0x01010101, 4)
            return _PC_IRQ
        return 20 + (slot + pin) % 4

    def enable_msi(self, address, data):
        """One 64-bit vector; the message is a store of `data` to `address`."""
        cap = self.capabilities()[CAP_MSI]
        self.write(cap + 4, address & 0xFFFFFFFF, 4)
        self.write(cap + 8, address >> 32, 4)
        self.write(cap + 12, data, 2)
        self.write(cap + 2, 1, 2)

    def function_level_reset(self):
        """Device Control bit 15 (PCIe 3.0, 7.8.4)."""
        cap = self.capabilities()[CAP_EXPRESS]
        self.write(cap + 8, self.read(cap + 8, 2) | 0x8000, 2)

    def set_power_state(self, state):
        """D0 is 0, D3hot is 3 (PCI PM 1.2, 3.2.4)."""
        cap = self.capabilities()[CAP_PM]
        self.write(cap + 4, self.read(cap + 4, 2) & ~3 | state, 2)


def scan(machine):
    """All functions on the root bus and behind its bridges, which get bus numbers."""
    found = []
    next_bus = 1
    for function in _functions(machine, 0, None):
        found.append(function)
        if function.read(HEADER_TYPE, 1) & 0x7F != 1:
            continue
        function.write(0x18, next_bus << 16 | next_bus << 8, 4)
        found += _functions(machine, next_bus, function)
        next_bus += 1
    return found


def _functions(machine, bus, parent):
    functions = []
    for slot in range(32):
        first = PciFunction(machine, bus, slot << 3, parent)
        if first.read(VENDOR, 2) == 0xFFFF:
            continue
        many = first.read(HEADER_TYPE, 1) & 0x80
        for number in range(8 if many else 1):
            function = PciFunction(machine, bus, slot << 3 | number, parent)
            if function.read(VENDOR, 2) != 0xFFFF:
                functions.append(function)
    return functions


def cards_of(machine, vendors=(0x1B85, 0x1B4B)):
    """The functions made by OCZ or Marvell, in bus order."""
    return [f for f in scan(machine) if f.read(VENDOR, 2) in vendors]


def card_of(machine):
    cards = cards_of(machine)
    assert len(cards) == 1, f"one card expected, found {cards}"
    return cards[0]
