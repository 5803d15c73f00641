# SPDX-License-Identifier: GPL-2.0-or-later
"""Ending QEMU while the card is busy (C057). A quit that hangs fails by the harness's own limit."""
import random

import pytest

from revodrive_qtest import Bridge, ata, card_of, storage
from revodrive_qtest.phy import MS


def busy(bridge):
    """31 reads and writes and a TRIM on each disk."""
    for disk in bridge.disks():
        for tag in range(31):
            command = ata.read_ncq(tag, 256 * tag, 64) if tag % 2 else ata.write_ncq(tag, 256 * tag,
                                                                                     bytes(32768))
            disk.issue(command)
        disk.issue(ata.trim([(0, 65535)]))


def throttled_nodes():
    words = ["-object", "throttle-group,id=tg,x-iops-total=50"]
    for i in range(4):
        words += storage.node(f"d{i}", "throttle", throttle_group="tg",
                              file={"driver": "null-co", "size": 64 * storage.MIB, "read-zeroes": True})
    return words


def all_drives(props=""):
    return "revodrive3-x2,id=card,addr=4,drive0=d0,drive1=d1,drive2=d2,drive3=d3" + props


@pytest.mark.parametrize("timing", ["on", "off"])
def test_quit_with_throttled_backend(launch, seed, timing):
    """C057: requests wait inside the backend's throttle when quit comes."""
    rng = random.Random(seed)
    for _ in range(5):
        vm = launch(*throttled_nodes(), "-device", all_drives(f",timing={timing},backend-wait-ms=0"))
        busy(Bridge(card_of(vm), timing=timing == "on").probe())
        vm.clock_step(rng.randrange(3 * MS))
        vm.close()


@pytest.mark.parametrize("timing", ["on", "off"])
def test_quit_with_files(rig, seed, timing):
    """The timing model holds completions back when quit comes."""
    rng = random.Random(seed)
    for _ in range(5):
        card = rig(f"timing={timing}")
        busy(card.bridge)
        card.machine.clock_step(rng.randrange(3 * MS))
        card.machine.close()


def test_quit_while_stopped_by_an_error(launch):
    """werror=stop holds a command back for a retry that never comes."""
    rule = {"event": "write_aio", "errno": 28, "once": False}
    words = storage.faulty_node("d0", rule)
    vm = launch(*words, "-device", "revodrive3-x2,id=card,addr=4,drive0=d0")
    bridge = Bridge(card_of(vm)).probe()
    bridge.disks()[0].issue(ata.write_dma(0, bytes(512)))
    bridge.run_until(lambda: vm.events("STOP"), what="STOP")
    vm.close()


def test_quit_before_probe(rig):
    rig(probe=False).machine.close()


def test_quit_after_unplug(bare):
    """The member is gone, its node is still there."""
    card = bare(ports=(0, 1))
    busy(card.bridge)
    card.machine.qmp("device_del", id="ssd0")
    card.machine.close()
