# SPDX-License-Identifier: GPL-2.0-or-later
"""What a power cycle, QEMU and the image see of the security set (C039 to C044), of TRIM (C027 to
C031), of firmware downloads and of the host protected area. The commands themselves are unit tests."""
import os
import subprocess

import pytest

from revodrive_qtest import AtaError, Bridge, ata, card_of, storage
from revodrive_qtest.phy import MS
from revodrive_qtest.storage import MIB, stamp

SET_PASSWORD, UNLOCK, ERASE_PREPARE, ERASE_UNIT, FREEZE, DISABLE = range(0xF1, 0xF7)
ENABLED, LOCKED, FROZEN, EXPIRED = 0x02, 0x04, 0x08, 0x10
SECOND = 1000 * MS
SECTORS = 64 * MIB // 512
TRIMMED = b"\xff" * 512


def security(disk, opcode, password="", flags=0, check=True):
    """Runs a SECURITY command; the limit is what IDENTIFY promises of an erase."""
    block = bytes((flags, 0)) + password.encode().ljust(32, b"\0") + bytes(512 - 34)
    command = ata.Command(opcode)
    if opcode not in (ERASE_PREPARE, FREEZE):
        command = ata.Command(opcode, direction=ata.OUT, length=512, data=block)
    request = disk.issue(command)
    disk.bridge.wait(request, limit_ns=121 * SECOND)
    if check and request.completion.failed:
        raise ata.AtaError(command, request.completion)
    return request.completion


def state(disk):
    return ata.words(disk.identify())[128] & (ENABLED | LOCKED | FROZEN | EXPIRED)


def erase(disk, password, flags=0):
    security(disk, ERASE_PREPARE)
    return security(disk, ERASE_UNIT, password, flags)


def aborted(call, *arguments):
    with pytest.raises(AtaError) as failure:
        call(*arguments)
    return failure.value.completion.error == ata.ABRT


def replug(card, port=0, **properties):
    """A power cycle of one SSD."""
    card.machine.qmp("device_del", id=f"ssd{port}")
    card.machine.wait_event("DEVICE_DELETED", device=f"ssd{port}")
    card.bridge.sleep(3000 * MS)
    card.machine.qmp("device_add", driver="sf2281", id=f"ssd{port}", bus="hba.0", port=port,
                     drive=f"d{port}", **properties)
    card.bridge.sleep(1000 * MS)
    return {disk.phy.index: disk for disk in card.disks}[port]


@pytest.mark.parametrize("flags", [0, 2], ids=["normal", "enhanced"])
def test_c039_c044_erase(rig, flags):
    """The plain path: data is gone on all LBAs and in the image, within the advertised time."""
    card = rig()
    marker = b"ERASE-ME" * 64
    for lba in (0, 1000, SECTORS - 1):
        card.disk.write(lba, marker)
    card.disk.flush()
    assert marker in card.images[0].read_bytes()
    words = ata.words(card.disk.identify())
    assert words[128] & 0x2F == 0x21 and words[89] == words[90] == 1
    security(card.disk, SET_PASSWORD, "p")
    assert state(card.disk) == ENABLED
    start_ns = card.machine.now_ns
    erase(card.disk, "p", flags)
    assert card.machine.now_ns - start_ns <= 120 * SECOND
    assert state(card.disk) == 0
    assert card.disk.read(0, 2048) == bytes(2048 * 512)
    assert card.disk.read(SECTORS - 1, 1) == bytes(512)
    assert not any(card.images[0].read_bytes()), "zeroes all over the image"
    assert os.stat(card.images[0]).st_blocks == 0, "and its blocks are free"
    assert card.disks[1].read(3, 1) == stamp(3), "the others are as they were"


def test_c044_erase_in_qcow2(launch, tmp_path):
    path = storage.qcow2_image(tmp_path / "q", 256 * MIB)
    words = storage.node("d0", "qcow2", file={"driver": "file", "filename": str(path)}, discard="unmap")
    bridge = Bridge(card_of(launch(*words, "-device", "revodrive3-x2,id=card,addr=4,drive0=d0"))).probe()
    disk = bridge.disks()[0]
    marker = b"ERASE-ME" * 64
    for lba in range(0, 256 * MIB // 512, 8192):
        disk.write(lba, marker)
    security(disk, SET_PASSWORD, "p")
    erase(disk, "p")
    assert disk.read(8192, 1) == bytes(512)
    bridge.machine.close()
    subprocess.run(["qemu-img", "check", "-q", str(path)], check=True)
    compared = subprocess.run(["qemu-io", "-r", "-c", "read -P 0 0 256M", str(path)], check=True,
                              capture_output=True, text=True)
    assert "failed" not in compared.stdout


def test_erase_of_one_region(launch, tmp_path):
    """drive=: the erase ends at the border of the member's part."""
    image = storage.raw_image(tmp_path / "all", 64 * MIB, stamped_sectors=64 * MIB // 512)
    vm = launch(*storage.raw_node("all", image), "-device", "revodrive3-x2,id=card,addr=4,drive=all")
    disks = Bridge(card_of(vm)).probe().disks()
    security(disks[1], SET_PASSWORD, "p")
    erase(disks[1], "p")
    content = image.read_bytes()
    quarter = SECTORS // 4
    assert content[:16 * MIB] == stamp(0, quarter)
    assert content[16 * MIB:32 * MIB] == bytes(16 * MIB)
    assert content[32 * MIB:] == stamp(2 * quarter, 2 * quarter)


def test_c040_frozen_until_power_cycle(bare):
    """FREEZE LOCK holds over a reset of the machine; a replug lifts it."""
    card = bare(ports=(0,))
    security(card.disk, FREEZE)
    assert state(card.disk) == FROZEN
    for opcode in (SET_PASSWORD, UNLOCK, ERASE_UNIT, DISABLE, ERASE_PREPARE):
        assert aborted(security, card.disk, opcode, "p")
    assert card.disk.read(3, 1) == stamp(3)
    card.machine.qmp("system_reset")
    card.machine.wait_event("RESET")
    card.bridge = Bridge(card_of(card.machine)).probe()
    assert state(card.disk) == FROZEN
    disk = replug(card)
    assert state(disk) == 0
    security(disk, SET_PASSWORD, "p")


def test_c040_frozen_property(rig, bare):
    card = rig("frozen=on")
    assert [state(disk) for disk in card.disks] == [FROZEN] * 4
    assert aborted(security, card.disk, SET_PASSWORD, "p")


def test_frozen_property_of_a_member(bare):
    card = bare()
    assert state(replug(card, frozen=True)) == FROZEN
    assert state(replug(card)) == 0


def test_c041_locked_after_power_cycle(bare):
    """The password is there after a replug; the lock ends with it, and not before."""
    card = bare(ports=(0, 1))
    security(card.disk, SET_PASSWORD, "secret")
    disk = replug(card)
    assert state(disk) == ENABLED | LOCKED
    assert aborted(disk.read, 0, 1)
    assert aborted(disk.write, 0, stamp(1))
    assert aborted(disk.trim, (0, 8))
    assert disk.execute(ata.pio_in(ata.SMART, lba=0xC24F00, features=0xD0))[1]
    assert card.disks[1].read(9, 1) == stamp(9), "the other SSD is usable"
    assert aborted(security, disk, UNLOCK, "wrong")
    security(disk, UNLOCK, "secret")
    assert disk.read(9, 1) == stamp(9)
    security(disk, DISABLE, "secret")
    assert state(replug(card)) == 0


def with_state(launch, tmp_path, props=""):
    image, kept = tmp_path / "ssd.img", tmp_path / "state.img"
    if not image.exists():
        storage.raw_image(image)
        kept.write_bytes(bytes(8 * MIB))
    vm = launch(*storage.raw_node("d0", image), *storage.node("st", "raw", file={
        "driver": "file", "filename": str(kept)}),
        "-device", f"revodrive3-x2,id=card,addr=4,drive0=d0,state=st{props}")
    return vm, Bridge(card_of(vm)).probe().disks()[0]


def test_c041_password_in_the_state_node(launch, tmp_path):
    """It is stored before the command ends: QEMU may be killed right then."""
    vm, disk = with_state(launch, tmp_path)
    security(disk, SET_PASSWORD, "secret")
    vm.close(kill=True)
    vm, disk = with_state(launch, tmp_path)
    assert state(disk) == ENABLED | LOCKED
    assert aborted(disk.read, 0, 1)
    security(disk, UNLOCK, "secret")
    assert disk.read(5, 1) == stamp(5)
    security(disk, DISABLE, "secret")
    vm.close(kill=True)
    assert state(with_state(launch, tmp_path)[1]) == 0


def firmware(revision):
    script = storage.pathlib.Path(__file__).resolve().parents[1] / "scripts/make-firmware"
    run = subprocess.run([str(script), revision, "/dev/stdout", "--size", "8192"], check=True,
                         capture_output=True)
    return run.stdout


def download(disk, data):
    blocks = len(data) // 512
    disk.execute(ata.Command(0x92, blocks >> 8, blocks & 0xFF, 7, 0, ata.OUT, len(data), data))


def revision(disk):
    return ata.ata_string(disk.identify(), 23, 26)


def test_firmware_outlives_the_process(launch, tmp_path):
    vm, disk = with_state(launch, tmp_path)
    data = firmware("2.50")
    assert aborted(download, disk, data[:-1] + bytes((data[-1] ^ 1,)))
    assert revision(disk) == "2.25"
    download(disk, data)
    assert revision(disk) == "2.50"
    vm.close(kill=True)
    assert revision(with_state(launch, tmp_path)[1]) == "2.50"


def test_host_protected_area(bare):
    card = bare()
    read_max = ata.Command(0x27, device=0x40)
    assert card.disk.execute(read_max)[0].lba == SECTORS - 1
    card.disk.execute(ata.Command(0x37, 999, 1, device=0x40))
    assert card.disk.sectors() == 1000
    with pytest.raises(AtaError) as failure:
        card.disk.read(1000, 1)
    assert failure.value.completion.error == ata.IDNF
    disk = replug(card)
    assert disk.sectors() == 1000
    assert disk.execute(read_max)[0].lba == SECTORS - 1


def test_c027_trimmed_reads(rig):
    """The same bytes each time, not zeroes, also after a reset; written sectors are data again."""
    card = rig()
    card.disk.trim((100, 16))
    for _ in range(2):
        assert card.disk.read(99, 18) == stamp(99) + 16 * TRIMMED + stamp(116)
    card.disk.write(104, bytes(512))
    card.machine.qmp("system_reset")
    card.machine.wait_event("RESET")
    disk = Bridge(card_of(card.machine)).probe().disks()[0]
    assert disk.read(100, 16) == 4 * TRIMMED + bytes(512) + 11 * TRIMMED


def test_c027_trimmed_reads_from_the_backend(rig):
    card = rig("trim-reads=backend")
    card.disk.trim((104, 8))
    assert card.disk.read(104, 8) == bytes(8 * 512)


def test_c027_stable_over_runs(launch, tmp_path):
    """A quit keeps the map of trimmed sectors in the state node; after a kill data is still right."""
    vm, disk = with_state(launch, tmp_path)
    disk.trim((100, 16))
    vm.close()
    vm, disk = with_state(launch, tmp_path)
    assert disk.read(99, 18) == stamp(99) + 16 * TRIMMED + stamp(116)
    disk.write(104, bytes(512))
    disk.flush()
    vm.close(kill=True)
    vm, disk = with_state(launch, tmp_path)
    data = disk.read(100, 16)
    assert data[4 * 512:5 * 512] == bytes(512), "what was written is not hidden"
    assert data in (4 * TRIMMED + bytes(512) + 11 * TRIMMED, bytes(16 * 512))


def test_c027_trim_reads_refused(launch, tmp_path):
    from revodrive_qtest import refused
    text = refused(*storage.null_node("d0"), "-device", "revodrive3-x2,drive0=d0,trim-reads=zero")
    assert "trim-reads=zero" in text and "pattern, backend" in text


def test_c029_neighbours_survive(rig, seed):
    """Random discards; every sector outside them still verifies, sector 0 and the last one too."""
    import random
    rng = random.Random(seed)
    card = rig()
    trimmed = set()
    for _ in range(60):
        ranges = []
        for _ in range(rng.randint(1, 64)):
            lba = rng.randrange(1, 2047)
            ranges.append((lba, rng.randint(0, min(9, 2047 - lba))))
            trimmed.update(range(lba, lba + ranges[-1][1]))
        card.disk.trim(*ranges)
    data = card.disk.read(0, 2048)
    for lba in range(2048):
        sector = data[512 * lba:][:512]
        assert sector == stamp(lba) or (lba in trimmed and sector == TRIMMED)


def test_c031_no_queued_trim(rig):
    card = rig()
    assert not ata.words(card.disk.identify())[77] & 0x40
    with pytest.raises(AtaError):
        card.disk.execute(ata.Command(0x64, 0, 0, 1, 0x40, ata.OUT, 512, bytes(512)))
