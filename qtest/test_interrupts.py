# SPDX-License-Identifier: GPL-2.0-or-later
"""Interrupt causes: the DONE rule, coalescing in virtual time, levels, the global enable."""
import pytest

from revodrive_qtest import ata, regs
from revodrive_qtest.phy import MS

US = 1000
IMMEDIATE = (0, 0x10000)


def step_to_interrupt(card):
    while not card.bridge.asserted():
        card.machine.clock_step()
    return card.machine.now_ns


def step_to_entry(card, index=0):
    """Until the mirror shows the entry; returns the time."""
    while card.machine.readl(card.core.rx_ring) not in range(index, regs.RX_ENTRIES):
        card.machine.clock_step()
    return card.machine.now_ns


def test_first_acknowledge_does_not_clear_an_unseen_completion(rig):
    """The handler writes DONE before it reads: with nothing read yet the bit stays."""
    card = rig()
    card.core.set_coalescing(*IMMEDIATE)
    card.disk.issue(ata.identify())
    step_to_interrupt(card)
    card.core.write(regs.INT_STAT, regs.INT_DONE)
    assert card.core.read(regs.INT_STAT) == regs.INT_DONE
    card.core.write(regs.INT_STAT, regs.INT_DONE)
    assert card.core.read(regs.INT_STAT) == 0
    assert not card.bridge.asserted()


def test_writing_zero_acknowledges_nothing(rig):
    """Q10: INT_STAT is written back even when the handler read 0."""
    card = rig()
    card.core.set_coalescing(*IMMEDIATE)
    card.disk.issue(ata.identify())
    step_to_interrupt(card)
    card.core.read(regs.INT_STAT)
    card.core.write(regs.INT_STAT, 0)
    card.core.write(regs.INT_STAT, 0xFFFFFFFE)
    assert card.core.read(regs.INT_STAT) == regs.INT_DONE


def test_no_spurious_and_no_lost_interrupts(rig):
    """Handler runs with depth 1: one run for each completion, the line is down after each."""
    card = rig()
    for i in range(20):
        before = card.bridge.interrupts
        card.disk.identify()
        assert card.bridge.interrupts == before + 1, f"round {i}"
        assert not card.bridge.asserted()


def test_msi_is_sent_again_for_what_is_still_pending(rig):
    """An MSI is an edge: a cause that survives the acknowledge makes a new message."""
    card = rig(msi=True)
    card.core.set_coalescing(*IMMEDIATE)
    machine, core = card.machine, card.core
    first = card.disk.issue(ata.read_dma(0, 1))
    step_to_interrupt(card)
    core.write(regs.INT_STAT, regs.INT_DONE)
    stat = core.read(regs.INT_STAT)
    core.receive()
    second = card.disk.issue(ata.read_dma(1, 1))
    step_to_entry(card, 1)
    card.bridge.asserted()  # takes whatever message came with the second completion
    core.write(regs.INT_STAT, stat)
    assert card.bridge.asserted(), "nothing would ever tell the driver of the second completion"
    card.bridge.interrupt()
    assert first.done() and second.done()
    assert machine.irq_raises(card.bridge.gsi) == 0


def test_coalescing_timeout_bounds_the_wait(rig):
    """C077: with other commands in flight a completion waits at most the programmed time."""
    card = rig()
    card.core.set_coalescing(0x101FF, 0x10000 | 128)
    card.disks[0].issue(ata.read_dma(0, 1))
    card.disks[1].issue(ata.read_dma(0, 1000))
    posted = step_to_entry(card)
    assert step_to_interrupt(card) - posted <= 128 * US


def test_no_coalescing_means_at_once(rig):
    """C077: 0 gives an interrupt with the completion itself, whatever else is in flight."""
    card = rig()
    card.core.set_coalescing(*IMMEDIATE)
    card.disks[0].issue(ata.read_dma(0, 1))
    card.disks[1].issue(ata.read_dma(0, 1000))
    step_to_entry(card)
    assert card.bridge.asserted()


def test_depth_one_pays_the_programmed_time_at_most(rig):
    """C077: what a lone completion waits follows the setting and never exceeds it."""
    for index, time_us in enumerate((0, 20, 128, 1000)):
        card = rig()
        card.core.set_coalescing(0x101FF if time_us else 0, 0x10000 | time_us)
        card.disk.issue(ata.read_dma(0, 1))
        posted = step_to_entry(card)
        assert step_to_interrupt(card) - posted <= time_us * US, f"setting {index}"
        card.machine.close()


def test_coalescing_count(rig):
    """C077: the count raises the interrupt before the time is over."""
    card = rig()
    card.core.set_coalescing(0x10000 | 2, 0x10000 | 0xFFFF)
    for disk in card.disks[:3]:
        disk.issue(ata.read_dma(0, 1))
    card.disks[3].issue(ata.read_dma(0, 1000))
    step_to_interrupt(card)
    assert card.machine.readl(card.core.rx_ring) <= 2


def test_default_gives_fewer_interrupts_than_completions(rig):
    """C077: deep queues on four disks."""
    card = rig()
    requests = [disk.issue(ata.read_ncq(tag, 8 * tag, 8)) for tag in range(31) for disk in card.disks]
    before = card.bridge.interrupts
    card.bridge.wait(*requests)
    assert card.bridge.interrupts - before < len(requests)


def test_coalescing_timer_dies_with_what_was_seen(rig):
    """A handler that already took the completion gets no later interrupt for it."""
    card = rig()
    card.disks[0].issue(ata.read_dma(0, 1))
    slow = card.disks[1].issue(ata.read_dma(0, 1000))
    step_to_entry(card)
    card.core.write(regs.INT_STAT, card.core.read(regs.INT_STAT) | regs.INT_DONE)
    assert len(card.core.receive()) == 1
    card.bridge.wait(slow)
    assert card.core.rx_seen == 1 and not card.bridge.asserted()


def test_central_mask_gates_the_summary(rig):
    card = rig()
    card.core.set_coalescing(*IMMEDIATE)
    card.core.write(regs.INT_MASK, 0)
    card.disk.issue(ata.identify())
    card.machine.clock_step(100 * MS)
    assert card.core.read(regs.INT_STAT) == regs.INT_DONE
    assert card.bridge.read(regs.GBL_INT_STAT) == 0 and not card.bridge.asserted()
    card.core.write(regs.INT_MASK, regs.INT_DONE)
    assert card.bridge.read(regs.GBL_INT_STAT) == regs.GBL_CORE[0] and card.bridge.asserted()


def test_global_enable_gates_the_line_only(rig):
    """Disabled: the line is down, the summary still tells; enabled again: the line is up."""
    card = rig()
    card.bridge.interrupt_disable()
    request = card.disk.issue(ata.identify())
    card.machine.clock_step(100 * MS)
    assert not card.bridge.asserted()
    assert card.bridge.read(regs.GBL_INT_STAT) == regs.GBL_CORE[0]
    card.bridge.interrupt_enable()
    assert card.bridge.asserted()
    card.bridge.wait(request)


def test_no_interrupt_before_the_driver_enables_it(rig):
    """Both cores are programmed before the handler exists: the shared line must stay low."""
    card = rig(probe=False)
    for core in card.bridge.cores:
        core.allocate()
        core.chip_init()
    card.phy.int_mask = 0xFFFFFFFF
    card.phy.reset()
    card.machine.clock_step(500 * MS)
    assert card.core.read(regs.INT_STAT) & regs.int_port(0)
    assert card.machine.irq_raises(card.bridge.gsi) == 0


@pytest.mark.parametrize("core", [0, 1])
def test_summary_names_the_core(bare, core):
    """Bits 18 and 19 of the summary."""
    card = bare(ports=(0, 4))
    disk = [d for d in card.disks if d.core.index == core][0]
    disk.core.set_coalescing(*IMMEDIATE)
    request = disk.issue(ata.identify())
    step_to_interrupt(card)
    assert card.bridge.read(regs.GBL_INT_STAT) == regs.GBL_CORE[core]
    card.bridge.wait(request)
    assert card.bridge.read(regs.GBL_INT_STAT) == 0


def test_causes_that_must_stay_silent(rig):
    """CI_STOP, SRS, PHY and port-stopped bits never rise, not even for a failed command."""
    card = rig()
    card.core.write(regs.INT_MASK, 0xFFFFFFFF)
    card.disk.issue(ata.Command(0xFF))
    step_to_interrupt(card)
    assert card.core.read(regs.INT_STAT) & ~(regs.INT_DONE | regs.INT_NCQ_ERROR) == 0
    assert card.core.read(regs.INT_STAT_SRS[0]) == 0 == card.core.read(regs.INT_STAT_SRS[1])
