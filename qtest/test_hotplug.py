# SPDX-License-Identifier: GPL-2.0-or-later
"""Members and cards coming and going while the machine runs (C019, C022, C023, C025)."""
import pytest

from revodrive_qtest import Bridge, ata, card_of, cards_of, regs, storage
from revodrive_qtest.phy import MS
from revodrive_qtest.storage import stamp


def unplug(card, port):
    """Surprise removal: needs nothing from the guest."""
    card.machine.qmp("device_del", id=f"ssd{port}")
    card.machine.wait_event("DEVICE_DELETED", device=f"ssd{port}")


def plug(card, port, node=None, **properties):
    card.machine.qmp("device_add", driver="sf2281", id=f"ssd{port}", bus="hba.0", port=port,
                     drive=node or f"d{port}", **properties)


def test_unplug_causes(bare):
    """C019: ready drops, RDY_CH and POOF latch, the port's bit rises."""
    card = bare()
    card.phy.int_stat = 0xFFFFFFFF
    unplug(card, 0)
    assert not card.phy.ready
    assert card.phy.int_stat == regs.LINK_DOWN
    assert card.core.read(regs.INT_STAT) & 0xF00 == regs.int_port(0)
    assert card.phy.vsr_read(regs.VSR_PHY_STATUS) == 0


def test_plug_causes(bare):
    """All link-up events latch in one step, within 400 ms."""
    card = bare()
    unplug(card, 0)
    card.phy.int_stat = 0xFFFFFFFF
    plug(card, 0)
    while not card.phy.int_stat:
        card.machine.clock_step(MS)
    assert card.phy.int_stat == regs.LINK_UP_SATA
    assert card.phy.status == regs.SATA_6G_READY
    assert card.core.read(regs.INT_STAT) & 0xF00 == regs.int_port(0)


def test_the_driver_sees_a_swap(bare):
    """Unplug, 3 s, plug: the driver's handler detaches the disk and attaches the new one."""
    card = bare(ports=(0, 1))
    unplug(card, 1)
    card.bridge.sleep(3000 * MS)
    phy = card.core.phys[1]
    assert phy.log == ["up", "down"] and not phy.attached
    assert [d.phy.index for d in card.disks] == [0]
    plug(card, 1)
    card.bridge.sleep(1000 * MS)
    assert phy.log == ["up", "down", "up"]
    assert card.disks[1].read(3, 1) == stamp(3)
    assert card.disks[0].read(4, 1) == stamp(4)


@pytest.mark.parametrize("delay_ms", [0, 1000, 1900])
def test_c021_new_driver_within_two_seconds_of_an_unplug(bare, delay_ms):
    """C021: an unbind that races with the old driver's pending plug work: the card itself starts clean each time."""
    card = bare(ports=(0, 1))
    old = [card.disks[0].issue(ata.read_ncq(t, 8 * t, 8)) for t in range(8)]
    unplug(card, 1)
    card.machine.clock_step(1 + delay_ms * MS)
    former = card.core
    former.poison(*old)
    card.bridge = Bridge(card.bridge.function).probe()
    card.bridge.sleep(4000 * MS)
    assert [disk.phy.index for disk in card.disks] == [0]
    assert card.disks[0].read(5, 1) == stamp(5)
    assert former.untouched(*old)


def test_unplug_with_a_full_queue(bare):
    """C019: 32 commands outstanding: none completes later, none writes memory, others go on."""
    card = bare(ports=(0, 1))
    lost = [card.disks[0].issue(ata.read_ncq(t, 8 * t, 8)) for t in range(32)]
    kept = [card.disks[1].issue(ata.read_ncq(t, 8 * t, 8)) for t in range(32)]
    unplug(card, 0)
    card.core.poison(*lost)
    card.bridge.sleep(4000 * MS)
    assert all(r.released and not r.completion for r in lost)
    assert all(r.completion and not r.completion.failed for r in kept)
    assert not card.core.stray
    assert card.core.untouched(*lost)


def test_unplug_during_backend_io(bare):
    """timing=off: the requests are with the backend when the member goes."""
    card = bare(ports=(0, 1), props="timing=off")
    for tag in range(32):
        card.disks[0].issue(ata.write_ncq(tag, 1024 * tag, stamp(0, 256)))
    unplug(card, 0)
    assert not card.phy.ready
    card.bridge.sleep(4000 * MS)
    assert not card.core.requests
    assert card.disks[0].read(5, 1) == stamp(5)


def test_command_to_a_phy_that_lost_its_disk(bare):
    """Held, or failed with an error record and a bad FIS: never a success."""
    card = bare()
    unplug(card, 0)
    request = card.core.issue(0, ata.write_dma(0, stamp(1)))
    card.machine.clock_step(1000 * MS)
    card.core.receive()
    assert request.completion is None or request.completion.failed


@pytest.mark.parametrize("state", ["no-driver", "driver", "stopped"])
def test_delete_needs_no_guest(bare, launch, state):
    """C023: with no driver, with one, with the machine stopped; a second delete finds nothing."""
    if state == "no-driver":
        words = storage.null_node("d0")
        machine = launch(*words, "-device", "marvell-88se9485,id=hba", "-device",
                         "sf2281,id=ssd0,bus=hba.0,port=0,drive=d0")
    else:
        machine = bare().machine
    if state == "stopped":
        machine.qmp("stop")
    machine.qmp("device_del", id="ssd0")
    machine.wait_event("DEVICE_DELETED", device="ssd0")
    with pytest.raises(Exception, match="ssd0"):
        machine.qmp("device_del", id="ssd0")
    if state == "stopped":
        machine.qmp("cont")


def test_same_ids_again_and_again(bare, tmp_path):
    """C022: device_del, blockdev-del, blockdev-add, device_add with the same ids; same serial each time."""
    card = bare(ports=(0, 1))
    image = card.images[1]
    serials = set()
    for _ in range(20):
        serials.add(ata.ata_string(card.disks[1].identify(), 10, 19))
        unplug(card, 1)
        card.bridge.sleep(3000 * MS)
        card.machine.qmp("blockdev-del", node_name="d1")
        card.machine.qmp("blockdev-add", **{"node-name": "d1", "driver": "raw",
                                            "file": {"driver": "file", "filename": str(image)}})
        plug(card, 1)
        card.bridge.sleep(500 * MS)
    assert len(serials) == 1
    assert card.disks[1].read(7, 1) == stamp(7)


def test_port_in_use_is_refused(bare):
    card = bare()
    card.machine.qmp("blockdev-add", node_name="dx", driver="null-co", size=64 * storage.MIB)
    with pytest.raises(Exception, match="port"):
        card.machine.qmp("device_add", driver="sf2281", id="x", bus="hba.0", port=0, drive="dx")
    assert card.disk.read(1, 1) == stamp(1)


def test_member_on_every_port(bare):
    """All eight phys of both cores."""
    card = bare(ports=range(8))
    assert [repr(d.phy) for d in card.disks] == [f"core {c} phy {p}" for c in (0, 1) for p in range(4)]
    requests = [d.issue(ata.read_ncq(3, 9, 1)) for d in card.disks]
    card.bridge.wait(*requests)
    assert not any(r.completion.failed for r in requests)


def test_plug_while_disabled(bare):
    """A member added while its phy is disabled comes up when the driver enables it."""
    card = bare()
    unplug(card, 0)
    card.phy.disable()
    plug(card, 0)
    card.machine.clock_step(500 * MS)
    assert not card.phy.ready
    card.phy.enable()
    card.machine.clock_step(500 * MS)
    assert card.phy.ready and card.phy.int_stat & regs.SIG_FIS


def test_card_built_by_qmp(launch):
    """C025: machine started with -S and a bare root port; card and members come by QMP."""
    machine = launch("-S", "-device", "pcie-root-port,id=rp0,slot=1,chassis=1,addr=5")
    machine.qmp("device_add", driver="marvell-88se9485", id="hba", bus="rp0")
    for i in range(4):
        machine.qmp("blockdev-add", **{"node-name": f"d{i}", "driver": "null-co", "size": 64 * storage.MIB,
                                       "read-zeroes": True})
        machine.qmp("device_add", driver="sf2281", id=f"ssd{i}", bus="hba.0", port=i, drive=f"d{i}")
    machine.qmp("cont")
    bridge = Bridge(card_of(machine)).probe()
    assert len(bridge.disks()) == 4
    assert bridge.disks()[3].read(0, 1) == bytes(512)


def test_card_plugged_into_a_running_machine(launch):
    """C025: hot-plugged into a root port, used, and unplugged by native PCIe hot-plug when idle."""
    machine = launch("-device", "pcie-root-port,id=rp0,slot=1,chassis=1,addr=5", *storage.null_node("d0"),
                     *storage.null_node("d1"))
    assert cards_of(machine) == []
    machine.qmp("device_add", driver="revodrive3-x2", id="card", bus="rp0", drive0="d0", drive1="d1")
    bridge = Bridge(card_of(machine)).probe()
    assert len(bridge.disks()) == 2
    assert bridge.disks()[1].read(0, 1) == bytes(512)
    bridge.disks()[0].issue(ata.read_ncq(0, 0, 8))
    machine.qmp("device_del", id="card")
    machine.clock_step(1000 * MS)
    machine.qmp("query-block")
