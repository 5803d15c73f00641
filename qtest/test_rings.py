# SPDX-License-Identifier: GPL-2.0-or-later
"""Delivery and completion rings: indices, wrap, cancellation and resets (C005)."""
import pytest

from revodrive_qtest import ata, regs
from revodrive_qtest.phy import MS
from revodrive_qtest.storage import stamp


def issue_many(card, count, disks=4):
    """Queued reads spread over the disks; one doorbell each."""
    return [card.disks[i % disks].issue(ata.read_ncq(i // disks, 8 * i, 8)) for i in range(count)]


def queue_without_doorbell(card, command, phy=0):
    """Builds a command and its TX entry; the doorbell is the caller's."""
    request, lines = card.core.build(phy, command)
    entry, _ = card.core.doorbell_lines(card.core.tx_entry(request))
    card.machine.batch([*lines, entry])
    return request


def test_one_doorbell_for_several_entries(rig):
    """C005: 0 runs entry 0; 2 then runs entries 1 and 2; the consumer index follows."""
    card = rig()
    first = queue_without_doorbell(card, ata.identify())
    card.core.write(regs.TX_PROD_IDX, 0)
    card.bridge.wait(first)
    assert card.core.read(regs.TX_CONS_IDX) & 0xFFF == 0
    more = [queue_without_doorbell(card, ata.read_ncq(t, t, 1)) for t in range(2)]
    card.core.write(regs.TX_PROD_IDX, 2)
    card.bridge.wait(*more)
    assert [card.core.data_of(r) for r in more] == [stamp(0), stamp(1)]
    assert card.core.read(regs.TX_CONS_IDX) & 0xFFF == 2
    card.bridge.sleep(100 * MS)
    assert card.core.read(regs.RX_CONS_IDX) == 2


def test_same_doorbell_twice_runs_nothing(rig):
    card = rig()
    card.bridge.wait(card.disk.issue(ata.identify()))
    card.core.write(regs.TX_PROD_IDX, 0)
    card.bridge.sleep(100 * MS)
    assert card.core.read(regs.RX_CONS_IDX) == 0


def test_both_rings_wrap(rig):
    """2100 commands: past the end of the 2048 TX entries and twice past the 1024 RX entries."""
    card = rig("timing=off", machine="q35")
    total, sent = 2100, 0
    slots = set()
    while sent < total:
        batch = issue_many(card, min(64, total - sent))
        card.bridge.wait(*batch)
        assert not any(r.completion.failed for r in batch)
        slots.update(r.slot for r in batch)
        sent += len(batch)
    assert card.core.tx_next == total - 2048
    assert card.core.rx_seen == (total - 1) % 1024
    assert card.machine.readl(card.core.rx_ring) == (total - 1) % 1024
    assert not card.core.stray


def test_every_slot_number_works(rig):
    """The first and the last slot, and the borders of COMMAND_ACTIVE words."""
    card = rig()
    for slot in (0, 3, 4, 31, 32, 1023, 1024, 2046, 2047):
        request = card.disk.issue(ata.read_dma(slot, 1), slot=slot)
        card.bridge.wait(request)
        assert card.core.data_of(request) == stamp(slot)


def test_slot_reused_while_active(rig):
    """The old command is cancelled without completion, the new one runs."""
    card = rig()
    old = card.disk.issue(ata.read_dma(1, 8), slot=50)
    other = card.machine.memory.alloc(512)
    new = card.disk.issue(ata.Command(ata.READ_DMA_EXT, 2, 1, device=0x40, direction=ata.IN, length=512,
                                      prds=[(other, 512)]), slot=50)
    card.core.poison(old)
    card.bridge.wait(new)
    card.bridge.sleep(100 * MS)
    assert card.machine.read(other, 512) == stamp(2)
    assert card.core.untouched(old)
    assert card.core.read(regs.RX_CONS_IDX) == 0 and not card.core.stray


def cancelled(card, requests, action):
    """Runs action with commands in flight; none may complete or touch memory afterwards."""
    mirror = card.machine.readl(card.core.rx_ring)
    action()
    card.core.poison(*requests)
    card.machine.clock_step(2000 * MS)
    assert card.core.untouched(*requests)
    assert card.machine.readl(card.core.rx_ring) == mirror
    assert not any(card.core.command_active(r.slot) for r in requests)


def test_core_reset_cancels_everything(rig):
    """CTL bit 5: rings off, nothing completes, interrupts and masks are 0."""
    card = rig()
    requests = issue_many(card, 16)
    cancelled(card, requests, lambda: card.core.write(regs.CTL, regs.CTL_RESET))
    core = card.core
    assert core.read(regs.INT_STAT) == 0 == core.read(regs.INT_MASK)
    assert core.read(regs.INT_COAL) == 0
    assert core.read(regs.TX_CFG) & regs.RING_ENABLE == 0 == core.read(regs.RX_CFG) & regs.RING_ENABLE
    assert not card.bridge.asserted()


def test_command_queue_reset(rig):
    """PCS bit 1 drops everything queued, reads back 0, and the queue starts at entry 0 again."""
    card = rig()
    requests = issue_many(card, 8)
    cancelled(card, requests, lambda: card.core.write(regs.PCS, regs.PCS_RUN | regs.PCS_CMD_RST))
    assert card.core.read(regs.PCS) == regs.PCS_RUN
    card.core.start_rings()
    card.machine.write(card.core.rx_ring, regs.RX_NONE.to_bytes(4, "little"))
    assert card.disk.read(3, 1) == stamp(3)
    assert card.core.tx_next == 1


def test_reset_of_one_core_leaves_the_other(bare):
    """A member on core 1 keeps its commands when core 0 is reset."""
    card = bare(ports=(0, 4))
    one = [d for d in card.disks if d.core.index == 1][0]
    request = one.issue(ata.read_dma(6, 1))
    card.core.write(regs.CTL, regs.CTL_RESET)
    card.bridge.wait(request)
    assert one.core.data_of(request) == stamp(6)


def test_restarting_receive_ring_starts_at_none(rig):
    """RX enable 0 to 1: the producer is "none" again, and the mirror is not written by it."""
    card = rig()
    card.disk.identify()
    core = card.core
    core.write(regs.RX_CFG, 0)
    card.machine.writel(core.rx_ring, 0xABC)
    core.write(regs.RX_CFG, regs.RX_ENTRIES | regs.RING_ENABLE)
    assert card.machine.readl(core.rx_ring) == 0xABC
    assert core.read(regs.RX_CONS_IDX) & 0xFFF == regs.RX_NONE


@pytest.mark.parametrize("switch", ["command-issue", "tx-ring"])
def test_no_delivery_while_disabled(rig, switch):
    """Neither with TX off nor with command issue off does a doorbell run anything."""
    card = rig()
    if switch == "tx-ring":
        card.core.write(regs.TX_CFG, regs.TX_ENTRIES)
    else:
        card.core.write(regs.PCS, regs.PCS_RUN & ~regs.PCS_CMD_EN)
    request = card.disk.issue(ata.identify())
    card.bridge.sleep(100 * MS)
    assert not request.done() and card.machine.readl(card.core.rx_ring) == regs.RX_NONE


@pytest.mark.parametrize("core", [0, 1])
def test_both_cores_deliver(bare, core):
    """Members on both cores, each with its own rings."""
    card = bare(ports=(1, 6))
    disk = [d for d in card.disks if d.core.index == core][0]
    assert disk.read(11, 2) == stamp(11, 2)
    assert card.bridge.cores[core].rx_seen == 0
    assert card.bridge.cores[1 - core].rx_seen == regs.RX_NONE


def test_receive_ring_is_never_overrun(rig):
    """A driver that never looks: completions are held back before the 1024 entries wrap over."""
    card = rig("timing=off")
    core = card.core
    prd = card.machine.memory.alloc(512)
    for i in range(1100):
        command = ata.Command(ata.READ_DMA_EXT, 1, 1, device=0x40, direction=ata.IN, length=512,
                              prds=[(prd, 512)])
        core._sets[i % 4] = (i % 4, 1)
        card.machine.batch(fixed_command(card, i, command))
    for _ in range(5000):
        card.machine.clock_step(100_000)
    assert card.bridge.asserted()
    assert 1000 < card.machine.readl(core.rx_ring) < regs.RX_ENTRIES, "not full, or overrun"
    seen = set()
    for _ in range(2000):
        stat = core.read(regs.INT_STAT)
        seen |= {request.slot for request in core.receive()}
        core.write(regs.INT_STAT, stat)
        card.machine.clock_step(100_000)
        if len(seen) == 1100:
            break
    assert len(seen) == 1100, "completions were lost"
    assert not core.stray


def fixed_command(card, number, command):
    """A command in slot 4 + number for disk number % 4, all with the same small buffers."""
    core = card.core
    slot = 4 + number
    core._slot_buffers.setdefault(slot, core._slot_buffers.get(4) or card.machine.memory.alloc(8192))
    request, lines = core.build(number % 4, command, slot)
    return [*lines, *core.doorbell_lines(core.tx_entry(request))]
