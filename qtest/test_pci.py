# SPDX-License-Identifier: GPL-2.0-or-later
"""The PCI function: identity, capabilities, BAR, interrupts, bus mastering, power and resets (C003)."""
import pytest

from revodrive_qtest import Bridge, ata, card_of, cards_of, pci, refused, regs, storage
from revodrive_qtest.phy import MS
from revodrive_qtest.storage import stamp

ROOT_PORT = ["-device", "pcie-root-port,id=rp0,slot=1,chassis=1,addr=5"]


def test_identity(rig):
    """Vendor, device, revision C0, mass storage class, single function."""
    function = rig(probe=False).bridge.function
    assert function.ids == (0x1B85, 0x1041)
    assert function.read(pci.REVISION, 1) == 0x02
    assert function.read(pci.CLASS + 2, 1) == 0x01
    assert function.read(pci.HEADER_TYPE, 1) == 0
    assert function.read(pci.SUBSYSTEM, 2) != 0


def test_two_member_card(rig):
    """revodrive3 has the id of the two-member card and two disks."""
    card = rig(members=2, device="revodrive3")
    assert card.bridge.function.ids == (0x1B85, 0x1021)
    assert len(card.disks) == 2


def test_overridden_ids(launch):
    """C001, C002: ids are settable; an unknown device id leaves the rest of the card as it is."""
    vm = launch("-device", "marvell-88se9485,vendor-id=0x1b4b,device-id=0x9485,subsystem-vendor-id=0x1b4b,"
                "subsystem-id=0x8635,addr=4")
    function = card_of(vm)
    assert function.ids == (0x1B4B, 0x9485)
    assert function.read(pci.SUBSYSTEM, 4) == 0x86351B4B


def test_capabilities(rig):
    """C003: Express at 0x70 so that 0x82 is link status (x4, 5 GT/s); MSI at 0x50, one 64-bit vector."""
    function = rig(probe=False).bridge.function
    capabilities = function.capabilities()
    assert capabilities[pci.CAP_EXPRESS] == 0x70
    assert capabilities[pci.CAP_MSI] == 0x50
    assert pci.CAP_PM in capabilities
    assert function.read(0x82, 2) & 0x3FF == 0x42
    assert function.read(0x7C, 4) & 0x3FF == 0x42
    assert function.read(0x52, 2) & 0xFE == 0x80


@pytest.mark.parametrize("core", [0, 1])
def test_bar_reads_everywhere(rig, core):
    """C003: a 32-bit read of each 4 bytes of BAR 2 returns; undefined offsets read 0."""
    bridge = rig(probe=False).bridge
    half = 0x20000
    start = bridge.bar + half * core
    answers = bridge.machine.batch([f"readl {start + i:#x}" for i in range(0, half, 4)])
    assert len(answers) == half // 4
    assert bridge.read(0x3FFFC) == 0 and bridge.read(0x00000) == 0


def test_bar_is_plain_memory(rig):
    """256 KiB, memory, not prefetchable; nothing answers before memory decoding is on."""
    card = rig(probe=False)
    size, flags = card.bridge.function.bar_size(2)
    assert size == 0x40000 and flags & 1 == 0 and flags & 8 == 0
    card.bridge.function.set_command(0)
    assert card.bridge.read(regs.GBL_CTL) == 0xFFFFFFFF or card.bridge.read(regs.GBL_CTL) == 0
    card.bridge.function.set_command(pci.COMMAND_MEMORY)
    card.bridge.write(regs.CHIP_CONFIG, 0x1234)
    assert card.bridge.read(regs.CHIP_CONFIG) == 0x1234


@pytest.mark.parametrize("size, value", [("b", 0xAA), ("w", 0xAAAA), ("q", 0xAAAAAAAAAAAAAAAA)])
def test_other_access_sizes_do_no_harm(rig, size, value):
    """Only aligned dwords have a meaning; anything else must return, and leave the card working."""
    card = rig()
    for offset in (0x10104, 0x20150, 0x20101, 0x3FFFF):
        card.machine.batch([f"read{size} {card.bridge.bar + offset:#x}"])
    card.machine.batch([f"write{size} {card.bridge.bar + 0x10104:#x} {value:#x}"])
    assert card.disk.read(1, 1) == stamp(1)


@pytest.mark.parametrize("machine, args, bus", [
    ("q35", [], ""), ("pc", [], ""), ("q35", ROOT_PORT, ",bus=rp0")], ids=["q35", "pc", "root-port"])
@pytest.mark.parametrize("msi", [False, True], ids=["intx", "msi"])
def test_works_where_it_is_plugged(rig, machine, args, bus, msi):
    """On the root bus of both PC machines and behind a root port, with INTx and with MSI."""
    card = rig(machine=machine, args=args, bus=bus, msi=msi)
    assert len(card.disks) == 4
    assert [disk.read(3, 2) for disk in card.disks] == [stamp(3, 2)] * 4
    raises = card.machine.irq_raises(card.bridge.gsi)
    assert raises == 0 if msi else raises > 0
    assert card.bridge.interrupts > 0


def test_two_cards(launch, tmp_path):
    """Two cards in one machine, each with its own line and its own disks."""
    words = []
    for n in range(2):
        for i in range(4):
            image = storage.raw_image(tmp_path / f"{n}{i}")
            words += storage.raw_node(f"n{n}d{i}", image)
        drives = "".join(f",drive{i}=n{n}d{i}" for i in range(4))
        words += ["-device", f"revodrive3-x2,id=card{n},addr={4 + n}{drives}"]
    vm = launch(*words)
    bridges = [Bridge(f).probe() for f in cards_of(vm)]
    assert bridges[0].gsi != bridges[1].gsi
    assert [len(b.disks()) for b in bridges] == [4, 4]
    bridges[1].disks()[2].write(0, b"x" * 512)
    assert bridges[0].disks()[2].read(0, 1) == stamp(0)
    assert bridges[1].disks()[2].read(0, 1) == b"x" * 512


def test_intx_disable(rig):
    """PCI command bit 10 keeps the line down; the status bit still tells."""
    card = rig()
    function = card.bridge.function
    function.set_command(pci.COMMAND_MEMORY | pci.COMMAND_MASTER | pci.COMMAND_INTX_DISABLE)
    request = card.disk.issue(ata.identify())
    card.machine.clock_step(50 * MS)
    assert not card.machine.irq_level(card.bridge.gsi)
    assert function.read(pci.STATUS, 2) & pci.STATUS_INTX
    function.set_command(pci.COMMAND_MEMORY | pci.COMMAND_MASTER)
    assert card.machine.irq_level(card.bridge.gsi)
    card.bridge.wait(request)
    assert not function.read(pci.STATUS, 2) & pci.STATUS_INTX


def test_no_dma_without_bus_mastering(rig):
    """With bus mastering off nothing in guest memory changes; the card works again when it is on."""
    card = rig()
    card.bridge.function.set_command(pci.COMMAND_MEMORY)
    request = card.disk.issue(ata.read_dma(0, 8))
    card.machine.write(request.prds[0][0], b"\xEE" * 4096)
    card.machine.clock_step(100 * MS)
    assert card.core.data_of(request) == b"\xEE" * 4096
    assert card.machine.readl(card.core.rx_ring) == regs.RX_NONE
    again = Bridge(card.bridge.function).probe()
    assert again.disks()[0].read(0, 8) == stamp(0, 8)


def test_bus_mastering_lost_in_flight(rig):
    """The command was fetched, then mastering goes off: no completion and no FIS in guest memory."""
    card = rig()
    request = card.disk.issue(ata.read_dma(0, 8))
    fis = card.core.rx_fis + regs.d2h_offset(request.register_set)
    before = card.machine.read(fis, 20)
    card.bridge.function.set_command(pci.COMMAND_MEMORY)
    card.machine.clock_step(100 * MS)
    assert card.machine.read(fis, 20) == before
    assert card.machine.readl(card.core.rx_ring) == regs.RX_NONE
    again = Bridge(card.bridge.function).probe()
    assert again.disks()[0].read(0, 8) == stamp(0, 8)


def test_power_state(rig):
    """D3hot and back: either everything is kept or the function is reset; a probe makes it work."""
    card = rig()
    card.disk.identify()
    card.bridge.function.set_power_state(3)
    card.machine.clock_step(10 * MS)
    card.bridge.function.set_power_state(0)
    card.machine.clock_step(10 * MS)
    again = Bridge(card.bridge.function).probe()
    assert again.disks()[3].read(9, 1) == stamp(9)


def assert_reset(card):
    for core in card.bridge.cores:
        assert core.read(regs.INT_MASK) == 0 and core.read(regs.INT_STAT) == 0
        assert core.read(regs.TX_CFG) == 0 and core.read(regs.RX_CFG) == 0
        assert core.read(regs.PCS) == 0
        assert all(phy.int_mask == 0 for phy in core.phys)
    assert card.bridge.read(regs.GBL_PI) == 0 and card.bridge.read(regs.GBL_CTL) == 0


def test_function_level_reset(rig):
    """FLR in mid-transfer: registers at reset values, BARs gone, no later DMA, then a fresh life."""
    card = rig()
    function = card.bridge.function
    request = card.disk.issue(ata.read_dma(0, 8))
    mirror = card.machine.readl(card.core.rx_ring)
    function.function_level_reset()
    card.core.poison(request)
    assert function.read(pci.COMMAND, 2) & 7 == 0
    function.enable()
    assert_reset(card)
    card.machine.clock_step(200 * MS)
    assert not card.machine.irq_level(card.bridge.gsi)
    assert card.core.untouched(request)
    assert card.machine.readl(card.core.rx_ring) == mirror
    assert Bridge(function).probe().disks()[0].read(4, 1) == stamp(4)


def test_secondary_bus_reset(rig):
    """Bridge control bit 6 of the root port resets the card behind it."""
    card = rig(args=ROOT_PORT, bus=",bus=rp0")
    card.disk.issue(ata.read_dma(0, 8))
    port = card.bridge.function.parent
    control = port.read(0x3E, 2)
    port.write(0x3E, control | 0x40, 2)
    port.write(0x3E, control, 2)
    card.bridge.function.enable()
    assert_reset(card)
    assert Bridge(card.bridge.function).probe().disks()[1].read(4, 1) == stamp(4)


def test_system_reset(rig):
    """A machine reset with commands in flight: the line drops and the card can be probed again."""
    card = rig()
    for disk in card.disks:
        disk.issue(ata.read_ncq(0, 0, 64))
    card.machine.qmp("system_reset")
    card.machine.wait_event("RESET")
    assert not card.machine.irq_level(card.bridge.gsi)
    assert Bridge(card_of(card.machine)).probe().disks()[0].read(4, 1) == stamp(4)


def test_bare_bridge_without_members(launch):
    """The explicit form with no member: probe finds eight empty phys."""
    vm = launch("-device", "marvell-88se9485,id=hba,addr=4")
    bridge = Bridge(card_of(vm)).probe()
    assert bridge.disks() == [] and not any(phy.ready for phy in bridge.phys())


@pytest.mark.parametrize("words, named", [
    ("revodrive3-x2,no-such-property=1", "no-such-property"),
    ("revodrive3-x2,timing=perhaps", "timing"),
    ("revodrive3-x2,profile=no-such-card", "no-such-card"),
    ("revodrive3-x2,drive0=nowhere", "nowhere"),
])
def test_wrong_properties_are_refused(words, named):
    """One message that names what is wrong."""
    assert named in refused("-device", words)
