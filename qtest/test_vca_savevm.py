# SPDX-License-Identifier: GPL-2.0-or-later
"""mode=vca, both policies: snapshots and migration, idle and with requests in flight."""
import pytest

from revodrive_qtest import Bridge, card_of, storage
from revodrive_qtest.storage import stamp
from revodrive_qtest.volume import Volume, card
from test_savevm import (adopt, driver_state, hmp, migrate_to, refused_to_load, restore_driver, wait_incoming,
                         wait_load)

POLICIES = pytest.mark.parametrize("policy", ["stripe", "dispatch"])


def nodes(tmp_path, kind):
    words = []
    for i in range(4):
        path = tmp_path / f"d{i}.{kind}"
        if not path.exists():
            storage.qcow2_image(path) if kind == "qcow2" else storage.raw_image(path, stamped_sectors=0)
        words += storage.node(f"d{i}", kind, file={"driver": "file", "filename": str(path)})
    return words


@pytest.fixture
def volume(launch, tmp_path):
    def make(policy, kind="qcow2"):
        vm = launch(*nodes(tmp_path, kind), *card(policy))
        disk = Volume(Bridge(card_of(vm)).probe())
        disk.clear_attention()
        disk.write(0, stamp(0, 1024))
        disk.run([0x35])
        disk.write(512, stamp(9000, 256))  # known to the card alone: no flush follows
        return vm, disk

    return make


def in_flight(disk):
    """Reads, writes and a flush; no two of them meet."""
    requests = [disk.issue(disk.read_cdb(16 * i, 8), length=4096) for i in range(16)]
    requests += [disk.issue(disk.write_cdb(2048 + 24 * i, 24), stamp(7000 + 24 * i, 24)) for i in range(16)]
    return [*requests, disk.issue([0x35])]


def as_written(disk):
    assert disk.read(0, 512) == stamp(0, 512)
    assert disk.read(512, 256) == stamp(9000, 256)
    assert disk.read(2048, 384) == stamp(7000, 384)


@POLICIES
@pytest.mark.parametrize("after_ns", [0, 20_000, 300_000])
def test_snapshot_in_the_middle(volume, policy, after_ns):
    vm, disk = volume(policy)
    requests = in_flight(disk)
    vm.clock_step(after_ns)
    state = driver_state(disk.bridge)
    hmp(vm, "savevm s1")
    for request in requests:
        disk.finish(request)
    for start in range(0, 4096, 512):
        disk.write(start, bytes(512 * 512))
    disk.run([0x35])
    hmp(vm, "loadvm s1")
    restore_driver(disk.bridge, state)
    disk.bridge.interrupt()  # a line that was high at savevm is so again, without an edge
    for i, request in enumerate(requests):
        data = disk.finish(request)
        assert i >= 16 or data == stamp(16 * i, 8)
    as_written(disk)


@POLICIES
def test_migration_in_the_middle(launch, volume, tmp_path, policy):
    source, disk = volume(policy, "raw")
    requests = in_flight(disk)
    source.clock_step(30_000)
    now = source.now_ns
    migrate_to(source, tmp_path / "stream")
    source.close()
    target = launch(*nodes(tmp_path, "raw"), *card(policy), "-incoming", f"exec:cat {tmp_path / 'stream'}")
    target.clock_step(now)
    wait_incoming(target)
    moved = Volume(adopt(disk.bridge, target))
    for request in requests:
        moved.finish(request)
    as_written(moved)
    moved.run([0x35])
    target.close(kill=True)
    again = launch(*nodes(tmp_path, "raw"), *card(policy))
    disk = Volume(Bridge(card_of(again)).probe())
    disk.clear_attention()
    as_written(disk)


def test_a_stream_of_the_other_policy_is_refused(launch, volume, tmp_path):
    source, _ = volume("stripe", "raw")
    migrate_to(source, tmp_path / "stream")
    source.close()
    target = launch(*nodes(tmp_path, "raw"), *card("dispatch"), "-incoming", "defer")
    target.qmp("migrate-incoming", uri=f"exec:cat {tmp_path / 'stream'}")
    assert not wait_load(target)
    assert "policy=stripe, this one has mode=vca,policy=dispatch" in refused_to_load(target)


@POLICIES
def test_unplug_under_load(volume, policy):
    """A member goes with requests in flight: all end, and the disk answers on."""
    vm, disk = volume(policy)
    requests = in_flight(disk)
    path = "/machine/peripheral/card/port2"
    vm.qmp("device_del", id=path)
    vm.wait_event("DEVICE_DELETED", path=path)
    disk.bridge.wait(*requests)
    assert vm.qmp("qom-get", path="/machine/peripheral/card", property="volume-degraded") == 1
    vm.qmp("device_add", driver="sf2281", bus="card.0", port=2, drive="d2", id="again")
    assert disk.read(512, 256) == stamp(9000, 256)
    for request in in_flight(disk):
        disk.finish(request)
    as_written(disk)
