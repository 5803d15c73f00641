# SPDX-License-Identifier: GPL-2.0-or-later
"""mode=vca,policy=dispatch: blocks wherever an SSD is free, a map that outlives QEMU, and what ends it."""
import pytest

from revodrive_qtest import Bridge, card_of, refused, storage
from revodrive_qtest.phy import MS
from revodrive_qtest.storage import MIB, stamp
from revodrive_qtest.volume import ScsiError, Volume, card

NOT_READY, ILLEGAL, ATTENTION = 2, 5, 6
MANUAL = 0x0403


def nodes(tmp_path, count=4, size=64 * MIB):
    words = []
    for i in range(count):
        path = tmp_path / f"m{i}"
        if not path.exists():
            storage.raw_image(path, size, stamped_sectors=0)
        words += storage.raw_node(f"d{i}", path)
    return words


@pytest.fixture
def boot(launch, tmp_path):
    """boot(): the same images in a new QEMU each time."""

    def start(*more):
        vm = launch(*nodes(tmp_path), *card("dispatch", *more))
        disk = Volume(Bridge(card_of(vm)).probe())
        disk.clear_attention()
        return vm, disk

    return start


def counter(vm, name, path="/machine/peripheral/card"):
    return vm.qmp("qom-get", path=path, property=name)


def test_what_the_disk_says(boot):
    vm, disk = boot()
    capacity = disk.run([0x9E, 0x10] + [0] * 11 + [32], length=32)
    blocks = int.from_bytes(capacity[:8], "big") + 1
    assert 0.9 * 4 * 64 * MIB < 512 * blocks < 4 * 64 * MIB
    assert capacity[13] == 3 and capacity[14] & 0xC0 == 0xC0
    assert disk.run([0x12, 1, 0xB2, 0, 64], length=64)[5] & 0x04
    assert int.from_bytes(disk.run([0x12, 1, 0xB0, 0, 64], length=64)[28:32], "big") == 8
    assert disk.read(0, 64) == bytes(64 * 512)
    assert counter(vm, "volume-map-state") == 1


def test_blocks_stay_over_a_restart(boot):
    vm, disk = boot()
    disk.write(5, stamp(5, 300))
    disk.write(100, stamp(7000, 8))
    disk.run([0x35])
    vm.close(kill=True)
    vm, disk = boot()
    assert disk.read(5, 95) == stamp(5, 95)
    assert disk.read(100, 8) == stamp(7000, 8)
    assert disk.read(108, 100) == stamp(108, 100)
    assert disk.read(0, 5) == bytes(5 * 512)


def test_writes_are_spread_and_counted(boot):
    vm, disk = boot()
    for start in range(0, 512, 32):
        for request in [disk.issue(disk.write_cdb(8 * i, 8), stamp(8 * i, 8)) for i in range(start, start + 32)]:
            disk.finish(request)
    assert counter(vm, "volume-imbalance-sectors") <= 2 * 1024 + 128
    writes = [counter(vm, "writes", f"/machine/peripheral/card/port{port}") for port in range(4)]
    assert min(writes) > 100 and max(writes) - min(writes) < 20


def unmap(disk, first, count):
    ranges = first.to_bytes(8, "big") + count.to_bytes(4, "big") + bytes(4)
    disk.run([0x42, 0, 0, 0, 0, 0, 0, 0, 24], b"\0\x16\0\x10\0\0\0\0" + ranges)


def test_unmap(boot):
    vm, disk = boot()
    disk.write(0, stamp(0, 512))
    unmap(disk, 13, 300)
    assert disk.read(0, 13) == stamp(0, 13)
    assert disk.read(13, 300) == bytes(300 * 512)
    assert disk.read(313, 100) == stamp(313, 100)
    trimmed = sum(counter(vm, "trim-sectors", f"/machine/peripheral/card/port{port}") for port in range(4))
    assert trimmed == 312 - 16
    vm.close(kill=True)
    assert boot()[1].read(13, 300) == bytes(300 * 512)


@pytest.mark.parametrize("immediate", [False, True])
def test_somebodys_ssds_are_not_taken(launch, tmp_path, immediate):
    """Stamped images: refused, untouched, and taken over by FORMAT UNIT."""
    words = []
    for i in range(4):
        words += storage.raw_node(f"d{i}", storage.raw_image(tmp_path / f"m{i}"))
    vm = launch(*words, *card("dispatch"))
    disk = Volume(Bridge(card_of(vm)).probe())
    disk.clear_attention()
    with pytest.raises(ScsiError) as error:
        disk.read(0, 8)
    assert (error.value.key, error.value.code) == (NOT_READY, MANUAL)
    assert counter(vm, "volume-map-state") == 2
    assert "SSD 0 has no map, but something in its first sectors" in vm.log()
    assert (tmp_path / "m0").read_bytes()[:4096] == stamp(0, 8)
    (format_immediately if immediate else format_unit)(disk)
    assert disk.read(0, 8) == bytes(4096)
    disk.write(0, stamp(0, 8))
    assert disk.read(0, 8) == stamp(0, 8)


def format_unit(disk):
    request = disk.issue([0x04])
    while request.completion is None:
        disk.bridge.sleep(500 * MS)
    disk.finish(request)


def format_immediately(disk):
    """As sg_format does: its command has ended at once, and it asks how far the volume is."""
    disk.run([0x04, 0x18], b"\0\x02\0\0")
    seen = []
    while True:
        sense = disk.run([0x03, 0, 0, 0, 18], length=18)
        if sense[2] == 0:
            break
        assert (sense[2], sense[12:14], sense[15]) == (NOT_READY, b"\x04\x04", 0x80)
        if not seen:
            with pytest.raises(ScsiError) as error:
                disk.run([0x00])
            assert (error.value.key, error.value.code) == (NOT_READY, 0x0404)
        seen.append(int.from_bytes(sense[16:18], "big"))
        disk.bridge.sleep(MS // 5)
    assert seen == sorted(seen) and len(set(seen)) > 2


@pytest.mark.parametrize("how", ["zeroed", "swapped", "resized"])
def test_a_bad_map_gives_no_data(boot, tmp_path, how):
    vm, disk = boot()
    disk.write(0, stamp(0, 64))
    disk.run([0x35])
    vm.close()
    first, second = tmp_path / "m0", tmp_path / "m1"
    if how == "zeroed":
        with open(first, "r+b") as image:
            image.seek(-(2 * MIB), 2)
            image.write(bytes(2 * MIB))
    elif how == "swapped":
        one, two = first.read_bytes(), second.read_bytes()
        first.write_bytes(two), second.write_bytes(one)
    else:
        for i in range(4):
            with open(tmp_path / f"m{i}", "r+b") as image:
                image.truncate(65 * MIB)
    vm, disk = boot()
    with pytest.raises(ScsiError) as error:
        disk.read(0, 8)
    assert (error.value.key, error.value.code) == (NOT_READY, MANUAL)
    assert "the volume cannot be used" in vm.log()


def test_a_member_is_away_and_comes_back(boot):
    vm, disk = boot()
    disk.write(0, stamp(0, 512))
    disk.run([0x35])
    path = "/machine/peripheral/card/port1"
    vm.qmp("device_del", id=path)
    vm.wait_event("DEVICE_DELETED", path=path)
    failed = 0
    for block in range(64):
        try:
            assert disk.read(8 * block, 8) == stamp(8 * block, 8)
        except ScsiError as error:
            assert (error.key, error.code) == (4, 0x0800)
            failed += 1
    assert 0 < failed < 64
    with pytest.raises(ScsiError):
        disk.write(4096, stamp(4096, 8))
    vm.qmp("device_add", driver="sf2281", bus="card.0", port=1, drive="d1", id="again")
    assert disk.read(0, 512) == stamp(0, 512)
    disk.write(4096, stamp(4096, 8))
    disk.run([0x35])


def test_too_small_members(tmp_path):
    words = nodes(tmp_path, size=8 * MIB)
    assert "at least 16777216 bytes" in refused(*words, *card("dispatch"))


def test_compare_and_write(boot):
    _, disk = boot()
    disk.write(8, stamp(8, 4))

    def swap(old, new, blocks=4):
        disk.run([0x89, 0, *(8).to_bytes(8, "big"), 0, 0, 0, blocks], old + new)

    swap(stamp(8, 4), stamp(900, 4))
    assert disk.read(8, 4) == stamp(900, 4)
    with pytest.raises(ScsiError) as error:
        swap(stamp(900, 2) + stamp(8, 2), stamp(1, 4))
    assert (error.value.key, error.value.code) == (0xE, 0x1D00)
    assert 1024 <= error.value.information < 1024 + 8
    assert disk.read(8, 4) == stamp(900, 4)
    with pytest.raises(ScsiError) as error:
        swap(b"", b"", 129)
    assert (error.value.key, error.value.code) == (ILLEGAL, 0x2400)


def lock(vm, disk, port):
    """As an erase that lost its power after the password was set."""
    block = b"\0\0VCA ERASE".ljust(512, b"\0")
    cdb = [0x85, 5 << 1, 0x06, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0xF1]
    disk.run(cdb, block, lun=port)
    path = f"/machine/peripheral/card/port{port}"
    vm.qmp("device_del", id=path)
    vm.wait_event("DEVICE_DELETED", path=path)
    vm.qmp("device_add", driver="sf2281", bus="card.0", port=port, drive=f"d{port}", id=f"again{port}")


def test_an_erase_that_was_cut_short_is_given_again(boot):
    vm, disk = boot()
    disk.write(0, stamp(0, 512))
    disk.run([0x35])
    lock(vm, disk, 2)
    with pytest.raises(ScsiError) as error:
        disk.read(0, 512)
    assert (error.value.key, error.value.code) == (7, 0x7471)
    format_unit(disk)
    assert counter(vm, "volume-degraded") == 0
    assert disk.read(0, 512) == bytes(512 * 512)
    disk.write(0, stamp(0, 8))
    assert disk.read(0, 8) == stamp(0, 8)
