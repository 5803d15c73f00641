# SPDX-License-Identifier: GPL-2.0-or-later
"""The twenty rules that decide whether the stock driver works, one test each (docs/registers.md)."""
import pytest

from revodrive_qtest import Bridge, ata, card_of, regs, storage
from revodrive_qtest.phy import MS
from revodrive_qtest.storage import stamp

STORED = [0x10104, 0x10210, 0x10214, 0x10218, 0xC200, 0xC204, 0xC208, 0xC20C, 0xC220, 0xC238, 0xC300,
          0xC304, 0xC308, 0xC30C, 0xC320, 0xC338, 0xC804, 0xC808, 0xC80C]
CORE_STORED = [0x040, 0x09C, 0x0A0, 0x108, 0x10C, 0x110, 0x114, 0x118, 0x11C, 0x124, 0x128, 0x138,
               0x13C, 0x148, 0x14C, 0x154, 0x15C, 0x164, 0x170, 0x178, 0x184, 0x18C, 0x194, 0x19C]


def error_nodes(event="read_aio", sector=64, **extra):
    """Four nodes; d0 fails reads of one sector for ever."""
    rule = {"event": event, "errno": 5, "sector": sector, "once": False, **extra}
    words = storage.faulty_node("d0", rule)
    for i in (1, 2, 3):
        words += storage.null_node(f"d{i}")
    return words


def test_rule_01_identity_and_intx(rig):
    """1b85:1041 revision 2, INTA, BAR 2 of 256 KiB, and INTx works with MSI never enabled."""
    card = rig()
    function = card.bridge.function
    assert function.ids == (0x1B85, 0x1041)
    assert function.read(0x08, 1) == 2
    assert function.read(0x3D, 1) == 1
    assert function.bar_size(2)[0] == 0x40000
    assert card.machine.irq_raises(card.bridge.gsi) == 0
    card.disk.identify()
    assert card.machine.irq_raises(card.bridge.gsi) >= 1


def test_rule_02_registers_without_meaning_are_storage(rig):
    card = rig(probe=False)
    bridge = card.bridge
    for pattern in (0x5A5A5A58, 0x25A4A5A4):
        for offset in STORED:
            bridge.write(offset, pattern ^ offset)
        for core in bridge.cores:
            for offset in CORE_STORED:
                core.write(offset, pattern ^ offset)
        for offset in STORED:
            assert bridge.read(offset) == pattern ^ offset, hex(offset)
        for core in bridge.cores:
            for offset in CORE_STORED:
                assert core.read(offset) == pattern ^ offset, hex(offset)


def test_rule_02_indirect_registers_are_storage(rig):
    card = rig(probe=False)
    core = card.core
    for address in (0x118, 0x124, 0x128, 0x138, 0x13C, 0x1A4, 0x1BC, 0x1E0, 0x1E4):
        core.cmd_write(address, 0x12345678 ^ address)
    for phy in core.phys:
        for address in (0x18, 0x1C, 0x38, 0x10C, 0x110):
            phy.cfg_write(address, 0x87654321 ^ address + phy.index)
        for address in (0x30, 0x10C, 0x110, 0x118, 0x11C, 0x120, 0x124, 0x1A0, 0x104, 0x144, 0x1B4):
            phy.vsr_write(address, 0x11223344 ^ address + phy.index)
    for address in (0x118, 0x124, 0x128, 0x138, 0x13C, 0x1A4, 0x1BC, 0x1E0, 0x1E4):
        assert core.cmd_read(address) == 0x12345678 ^ address
    for phy in core.phys:
        for address in (0x18, 0x1C, 0x38, 0x10C, 0x110):
            assert phy.cfg_read(address) == 0x87654321 ^ address + phy.index, hex(address)
        for address in (0x30, 0x10C, 0x110, 0x118, 0x11C, 0x120, 0x124, 0x1A0):
            assert phy.vsr_read(address) == 0x11223344 ^ address + phy.index, hex(address)


def test_rule_03_enable_write_starts_the_link(rig):
    """No reset bit in SER_CTLSTAT is needed; the link is up within 400 ms."""
    card = rig(probe=False)
    card.core.write(regs.CTL, regs.CTL_RESET)
    card.core.write(regs.PA_VSR_ADDR, regs.VSR_PHY_CONFIG)
    card.core.write(regs.PA_VSR_PORT, 0x0084FFFE)
    card.machine.clock_step(500 * MS)
    assert [phy.ready for phy in card.core.phys] == [False] * 4
    card.phy.enable()
    card.machine.clock_step(400 * MS)
    assert [phy.ready for phy in card.core.phys] == [True, False, False, False]
    assert card.phy.int_stat & regs.SIG_FIS
    assert not card.phy.vsr_read(regs.VSR_PHY_CONFIG) & 1


def test_rule_04_signature_event_stays_until_acknowledged(rig):
    card = rig(probe=False)
    card.core.write(regs.CTL, regs.CTL_RESET)
    card.phy.disable()
    card.phy.enable()
    card.machine.clock_step(2700 * MS)
    assert card.phy.int_stat & regs.SIG_FIS
    card.phy.int_stat = card.phy.int_stat & ~regs.SIG_FIS
    assert card.phy.int_stat == regs.SIG_FIS
    card.phy.int_stat = regs.SIG_FIS
    assert card.phy.int_stat == 0


def test_rule_05_port_type_is_sata(rig):
    card = rig(members=4)
    kinds = [phy.vsr_read(regs.VSR_PHY_STATUS) >> 16 & 0x3F for phy in card.core.phys]
    assert kinds == [0x1D] * 4
    assert all(phy.vsr_read(0x0C) >> 16 & 0x3F != 0x10 for phy in card.bridge.cores[1].phys)


def test_rule_06_serial_status(rig):
    card = rig()
    for phy in card.core.phys:
        assert phy.status == regs.SATA_6G_READY
    for bit in (regs.PHY_RST, regs.PHY_RST_HARD):
        card.phy.status = card.phy.status | bit
        card.machine.clock_step(50 * MS)
        assert card.phy.status & 3 == 0
        card.machine.clock_step(400 * MS)
        assert card.phy.status == regs.SATA_6G_READY


def test_rule_07_producer_names_the_last_valid_entry(rig):
    """The first doorbell writes 0 and runs entry 0; each later one runs exactly one entry more."""
    card = rig()
    assert card.core.tx_next == 0
    for index in range(3):
        request = card.disk.issue(ata.identify())
        assert card.core.read(regs.TX_PROD_IDX) == index
        card.bridge.wait(request)
    assert card.core.read(regs.RX_CONS_IDX) == 2


def test_rule_08_receive_index_and_mirror(rig):
    card = rig()
    ring, machine = card.core.rx_ring, card.machine
    assert machine.readl(ring) == regs.RX_NONE == card.core.read(regs.RX_CONS_IDX) & 0xFFF
    slots = []
    for _ in range(3):
        request = card.disk.issue(ata.read_dma(0, 1))
        slots.append(request.slot)
        card.bridge.wait(request)
    assert machine.readl(ring) == 2
    assert [machine.readl(ring + 4 + 4 * i) & 0xFFF for i in range(3)] == slots


def test_rule_09_consumer_register_equals_mirror(rig):
    card = rig()
    for i in range(40):
        assert card.core.read(regs.RX_CONS_IDX) & 0xFFF == card.machine.readl(card.core.rx_ring)
        requests = [card.disks[i % 4].issue(ata.read_ncq(t, 8 * t, 8)) for t in range(3)]
        while not all(r.done() for r in requests):
            card.machine.clock_step()
            assert card.core.read(regs.RX_CONS_IDX) & 0xFFF == card.machine.readl(card.core.rx_ring)
            card.core.receive()


def test_rule_10_entry_names_the_slot_not_the_tag(rig):
    card = rig()
    request = card.disk.issue(ata.read_ncq(5, 0, 8), slot=1234)
    card.bridge.wait(request)
    assert request.completion.entry == regs.RX_DONE | 1234


def test_rule_11_everything_is_stored_before_the_interrupt(rig):
    """When the mirror moves, data and FIS are there; the interrupt never comes before the mirror."""
    card = rig()
    machine, core = card.machine, card.core
    request = card.disk.issue(ata.read_dma(7, 8))
    machine.write(core.rx_fis + regs.d2h_offset(request.register_set), bytes(20))
    while machine.readl(core.rx_ring) == regs.RX_NONE:
        assert not card.bridge.asserted()
        machine.clock_step()
    assert core.data_of(request) == stamp(7, 8)
    assert machine.readl(core.rx_ring + 4) == regs.RX_DONE | request.slot
    assert machine.read(core.rx_fis + regs.d2h_offset(request.register_set), 3) == b"\x34\x40\x50"
    card.bridge.wait(request)


@pytest.mark.parametrize("register_set", [0, 3, 16])
def test_rule_12_outcome_is_in_the_register_fis(rig, register_set):
    """D2H FIS at RXFIS + 0x800 + 0x100 * SRS + 0x40, for NCQ, PIO and DMA alike."""
    card = rig()
    card.core._sets[0] = (register_set, 1)  # held by someone else: commands share it
    for command in (ata.read_ncq(3, 0, 1), ata.identify(), ata.write_dma(9, stamp(9))):
        completion, _ = card.disk.execute(command)
        assert completion.fis[0] == 0x34
        assert completion.status & (ata.DRDY | ata.ERR | ata.BSY | ata.DRQ) == ata.DRDY
    completion, _ = card.disk.execute(ata.Command(0xFF), check=False)
    assert completion.status & (ata.DRDY | ata.ERR) == ata.DRDY | ata.ERR
    assert completion.error == ata.ABRT


def test_rule_13_error_record_goes_with_the_error_bit(rig):
    card = rig()
    completion, _ = card.disk.execute(ata.Command(0xFF), check=False)
    assert completion.entry & (regs.RX_DONE | regs.RX_ERR) == regs.RX_DONE | regs.RX_ERR
    record = int.from_bytes(completion.error_info, "little")
    assert record & 0xFFFFFFFF == regs.ERR_TFILE
    completion, _ = card.disk.execute(ata.identify())
    assert completion.entry & regs.RX_ERR == 0


def test_rule_14_an_ncq_error_stops_the_queue(rig):
    """All outstanding commands fail, new ones are refused, until log 10h is read; it names the tag."""
    card = rig(nodes=error_nodes())
    disk = card.disk
    requests = disk.ncq([ata.read_ncq(t, 64 if t == 9 else 1024 + 8 * t, 8) for t in range(16)], False)
    offender = requests[9].completion
    assert offender.entry & regs.RX_ERR and offender.status & ata.ERR
    assert offender.error == ata.ABRT, "the real error belongs into the log only"
    refused = disk.ncq([ata.read_ncq(20, 2048, 8)], check=False)[0].completion
    assert refused.failed and refused.entry & regs.RX_ERR
    log = disk.read_log(0x10)
    assert log[0] == 9 and log[2] & ata.ERR and log[3] == ata.UNC
    assert int.from_bytes(log[4:7], "little") in range(64, 72)
    assert sum(log) % 256 == 0
    assert not disk.ncq([ata.read_ncq(20, 2048, 8)])[0].completion.failed


def test_rule_15_reads_state_255_prds(rig):
    """The list ends at the byte count or at an entry of length zero, whatever the header says."""
    card = rig()
    memory = card.machine.memory
    first, second = memory.alloc(1000), memory.alloc(3096)
    request = card.disk.issue(ata.Command(ata.READ_DMA_EXT, 3, 8, device=0x40, direction=ata.IN,
                                          length=4096, prds=[(first, 1000), (second, 3096)]))
    card.bridge.wait(request)
    assert not request.completion.failed
    assert card.core.data_of(request) == stamp(3, 8)


def test_rule_16_done_is_not_lost(rig):
    """A completion between the handler's look at the ring and its last acknowledge still interrupts."""
    card = rig()
    core, machine = card.core, card.machine
    core.set_coalescing(0, 0x10000)
    first = card.disk.issue(ata.read_dma(0, 1))
    while not card.bridge.asserted():
        machine.clock_step()
    core.write(regs.INT_STAT, regs.INT_DONE)
    stat = core.read(regs.INT_STAT)
    assert stat & regs.INT_DONE
    core.receive()
    assert first.done()
    second = card.disk.issue(ata.read_dma(8, 1))
    while machine.readl(core.rx_ring) == core.rx_seen:
        machine.clock_step()
    core.write(regs.INT_STAT, stat)
    assert core.read(regs.INT_STAT) & regs.INT_DONE and card.bridge.asserted()
    card.bridge.interrupt()
    assert second.done() and not card.bridge.asserted()


def test_rule_17_summary_bits_are_levels(rig):
    card = rig()
    core, phy = card.core, card.phy
    phy.int_mask = 0
    phy.reset()
    card.machine.clock_step(400 * MS)
    assert phy.int_stat & regs.SIG_FIS
    assert card.bridge.read(regs.GBL_INT_STAT) == 0 and not card.bridge.asserted()
    phy.int_mask = regs.SIG_FIS
    assert core.read(regs.INT_STAT) == regs.int_port(0)
    assert card.bridge.read(regs.GBL_INT_STAT) == regs.GBL_CORE[0] and card.bridge.asserted()
    core.write(regs.INT_STAT, 0xFFFFFFFF)
    card.bridge.write(regs.GBL_INT_STAT, 0xFFFFFFFF)
    assert core.read(regs.INT_STAT) & regs.int_port(0)
    phy.int_stat = regs.SIG_FIS
    assert core.read(regs.INT_STAT) == 0
    assert card.bridge.read(regs.GBL_INT_STAT) == 0 and not card.bridge.asserted()


def test_rule_18_command_active(rig):
    """Address bits 1:0 are ignored; writing a 1 that reads 1 cancels at once."""
    card = rig()
    core = card.core
    for slot in (9, 36, 2047):
        request = card.disk.issue(ata.read_dma(0, 8), slot=slot)
        aligned = regs.COMMAND_ACTIVE + 4 * (slot // 32)
        assert core.cmd_read(aligned) == 1 << slot % 32
        assert core.cmd_read(regs.COMMAND_ACTIVE + (slot >> 3)) == 1 << slot % 32
        core.release(request)
        core.poison(request)
        card.bridge.sleep(50 * MS)
        assert core.untouched(request) and not core.stray
    assert card.machine.readl(core.rx_ring) == regs.RX_NONE


@pytest.mark.parametrize("bit", [regs.PHY_RST, regs.PHY_RST_HARD], ids=["soft", "hard"])
def test_rule_19_phy_reset_cancels(rig, bit):
    """No completion and no DMA after it, for that phy only."""
    card = rig()
    requests = [card.disk.issue(ata.read_ncq(t, 8 * t, 8)) for t in range(8)]
    other = card.disks[1].issue(ata.read_ncq(0, 16, 8))
    card.phy.status = card.phy.status | bit
    card.core.poison(*requests)
    card.bridge.wait(other)
    card.bridge.sleep(1000 * MS)
    assert not any(r.completion for r in requests) and not card.core.stray
    assert card.core.untouched(*requests)
    assert not any(card.core.command_active(r.slot) for r in requests)


def test_rule_20_no_gates_and_no_side_effects(rig):
    """PCS bits 15:8 are clear after probe and commands run; STP_REG_SET may change at any time."""
    card = rig()
    assert card.core.read(regs.PCS) & 0xFF00 == 0
    request = card.disk.issue(ata.read_dma(0, 8))
    card.core.write_pair(regs.STP_REG_SET, 0)
    card.core.write_pair(regs.STP_REG_SET, 0xFFFF)
    card.bridge.wait(request)
    assert not request.completion.failed and card.core.data_of(request) == stamp(0, 8)
    assert card.core.read(regs.STP_REG_SET + 4) == 0


def test_probe_finds_four_disks(rig):
    """C001: eight phys, four SATA disks on phys 0 to 3 of core 0, with an ATA signature."""
    card = rig()
    assert len(card.bridge.phys()) == 8
    assert [repr(d.phy) for d in card.disks] == [f"core 0 phy {i}" for i in range(4)]
    for disk in card.disks:
        assert disk.phy.signature[0] == 0x34
        assert disk.phy.signature[2:8] == bytes.fromhex("500101000000")
        assert disk.phy.signature[8:13] == bytes.fromhex("0000000001")
    assert card.bridge.link_status == 0x42


def test_second_probe_starts_over(rig):
    """Unbind and rebind: the card keeps running in between and takes the same sequence again."""
    card = rig()
    card.disk.identify()
    stuck = card.disk.issue(ata.read_dma(0, 8))
    card.bridge.remove()
    again = Bridge(card_of(card.machine)).probe()
    assert len(again.disks()) == 4
    assert again.disks()[0].read(5, 8) == stamp(5, 8)
    assert not stuck.done() and card.machine.readl(card.core.rx_ring) == 0
