# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest memory that the driver hands out to the card.

Each allocation lies between two guard zones of a known pattern; check_guards() finds a card that
wrote outside what it was given. Addresses are guest physical; sizes are bytes. Memory is zero when
handed out. Nothing is ever freed: a test's machine is short-lived.
"""
import base64

GUARD_BYTES = 64
_GUARD = bytes((0xA5, 0x5A, 0xC3, 0x3C)) * (GUARD_BYTES // 4)
_LOW_START = 0x100000       # below it are ROMs and the video hole
_HIGH_START = 0x100000000
_LOW_END = 0x80000000       # both PC machines keep RAM contiguous at least up to here


def write_command(address, data):
    """The qtest line that stores `data` at a guest physical address."""
    return f"b64write {address:#x} {len(data):#x} {base64.b64encode(bytes(data)).decode()}"


def _size_of(text):
    scale = {"M": 1 << 20, "G": 1 << 30}[text[-1]]
    return int(text[:-1]) * scale


class GuestMemory:
    def __init__(self, machine, memory):
        self._machine = machine
        self._next = {False: _LOW_START, True: _HIGH_START}
        self._low_end = min(_size_of(memory), _LOW_END)
        self._has_high = _size_of(memory) > 0xC0000000
        self._guards = []

    def alloc(self, size, align=16, offset=0, high=False):
        """An address that is `offset` past a multiple of `align`; above 4 GiB when `high`."""
        if high and not self._has_high:
            raise ValueError("this machine has no memory above 4 GiB: start it with memory='5G'")
        base = self._next[high] + GUARD_BYTES
        address = (base + align - 1) // align * align + offset
        end = address + size + GUARD_BYTES
        if not high and end > self._low_end:
            raise MemoryError(f"guest memory is used up: {size} bytes wanted at {address:#x}")
        self._next[high] = end
        guards = [address - GUARD_BYTES, address + size]
        self._machine.batch([write_command(guard, _GUARD) for guard in guards])
        self._guards += guards
        return address

    def store(self, data, **options):
        """Allocates and fills."""
        address = self.alloc(len(data), **options)
        self._machine.write(address, data)
        return address

    def check_guards(self):
        """Fails when any byte around any allocation has changed."""
        answers = self._machine.batch([f"b64read {g:#x} {GUARD_BYTES:#x}" for g in self._guards])
        for guard, answer in zip(self._guards, answers):
            found = base64.b64decode(answer)
            assert found == _GUARD, f"the card wrote outside its buffers, near {guard:#x}: {found.hex()}"
