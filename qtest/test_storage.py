# SPDX-License-Identifier: GPL-2.0-or-later
"""Backends: how images become members, formats, errors and their policy, refusals, serials."""
import json
import subprocess
import time

import pytest

from revodrive_qtest import AtaError, Bridge, ata, card_of, cards_of, refused, regs, storage
from revodrive_qtest.phy import MS
from revodrive_qtest.storage import MIB, stamp

X2 = "revodrive3-x2,id=card,addr=4"


def start(launch, words, device, timing=True):
    vm = launch(*words, "-device", device)
    return Bridge(card_of(vm), timing=timing).probe()


def serial_of(disk):
    return ata.ata_string(disk.identify(), 10, 19)


def test_one_image_cut_into_four(launch, tmp_path):
    """drive=: member i is quarter i of the image."""
    image = storage.raw_image(tmp_path / "all", 64 * MIB, stamped_sectors=0)
    bridge = start(launch, storage.raw_node("all", image), f"{X2},drive=all")
    disks = bridge.disks()
    assert [d.sectors() for d in disks] == [16 * MIB // 512] * 4
    for i, disk in enumerate(disks):
        disk.write(7, stamp(i))
        disk.flush()
    content = image.read_bytes()
    for i in range(4):
        assert content[16 * MIB * i + 7 * 512:][:512] == stamp(i)
    with pytest.raises(AtaError):
        disks[0].read(16 * MIB // 512, 1)


def test_four_images_of_different_size(launch, tmp_path):
    """drive0= to drive3=: each member has the size of its image."""
    words = []
    for i in range(4):
        words += storage.raw_node(f"d{i}", storage.raw_image(tmp_path / f"{i}", (16 + 8 * i) * MIB))
    bridge = start(launch, words, X2 + "".join(f",drive{i}=d{i}" for i in range(4)))
    assert [d.sectors() * 512 // MIB for d in bridge.disks()] == [16, 24, 32, 40]


def test_some_members_only(launch, tmp_path):
    """Two of four drives given: two disks, on the phys they were given for."""
    words = []
    for i in (0, 2):
        words += storage.raw_node(f"d{i}", storage.raw_image(tmp_path / f"{i}"))
    bridge = start(launch, words, X2 + ",drive0=d0,drive2=d2")
    assert [d.phy.index for d in bridge.disks()] == [0, 2]


def round_trip(disk):
    """Write, flush, read back, trim."""
    disk.write(100, stamp(55, 64, salt=1))
    disk.flush()
    assert disk.read(100, 64) == stamp(55, 64, salt=1)
    disk.trim((1000, 64))


def test_qcow2(launch, tmp_path):
    path = storage.qcow2_image(tmp_path / "q")
    words = storage.node("d0", "qcow2", file={"driver": "file", "filename": str(path)}, discard="unmap")
    bridge = start(launch, words, X2 + ",drive0=d0")
    round_trip(bridge.disks()[0])
    bridge.machine.close()
    check = subprocess.run(["qemu-img", "check", "--output=json", str(path)], check=True,
                           capture_output=True, text=True)
    assert json.loads(check.stdout)["check-errors"] == 0
    dump = subprocess.run(["qemu-io", "-r", "-c", f"read -P {stamp(55, 1, 1)[0]} 51200 1", str(path)],
                          capture_output=True, text=True, check=True)
    assert "failed" not in dump.stdout


def test_null_co_reads_zero(launch):
    """C050: sector 0 of each member over an empty null backend."""
    words = []
    for i in range(4):
        words += storage.null_node(f"d{i}", 1024 * MIB)
    bridge = start(launch, words, X2 + "".join(f",drive{i}=d{i}" for i in range(4)))
    for disk in bridge.disks():
        assert disk.read(0, 1) == bytes(512)
        disk.write(0, stamp(3))


def test_nbd(launch, tmp_path):
    """An NBD export on a unix socket."""
    image = storage.raw_image(tmp_path / "export")
    socket = tmp_path / "nbd.sock"
    server = subprocess.Popen(["qemu-nbd", "-f", "raw", "-k", str(socket), "-t", "--discard=unmap",
                               str(image)])
    try:
        while not socket.exists():
            assert server.poll() is None, "qemu-nbd ended"
            time.sleep(0.01)
        words = storage.node("d0", "nbd", server={"type": "unix", "path": str(socket)}, discard="unmap")
        bridge = start(launch, words, X2 + ",drive0=d0")
        assert bridge.disks()[0].read(3, 4) == stamp(3, 4)
        round_trip(bridge.disks()[0])
        bridge.machine.close()
    finally:
        server.terminate()
        server.wait()
    assert image.read_bytes()[51200:51200 + 512] == stamp(55, 1, 1)


def faulty(event, once, errno=5, sector=None):
    rule = {"event": event, "errno": errno, "once": once}
    if sector is not None:
        rule["sector"] = sector
    return storage.faulty_node("d0", rule)


def bare_disk(launch, words, policy=""):
    vm = launch(*words, "-device", "marvell-88se9485,id=hba,addr=4",
                "-device", f"sf2281,id=ssd0,bus=hba.0,port=0,drive=d0{policy}")
    bridge = Bridge(card_of(vm)).probe()
    return bridge, bridge.disks()[0]


def make_dirty(disk, command):
    """QEMU's block layer skips a flush when nothing was written."""
    if command.opcode == ata.FLUSH_CACHE_EXT:
        disk.write(0, stamp(0))


@pytest.mark.parametrize("event, command, error", [
    ("read_aio", ata.read_dma(0, 8), ata.UNC), ("write_aio", ata.write_dma(0, stamp(0)), None),
    ("flush_to_disk", ata.Command(ata.FLUSH_CACHE_EXT), None)], ids=["read", "write", "flush"])
def test_error_reported(launch, event, command, error):
    """rerror/werror=report: an ATA error, and the next try is good."""
    bridge, disk = bare_disk(launch, faulty(event, True), ",rerror=report,werror=report")
    make_dirty(disk, command)
    completion, _ = disk.execute(command, check=False)
    assert completion.status & (ata.ERR | ata.DF) and completion.entry & regs.RX_ERR
    assert completion.error & error if error else completion.error
    assert not disk.execute(command, check=False)[0].failed
    assert bridge.machine.events("BLOCK_IO_ERROR")


def test_error_ignored(launch):
    """werror=ignore: the guest never hears of it."""
    _, disk = bare_disk(launch, faulty("write_aio", True), ",werror=ignore")
    disk.write(0, stamp(0))


@pytest.mark.parametrize("event, command, policy", [
    ("read_aio", ata.read_dma(8, 8), "rerror=stop"), ("write_aio", ata.write_dma(0, stamp(0)), "werror=stop"),
    ("write_aio", ata.write_ncq(3, 0, stamp(0)), "werror=stop"),
    ("flush_to_disk", ata.Command(ata.FLUSH_CACHE_EXT), "werror=stop")],
    ids=["read", "write", "ncq", "flush"])
def test_error_stops_the_machine(launch, event, command, policy):
    """The machine stops with the command held back; it is retried on cont and completes."""
    bridge, disk = bare_disk(launch, faulty(event, True), f",{policy}")
    make_dirty(disk, command)
    mirror = bridge.machine.readl(bridge.cores[0].rx_ring)
    request = disk.issue(command)
    bridge.run_until(lambda: bridge.machine.events("STOP"), what="STOP")
    bridge.machine.clock_step(100 * MS)
    assert bridge.machine.qmp("query-status")["status"] == "io-error"
    assert bridge.machine.readl(bridge.cores[0].rx_ring) == mirror
    bridge.machine.qmp("cont")
    bridge.wait(request)
    assert not request.completion.failed


def test_no_space_stops_by_default(launch):
    """werror=enospc is QEMU's default."""
    bridge, disk = bare_disk(launch, faulty("write_aio", True, errno=28))
    request = disk.issue(ata.write_dma(0, stamp(0)))
    bridge.run_until(lambda: bridge.machine.events("STOP"), what="STOP")
    bridge.machine.qmp("cont")
    bridge.wait(request)
    assert not request.completion.failed


def test_errors_stay_with_their_disk(rig):
    """C018: one member fails every read, the other three work."""
    words = faulty("read_aio", False)
    for i in (1, 2, 3):
        words += storage.null_node(f"d{i}")
    card = rig(nodes=words)
    requests = [d.issue(ata.read_ncq(t, 8 * t, 8)) for t in range(8) for d in card.disks]
    card.bridge.wait(*requests)
    assert {r.phy for r in requests if r.completion.failed} == {0}


def one(tmp_path, size, **options):
    return storage.raw_node("d0", storage.raw_image(tmp_path / "i", size), **options)


def assert_one_clear_message(text, *named):
    """One line from QEMU itself that names what is wrong."""
    lines = [line for line in text.splitlines() if "qemu-system" in line]
    assert len(lines) == 1, text
    for word in named:
        assert word in lines[0], text


@pytest.mark.parametrize("size", [1000001, 512 * 1024], ids=["odd", "small"])
@pytest.mark.parametrize("device", [
    ["-device", X2 + ",drive0=d0"],
    ["-device", "marvell-88se9485,id=hba", "-device", "sf2281,bus=hba.0,port=0,drive=d0"]],
    ids=["simple", "explicit"])
def test_unfit_sizes_are_refused(tmp_path, size, device):
    """C088. An odd image: QEMU rounds what a file ends with up to whole sectors, so both are too small."""
    assert_one_clear_message(refused(*one(tmp_path, size), *device), "d0")


def test_drive_too_small_to_cut(tmp_path):
    assert_one_clear_message(refused(*one(tmp_path, 2 * MIB), "-device", X2 + ",drive=d0"), "d0")


def test_read_only_is_refused(tmp_path):
    text = refused(*one(tmp_path, 64 * MIB, read_only=True), "-device", X2 + ",drive0=d0")
    assert_one_clear_message(text, "read")


@pytest.mark.parametrize("device", [
    ["-device", X2 + ",drive0=d0,logical_block_size=4096"],
    ["-device", "marvell-88se9485,id=hba", "-device",
     "sf2281,bus=hba.0,port=0,drive=d0,logical_block_size=4096"]], ids=["simple", "explicit"])
def test_c048_4k_sectors_are_refused(tmp_path, device):
    """C048: names the property, the value and what is allowed."""
    text = refused(*one(tmp_path, 64 * MIB), *device)
    assert_one_clear_message(text, "logical_block_size", "4096", "512")


@pytest.mark.parametrize("device, named", [
    (X2 + ",drive=d0,drive1=d1", "drive"),
    (X2 + ",drive0=d0,drive1=d0", "d0"),
    ("revodrive3,drive0=d0,drive3=d1", "drive3"),
])
def test_contradicting_drives(tmp_path, device, named):
    words = [*one(tmp_path, 64 * MIB), *storage.null_node("d1")]
    assert named in refused(*words, "-device", device)


@pytest.mark.parametrize("member, named", [
    ("port=8", "port"), ("port=0", "port"), ("port=1,serial=123456789012345678901", "serial"),
    ("port=1,drive=d0", "d0")])
def test_wrong_members(tmp_path, member, named):
    """Port out of range or in use, a serial too long, a node in use."""
    drive = "" if "drive" in member else ",drive=d1"
    words = [*one(tmp_path, 64 * MIB), *storage.null_node("d1"), "-device", "marvell-88se9485,id=hba",
             "-device", "sf2281,bus=hba.0,port=0,drive=d0",
             "-device", f"sf2281,bus=hba.0,{member}{drive}"]
    assert named in refused(*words)


def test_member_without_drive():
    assert "drive" in refused("-device", "marvell-88se9485,id=hba", "-device", "sf2281,bus=hba.0,port=0")


def test_serials(rig):
    """Four different ones, 20 characters, the same at the next start of the same command line."""
    first = rig()
    serials = [serial_of(d) for d in first.disks]
    first.machine.close()
    assert len(set(serials)) == 4
    assert [serial_of(d) for d in rig().disks] == serials


def test_serials_of_two_cards_differ(launch):
    words = []
    for i in range(8):
        words += storage.null_node(f"n{i}")
    for n in range(2):
        drives = "".join(f",drive{i}=n{4 * n + i}" for i in range(4))
        words += ["-device", f"revodrive3-x2,id=card{n},addr={4 + n}{drives}"]
    vm = launch(*words)
    serials = [serial_of(d) for f in cards_of(vm) for d in Bridge(f).probe().disks()]
    assert len(set(serials)) == 8


def test_chosen_serial(launch, tmp_path):
    """serial= and the names in IDENTIFY of an explicit member."""
    _, disk = bare_disk(launch, one(tmp_path, 64 * MIB), ",serial=OCZ-ABCDEFGHIJ234567")
    assert serial_of(disk) == "OCZ-ABCDEFGHIJ234567"
