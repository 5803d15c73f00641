# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that means harm: no crash, no hang, no byte outside what it named (C058 to C062, C069)."""
import random

import pytest

from revodrive_qtest import Bridge, ata, regs
from revodrive_qtest.bridge import CommandTimeout
from revodrive_qtest.core import POISON
from revodrive_qtest.phy import MS
from revodrive_qtest.storage import stamp

NOWHERE = 0xFFFF_0000_0000
RUN_NS = 500 * MS


def survives(card, with_data=True):
    """QEMU answers its monitor, and after a reset and a probe the card reads again."""
    assert card.machine.qmp("query-status")["running"]
    again = Bridge(card.bridge.function).probe()
    assert len(again.disks()) in (1, 4)
    if with_data:
        assert again.disks()[0].read(3, 2) == stamp(3, 2)
    else:
        again.disks()[0].read(0, 1)  # SET MAX ADDRESS may have left one sector
    return again


def run(card, request):
    """Lets the card do what it will with a request."""
    try:
        card.bridge.wait(request, limit_ns=RUN_NS)
    except CommandTimeout:
        pass
    return request


BAD_TARGETS = {"own-bar": None, "nowhere": NOWHERE, "top": 0xFFFF_FFFF_FFFF_FFF0, "zero": 0}


def bad_address(card, target, register=regs.TX_PROD_IDX):
    """Own BAR: the doorbell itself, so that each access would start more work."""
    address = BAD_TARGETS[target]
    return card.core.base + register if address is None else address


@pytest.mark.parametrize("target", BAD_TARGETS)
def test_structures_aimed_at_bad_places(rig, target):
    """C058: rings and areas in the card's own registers, or where nothing is."""
    card = rig()
    for base in (regs.CMD_LIST, regs.RX_FIS, regs.TX_BASE, regs.RX_BASE):
        card.core.write_pair(base, bad_address(card, target) & ~3)
        for command in (ata.identify(), ata.read_ncq(3, 0, 8)):
            run(card, card.disk.issue(command))
        card.bridge = survives(card)


@pytest.mark.parametrize("target", BAD_TARGETS)
def test_header_aimed_at_bad_places(rig, target):
    """C058: the command table, the status buffer and the PRD table."""
    card = rig()
    for field in (0x10, 0x20, 0x28):
        for command in (ata.identify(), ata.Command(0xFF), ata.read_ncq(1, 0, 8)):
            request, lines = card.core.build(0, command)
            header = card.core.command_list + 64 * request.slot
            lines.append(f"writeq {header + field:#x} {bad_address(card, target):#x}")
            card.machine.batch([*lines, *card.core.doorbell_lines(card.core.tx_entry(request))])
            run(card, request)
        card.bridge = survives(card)


@pytest.mark.parametrize("target", BAD_TARGETS)
def test_data_aimed_at_bad_places(rig, target):
    """C058: the PRD target. The command must not report success for data that went nowhere."""
    card = rig()
    address = bad_address(card, target)
    for opcode, direction in ((ata.READ_DMA_EXT, ata.IN), (ata.WRITE_DMA_EXT, ata.OUT)):
        command = ata.Command(opcode, 0, 8, device=0x40, direction=direction, length=4096,
                              prds=[(address, 4096)])
        request = run(card, card.disk.issue(command))
        if target == "nowhere":
            assert request.completion is None or request.completion.entry & regs.RX_ERR
        # address 0 is memory, so the write may have changed the disk
        card.bridge = survives(card, with_data=direction == ata.IN)


@pytest.mark.parametrize("size", [0, 1, 2, 0x7FF, 0x801, 0xFFF])
def test_any_ring_size_and_producer(rig, size):
    """C060, C061: one doorbell does at most one ring's worth of work."""
    card = rig()
    for producer in (0, 1, 0x7FF, 0x800, 0xFFF, 0xFFFFFFFF):
        card.core.write(regs.TX_CFG, 0)
        card.core.write(regs.TX_CFG, size | regs.RING_ENABLE)
        card.core.write(regs.TX_PROD_IDX, producer)
        card.core.write(regs.TX_PROD_IDX, 0)
        card.machine.clock_step(RUN_NS)
        assert card.machine.qmp("query-status")["running"]
    survives(card)


@pytest.mark.parametrize("size", [0, 1, 2, 0xFFF])
def test_any_receive_ring_size(rig, size):
    """Completions into a ring of odd size stay within the ring that was named."""
    card = rig()
    card.core.write(regs.RX_CFG, 0)
    card.core.write(regs.RX_CFG, size | regs.RING_ENABLE)
    for _ in range(4):
        card.disk.issue(ata.identify(), slot=4)
        card.machine.clock_step(RUN_NS)
    if size < regs.RX_ENTRIES:
        card.machine.memory.check_guards()
    else:
        ring_end = card.core.rx_ring + 4 * (regs.RX_ENTRIES + 1)
        assert card.machine.read(ring_end, 4) != b"\0\0\0\0"
    survives(card)


def test_ring_that_refills_itself(rig):
    """C060: a read whose data lands in the TX ring makes new entries; the work stays bounded."""
    card = rig()
    core = card.core
    entry = regs.TX_SATA | regs.TX_INITIATOR | 1 << 12 | 4
    card.disk.write(0, entry.to_bytes(4, "little") * 2048)
    request = card.disk.issue(ata.Command(ata.READ_DMA_EXT, 0, 16, device=0x40, direction=ata.IN,
                                          length=8192, prds=[(core.tx_ring, 8192)]), slot=4)
    run(card, request)
    core.write(regs.TX_PROD_IDX, (core.tx_next - 2) % 2048)
    card.machine.clock_step(RUN_NS)
    assert card.machine.qmp("query-status")["running"]


def test_extreme_entries(rig):
    """C061: register sets, phy maps, slots and commands at and over their limits."""
    card = rig()
    core = card.core
    lines = []
    for register_set in (0, 16, 17, 63, 64, 127):
        for phys in (0, 1, 0x10, 0x80, 0xFF):
            for slot in (0, 2047, 2048, 0xFFF):
                for kind in range(8):
                    lines += core.doorbell_lines(kind << 29 | 1 << 28 | register_set << 20 | phys << 12
                                                 | slot)
    card.machine.batch(lines)
    card.machine.clock_step(RUN_NS)
    while card.bridge.asserted():
        card.bridge.interrupt()
    card.machine.memory.check_guards()
    survives(card)


@pytest.mark.parametrize("tag", [32, 255, 0xFFFF])
def test_tag_above_31(rig, tag):
    """C061: the FIS holds the tag in 5 bits; the header's may be anything."""
    card = rig()
    request, lines = card.core.build(0, ata.read_ncq(7, 0, 8))
    lines.append(f"writel {card.core.command_list + 64 * request.slot + 8:#x} {tag:#x}")
    card.machine.batch([*lines, *card.core.doorbell_lines(card.core.tx_entry(request))])
    run(card, request)
    survives(card)


PRD_CASES = {
    "none": [], "one-short": [(0, 100)], "zero-length": [(0, 0)], "zero-then-data": [(0, 0), (0, 4096)],
    "odd": [(0, 1), (1, 2), (3, 4093)], "larger": [(0, 8192)], "half-sector": [(0, 4096 - 256)],
    "many-tiny": [(i, 1) for i in range(255)], "gap": [(0, 2048), (0, 0), (2048, 2048)],
}


@pytest.mark.parametrize("opcode", [ata.READ_DMA_EXT, ata.WRITE_DMA_EXT, ata.READ_FPDMA, ata.IDENTIFY,
                                    ata.DATA_SET_MANAGEMENT])
def test_lists_that_do_not_fit(rig, opcode):
    """C062: too short, too long, empty: an error or a good end, and not a byte elsewhere."""
    card = rig()
    buffer = card.machine.memory.alloc(8192)
    for name, case in PRD_CASES.items():
        card.machine.write(buffer, bytes((POISON,)) * 8192)
        try_list(card, opcode, [(buffer + offset, length) for offset, length in case], name)
        needed = 512 if opcode == ata.IDENTIFY else 4096
        if opcode not in (ata.WRITE_DMA_EXT, ata.DATA_SET_MANAGEMENT):
            assert set(card.machine.read(buffer + needed, 8192 - needed)) == {POISON}, name
        card.machine.memory.check_guards()
        if opcode == ata.READ_FPDMA:
            card.disk.read_log(0x10)
    survives(card, with_data=False)


def try_list(card, opcode, prds, name):
    out = opcode in (ata.WRITE_DMA_EXT, ata.DATA_SET_MANAGEMENT)
    command = ata.Command(opcode, 0, 8, device=0x40, direction=ata.OUT if out else ata.IN, length=4096,
                          prds=prds)
    if opcode == ata.READ_FPDMA:
        command.features, command.count, command.tag = 8, 0, 0
    request = run(card, card.disk.issue(command))
    needed = 512 if opcode == ata.IDENTIFY else 4096
    if ends_at(prds) < needed and opcode != ata.DATA_SET_MANAGEMENT:
        assert request.completion is not None and request.completion.entry & regs.RX_ERR, name


def ends_at(prds):
    """Bytes of a list; an entry of length zero ends it."""
    total = 0
    for _, length in prds:
        if not length:
            break
        total += length
    return total


def test_any_stated_length(rig):
    """C062: the header's length differs from both the command's and the list's."""
    card = rig()
    for stated in (0, 1, 511, 100, 1 << 20, 0xFFFFFFFF):
        command = ata.read_dma(0, 8)
        command.stated_length = stated
        request = run(card, card.disk.issue(command))
        card.machine.memory.check_guards()
        if stated < 4096:
            assert request.completion.entry & regs.RX_ERR, f"stated length {stated}"
    survives(card)


def all_opcodes(card, phy):
    """Every opcode, without data, to a phy; each must end or be held quietly."""
    for opcode in range(256):
        request = card.core.issue(phy, ata.Command(opcode, count=1))
        run_shortly(card, request)
        if not request.done():
            card.core.release(request)
        else:
            yield opcode, request.completion


def run_shortly(card, request):
    try:
        card.bridge.wait(request, limit_ns=100 * MS)
    except CommandTimeout:
        pass


def test_every_opcode_to_an_empty_phy(bare):
    """C069: nothing attached: an error record and a bad FIS, or held; never success."""
    card = bare(ports=(0,))
    for opcode, completion in all_opcodes(card, 2):
        assert completion.entry & regs.RX_ERR, hex(opcode)
        assert completion.failed, f"opcode {opcode:#x} to an empty phy reports success"
    survives(card)


def test_every_opcode_without_data(rig):
    """C069: to a disk, with no buffer at all; each one completes."""
    card = rig()
    ended = dict(all_opcodes(card, 0))
    assert len(ended) == 256
    survives(card, with_data=False)


def test_every_opcode_with_data(rig):
    """To a disk with a sector of buffer, which may be read or written; each one completes."""
    card = rig()
    for opcode in range(256):
        for direction in (ata.IN, ata.OUT):
            request = card.core.issue(3, ata.Command(opcode, 0, 1, 0, 0x40, direction, 512,
                                                     bytes(512) if direction == ata.OUT else None))
            run(card, request)
            assert request.completion, f"opcode {opcode:#x} never ends"
    card.machine.memory.check_guards()
    survives(card)


def test_random_fises(rig, seed):
    """Random command FISes, valid and not, with odd lists and lengths."""
    card = rig("timing=off")
    rng = random.Random(seed)
    buffer = card.machine.memory.alloc(65536)
    requests = []
    for _ in range(400):
        fis = bytearray(ata.Command(rng.choice(OPCODES), rng.choice((0, 5, 131071, rng.getrandbits(48))),
                                    rng.choice((0, 1, 8, 0xFFFF)), rng.getrandbits(16),
                                    rng.choice((0x40, 0xE0, 0))).fis())
        if rng.random() < 0.2:
            fis[rng.randrange(20)] = rng.getrandbits(8)
        prds = [(buffer + rng.randrange(32768), rng.choice((0, 1, 512, 4096, 32768)))
                for _ in range(rng.randrange(4))]
        command = ata.Command(0, direction=rng.choice((None, ata.IN, ata.OUT)), prds=prds,
                              stated_length=rng.choice((0, 512, 4096, 65536, 0x7FFFFFFF)),
                              prd_count=rng.choice((0, 1, 255, 0xFFFF)), raw_fis=bytes(fis),
                              tag=rng.choice((None, rng.randrange(32))))
        requests.append(card.core.issue(rng.randrange(4), command))
        if rng.random() < 0.1:
            card.bridge.sleep(MS)
    card.bridge.sleep(200 * MS)
    card.machine.memory.check_guards()
    survives(card, with_data=False)


OPCODES = (0x06, 0x20, 0x24, 0x25, 0x2F, 0x30, 0x34, 0x35, 0x3D, 0x3F, 0x40, 0x47, 0x57, 0x60, 0x61, 0xB0,
           0xC8, 0xCA, 0xE0, 0xE5, 0xE7, 0xEA, 0xEC, 0xEF, 0xF1, 0xF5)


def test_random_register_writes(rig, seed):
    """C065 in short: random accesses to all of BAR 2 and the interesting parts of it."""
    card = rig("timing=off")
    rng = random.Random(seed)
    interesting = [b + o for b in regs.CORE_BASE for o in range(0x100, 0x298, 4)]
    interesting += list(range(0x10200, 0x10220, 4))
    memory = card.machine.memory.alloc(1 << 20, align=4096)
    values = (0, 1, 2, 0xFFFFFFFF, 0x10800, 0x10400, 0x59, 0x5B, 0x20, 0x80, 0x300, 0x3FF, 1 << 23, 0x0004FFFF)
    for _ in range(60):
        lines = []
        for _ in range(100):
            offset = rng.choice(interesting) if rng.random() < 0.95 else rng.randrange(0, 0x40000, 4)
            value = rng.choice((rng.choice(values), rng.getrandbits(32), memory + rng.randrange(1 << 19)))
            word = "readl {:#x}" if rng.random() < 0.3 else "writel {:#x} {:#x}"
            lines.append(word.format(card.bridge.bar + offset, value))
        card.machine.batch(lines)
        card.machine.clock_step(rng.choice((0, 1000, MS, 20 * MS)))
    survives(card, with_data=False)


def test_random_rings(rig, seed):
    """Random bytes in command list, TX ring and the tables, doorbells all along."""
    card = rig("timing=off")
    rng = random.Random(seed)
    core, machine = card.core, card.machine
    scratch = machine.memory.alloc(65536)
    for _ in range(40):
        for slot in range(16):
            header = bytearray(rng.randbytes(16))
            for _ in range(4):
                header += (scratch + rng.randrange(32768)).to_bytes(8, "little")
            machine.write(core.command_list + 64 * slot, header)
        machine.write(scratch, rng.randbytes(16384))
        for _ in range(16):
            entry = (3 << 29 if rng.random() < 0.7 else rng.getrandbits(3) << 29) | 1 << 28 \
                | rng.randrange(20) << 20 | (1 << rng.randrange(4)) << 12 | rng.randrange(16)
            machine.batch(core.doorbell_lines(entry))
        machine.clock_step(MS)
        card.bridge.interrupt()
    survives(card, with_data=False)


def test_own_bar_as_everything(rig):
    """C058: all structures in the card's own BAR at once, doorbells on both cores."""
    card = rig()
    for core in card.bridge.cores:
        for base in (regs.CMD_LIST, regs.RX_FIS, regs.TX_BASE, regs.RX_BASE):
            core.write_pair(base, core.base + 0x100)
        for producer in (0, 1, 100, 2047):
            core.write(regs.TX_PROD_IDX, producer)
    card.machine.clock_step(RUN_NS)
    survives(card)
