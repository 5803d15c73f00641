# SPDX-License-Identifier: GPL-2.0-or-later
"""mode=vca: one SAS disk over the SSDs, its layout, its failures, its snapshots."""
import pytest

from revodrive_qtest import refused, storage
from revodrive_qtest.storage import MIB, stamp
from revodrive_qtest.volume import ScsiError, Volume

CHUNK = 128
X2 = "revodrive3-x2,id=card,addr=4"


@pytest.fixture
def volume(rig):
    def make(props="", **options):
        made = rig(f"mode=vca{props and ',' + props}", **options)
        disk = Volume(made.bridge)
        disk.clear_attention()
        return made, disk

    return make


def nodes(tmp_path, count=4):
    words = []
    for i in range(count):
        words += storage.raw_node(f"d{i}", storage.raw_image(tmp_path / f"{i}"))
    return words


@pytest.mark.parametrize("props, named", [
    ("mode=raid", "jbod, vca"), ("mode=vca,policy=mirror", "dispatch"), ("policy=stripe", "mode=vca"),
    ("vca-phys=4", "mode=vca"), ("mode=vca,vca-phys=3", "must be 1, or 4"),
    ("chunk=64k", "mode=vca"), ("mode=vca,chunk=3000", "power of two"), ("mode=vca,chunk=32M", "16 MiB"),
    ("mode=vca,chunk=8G", "16 MiB")])
def test_wrong_properties(tmp_path, props, named):
    drives = "".join(f",drive{i}=d{i}" for i in range(4))
    words = refused(*nodes(tmp_path), "-device", f"{X2}{drives},{props}")
    line = next(line for line in words.splitlines() if "qemu-system" in line)
    assert named in line and props.split(",")[-1].split("=")[0] in line


def test_every_ssd_is_needed(tmp_path):
    words = refused(*nodes(tmp_path, 3), "-device", f"{X2},mode=vca,drive0=d0,drive1=d1,drive2=d2")
    assert "drive3= is missing" in words


def test_one_disk_on_the_first_phy(volume):
    made, disk = volume()
    assert made.phy.attached and not made.phy.sata
    assert not any(phy.ready for phy in made.core.phys[1:])
    assert made.phy.cfg_read(0x11C) == 0x08000010
    assert disk.capacity() == 4 * 64 * MIB // 512
    assert disk.run([0x12, 0, 0, 0, 36], length=36)[8:11] == b"OCZ"


def test_wide_port(volume):
    """Four phys of one target: the same address in each IDENTIFY frame, and a phy of its own."""
    made, disk = volume("vca-phys=4")
    phys = made.core.phys
    assert all(phy.attached and not phy.sata for phy in phys)
    assert len({(phy.cfg_read(0x128), phy.cfg_read(0x12C)) for phy in phys}) == 1
    assert [phy.cfg_read(0x130) & 0xFF for phy in phys] == [0, 1, 2, 3]
    for phy in range(4):
        assert Volume(made.bridge, phy).read(0, 8) == stamp(0, 8)
    path = "/machine/peripheral/card/port0"
    made.machine.qmp("qom-set", path=path, property="faults", value="name=held,op=read,stage=fetch,action=hold")
    held = [Volume(made.bridge, phy).issue(disk.read_cdb(0, 8), length=4096) for phy in range(4)]
    assert disk.task(0x02) == 0  # ABORT TASK SET: through whatever phy they came
    assert [disk.task(0x80, request.slot) for request in held] == [0] * 4


@pytest.mark.parametrize("chunk", [4096, 65536])
def test_layout(volume, chunk):
    """Block by block where a stripe has it, over a boundary of every SSD."""
    made, disk = volume(f"chunk={chunk}")
    blocks = chunk // 512
    first, count = 5, 5 * blocks
    data = stamp(first, count, salt=9)
    disk.write(first, data)
    disk.run([0x35])
    content = [image.read_bytes() for image in made.images]
    for i in range(count):
        number, within = divmod(first + i, blocks)
        at = (number // 4 * blocks + within) * 512
        assert content[number % 4][at:at + 512] == data[512 * i:512 * i + 512]
    assert disk.read(first, count) == data


def test_unmap_reaches_the_ssds(volume):
    made, disk = volume()
    first, count = CHUNK + 3, 3 * CHUNK
    ranges = first.to_bytes(8, "big") + count.to_bytes(4, "big") + bytes(4)
    before = [counter(made, port, "trim-sectors") for port in range(4)]
    disk.run([0x42, 0, 0, 0, 0, 0, 0, 0, 24], b"\0\x16\0\x10\0\0\0\0" + ranges)
    after = [counter(made, port, "trim-sectors") for port in range(4)]
    assert [a - b for a, b in zip(after, before)] == [3, CHUNK - 3, CHUNK, CHUNK]
    assert disk.read(first, count) == b"\xff" * 512 * count
    assert disk.read(first - 1, 1) != b"\xff" * 512


def counter(made, port, name):
    return made.machine.qmp("qom-get", path=f"/machine/peripheral/card/port{port}", property=name)


def test_deep_queue_uses_every_ssd(volume):
    """Much faster than one after the other: the parts run on four SSDs at the same time."""
    made, disk = volume()

    def took(depth):
        start, left = made.machine.now_ns, list(range(64))
        while left:
            batch = [disk.issue(disk.read_cdb(CHUNK * i, 8), length=4096) for i in left[:depth]]
            left = left[depth:]
            for request in batch:
                disk.finish(request)
        return made.machine.now_ns - start

    made.core.set_coalescing(0, 0)
    assert took(64) * 4 < took(1)


def unplug(made, port):
    path = f"/machine/peripheral/card/port{port}"
    made.machine.qmp("device_del", id=path)
    made.machine.wait_event("DEVICE_DELETED", path=path)


def test_member_away_and_back(volume):
    made, disk = volume()
    vm = made.machine
    unplug(made, 1)
    assert vm.qmp("qom-get", path="/machine/peripheral/card", property="volume-degraded") == 1
    with pytest.raises(ScsiError) as error:
        disk.read(CHUNK + 5, 1)
    assert (error.value.key, error.value.code, error.value.information) == (4, 0x0800, CHUNK + 5)
    assert len(disk.read(0, CHUNK)) == 512 * CHUNK
    vm.qmp("device_add", driver="sf2281", bus="card.0", port=1, drive="d1", id="again")
    assert vm.qmp("qom-get", path="/machine/peripheral/card", property="volume-degraded") == 0
    assert disk.read(CHUNK + 5, 1) == stamp(5)


def test_another_drive_is_not_let_in(volume):
    made, disk = volume()
    unplug(made, 1)
    made.machine.qmp("device_add", driver="sf2281", bus="card.0", port=1, drive="d1", id="again", serial="STRANGER")
    with pytest.raises(ScsiError):
        disk.read(CHUNK, 1)
    assert made.machine.qmp("qom-get", path="/machine/peripheral/card", property="volume-members-ready") == 3


def test_task_management(volume):
    made, disk = volume()
    port = "/machine/peripheral/card/port0"
    made.machine.qmp("qom-set", path=port, property="faults", value="name=held,op=read,stage=fetch,action=hold")
    held = [disk.issue(disk.read_cdb(0, 8), length=4096) for _ in range(3)]
    assert disk.task(0x80, held[0].slot) == 8
    assert disk.task(0x01, held[0].slot) == 0
    made.core.release(held[0])
    assert disk.task(0x80, held[0].slot) == 0
    assert disk.task(0x08) == 0
    for request in held[1:]:
        made.core.release(request)
    made.machine.qmp("qom-set", path=port, property="faults", value="clear")
    with pytest.raises(ScsiError) as error:
        disk.read(0, 8)
    assert (error.value.key, error.value.code) == (6, 0x2903)
    assert disk.read(0, 1) == stamp(0)

