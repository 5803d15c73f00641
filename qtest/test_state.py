# SPDX-License-Identifier: GPL-2.0-or-later
"""What outlives the SSDs' power, in the block node of state=: restarts, kills, damaged copies, and
nodes that cannot serve. Format: docs/smart.md."""
import os
import random
import shutil
import struct
import zlib

import pytest

from revodrive_qtest import AtaError, Bridge, Refused, ata, card_of, smart, storage
from revodrive_qtest.phy import MS

NODE_BYTES = 8 * storage.MIB
COPY_BYTES = NODE_BYTES // 2
HEADER = struct.Struct("<8sIIQQI")  # magic, version, header CRC, sequence, length, data CRC
MINUTE = 60_000 * MS
HOST_LOG = 0x80


def blank(path, size=NODE_BYTES):
    with open(path, "wb") as image:
        image.truncate(size)
    return path


def read_copy(image, number):
    """(sequence, length, data CRC) of a copy, or None if it is not whole."""
    raw = image.read_bytes()[number * COPY_BYTES:(number + 1) * COPY_BYTES]
    magic, version, header_crc, sequence, length, data_crc = HEADER.unpack_from(raw)
    header = bytearray(raw[:512])
    header[12:16] = bytes(4)
    if magic != b"REVOSTAT" or version != 1 or zlib.crc32(header) != header_crc:
        return None
    if zlib.crc32(raw[512:512 + length]) != data_crc:
        return None
    return sequence, length, data_crc


@pytest.fixture
def state(tmp_path):
    return blank(tmp_path / "state.img")


@pytest.fixture
def start(launch, tmp_path, state):
    """start(props): a probed card with one SSD whose state is kept in the file `state`."""
    ssd = storage.raw_image(tmp_path / "ssd.img")

    def make(props="", node=None, args=(), probe=True):
        words = [*storage.raw_node("d0", ssd), *(node or storage.raw_node("st", state)), *args]
        vm = launch(*words, "-device", f"revodrive3-x2,id=card,addr=4,drive0=d0,state=st{props}")
        bridge = Bridge(card_of(vm))
        return vm, bridge.probe() if probe else bridge

    return make


def raw_of(bridge, *ids):
    found = smart.attributes(bridge.disks()[0])
    return [found[i].raw for i in ids]


def standby(bridge):
    bridge.disks()[0].execute(ata.Command(ata.STANDBY_IMMEDIATE))


def test_counters_survive_a_restart(start, state):
    """Power cycles count up, power-on time goes on, a standby makes the end an expected one."""
    vm, bridge = start()
    vm.clock_step(3 * MINUTE)
    hours = raw_of(bridge, 9)[0]
    assert raw_of(bridge, 12, 174) == [1, 0]
    standby(bridge)
    vm.close()
    for cycle in (2, 3):
        vm, bridge = start()
        assert raw_of(bridge, 12, 174) == [cycle, 0]
        assert raw_of(bridge, 9)[0] >= hours
        hours = raw_of(bridge, 9)[0]
        standby(bridge)
        vm.close()
    assert any(read_copy(state, i) for i in (0, 1))


def test_no_standby_is_a_power_loss(start):
    vm, bridge = start()
    bridge.disks()[0].write(0, bytes(512))
    vm.close()
    vm, bridge = start()
    assert raw_of(bridge, 12, 174) == [2, 1]


def test_host_log_is_durable_when_its_command_ends(start):
    """A kill right after the completion loses nothing of what had to be stored first."""
    for number in range(1, 6):
        vm, bridge = start()
        disk = bridge.disks()[0]
        page = bytes([number]) * 512
        if number > 1:
            assert smart.read_log(disk, HOST_LOG) == bytes([number - 1]) * 512
        smart.write_log(disk, HOST_LOG, page)
        vm.close(kill=True)


def test_killed_at_random_moments(start, state, seed):
    """Whatever SIGKILL interrupts, one copy is whole, and it is what was acknowledged or newer."""
    rng = random.Random(seed)
    acknowledged = 0
    for _ in range(8):
        vm, bridge = start()
        disk = bridge.disks()[0]
        page = smart.read_log(disk, HOST_LOG)
        assert page == page[:4] * 128, "half of a page"
        assert int.from_bytes(page[:4], "little") >= acknowledged
        for _ in range(rng.randrange(1, 12)):
            acknowledged += 1
            smart.write_log(disk, HOST_LOG, acknowledged.to_bytes(4, "little") * 128)
        # One more is under way when the end comes.
        disk.issue(smart.command(smart.WRITE_LOG, HOST_LOG, (acknowledged + 1).to_bytes(4, "little")
                                 * 128))
        if rng.randrange(2):
            vm.clock_step(rng.randrange(2 * MS))
        vm.close(kill=True)
        assert any(read_copy(state, i) for i in (0, 1))


def test_copies_take_turns(start, state):
    """The older copy is the one that is overwritten."""
    vm, bridge = start()
    smart.write_log(bridge.disks()[0], HOST_LOG, bytes(512))
    before = [read_copy(state, i) for i in (0, 1)]
    assert all(before)
    smart.write_log(bridge.disks()[0], HOST_LOG, b"\1" * 512)
    after = [read_copy(state, i) for i in (0, 1)]
    older = 0 if before[0][0] < before[1][0] else 1
    assert after[1 - older] == before[1 - older]
    assert after[older][0] == before[1 - older][0] + 1
    vm.close()


@pytest.mark.parametrize("where", ["header", "data"])
def test_damaged_copy_falls_back_to_the_other(start, state, where):
    vm, bridge = start()
    smart.write_log(bridge.disks()[0], HOST_LOG, b"\1" * 512)
    smart.write_log(bridge.disks()[0], HOST_LOG, b"\2" * 512)
    vm.close(kill=True)
    copies = [read_copy(state, i) for i in (0, 1)]
    newer = 0 if copies[0][0] > copies[1][0] else 1
    with open(state, "r+b") as image:
        image.seek(newer * COPY_BYTES + (20 if where == "header" else 600))
        byte = image.read(1)
        image.seek(-1, os.SEEK_CUR)
        image.write(bytes([byte[0] ^ 0xFF]))
    vm, bridge = start()
    assert smart.read_log(bridge.disks()[0], HOST_LOG) == b"\1" * 512
    smart.write_log(bridge.disks()[0], HOST_LOG, b"\3" * 512)
    vm.close()
    vm, bridge = start()
    assert smart.read_log(bridge.disks()[0], HOST_LOG) == b"\3" * 512


def test_both_copies_damaged_is_refused(start, state):
    start()[0].close()
    with open(state, "r+b") as image:
        for number in (0, 1):
            image.seek(number * COPY_BYTES + 20)
            image.write(b"\xff")
    with pytest.raises(Refused, match="state=st: no copy of the state in it is whole"):
        start()


def test_newer_format_is_refused(start, state):
    start()[0].close()
    with open(state, "r+b") as image:
        for number in (0, 1):
            header = bytearray(512)
            HEADER.pack_into(header, 0, b"REVOSTAT", 9, 0, 1, 0, 0)
            header[12:16] = zlib.crc32(header).to_bytes(4, "little")
            image.seek(number * COPY_BYTES)
            image.write(header)
    with pytest.raises(Refused, match="format version 9, this plugin knows 1"):
        start()


@pytest.mark.parametrize("offset", [0, 510, 1024, COPY_BYTES, COPY_BYTES + 4096, NODE_BYTES - 1])
def test_foreign_content_is_refused(start, state, offset):
    """Somebody's disk is not overwritten."""
    with open(state, "r+b") as image:
        image.seek(offset)
        image.write(b"\x55")
    before = state.read_bytes()
    with pytest.raises(Refused, match="state=st holds something else"):
        start()
    assert state.read_bytes() == before


def test_too_small_is_refused(start, state):
    blank(state, NODE_BYTES - 512)
    with pytest.raises(Refused, match=rf"state=st has {NODE_BYTES - 512} bytes; it needs at least {NODE_BYTES}"):
        start()


def test_read_only_is_refused(start, state):
    node = storage.raw_node("st", state, read_only=True)
    with pytest.raises(Refused, match="state=st is read-only"):
        start(node=node)


def test_one_node_for_two_cards_is_refused(launch, state):
    nodes = [w for i in range(2) for w in storage.null_node(f"d{i}")]
    with pytest.raises(Refused):
        launch(*nodes, *storage.raw_node("st", state),
               "-device", "revodrive3-x2,id=a,addr=4,drive0=d0,state=st",
               "-device", "revodrive3-x2,id=b,addr=5,drive0=d1,state=st")


def test_write_error_fails_what_waits(start, state):
    """A command that has to be durable says so when it is not; the card goes on."""
    node = storage.node("st", "raw", file={
        "driver": "blkdebug", "image": {"driver": "file", "filename": str(state)},
        "inject-error": [{"event": "none", "iotype": "write", "errno": 28, "once": False}]})
    vm, bridge = start(node=node)
    disk = bridge.disks()[0]
    with pytest.raises(AtaError):
        smart.write_log(disk, HOST_LOG, b"\1" * 512)
    disk.write(0, bytes(512))
    assert "state=st cannot be written: No space left on device" in vm.log()


def test_replug_keeps_the_drive(launch, tmp_path, state):
    """A member that is pulled out and put back is the same drive after a power cycle."""
    ssd = storage.raw_image(tmp_path / "ssd.img")
    vm = launch(*storage.raw_node("d0", ssd), *storage.raw_node("st", state),
                "-device", "marvell-88se9485,id=hba,addr=4,state=st",
                "-device", "sf2281,id=ssd0,bus=hba.0,port=0,drive=d0")
    bridge = Bridge(card_of(vm)).probe()
    smart.write_log(bridge.disks()[0], HOST_LOG, b"\7" * 512)
    vm.qmp("device_del", id="ssd0")
    vm.wait_event("DEVICE_DELETED", device="ssd0")
    vm.qmp("device_add", driver="sf2281", id="ssd0", bus="hba.0", port=0, drive="d0")
    bridge.sleep(1000 * MS)
    assert raw_of(bridge, 12, 174) == [2, 1]
    assert smart.read_log(bridge.disks()[0], HOST_LOG) == b"\7" * 512


def test_moved_card_takes_its_counters_along(launch, tmp_path, state):
    """Migration to a process that opened the node before the source's last writes."""
    ssd = storage.raw_image(tmp_path / "ssd.img")

    def machine(*args):
        return launch(*storage.raw_node("d0", ssd), *storage.raw_node("st", state), "-device",
                      "revodrive3-x2,id=card,addr=4,drive0=d0,state=st", *args)

    source = machine()
    bridge = Bridge(card_of(source)).probe()
    target = machine("-incoming", "defer")
    for number in range(1, 10):
        smart.write_log(bridge.disks()[0], HOST_LOG, bytes([number]) * 512)
    target.qmp("migrate-incoming", uri=f"unix:{tmp_path}/migration")
    source.qmp("migrate", uri=f"unix:{tmp_path}/migration")
    target.wait_event("RESUME")
    source.close()
    assert target.qmp("query-status")["status"] == "running"
    target.close()
    # What the node holds is the target's, although the source had written more often.
    vm = machine()
    bridge = Bridge(card_of(vm)).probe()
    assert smart.read_log(bridge.disks()[0], HOST_LOG) == b"\x09" * 512
    assert raw_of(bridge, 12) == [2]


# C034
def test_life_left_can_be_set(start):
    """smart-life-left, at start and while the machine runs, decides the verdict."""
    vm, bridge = start()
    disk = bridge.disks()[0]
    path = "/machine/peripheral/card/port0"
    assert smart.verdict(disk) == smart.KEY
    vm.qmp("qom-set", path=path, property="smart-life-left", value=10)
    assert smart.verdict(disk) == smart.FAILING
    assert smart.attributes(disk)[231].value == 10
    assert vm.qmp("qom-get", path=path, property="smart-life-left") == 10
    vm.qmp("qom-set", path=path, property="smart-life-left", value=11)
    assert smart.verdict(disk) == smart.KEY
    with pytest.raises(Exception, match="smart-life-left=101: must be 0 to 100"):
        vm.qmp("qom-set", path=path, property="smart-life-left", value=101)


def test_life_left_at_start(launch, tmp_path):
    ssd = storage.raw_image(tmp_path / "ssd.img")
    vm = launch(*storage.raw_node("d0", ssd), "-device", "marvell-88se9485,id=hba,addr=4",
                "-device", "sf2281,bus=hba.0,port=0,drive=d0,smart-life-left=3")
    disk = Bridge(card_of(vm)).probe().disks()[0]
    assert smart.verdict(disk) == smart.FAILING


# C067
def test_no_byte_of_the_host_in_any_page(start, monkeypatch):
    """All that a guest can read of logs and SMART, with memory that is filled when allocated."""
    monkeypatch.setenv("MALLOC_PERTURB_", "165")
    vm, bridge = start()
    disk = bridge.disks()[0]
    smart.start_test(disk, 1)
    pages = [disk.identify(), smart.read_data(disk),
             disk.execute(smart.command(smart.READ_THRESHOLDS, sectors=1))[1]]
    directory = disk.read_log(0)
    for log in range(256):
        count = int.from_bytes(directory[2 * log:2 * log + 2], "little") if log else 1
        if count and log != 0xE1:
            pages.append(disk.read_log(log, sectors=count))
    for log in (0x06, 0x09):
        pages.append(smart.read_log(disk, log))
    smart.write_log(disk, 0xE0, bytes([5, 0, 1, 0, 2, 0]) + bytes(506))
    pages.append(smart.read_log(disk, 0xE1))
    for fill in (b"\xa5", b"\x5a"):  # of malloc and of free
        assert not [p for p in pages if fill * 4 in p]


def test_self_test_takes_its_time(start):
    """An extended self-test: 48 minutes of virtual time."""
    vm, bridge = start()
    disk = bridge.disks()[0]
    smart.start_test(disk, 2)
    vm.clock_step(24 * MINUTE)
    assert smart.read_data(disk)[363] in (0xF4, 0xF5)
    vm.clock_step(24 * MINUTE)
    assert smart.read_data(disk)[363] == 0
    log = smart.read_log(disk, 0x06)
    assert log[508] == 1 and log[2] == 2 and log[3] == 0


def test_copy_of_the_node_is_a_copy_of_the_drive(start, state, tmp_path):
    """The file can be kept and put back, as the images can."""
    vm, bridge = start()
    smart.write_log(bridge.disks()[0], HOST_LOG, b"\1" * 512)
    vm.close()
    shutil.copy(state, tmp_path / "kept.img")
    vm, bridge = start()
    smart.write_log(bridge.disks()[0], HOST_LOG, b"\2" * 512)
    vm.close()
    shutil.copy(tmp_path / "kept.img", state)
    vm, bridge = start()
    assert smart.read_log(bridge.disks()[0], HOST_LOG) == b"\1" * 512
