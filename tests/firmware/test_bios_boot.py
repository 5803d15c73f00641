# SPDX-License-Identifier: GPL-2.0-or-later
"""SeaBIOS and the option ROM: what it shows, which member boots, and how a boot goes on that cannot succeed here."""

import re

import pytest

from pc import block_node, boot_sector
from revodrive_qtest import Bridge, Machine, ata, card_of

MIB = 1 << 20
PRODUCT = "OCZ RevoDrive 3 X2 BIOS"
ENDED = 1  # status of a QEMU that a boot sector of ours ended
DEBUG_LOG = "-chardev file,id=debug,path={} -device isa-debugcon,iobase=0x402,chardev=debug"


def image(path, first_sector=b""):
    path.write_bytes(first_sector.ljust(4 * MIB, b"\0"))
    return path


def members(tmp_path, name="card", sector=lambda phy: boot_sector(f"booted phy {phy}")):
    """Four block nodes named after the card, each with its own boot sector."""
    arguments = []
    for phy in range(4):
        arguments += block_node(f"{name}{phy}", image(tmp_path / f"{name}{phy}.img", sector(phy)))
    return arguments


def drives(name="card"):
    return ",".join(f"drive{phy}={name}{phy}" for phy in range(4))


def bare(name="card", chosen=None, more="bootindex=0"):
    """A bare bridge with four members; the chosen one has more properties."""
    arguments = ["-device", f"marvell-88se9485,id={name}"]
    for phy in range(4):
        extra = f",{more}" if phy == chosen else ""
        arguments += ["-device", f"sf2281,bus={name}.0,port={phy},drive={name}{phy}{extra}"]
    return arguments


@pytest.mark.parametrize("machine", ["pc", "q35"])
def test_sign_on(pc, tmp_path, machine):
    """Product, version, address; a line for each drive; then the first member boots, without any bootindex."""
    guest = pc(*members(tmp_path), "-device", f"revodrive3-x2,{drives()},addr=9", machine=machine)
    guest.wait_for(rf"^{PRODUCT} \d+\.\d+\.\d+, PCI 00:09\.0, Ctrl-R: details$")
    for phy in range(4):
        guest.wait_for(rf"^  {phy}  OCZ-REVODRIVE3 X2 +2\.25 +4 MiB$")
    guest.wait_for("^Booting from Hard Disk")
    guest.wait_for("booted phy 0$")
    assert guest.wait_end() == ENDED


@pytest.mark.parametrize("phy", range(4))
def test_c045_bootindex_chooses_the_member(pc, tmp_path, phy):
    """C045: four bootable members; the one with bootindex=0 boots."""
    guest = pc(*members(tmp_path), *bare(chosen=phy))
    guest.wait_for(f"booted phy {phy}$")


def test_bootindex_behind_a_root_port(pc, tmp_path):
    """The first member boots before an ordinary disk with a higher index; each bus has its own path."""
    ordinary = image(tmp_path / "ahci.img", boot_sector("booted ahci"))
    guest = pc(*members(tmp_path), "-device", "pcie-root-port,id=rp0",
               "-device", f"revodrive3-x2,bus=rp0,{drives()},bootindex=0",
               *block_node("ahci", ordinary), "-device", "ide-hd,drive=ahci,bootindex=1")
    guest.wait_for(rf"^{PRODUCT} .*, PCI 01:00\.0")
    guest.wait_for("booted phy 0$")


def test_an_ordinary_disk_in_front(pc, tmp_path):
    ordinary = image(tmp_path / "ahci.img", boot_sector("booted ahci"))
    guest = pc(*members(tmp_path), "-device", f"revodrive3-x2,{drives()},bootindex=1",
               *block_node("ahci", ordinary), "-device", "ide-hd,drive=ahci,bootindex=0")
    guest.wait_for(f"^{PRODUCT}")
    guest.wait_for("booted ahci$")


def test_c046_two_cards_and_a_network_card(pc, tmp_path):
    """C046: ROMs of two cards and of a network card fit; each instance is at most 64 KiB and keeps its own drives."""
    log = tmp_path / "debug.log"
    guest = pc(*members(tmp_path, "one", lambda phy: boot_sector(f"booted one {phy}")),
               *members(tmp_path, "two", lambda phy: boot_sector(f"booted two {phy}")),
               "-device", f"revodrive3-x2,{drives('one')},addr=4,bootindex=1", "-device", "e1000,addr=5",
               *bare("two", chosen=3), *DEBUG_LOG.format(log).split())
    guest.wait_for(rf"^{PRODUCT} .*, PCI 00:04\.0")
    guest.wait_for(r"booted two 3$")
    assert len(re.findall("OCZ-REVODRIVE3 X2 ", guest.console())) == 8
    text = log.read_text(errors="replace")
    starts = [int(segment, 16) * 16 for segment in re.findall(r"^Running option rom at (\w+):0003", text, re.M)]
    assert len(starts) >= 3
    assert all(later - earlier <= 65536 for earlier, later in zip(starts, starts[1:]))
    assert "No space" not in text and "Unable to allocate" not in text


@pytest.mark.parametrize("setting", ["romfile=", "rombar=0"])
def test_c046_without_the_rom(pc, tmp_path, setting):
    """C046: no ROM, no sign-on, no boot entry, and the machine's start is clean."""
    guest = pc(*members(tmp_path), "-device", f"revodrive3-x2,{drives()},{setting}")
    guest.wait_for("^No bootable device")
    assert PRODUCT not in guest.console()


def floppy(tmp_path):
    return ["-drive", f"if=floppy,format=raw,file={image(tmp_path / 'floppy.img', boot_sector('booted floppy'))}"]


@pytest.mark.parametrize("name", ["empty", "corrupt", "bad-sector-0", "hung"])
def test_a_disk_that_cannot_boot(pc, tmp_path, name):
    """The BIOS says so, and goes on to the next entry."""
    sector = {"corrupt": lambda phy: bytes(range(256)) * 2}.get(name, lambda phy: b"")
    faults = {"bad-sector-0": "faults=action=fail error=unc lba=0", "hung": "faults=action=drop op=read"}
    more = "bootindex=0" + (f",{faults[name]}" if name in faults else "")
    guest = pc(*members(tmp_path, sector=sector), *bare(chosen=1, more=more), *floppy(tmp_path),
               *(["-icount", "shift=7"] if name == "hung" else []), machine="pc")
    failure = "not a bootable disk" if name in ("empty", "corrupt") else "could not read the boot disk"
    guest.wait_for(f"^Boot failed: {failure}")
    guest.wait_for("booted floppy$")


def test_c050_sector_zero_of_a_null_backend(pc, tmp_path):
    """C050: the BIOS reads zeros, which is a disk that cannot boot, not one that cannot be read."""
    guest = pc("-blockdev", "driver=null-co,read-zeroes=on,node-name=n,size=1073741824",
               "-device", "revodrive3,drive=n,bootindex=0", *floppy(tmp_path), machine="pc")
    guest.wait_for("^Boot failed: not a bootable disk")
    guest.wait_for("booted floppy$")


def test_no_drives(pc, tmp_path):
    """A card without members says so and leaves no entry behind."""
    guest = pc("-device", "marvell-88se9485", *floppy(tmp_path), machine="pc")
    guest.wait_for(r"^Marvell 88SE9485 BIOS .*\n  no drives$")
    guest.wait_for("booted floppy$")


def test_a_drive_that_does_not_answer(pc, tmp_path):
    """It takes its time, but costs only itself."""
    guest = pc(*members(tmp_path), *bare(chosen=0, more="faults=action=drop"), "-icount", "shift=7")
    guest.wait_for("^  0  a drive that does not answer$")
    guest.wait_for("^  3  OCZ-REVODRIVE3 X2 ")
    guest.wait_for("booted phy 1$")


def test_crashed_firmware(pc, tmp_path):
    """panic-mode: the drive has its generic name, and is no disk that boots."""
    guest = pc(*members(tmp_path), *bare(chosen=0, more="panic-mode=on"), *floppy(tmp_path), machine="pc")
    guest.wait_for(r"^  0  SandForce\{200026BB\} +402ABBR0 +0 MiB")
    guest.wait_for("booted floppy$|booted phy 1$")


def lock(arguments):
    """Gives the first SSD of a card with state= a password, which locks it at the next power-on."""
    set_password, block = 0xF1, bytes(2) + b"secret".ljust(510, b"\0")
    with Machine(*arguments) as vm:
        disk = Bridge(card_of(vm)).probe().disks()[0]
        disk.execute(ata.Command(set_password, direction=ata.OUT, length=512, data=block))


def test_a_locked_drive(pc, tmp_path):
    """It is named, and is no disk; the next one boots."""
    state = tmp_path / "state.img"
    state.write_bytes(bytes(8 * MIB))
    arguments = [*members(tmp_path), *block_node("st", state), "-device",
                 f"revodrive3-x2,id=card,addr=4,{drives()},state=st"]
    lock(arguments)
    guest = pc(*arguments)
    guest.wait_for("^  0  OCZ-REVODRIVE3 X2 .* MiB, locked by its password$")
    guest.wait_for("^  1  OCZ-REVODRIVE3 X2 .* MiB$")
    guest.wait_for("booted phy 1$")


def test_details_on_demand(pc, tmp_path):
    """Ctrl-R during the start: serial numbers, geometry, rates; any key goes on. Nobody else has to wait."""
    guest = pc(*members(tmp_path), "-device", f"revodrive3-x2,id=card,serial=abc,{drives()}", typed="\x12" * 256)
    guest.wait_for("^Any key goes on")
    assert re.search(r"^  2  serial OCZ-\w{16} +geometry 8/16/63, 6\.0 Gb/s$", guest.console(), re.M)
    assert re.search(r"^Registers at [0-9a-f]{8}, ROM at 000[cde][0-9a-f]{4}, ", guest.console(), re.M)
    guest.wait_for("booted phy 0$", each=lambda: guest.send(" "))
