# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots and migration, idle and busy, and streams that were tampered with (C052, C056)."""
import copy
import random

import pytest

from revodrive_qtest import Bridge, Refused, ata, card_of, regs, storage
from revodrive_qtest.storage import stamp


def nodes(tmp_path, kind="qcow2"):
    words = []
    for i in range(4):
        path = tmp_path / f"d{i}.{kind}"
        if not path.exists():
            storage.qcow2_image(path) if kind == "qcow2" else storage.raw_image(path)
        words += storage.node(f"d{i}", kind, file={"driver": "file", "filename": str(path)})
    return words


CARD = ["-device", "revodrive3-x2,id=card,addr=4,drive0=d0,drive1=d1,drive2=d2,drive3=d3"]


@pytest.fixture
def snapshot(launch, tmp_path):
    """A probed card on qcow2 images with a stamped area on each disk."""
    vm = launch(*nodes(tmp_path), *CARD)
    bridge = Bridge(card_of(vm)).probe()
    for disk in bridge.disks():
        disk.write(0, stamp(0, 512))
    return bridge


def driver_state(bridge):
    return [(c.tx_next, c.rx_seen, dict(c.requests), copy.deepcopy(c._sets)) for c in bridge.cores]


def restore_driver(bridge, state):
    """The driver lives in guest memory: it goes back with the snapshot."""
    for core, (tx_next, rx_seen, requests, sets) in zip(bridge.cores, state):
        core.tx_next, core.rx_seen, core.requests, core._sets = tx_next, rx_seen, dict(requests), sets
        for request in requests.values():
            request.completion = None


def hmp(machine, line):
    answer = machine.hmp(line)
    assert not answer.strip(), f"{line}: {answer}"


def test_snapshot_of_an_idle_card(snapshot):
    """C052: savevm, write more, loadvm: the older data, and the card goes on."""
    disk, machine = snapshot.disks()[0], snapshot.machine
    state = driver_state(snapshot)
    hmp(machine, "savevm s1")
    disk.write(0, stamp(900, 16))
    hmp(machine, "loadvm s1")
    restore_driver(snapshot, state)
    assert disk.read(0, 16) == stamp(0, 16)
    assert [d.read(5, 1) for d in snapshot.disks()] == [stamp(5)] * 4


def test_snapshot_of_a_busy_card(snapshot):
    """Commands in flight complete after savevm, and once more, with the same data, after loadvm."""
    machine = snapshot.machine
    requests = [d.issue(ata.read_ncq(t, 16 * t + i, 8))
                for t in range(8) for i, d in enumerate(snapshot.disks())]
    machine.clock_step(20_000)
    state = driver_state(snapshot)
    hmp(machine, "savevm s1")
    snapshot.wait(*requests)
    expected = [snapshot.cores[0].data_of(r) for r in requests]
    snapshot.disks()[0].write(0, bytes(512 * 512))
    hmp(machine, "loadvm s1")
    restore_driver(snapshot, state)
    snapshot.wait(*requests)
    assert not any(r.completion.failed for r in requests)
    assert [snapshot.cores[0].data_of(r) for r in requests] == expected
    assert expected[0] == stamp(0, 8)


def test_snapshot_with_writes_in_flight(snapshot):
    """A write that was in flight reaches the image after loadvm as well."""
    machine, disk = snapshot.machine, snapshot.disks()[2]
    request = disk.issue(ata.write_ncq(5, 100, stamp(777, 32)))
    state = driver_state(snapshot)
    hmp(machine, "savevm s1")
    snapshot.wait(request)
    hmp(machine, "loadvm s1")
    restore_driver(snapshot, state)
    snapshot.wait(request)
    assert disk.read(100, 32) == stamp(777, 32)


def test_snapshot_keeps_registers(snapshot):
    """Every register of both cores reads after loadvm as it did at savevm."""
    machine = snapshot.machine
    offsets = [o for o in range(0x100, 0x298, 4) if o not in (regs.INT_STAT, regs.CMD_DATA)]

    def dump():
        return [[core.read(o) for o in offsets] for core in snapshot.cores]

    before = dump()
    hmp(machine, "savevm s1")
    for core in snapshot.cores:
        core.write(regs.CTL, regs.CTL_RESET)
    assert dump() != before
    hmp(machine, "loadvm s1")
    assert dump() == before


def test_snapshot_with_a_stopped_error(launch):
    """werror=stop holds a command back: it is saved, and runs after cont."""
    rule = {"event": "write_aio", "errno": 5, "once": True}
    words = storage.faulty_node("d0", rule)
    vm = launch(*words, "-device", "marvell-88se9485,id=hba,addr=4",
                "-device", "sf2281,id=ssd0,bus=hba.0,port=0,drive=d0,werror=stop")
    bridge = Bridge(card_of(vm)).probe()
    request = bridge.disks()[0].issue(ata.write_dma(0, stamp(0)))
    bridge.run_until(lambda: vm.events("STOP"), what="STOP")
    vm.qmp("cont")
    bridge.wait(request)
    assert not request.completion.failed


def migrate_to(machine, path):
    machine.qmp("migrate", uri=f"exec:cat > {path}")
    wait_migrated(machine)


def wait_migrated(machine):
    while True:
        status = machine.qmp("query-migrate").get("status")
        if status == "completed":
            return
        assert status not in ("failed", "cancelled"), machine.log()


def adopt(bridge, target):
    """The same driver on the machine that was migrated to."""
    moved = copy.copy(bridge)
    moved.machine = target
    moved.function = copy.copy(bridge.function)
    moved.function.machine = target
    moved.cores = [copy.copy(core) for core in bridge.cores]
    for core in moved.cores:
        core.bridge, core.machine = moved, target
        core.phys = [copy.copy(phy) for phy in core.phys]
        for phy in core.phys:
            phy.core = core
    return moved


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_migration_through_a_file(launch, tmp_path, busy):
    """C052: into a new QEMU, with and without commands in flight."""
    source = launch(*nodes(tmp_path, "raw"), *CARD)
    bridge = Bridge(card_of(source)).probe()
    bridge.disks()[1].write(64, stamp(4000, 64))
    requests = []
    if busy:
        requests = [d.issue(ata.read_ncq(t, 16 * t, 8)) for t in range(16) for d in bridge.disks()]
        source.clock_step(30_000)
    now = source.now_ns
    migrate_to(source, tmp_path / "stream")
    source.close()
    target = launch(*nodes(tmp_path, "raw"), *CARD, "-incoming", f"exec:cat {tmp_path / 'stream'}")
    target.clock_step(now)
    wait_incoming(target)
    moved = adopt(bridge, target)
    moved.wait(*requests)
    assert not any(r.completion.failed for r in requests)
    for request in requests:
        if request.phy != 1:
            assert moved.cores[0].data_of(request) == stamp(request.command.lba, 8)
    assert moved.disks()[1].read(64, 64) == stamp(4000, 64)
    assert moved.disks()[0].read(9, 1) == stamp(9)


def wait_incoming(machine):
    while machine.qmp("query-status")["status"] in ("inmigrate",):
        pass
    if not machine.qmp("query-status")["running"]:
        machine.qmp("cont")


def damaged(stream, how, rng):
    """A copy of the stream with the damage near or inside the card's section."""
    data = bytearray(stream)
    at = data.rfind(b"RDRV")
    assert at > 0, "no saved card in the stream"
    if how == "truncated":
        return bytes(data[:at + 200])
    if how == "flipped":
        for _ in range(20):
            data[at + rng.randrange(4, 16000)] ^= 1 << rng.randrange(8)
    if how == "version":
        data[at + 4] ^= 0xFF
    return bytes(data)


@pytest.mark.parametrize("how", ["truncated", "flipped", "version"])
def test_damaged_stream(launch, tmp_path, seed, how):
    """C056: never a crash: the load fails with a message, or what it loaded can be probed again."""
    source = launch(*nodes(tmp_path, "raw"), *CARD)
    bridge = Bridge(card_of(source)).probe()
    for disk in bridge.disks():
        disk.issue(ata.read_ncq(1, 0, 8))
    migrate_to(source, tmp_path / "stream")
    source.close()
    stream = (tmp_path / "stream").read_bytes()
    rng = random.Random(seed)
    for attempt in range(3 if how == "flipped" else 1):
        (tmp_path / "bad").write_bytes(damaged(stream, how, rng))
        load_damaged(launch, tmp_path, must_fail=how != "flipped")


def load_damaged(launch, tmp_path, must_fail):
    words = [*nodes(tmp_path, "raw"), *CARD, "-incoming", "defer"]
    target = launch(*words)
    target.qmp("migrate-incoming", uri=f"exec:cat {tmp_path / 'bad'}")
    loaded = wait_load(target)
    if loaded:
        assert not must_fail, "a damaged stream was accepted"
        target.qmp("cont")
        assert len(Bridge(card_of(target)).probe().disks()) == 4
        target.close()
        return
    refused_to_load(target)


def refused_to_load(machine):
    """QEMU ends with status 1 and a message about the card; anything else is a crash."""
    code, log = machine.wait_end()
    assert code == 1, f"not a clean end: {code}\n{log}"
    return log


def wait_load(machine):
    """True when the stream was loaded, False when QEMU refused it and is ending."""
    while machine.process.is_running():
        try:
            if machine.qmp("query-status")["status"] != "inmigrate":
                return True
        except Exception:  # the monitor closes while QEMU ends
            return False
    return False


def test_other_members_are_refused(launch, tmp_path):
    """A stream of a card with four members does not load into one with two."""
    source = launch(*nodes(tmp_path, "raw"), *CARD)
    Bridge(card_of(source)).probe()
    migrate_to(source, tmp_path / "bad")
    source.close()
    words = [*nodes(tmp_path, "raw"), "-device", "revodrive3-x2,id=card,addr=4,drive0=d0,drive1=d1",
             "-incoming", "defer"]
    target = launch(*words)
    target.qmp("migrate-incoming", uri=f"exec:cat {tmp_path / 'bad'}")
    assert not wait_load(target)
    assert "member" in refused_to_load(target)


def test_unknown_incoming_option_is_a_refusal():
    """The harness itself: a QEMU that cannot start is a Refused, with its words."""
    with pytest.raises(Refused, match="no-such-device"):
        from revodrive_qtest import Machine
        Machine("-device", "no-such-device")
