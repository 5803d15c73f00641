# SPDX-License-Identifier: GPL-2.0-or-later
"""One phy of a core: link bring-up, what is attached, plug and unplug, as mvsas does it."""
from . import regs

MS = 1_000_000
BUSY_WAIT_NS = 10 * MS  # after each write of an indirect address
WORK_DELAY_NS = 2000 * MS
SIGNATURE_TIMEOUT_NS = 5000 * MS


class Phy:
    def __init__(self, core, index):
        self.core = core
        self.index = index
        self.attached = False
        self.sata = False
        self.signature = b""
        self.log = []           # what happened, in order: "up", "down", "no signature", …
        self._signature_timer = None
        self._leaving = False

    def __repr__(self):
        return f"core {self.core.index} phy {self.index}"

    # Registers

    @property
    def int_stat(self):
        return self.core.read(regs.p_int_stat(self.index))

    @int_stat.setter
    def int_stat(self, value):
        self.core.write(regs.p_int_stat(self.index), value)

    @property
    def int_mask(self):
        return self.core.read(regs.p_int_mask(self.index))

    @int_mask.setter
    def int_mask(self, value):
        self.core.write(regs.p_int_mask(self.index), value)

    @property
    def status(self):
        """SER_CTLSTAT."""
        return self.core.read(regs.ser_ctlstat(self.index))

    @status.setter
    def status(self, value):
        self.core.write(regs.ser_ctlstat(self.index), value)

    @property
    def ready(self):
        return bool(self.status & regs.PHY_READY)

    def cfg_read(self, address):
        return self._indirect(regs.cfg_addr(self.index), address)

    def cfg_write(self, address, value):
        self._indirect(regs.cfg_addr(self.index), address, value)

    def vsr_read(self, address):
        return self._indirect(regs.vsr_addr(self.index), address)

    def vsr_write(self, address, value):
        self._indirect(regs.vsr_addr(self.index), address, value)

    def _indirect(self, offset, address, value=None):
        self.core.write(offset, address)
        self.core.machine.clock_step(BUSY_WAIT_NS)
        if value is None:
            return self.core.read(offset + 4)
        self.core.write(offset + 4, value)
        return None

    def _vsr_modify(self, address, clear, set_bits):
        self.vsr_write(address, self.vsr_read(address) & ~clear & 0xFFFFFFFF | set_bits)

    # Probe

    def start(self):
        """Step 16: SAS address, analogue settings, and the write that starts the link."""
        self.disable()
        self.cfg_write(0x10C, 0x30040550)
        self.cfg_write(0x110, 0x0000AB11)
        self.core.modify(regs.PCS, 0, 1 << (8 + self.index))
        for address in (0x118, 0x11C, 0x120):
            self._vsr_modify(address, 0x0FBE << 16, 0x0B34 << 16)
            self._vsr_modify(address + 4, 0, 3 << 14)
        self._vsr_modify(0x10C, 0xFF, 0xFC)
        self._vsr_modify(0x1A0, 0x40001, 0)
        self._vsr_modify(0x110, 0xFFF, 0xFC0)
        self._vsr_modify(0x1A0, 1 << 3, 0)
        held = self.vsr_read(regs.VSR_PHY_CONFIG) & regs.VSR_PHY_DISABLE
        self.vsr_write(regs.VSR_PHY_CONFIG, 0x0004FFFE | held)
        self.enable()
        self._tune()
        self.core.machine.clock_step(500 * MS)
        self._detect_type()

    def enable(self):
        self.vsr_write(regs.VSR_PHY_CONFIG, (self.vsr_read(regs.VSR_PHY_CONFIG) | 1) & 0xFD7FFFFF)

    def disable(self):
        self._vsr_modify(regs.VSR_PHY_CONFIG, 0, regs.VSR_PHY_DISABLE)

    def _tune(self):
        value = self.cfg_read(regs.PHYR_SATA_CTL)
        self.cfg_write(regs.PHYR_SATA_CTL, value | 0x20000000)
        self.cfg_write(regs.PHYR_SATA_CTL, value | 0x00100000)

    def _detect_type(self):
        self.sata = self.vsr_read(regs.VSR_PHY_STATUS) >> 16 & 0x3F != 0x10

    def first_look(self):
        """Step 17: acknowledge all but the signature, set the mask, see who is there."""
        self.int_stat = self.int_stat & ~regs.SIG_FIS
        self.int_mask = regs.PHY_MASK
        self.core.machine.clock_step(100 * MS)
        self.update()

    def update(self, irq=None):
        """mvs_update_phyinfo; irq: events that were read and acknowledged already."""
        events = self.int_stat if irq is None else irq
        self.attached = False
        if self.ready and not events & regs.POOF:
            self._identify(events)
        if irq is None:
            self.int_stat = events

    def _identify(self, events):
        assert self.status >> 16 & 3 <= 2, "a rate that does not exist"
        for address in range(0x100, 0x11C, 4):
            self.core.write(regs.cfg_addr(self.index), address)
            self.core.read(regs.cfg_addr(self.index) + 4)
        self.core.write(regs.cfg_addr(self.index), regs.PHYR_PHY_STAT)
        self.core.write(regs.cfg_addr(self.index) + 4, 4)
        if not self.sata:
            self.attached = True
            return
        if not events & regs.SIG_FIS:
            self.log.append("no signature")
            self.int_mask = self.int_mask | regs.SIG_FIS
            return
        dwords = [self.cfg_read(regs.PHYR_SATA_SIG + offset) for offset in (12, 8, 4, 0)]
        self.signature = b"".join(d.to_bytes(4, "little") for d in reversed(dwords))
        self.attached = True
        self.log.append("up")

    # Resets

    def reset(self, hard=False):
        """Soft or hard reset through SER_CTLSTAT; a hard one is polled for up to 50 ms."""
        self.int_stat = self.int_stat & ~regs.RDY_CH
        bit = regs.PHY_RST_HARD if hard else regs.PHY_RST
        self.status = self.status | bit
        for _ in range(50 if hard else 0):
            if not self.status & bit:
                return
            self.core.machine.clock_step(MS)
        assert not hard, f"{self}: the hard reset bit does not clear within 50 ms"

    def link_reset(self):
        """What error handling asks for: enable, soft reset, 200 ms."""
        self.enable()
        self.reset()
        self.core.machine.clock_step(200 * MS)

    # Interrupt

    def interrupt(self):
        """mvs_int_port."""
        events = self.int_stat
        self.int_stat = events
        if events & regs.POOF and not self._leaving:
            self._lost()
            return
        if events & regs.COMWAKE:
            self.int_mask = self.int_mask | regs.SIG_FIS
            if self._signature_timer is None:
                self._signature_timer = self.core.bridge.after(SIGNATURE_TIMEOUT_NS, self._no_signature)
        if events & (regs.SIG_FIS | regs.ID_DONE) and self.ready:
            self._plugged(events)

    def _lost(self):
        machine = self.core.machine
        machine.clock_step(500 * MS)
        self.core.receive()
        for request in [r for r in self.core.requests.values() if r.phy == self.index]:
            self.core.release(request)
        self._leaving = True
        self.attached = False
        self.core.bridge.after(WORK_DELAY_NS, self._left)
        if self.sata:
            self.reset()

    def _left(self):
        if not self._leaving:
            return
        self._leaving = False
        if self.ready:
            self._detect_type()
            self.update()
        else:
            self.log.append("down")

    def _plugged(self, events):
        self._drop_signature_timer()
        self.core.machine.clock_step(BUSY_WAIT_NS)
        self._detect_type()
        self.int_mask = self.int_mask & ~regs.SIG_FIS
        self.update(irq=events)
        self._leaving = False

    def _drop_signature_timer(self):
        if self._signature_timer is not None:
            self.core.bridge.cancel(self._signature_timer)
            self._signature_timer = None

    def _no_signature(self):
        self._signature_timer = None
        self.log.append("signature timeout")
        self.reset(hard=True)
