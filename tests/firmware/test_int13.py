# SPDX-License-Identifier: GPL-2.0-or-later
"""INT 13h of the option ROM, judged by a program of ours that the card itself boots (tests/firmware/int13)."""

import array
import functools
import struct

import pytest

from pc import BUILD, block_node, volume

SECTOR = 512
PLAN_LBA = 100
MAGIC = 0x33314E49
VOLUME_SECTORS = 32768
SIZES = (8192, 9000, 16400, 8193)  # sectors; the second fills no cylinder, the last no track


def pattern(drive, lba):
    """int13/io.c has the same."""
    base = lba * 0x9E3779B1 + (drive + 1) * 0xC2B2AE35
    return array.array("I", [(base + index * 0x85EBCA6B) & 0xFFFFFFFF for index in range(SECTOR // 4)]).tobytes()


@functools.lru_cache(maxsize=None)
def patterned(drive, sectors):
    return b"".join(pattern(drive, lba) for lba in range(sectors))


PHY_SAS = 0x80  # int13/checks.h


def plan(drives, bad_lba=0, silent_lba=0):
    """`drives`: phy and sectors of each BIOS drive of the card, in their order."""
    phys = bytes(phy for phy, _ in drives).ljust(7, b"\0")
    sectors = [count for _, count in drives] + [0] * (8 - len(drives))
    return struct.pack("<IB7s8QQQ", MAGIC, len(drives), phys, *sectors, bad_lba, silent_lba)


def make_images(folder, drives, **faults):
    """One image for each BIOS drive; the first one boots the program."""
    program = (BUILD / "tests" / "firmware" / "int13" / "int13.img").read_bytes()
    assert len(program) < PLAN_LBA * SECTOR
    paths = []
    for index, (phy, sectors) in enumerate(drives):
        content = bytearray(patterned(index, sectors))
        if index == 0:
            content[:len(program)] = program
            text = plan(drives, **faults)
            content[PLAN_LBA * SECTOR:PLAN_LBA * SECTOR + len(text)] = text
        paths.append(folder / f"phy{phy}.img")
        paths[-1].write_bytes(content)
    return paths


def card(drives, paths, first="", bus=None, bootindex=0):
    """A bare bridge with these members, to be BIOS drives in this order; `first` are more properties of the first."""
    arguments = ["-device", "marvell-88se9485,id=card" + (f",bus={bus}" if bus else "")]
    for index, ((phy, _), path) in enumerate(zip(drives, paths)):
        arguments += block_node(f"d{phy}", path)
        arguments += ["-device", f"sf2281,bus=card.0,port={phy},drive=d{phy},bootindex={bootindex + index}"
                      + (f",{first}" if first and not index else "")]
    return arguments


def judge(machine):
    match = machine.wait_for(r"VERDICT (\w+) checks ([0-9a-f]{8}) bad")
    assert "FAILED" not in machine.console()
    assert match[1] == "GOOD" and int(match[2], 16) > 50
    assert machine.wait_end() == 1  # isa-debug-exit: 2 * 0 + 1


@pytest.mark.parametrize("kind", ["pc", "q35"])
def test_all_functions(pc, tmp_path, kind):
    """Every function, its limits and its errors, on four drives; the boot drive is on phy 2."""
    drives = list(zip((2, 0, 1, 3), SIZES))
    paths = make_images(tmp_path, drives)
    judge(pc(*card(drives, paths), machine=kind))
    for index, path in enumerate(paths):
        data = path.read_bytes()
        at = 2048 + 300  # SCRATCH_LBA + 300, check_writes()
        words = array.array("I", data[at * SECTOR:(at + 127) * SECTOR])
        assert words.tolist() == [0x01000000 * (index + 1) + i for i in range(len(words))]
        for lba in (at - 1, at + 127, at + 201, len(data) // SECTOR - 1):
            assert data[lba * SECTOR:(lba + 1) * SECTOR] == pattern(index, lba), f"sector {lba} of drive {index}"


@pytest.mark.parametrize("kind", ["pc", "q35"])
def test_volume(pc, tmp_path, kind):
    """mode=vca: one drive over all SSDs, by SCSI commands; every function, as on a SATA drive."""
    content = make_images(tmp_path, [(PHY_SAS, VOLUME_SECTORS)])[0]
    guest = pc(*volume(content, tmp_path, "bootindex=0"), machine=kind)
    guest.wait_for(r"^  0  OCZ REVODRIVE3 X2 +2\.25 +16 MiB$")
    judge(guest)


def test_behind_a_bridge_and_an_ahci_disk(pc, tmp_path):
    """An ordinary disk is 80h and boots; the card's drives follow, on phys of both cores, behind a root port."""
    drives = [(1, 8192), (7, 8192)]
    paths = make_images(tmp_path, drives)
    ordinary = tmp_path / "ahci.img"
    ordinary.write_bytes(chain_loader(0x81) + bytes((1 << 20) - SECTOR))
    judge(pc("-device", "pcie-root-port,id=rp0", *card(drives, paths, bus="rp0", bootindex=1),
             *block_node("ordinary", ordinary), "-device", "ide-hd,drive=ordinary,bus=ide.0,bootindex=0"))


def chain_loader(drive):
    """A boot sector that loads the first sector of `drive` and runs it as a BIOS would."""
    code = bytes([
        0x31, 0xC0, 0x8E, 0xD8, 0x8E, 0xC0, 0xFC,  # xor ax, ax; mov ds, ax; mov es, ax; cld
        0xBE, 0x00, 0x7C, 0xBF, 0x00, 0x06, 0xB9, 0x00, 0x01, 0xF3, 0xA5,  # copy itself to 0:600
        0xEA, 0x17, 0x06, 0x00, 0x00,  # jmp 0:617
        0xB8, 0x01, 0x02, 0xBB, 0x00, 0x7C, 0xB9, 0x01, 0x00, 0xBA, drive, 0x00, 0xCD, 0x13,  # read a sector
        0x72, 0xFE,  # jc $
        0xEA, 0x00, 0x7C, 0x00, 0x00,  # jmp 0:7C00
    ])
    return code.ljust(SECTOR - 2, b"\0") + b"\x55\xAA"


def test_a_snapshot_in_the_middle(pc, tmp_path):
    """Saved between two calls, or in one, and loaded by another QEMU: the ROM and its memory are part of it."""
    drives = [(0, 8192), (1, 8192)]
    paths = make_images(tmp_path, drives)
    slow = "faults=action=delay op=read delay_us=30000"  # or it would be over before it is saved
    first = pc(*card(drives, paths, slow))
    first.wait_for("^group buffers$")
    first.save(tmp_path / "state")
    seen = first.console()
    first.stop()
    second = pc(*card(drives, paths, slow), "-incoming", f"exec:cat {tmp_path / 'state'}")
    second.go_on()
    judge(second)
    assert "BIOS" in seen and "BIOS" not in second.console()  # it did not start afresh


def test_bad_sector(pc, tmp_path):
    """Error 10h, and how many sectors came before it."""
    drives = [(0, 8192)]
    paths = make_images(tmp_path, drives, bad_lba=5000)
    judge(pc(*card(drives, paths, "faults=action=fail error=unc lba=5000")))


def test_silent_drive(pc, tmp_path):
    """Error 80h after ten seconds, in which the clock ticks; then the drive is there again."""
    drives = [(0, 8192)]
    paths = make_images(tmp_path, drives, silent_lba=6000)
    judge(pc(*card(drives, paths, "faults=action=drop op=read lba=6000 count=1"), "-icount", "shift=7"))


def test_bad_sector_of_a_volume(pc, tmp_path):
    """The same over all SSDs: the sector is one of the fourth, behind whole chunks of the others."""
    bad, member, member_lba = 5000, 3, 9 * 128 + 8  # chunk 39: the tenth of the fourth SSD
    content = make_images(tmp_path, [(PHY_SAS, VOLUME_SECTORS)], bad_lba=bad)[0]
    guest = pc(*volume(content, tmp_path, "id=card,bootindex=0"), "-S")
    guest.qmp(("qom-set", {"path": f"/machine/peripheral/card/port{member}", "property": "faults",
                           "value": f"action=fail,error=unc,lba={member_lba}"}), "cont")
    judge(guest)
