# SPDX-License-Identifier: GPL-2.0-or-later
"""The card as its driver holds it: probe, the interrupt handler, waiting in virtual time.

A Bridge owns two Cores of four Phys each. Waiting moves the machine's virtual clock from timer to
timer and runs the interrupt handler whenever the interrupt line (or the MSI message) asks for it.
"""
import time

from . import pci, regs
from .core import Core
from .disk import Disk
from .machine import Hang
from .phy import MS

COMMAND_TIMEOUT_NS = 30_000 * MS
_MSI_DATA = 0x5A


class CommandTimeout(Exception):
    """Nothing completed for as long as a driver waits (virtual time)."""


class Bridge:
    """`timing` False: the card was started with timing=off, so real time is what finishes I/O."""

    def __init__(self, function, timing=True, msi=False, high_memory=False):
        self.function = function
        self.machine = function.machine
        self.timing = timing
        self.bar = function.enable()[regs.BAR]
        self.gsi = function.intx_line()
        self.cores = [Core(self, 0), Core(self, 1)]
        self.interrupts = 0
        self.high_memory = high_memory
        self._work = []  # (due_ns, function), in order of arrival
        self._msi = self.machine.memory.alloc(4) if msi else None

    # Registers of the chip

    def read(self, offset):
        return self.machine.readl(self.bar + offset)

    def write(self, offset, value):
        self.machine.writel(self.bar + offset, value)

    # Life

    def probe(self):
        """Everything from pci_enable_device to the first interrupt; returns self."""
        self.link_status = self.function.read(0x82, 2)
        for core in self.cores:
            core.allocate(self.high_memory)
            core.chip_init()
            self._init_sgpio(core.index)
        if self._msi is not None:
            self.function.enable_msi(self._msi, _MSI_DATA)
        self.interrupt_enable()
        return self

    def _init_sgpio(self, host):
        self.write(regs.CHIP_CONFIG, self.read(regs.CHIP_CONFIG) | 0x100)
        base = regs.SGPIO + 0x100 * host
        for offset, value in ((0x0C, 8), (0x04, 0x00124488), (0x08, 0x04200BB8), (0x00, 0x0B000007),
                              (0x38, 0x80808080), (0x20, 0x07060504 if host else 0x03020100)):
            self.write(base + offset, value)

    def interrupt_enable(self):
        self._write_enables(self.read(regs.GBL_CTL) | regs.GBL_ENABLE)

    def interrupt_disable(self):
        self._write_enables(self.read(regs.GBL_CTL) & ~regs.GBL_ENABLE)

    def _write_enables(self, value):
        for offset in (regs.GBL_INT_STAT, regs.GBL_PI, *regs.GBL_OTHERS, regs.GBL_CTL):
            self.write(offset, value)

    def remove(self):
        """Unbind: the chip itself is not stopped, only its interrupts and its bus mastering."""
        self.interrupt_disable()
        self.function.set_command(pci.COMMAND_MEMORY)

    # Who is there

    def phys(self):
        return [phy for core in self.cores for phy in core.phys]

    def disks(self):
        return [Disk(self, phy) for phy in self.phys() if phy.attached and phy.sata]

    # Interrupts

    def asserted(self):
        """Whether the card asks for the handler now."""
        if self._msi is None:
            return self.machine.irq_level(self.gsi)
        if self.machine.readl(self._msi) != _MSI_DATA:
            return False
        self.machine.writel(self._msi, 0)
        return True

    def interrupt(self):
        """mvs_interrupt: returns the completed requests, or None when it was not this card."""
        summary = self.read(regs.GBL_INT_STAT)
        if not summary & regs.GBL_ENABLE:
            return None
        self.interrupts += 1
        done = []
        for core in self.cores:
            if summary & regs.GBL_CORE[core.index]:
                done += self._core_interrupt(core)
        return done

    def _core_interrupt(self, core):
        core.write(regs.INT_STAT, regs.INT_DONE)
        core.read(regs.INT_STAT)
        stat = core.read(regs.INT_STAT)
        done = core.receive()
        for phy in core.phys:
            if stat & regs.int_port(phy.index):
                phy.interrupt()
        if stat & regs.INT_NCQ_ERROR:
            for offset in regs.NON_NCQ_ERR:
                core.write(offset, core.read(offset))
        core.write(regs.INT_STAT, stat)
        return done

    # Waiting

    def run_until(self, condition, limit_ns=COMMAND_TIMEOUT_NS, what="something"):
        """Serves interrupts and moves time until condition() holds."""
        self._serve()
        start = now = self.machine.now_ns
        idle_ns = MS
        while not condition():
            if now - start >= limit_ns:
                raise CommandTimeout(f"{what} did not happen within {limit_ns} ns")
            before, now = now, self.machine.clock_step() if self.timing else now
            if now == before:  # no timer is armed: only the backend, in real time, can go on
                time.sleep(0.0002)
                now = self.machine.clock_step(idle_ns)
                idle_ns = min(2 * idle_ns, 100 * MS) if self.timing else MS
            self._serve()

    def _serve(self):
        for _ in range(64):
            if not self.asserted():
                break
            self.interrupt()
        else:
            raise Hang("the interrupt stays asserted after 64 runs of the handler")
        now = self.machine.now_ns
        due = [w for w in self._work if w[0] <= now]
        self._work = [w for w in self._work if w[0] > now]
        for _, function in due:
            function()

    def sleep(self, ns):
        """Lets virtual time pass in slices of at most 10 ms, serving interrupts and delayed work."""
        end = self.machine.now_ns + ns
        self._serve()
        while (left := end - self.machine.now_ns) > 0:
            self.machine.clock_step(min(left, 10 * MS))
            self._serve()

    def wait(self, *requests, limit_ns=COMMAND_TIMEOUT_NS):
        """Waits for the requests; returns their completions."""
        self.run_until(lambda: all(r.done() for r in requests), limit_ns,
                       f"completion of {[hex(r.command.opcode) for r in requests if not r.done()]}")
        return [r.completion for r in requests]

    def after(self, ns, function):
        """Delayed work of the driver; returns a handle for cancel()."""
        item = (self.machine.now_ns + ns, function)
        self._work.append(item)
        return item

    def cancel(self, item):
        self._work = [w for w in self._work if w is not item]
