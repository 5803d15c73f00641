# SPDX-License-Identifier: GPL-2.0-or-later
"""preset=image: what the block node holds is mapped in the flash, its holes are not."""
import os
import subprocess

import pytest

from revodrive_qtest import Bridge, ata, card_of, refused, storage
from revodrive_qtest.storage import MIB, stamp

UNIT = 4096
UNIT_SECTORS = UNIT // 512
PIECE = 128 * 1024  # no file system and no qcow2 cluster is coarser
PIECES = (0, 7 * PIECE, 8 * PIECE, 11 * MIB, 63 * MIB)
HELD = len(PIECES) * PIECE // UNIT
BOARD = "revodrive3-x2,id=card,addr=4,preset=image"


def sparse(path, size=64 * MIB, pieces=PIECES):
    """A raw image with data in these places only."""
    with open(path, "wb") as image:
        image.truncate(size)
        for at in pieces:
            image.seek(at)
            image.write(stamp(at // 512, PIECE // 512))
    return path


def clusters(path, *options, pieces=PIECES):
    """The same as qcow2."""
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *options, str(path), "64M"], check=True)
    words = [word for at in pieces for word in ("-c", f"write -q -P 7 {at} {PIECE}")]
    subprocess.run(["qemu-io", "-f", "qcow2", *words, str(path)], check=True)
    return path


def qcow2_node(name, path):
    return storage.node(name, "qcow2", file={"driver": "file", "filename": str(path)}, discard="unmap")


def mapped(machine, port=0):
    return machine.qmp("qom-get", path=f"/machine/peripheral/card/port{port}", property="mapped-units")


def unmapped_reads(machine):
    return machine.qmp("qom-get", path="/machine/peripheral/card/port0", property="unmapped-reads")


@pytest.fixture
def start(launch):
    """start(words, props): a probed card with one SSD on node d0."""
    return lambda words, props="": Bridge(card_of(launch(*words, "-device", f"{BOARD},drive0=d0{props}"))).probe()


def test_raw_holes_are_not_mapped(start, tmp_path):
    """Exactly the data of a sparse file; reads of the rest touch no flash."""
    bridge = start(storage.raw_node("d0", sparse(tmp_path / "d0")))
    machine, disk = bridge.machine, bridge.disks()[0]
    assert mapped(machine) == HELD
    holes = 0
    for at in PIECES:
        for place, held in ((at, True), (at + PIECE - UNIT, True), (at + PIECE, at + PIECE in PIECES)):
            if place >= 64 * MIB:
                continue
            data = disk.read(place // 512, UNIT_SECTORS)
            assert data == (stamp(place // 512, UNIT_SECTORS) if held else bytes(UNIT))
            holes += not held
            assert unmapped_reads(machine) == holes
    assert holes > 0


def test_an_empty_image_is_a_fresh_drive(start, tmp_path):
    bridge = start(storage.raw_node("d0", sparse(tmp_path / "d0", pieces=())))
    assert mapped(bridge.machine) == 0
    bridge.disks()[0].write(8, stamp(8, 64))
    assert mapped(bridge.machine) == 8


def test_what_cannot_tell_is_full(start, tmp_path):
    """QEMU does not ask a VHDX for its holes: all of it counts."""
    subprocess.run(["qemu-img", "create", "-q", "-f", "vhdx", str(tmp_path / "d0"), "64M"], check=True)
    bridge = start(storage.node("d0", "vhdx", file={"driver": "file", "filename": str(tmp_path / "d0")}))
    assert mapped(bridge.machine) == 64 * MIB // UNIT


@pytest.mark.parametrize("where", ["itself", "backing", "both"])
def test_qcow2_clusters(start, tmp_path, where):
    """Its own clusters and those of the backing file count; clusters of zeroes do not."""
    below, above = {"itself": ((), PIECES), "backing": (PIECES, ()), "both": (PIECES[:3], PIECES[2:])}[where]
    base = clusters(tmp_path / "base", pieces=below)
    top = clusters(tmp_path / "top", "-b", str(base), "-F", "qcow2", pieces=above)
    subprocess.run(["qemu-io", "-f", "qcow2", "-c", f"write -q -z {20 * MIB} 1M", str(top)], check=True)
    subprocess.run(["qemu-io", "-f", "qcow2", "-c", f"write -q -z {PIECES[0]} {PIECE}", str(top)], check=True)
    bridge = start(qcow2_node("d0", top))
    assert mapped(bridge.machine) == HELD - PIECE // UNIT


@pytest.mark.parametrize("mode", ["jbod", "vca"])
def test_each_region_is_its_own(launch, tmp_path, mode):
    """drive=: each SSD has what lies in its part of the image, also when it goes over the border."""
    pieces = (16 * MIB - PIECE, 16 * MIB, 20 * MIB, 63 * MIB)
    words = storage.raw_node("all", sparse(tmp_path / "all", pieces=pieces))
    machine = launch(*words, "-device", f"{BOARD},drive=all,mode={mode}")
    assert [mapped(machine, port) * UNIT // PIECE for port in range(4)] == [1, 2, 0, 1]


def test_bare_member(launch, tmp_path):
    """The property of sf2281, also of one that comes later."""
    machine = launch(*storage.raw_node("d0", sparse(tmp_path / "d0")), *storage.raw_node("d1", sparse(tmp_path / "d1")),
                     "-device", "marvell-88se9485,id=hba,addr=4",
                     "-device", "sf2281,id=ssd0,bus=hba.0,port=0,drive=d0,preset=image")
    machine.qmp("device_add", driver="sf2281", id="ssd1", bus="hba.0", port=1, drive="d1", preset="image")
    for name in ("ssd0", "ssd1"):
        assert machine.qmp("qom-get", path=f"/machine/peripheral/{name}", property="mapped-units") == HELD


def test_writes_and_trims_go_on_from_there(start, tmp_path):
    bridge = start(storage.raw_node("d0", sparse(tmp_path / "d0")))
    machine, disk = bridge.machine, bridge.disks()[0]
    disk.write(0, stamp(0, UNIT_SECTORS))
    assert mapped(machine) == HELD
    disk.write(30 * MIB // 512, stamp(0, 4 * UNIT_SECTORS))
    assert mapped(machine) == HELD + 4
    disk.trim((7 * PIECE // 512, 2 * PIECE // 512), (40 * MIB // 512, 2048))
    assert mapped(machine) == HELD + 4 - 2 * PIECE // UNIT
    before = unmapped_reads(machine)
    disk.read(8 * PIECE // 512, UNIT_SECTORS)
    assert unmapped_reads(machine) == before + 1


def test_snapshot(start, tmp_path):
    """The snapshot has the flash, whatever the image holds by then."""
    bridge = start(qcow2_node("d0", clusters(tmp_path / "d0")))
    machine, disk = bridge.machine, bridge.disks()[0]
    assert not machine.hmp("savevm s1").strip()
    disk.write(30 * MIB // 512, stamp(0, 512))
    assert mapped(machine) == HELD + 64
    assert not machine.hmp("loadvm s1").strip()
    assert mapped(machine) == HELD
    machine.close()
    back = start(qcow2_node("d0", tmp_path / "d0")).machine
    assert mapped(back) == HELD


def test_migration_brings_the_flash_along(launch, tmp_path):
    """The one that comes in does not look at the image."""
    words = [*storage.raw_node("d0", sparse(tmp_path / "d0")), "-device", f"{BOARD},drive0=d0"]
    source = launch(*words)
    bridge = Bridge(card_of(source)).probe()
    bridge.disks()[0].trim((0, PIECE // 512))
    source.qmp("migrate", uri=f"exec:cat > {tmp_path / 'stream'}")
    while source.qmp("query-migrate").get("status") != "completed":
        assert source.qmp("query-migrate").get("status") not in ("failed", "cancelled"), source.log()
    now = source.now_ns
    source.close()
    os.truncate(tmp_path / "d0", 0)
    os.truncate(tmp_path / "d0", 64 * MIB)
    target = launch(*words, "-incoming", "defer")
    assert mapped(target) == 0
    target.qmp("migrate-incoming", uri=f"exec:cat {tmp_path / 'stream'}")
    target.clock_step(now)
    while target.qmp("query-status")["status"] == "inmigrate":
        pass
    assert mapped(target) == HELD - PIECE // UNIT


def test_a_drive_that_is_known_keeps_its_flash(start, tmp_path):
    """With state= the preset is for the first time only."""
    image, state = sparse(tmp_path / "d0"), sparse(tmp_path / "state", 8 * MIB, ())
    words = [*storage.raw_node("d0", image), *storage.raw_node("st", state)]
    bridge = start(words, ",state=st")
    bridge.disks()[0].execute(ata.Command(ata.STANDBY_IMMEDIATE))
    bridge.machine.close()
    sparse(image, pieces=())
    assert mapped(start(words, ",state=st").machine) == HELD


def test_node_that_fails_is_named():
    rule = {"event": "none", "iotype": "block-status", "errno": 5, "once": False}
    said = refused(*storage.faulty_node("d0", rule), "-device", f"{BOARD},drive0=d0")
    assert "card port 0: preset=image: block node 'd0' does not tell what it holds at byte 0: Input/output" in said


def test_too_many_pieces_are_refused(tmp_path):
    """A map of 512-byte clusters tells 32 KiB at a time: at 32 GiB the most is reached."""
    path = tmp_path / "d0"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-o", "cluster_size=512", str(path), "33G"],
                   check=True)
    said = refused(*qcow2_node("d0", path), "-device", f"{BOARD},drive0=d0")
    assert "card port 0: preset=image: block node 'd0' is in more than 1048576 pieces" in said


@pytest.mark.parametrize("device", [BOARD.replace("=image", "=new"), "revodrive3,id=card,addr=4,preset=Image"])
def test_other_words_are_refused(device, tmp_path):
    said = refused(*storage.raw_node("d0", sparse(tmp_path / "d0")), "-device", f"{device},drive0=d0")
    assert "must be fresh, full, steady or image" in said
