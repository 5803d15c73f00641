# SPDX-License-Identifier: GPL-2.0-or-later
"""Phys: resets, the signature event, write-1-to-clear, masks and summary levels (C004)."""
import pytest

from revodrive_qtest import ata, regs
from revodrive_qtest.phy import MS
from revodrive_qtest.storage import stamp


def settle(card):
    card.machine.clock_step(600 * MS)


@pytest.mark.parametrize("bit", [regs.PHY_RST, regs.PHY_RST_HARD], ids=["soft", "hard"])
def test_reset_latches_the_signature_again(rig, bit):
    """C004: the reset bit clears within 50 ms; then ready and the signature event are there."""
    card = rig()
    phy = card.phy
    phy.int_stat = 0xFFFFFFFF
    assert phy.int_stat == 0
    phy.status = phy.status | bit
    card.machine.clock_step(50 * MS)
    assert not phy.status & bit
    settle(card)
    assert phy.ready
    assert phy.int_stat & regs.LINK_UP_SATA == regs.LINK_UP_SATA
    assert not phy.int_stat & regs.POOF, "a reset the driver asked for is not a lost link"


def test_events_are_write_one_to_clear(rig):
    """C004: each bit clears alone; writing 0 clears nothing."""
    card = rig()
    phy = card.phy
    phy.reset()
    settle(card)
    before = phy.int_stat
    phy.int_stat = 0
    assert phy.int_stat == before
    phy.int_stat = before & ~regs.SIG_FIS
    assert phy.int_stat == regs.SIG_FIS
    phy.int_stat = regs.SIG_FIS
    assert phy.int_stat == 0


@pytest.mark.parametrize("bit", [regs.PHY_RST, regs.PHY_RST_HARD], ids=["soft", "hard"])
def test_reset_of_an_empty_phy(rig, bit):
    """C004: no ready, no signature, and the reset bit still clears."""
    card = rig()
    phy = card.bridge.cores[1].phys[2]
    phy.status = phy.status | bit
    settle(card)
    assert phy.status & (bit | regs.PHY_READY) == 0
    assert not phy.int_stat & (regs.SIG_FIS | regs.COMWAKE)


def test_status_latches_behind_the_mask(rig):
    """The mask gates the summary only; unmasking a latched event raises the summary at once."""
    card = rig()
    phy, core = card.phy, card.core
    phy.int_mask = 0
    phy.int_stat = 0xFFFFFFFF
    phy.reset()
    settle(card)
    assert phy.int_stat & regs.SIG_FIS and core.read(regs.INT_STAT) & 0xF00 == 0
    phy.int_mask = regs.SIG_FIS
    assert core.read(regs.INT_STAT) & 0xF00 == regs.int_port(0)
    phy.int_mask = 0
    assert core.read(regs.INT_STAT) & 0xF00 == 0


@pytest.mark.parametrize("index", range(4))
def test_each_phy_has_its_own_summary_bit(rig, index):
    card = rig()
    phy = card.core.phys[index]
    phy.int_mask = regs.SIG_FIS
    phy.reset()
    settle(card)
    assert card.core.read(regs.INT_STAT) & 0xF00 == regs.int_port(index)
    assert card.bridge.cores[1].read(regs.INT_STAT) == 0


def test_disable_and_enable(rig):
    """VSR 0x08 bit 23 takes the link down and brings it back."""
    card = rig()
    phy = card.phy
    phy.int_stat = 0xFFFFFFFF
    phy.disable()
    settle(card)
    assert not phy.ready
    assert phy.int_stat & regs.POOF
    phy.int_stat = 0xFFFFFFFF
    phy.enable()
    settle(card)
    assert phy.ready and phy.int_stat & regs.SIG_FIS
    phy.update()
    assert card.disk.read(2, 1) == stamp(2)


def test_enable_of_a_running_phy_does_nothing(rig):
    """VSR 0x08 bit 0 with bit 23 clear already: no event, the link stays."""
    card = rig()
    card.phy.int_stat = 0xFFFFFFFF
    card.phy.enable()
    settle(card)
    assert card.phy.int_stat == 0 and card.phy.ready


def test_reset_of_a_disabled_phy(rig):
    """It must not bring the link up."""
    card = rig()
    card.phy.disable()
    card.phy.status = card.phy.status | regs.PHY_RST
    settle(card)
    assert not card.phy.ready and card.phy.status & 3 == 0


def test_rate_limits_are_storage(rig):
    """SER_CTLSTAT 13:12 and 10:8 keep what is written; ready and rate do not change by writing."""
    card = rig()
    card.phy.status = 0x00001100
    assert card.phy.status & 0x3700 == 0x1100
    assert card.phy.ready
    card.phy.status = 0xFFFFFFFC
    assert card.phy.status >> 16 & 3 == 2


def test_link_reset_keeps_data_path(rig):
    """What error handling does: enable, soft reset, 200 ms; the disk answers afterwards."""
    card = rig()
    card.phy.link_reset()
    card.bridge.sleep(500 * MS)
    assert card.disk.identify()[0:2] != bytes(2)
    assert card.disk.read(2, 1) == stamp(2)


def test_indirect_address_is_per_phy(rig):
    """Each phy has its own address register, and phys 4 to 7 of a core's CFG ports are storage (Q7)."""
    card = rig()
    core = card.bridge.cores[1]
    for port in range(8):
        core.write(regs.cfg_addr(port), 0x38)
        core.write(regs.cfg_addr(port) + 4, 0x100 + port)
    for port in range(8):
        core.write(regs.cfg_addr(port), 0x38)
        assert core.read(regs.cfg_addr(port) + 4) == 0x100 + port


def test_broadcast_write_reaches_all_phys(rig):
    """PA port: a write goes to the four phys, a read is phy 0's."""
    card = rig()
    core = card.core
    core.write(regs.PA_VSR_ADDR, 0x30)
    core.write(regs.PA_VSR_PORT, 0x4242)
    assert [phy.vsr_read(0x30) for phy in core.phys] == [0x4242] * 4
    core.phys[0].vsr_write(0x30, 0x17)
    core.write(regs.PA_VSR_ADDR, 0x30)
    assert core.read(regs.PA_VSR_PORT) == 0x17


def test_core_reset_silences_phys(rig):
    """CTL bit 5: statuses and masks of the ports go to 0, the bit reads 0 again."""
    card = rig()
    card.phy.int_mask = 0xFFFFFFFF
    card.phy.reset()
    settle(card)
    assert card.bridge.asserted()
    card.core.write(regs.CTL, regs.CTL_RESET)
    assert card.core.read(regs.CTL) & regs.CTL_RESET == 0
    assert [phy.int_mask for phy in card.core.phys] == [0] * 4
    assert [phy.int_stat for phy in card.core.phys] == [0] * 4
    assert not card.bridge.asserted()


def test_command_after_reset_without_waiting(rig):
    """A command issued while the link is still coming up is held or fails, and never lost for ever."""
    card = rig()
    card.phy.reset()
    request = card.disk.issue(ata.identify())
    try:
        card.bridge.wait(request, limit_ns=5000 * MS)
    except Exception as error:  # the driver's timeout, then its link reset
        assert "did not happen" in str(error)
        card.core.release(request)
        card.phy.link_reset()
    card.bridge.sleep(1000 * MS)
    assert card.disk.read(0, 1) == stamp(0)
