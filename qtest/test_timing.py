# SPDX-License-Identifier: GPL-2.0-or-later
"""Virtual time: repeatable to the nanosecond, plausible, and off when it is told to be off (C084)."""
import random

import pytest

from revodrive_qtest import Bridge, ata, card_of, regs, storage
from revodrive_qtest.phy import MS

US = 1000
IMMEDIATE = (0, 0x10000)
LINK_BYTES_PER_S = 600_000_000  # SATA 6 Gb/s after 8b/10b


def counter(machine, name):
    return machine.qmp("qom-get", path="/machine/peripheral/card", property=name)


def mixed_log(card, seed, total=1000):
    """Runs mixed commands on four disks and returns (slot, entry, time) of each completion."""
    rng = random.Random(seed)
    log = []
    for _ in range(total // 40):
        requests = []
        for index in range(40):
            disk = card.disks[index % 4]
            tag, lba, sectors = index // 4, 8 * rng.randrange(4096), rng.choice((1, 8, 16, 64))
            if rng.random() < 0.5:
                command = ata.read_ncq(tag, lba, sectors)
            else:
                command = ata.write_ncq(tag, lba, rng.randbytes(64) * 8 * sectors)
            requests.append(disk.issue(command))
        card.bridge.wait(*requests)
        for disk in card.disks:
            if rng.random() < 0.3:
                requests.append(disk.issue(rng.choice((ata.Command(ata.FLUSH_CACHE_EXT), ata.identify(),
                                                       ata.trim([(8 * rng.randrange(4096), 8)])))))
                card.bridge.wait(requests[-1])
        log += [(r.slot, r.completion.entry, r.issue_ns, r.completion.time_ns) for r in requests]
    return log


def test_same_input_same_times(rig):
    """C084: two fresh machines, the same 1000 commands: the same order and the same nanoseconds."""
    logs = []
    for _ in range(2):
        card = rig()
        logs.append(mixed_log(card, seed=1))
        card.machine.close()
    assert len(logs[0]) >= 1000
    assert logs[0] == logs[1]


def test_stopped_machine_adds_nothing(rig):
    """C084: stop and cont in mid-command leave its latency alone."""
    times = []
    for pause in (False, True):
        card = rig()
        request = card.disk.issue(ata.read_dma(0, 8))
        card.machine.clock_step(5 * US)
        if pause:
            card.machine.qmp("stop")
            card.machine.qmp("query-block")
            card.machine.qmp("cont")
        card.bridge.wait(request)
        times.append(request.completion.time_ns - request.issue_ns)
        card.machine.close()
    assert times[0] == times[1]


def latency(card, command, disk=0):
    request = card.disks[disk].issue(command)
    card.bridge.wait(request)
    assert not request.completion.failed
    return request.completion.time_ns - request.issue_ns


def test_small_read_latency(rig):
    """Depth 1, 4 KiB: longer than the NAND's own read time, shorter than a millisecond."""
    card = rig("preset=full")
    card.core.set_coalescing(*IMMEDIATE)
    assert 50 * US < latency(card, ata.read_ncq(0, 8, 8)) < MS


def test_c071_what_was_never_written_touches_no_flash(rig):
    """A fresh drive answers without its dies, and says so; a full one does not."""
    times = []
    for preset in ("fresh", "full"):
        card = rig(f"preset={preset}")
        card.core.set_coalescing(*IMMEDIATE)
        times.append(latency(card, ata.read_ncq(0, 8, 8)))
        unmapped = card.machine.qmp("qom-get", path="/machine/peripheral/card/port0", property="unmapped-reads")
        assert unmapped == (1 if preset == "fresh" else 0)
        card.machine.close()
    assert times[1] - times[0] > 75 * US


def test_command_without_flash_is_faster(rig):
    card = rig()
    card.core.set_coalescing(*IMMEDIATE)
    quick = latency(card, ata.Command(ata.CHECK_POWER_MODE))
    assert 0 < quick < latency(card, ata.read_ncq(0, 8, 8))


def test_larger_reads_take_longer(rig):
    card = rig()
    card.core.set_coalescing(*IMMEDIATE)
    times = [latency(card, ata.read_ncq(0, 0, sectors)) for sectors in (8, 64, 256, 1024)]
    assert times == sorted(times) and len(set(times)) == 4


@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
def test_one_disk_is_not_faster_than_its_link(rig, write):
    """128 KiB, 32 deep."""
    card = rig()
    start = card.machine.now_ns
    commands = [ata.write_ncq(t, 256 * t, bytes(131072)) if write else ata.read_ncq(t, 256 * t, 256)
                for t in range(32)]
    requests = card.disk.ncq(commands)
    took = max(r.completion.time_ns for r in requests) - start
    rate = 32 * 131072 * 1_000_000_000 / took
    assert rate < LINK_BYTES_PER_S
    assert write or rate > LINK_BYTES_PER_S / 4


def test_four_disks_are_faster_than_one_and_slower_than_the_slot(rig):
    """PCIe 2.0 x4 carries 2 GB/s before overhead."""
    card = rig()
    start = card.machine.now_ns
    requests = [d.issue(ata.read_ncq(t, 256 * t, 256)) for t in range(16) for d in card.disks]
    card.bridge.wait(*requests)
    took = max(r.completion.time_ns for r in requests) - start
    rate = 64 * 131072 * 1_000_000_000 / took
    assert LINK_BYTES_PER_S < rate < 2_000_000_000


def test_deeper_queues_overlap(rig):
    """32 reads at once take less than 32 reads one after the other."""
    card = rig("preset=full")
    one = latency(card, ata.read_ncq(0, 0, 8))
    start = card.machine.now_ns
    requests = card.disk.ncq([ata.read_ncq(t, 1024 * t, 8) for t in range(32)])
    assert max(r.completion.time_ns for r in requests) - start < 16 * one


def test_timing_off_takes_no_virtual_time(rig):
    """The command is done as soon as the backend is; nothing waits for a timer."""
    card = rig("timing=off")
    before = card.machine.now_ns
    request = card.disk.issue(ata.read_dma(3, 8))
    mirror = card.core.rx_ring
    tries = 0
    while card.machine.readl(mirror) == regs.RX_NONE:
        tries += 1
        assert tries < 1_000_000, "no completion without a clock step"
    assert card.machine.now_ns == before
    card.bridge.wait(request)
    assert card.core.data_of(request) == storage.stamp(3, 8)


def test_nothing_is_late_on_an_idle_host(rig):
    """Under qtest virtual time waits for the backend."""
    card = rig()
    card.disk.ncq([ata.read_ncq(t, 8 * t, 8) for t in range(32)])
    assert counter(card.machine, "late-ios") == 0
    assert counter(card.machine, "max-late-ns") == 0


def test_late_backend_is_counted(launch, tmp_path):
    """A backend that answers after the model's time: the command waits for it and is counted.

    A throttle group made by -object counts in the host's time, so virtual time must only creep.
    """
    words = ["-object", "throttle-group,id=tg,x-bps-read=524288"]
    words += storage.node("d0", "throttle", throttle_group="tg",
                          file={"driver": "null-co", "size": 64 * storage.MIB, "read-zeroes": True})
    vm = launch(*words, "-device", "revodrive3-x2,id=card,addr=4,drive0=d0,backend-wait-ms=0")
    bridge = Bridge(card_of(vm)).probe()
    bridge.timing = False
    disk = bridge.disks()[0]
    requests = disk.ncq([ata.read_ncq(t, 256 * t, 256) for t in range(4)])
    assert not any(r.completion.failed for r in requests)
    assert counter(vm, "late-ios") >= 3 and counter(vm, "max-late-ns") > 0
