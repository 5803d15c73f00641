# SPDX-License-Identifier: GPL-2.0-or-later
"""OVMF and the card's UEFI driver: what the firmware and its shell see, and what a boot loader can rely on."""

import os
import random
import re
import struct

import pytest

import ovmf
from pc import BUILD, block_node, volume

MIB = 1 << 20
SCRATCH_MIB = 64
TAGS = {"scratch": b"REVODRIVE-SCRATCH", "silent": b"REVODRIVE-SILENT!"}
CARD = "PciRoot(0x0)/Pci(0x9,0x0)"
DRIVER = "RevoDrive 3 SAS Bridge Driver"
CHECK_EFI = BUILD / "tests" / "firmware" / "uefi" / "check.efi"
FAULTS = {1: "name=silent action=drop op=read lba=70001 count=1", 3: "name=bad action=fail error=unc lba=0"}


@pytest.fixture
def uefi(pc, tmp_path):
    """uefi(*qemu_arguments): a running Pc with OVMF and fresh variables."""
    def start(*arguments):
        return pc(*ovmf.flash(tmp_path / "vars.fd"), *arguments, memory=512, options=())
    return start


def tagged(path, kind):
    """A disk that check.efi knows by its sector 1."""
    with open(path, "wb") as disk:
        disk.truncate(SCRATCH_MIB * MIB)
        disk.seek(512)
        disk.write(TAGS[kind] + struct.pack("<Q", SCRATCH_MIB * MIB // 512))
    return path


def tools_disk(folder, script):
    """What the firmware's shell runs, and check.efi beside it."""
    return ovmf.fat_disk(folder / "tools.img", {"startup.nsh": script, "check.efi": CHECK_EFI})


def junk(path):
    """A disk with a boot signature and a partition table, both of chance, and a broken GPT header."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    data = bytearray(random.Random(seed).randbytes(MIB))
    data[510:520] = b"\x55\xAAEFI PART"
    path.write_bytes(data.ljust(4 * MIB, b"\0"))
    return path


def empty(path):
    path.write_bytes(bytes(4 * MIB))
    return path


def members(paths, faults=None, bootindex=None):
    """A bare bridge in slot 9 with these SSDs, which boot in this order."""
    arguments = ["-device", "marvell-88se9485,id=hba,addr=9"]
    for phy, path in enumerate(paths):
        rules = (faults or {}).get(phy)
        arguments += [*block_node(f"d{phy}", path),
                      "-device", f"sf2281,id=ssd{phy},bus=hba.0,port={phy},drive=d{phy},serial=SSD-{phy}"
                      + (f",bootindex={bootindex + phy}" if bootindex is not None else "")
                      + (f",faults={rules}" if rules else "")]
    return arguments


def shell_lines(text, command):
    """What the shell printed between this command and the next prompt."""
    match = re.search(rf"> {re.escape(command)}\n(.*?)(?:\n\S*> |\Z)", text, re.S)
    assert match, f'"{command}" was not run\n{text}'
    return match.group(1)


def test_shell_names_driver_and_disks_and_check_efi_is_content(uefi, tmp_path):
    """One boot. Nothing on the disks can be booted: one is empty, one is junk and its sector 0 cannot be read, so
    the firmware goes on to its shell. The shell lists driver and disks by name; check.efi judges Block I/O, Block
    I/O 2, Disk Info and ATA Pass Thru. The driver can be taken from the card and given back."""
    script = "map -r\ndrivers\ndevices\nfs0:\ncheck.efi\ndisconnect -r\nconnect -r\nmap -r\necho the end\n"
    paths = [tagged(tmp_path / "scratch.img", "scratch"), tagged(tmp_path / "silent.img", "silent"),
             tools_disk(tmp_path, script),
             junk(tmp_path / "junk.img")]
    guest = uefi(*members(paths, FAULTS))
    guest.wait_for("UEFI Interactive Shell", 120)
    guest.send("\x20")
    guest.wait_for(r"check\.efi: \d+ checks, \d+ failed: ", 120)
    guest.wait_for("^the end", 60)
    count, sectors = (guest.qmp(("qom-get", {"path": "ssd0", "property": name})) for name in ("reads", "read-sectors"))
    guest.stop()
    assert sectors > 25000 and sectors / count > 128  # long reads are not cut into small ones
    text = guest.console()
    assert re.search(r"check\.efi: \d{3} checks, 0 failed: GOOD", text), guest.report()
    assert re.search(rf"^[0-9A-F]+ +[0-9A-F]+ D - - +1 +- {DRIVER}", text, re.M)
    # A disk with a file system goes by the latter's name.
    assert len(re.findall(r" OCZ-REVODRIVE3 X2", shell_lines(text, "devices"))) == 3
    for phy in range(4):
        assert f'failed to load Boot000{phy + 1} "UEFI OCZ-REVODRIVE3 X2 SSD-{phy} " from {CARD}/Sata(0x{phy},' in text
    maps = re.findall(r"> map -r\n(.*?)\n\S*> ", text, re.S)
    assert len(maps) == 2
    for listed in maps:
        assert [f"{CARD}/Sata(0x{phy:X},0xFFFF,0x0)" in listed for phy in range(4)] == [True] * 4
    with open(paths[0], "rb") as disk:
        disk.seek(-512, os.SEEK_END)
        last = disk.read()
    lba = SCRATCH_MIB * MIB // 512 - 1
    assert last == bytes((lba * 7 + at + at // 256 + 3) & 0xFF for at in range(512))


def test_read_speed(uefi, tmp_path):
    """What Block I/O gets out of an SSD with one command at a time, of up to 32 MiB: the drive's rate and not that of
    polling. By -icount, so that time is the machine's own."""
    script = "fs0:\ncheck.efi\nreset -s\n"
    paths = [tagged(tmp_path / "scratch.img", "scratch"), tagged(tmp_path / "silent.img", "silent"),
             tools_disk(tmp_path, script),
             empty(tmp_path / "empty.img")]
    guest = uefi(*members(paths, FAULTS), "-icount", "shift=3,sleep=off")
    guest.wait_for("UEFI Interactive Shell", 120)
    guest.send("\x20")
    rate = int(guest.wait_for(r"check\.efi: reads at (\d+) MB/s", 120)[1])
    guest.wait_for(r"check\.efi: \d{3} checks, 0 failed: GOOD", 120)
    assert 250 < rate < 600


def test_volume(uefi, tmp_path):
    """mode=vca: one disk over all SSDs, by SCSI commands. check.efi judges Block I/O, Block I/O 2 and Ext SCSI Pass
    Thru; driver and disk have names, and the driver can be taken from the card and given back."""
    script = "map -r\ndrivers\ndevices\nfs0:\ncheck.efi\ndisconnect -r\nconnect -r\nmap -r\necho the end\nreset -s\n"
    tools = tools_disk(tmp_path, script)
    guest = uefi(*volume(tagged(tmp_path / "scratch.img", "scratch"), tmp_path, "addr=9,bootindex=0"),
                 *block_node("tools", tools), "-device", "ide-hd,drive=tools,bootindex=1")
    guest.wait_for(f'failed to load Boot[0-9A-F]{{4}} "UEFI OCZ REVODRIVE3 X2 " from {re.escape(CARD)}/Scsi', 120)
    guest.wait_for("UEFI Interactive Shell", 120)
    guest.send("\x20")
    guest.wait_for(r"check\.efi: \d+ checks, \d+ failed: ", 120)
    guest.wait_for("the end", 60)
    assert guest.wait_end() == 0
    text = guest.console()
    assert re.search(r"check\.efi: \d{2,3} checks, 0 failed: GOOD", text), guest.report()
    assert re.search(rf"^[0-9A-F]+ +[0-9A-F]+ D - - +1 +- {DRIVER}", text, re.M)
    assert "OCZ REVODRIVE3 X2" in shell_lines(text, "devices")
    maps = re.findall(r"> map -r\n(.*?)\n\S*> ", text, re.S)
    assert [f"{CARD}/Scsi(0x0,0x0)" in listed for listed in maps] == [True, True]


@pytest.mark.parametrize("kind", ["empty", "junk"])
def test_members_that_cannot_boot(uefi, tmp_path, kind):
    """The card is first in the order, and none of its four members can be booted: the firmware says so of each, and
    goes on to the next entry, an ordinary disk. Of the members with junk one has a sector 0 that cannot be read."""
    paths = [junk(tmp_path / f"{phy}.img") if kind == "junk" else empty(tmp_path / f"{phy}.img") for phy in range(4)]
    ordinary = ovmf.fat_disk(tmp_path / "ordinary.img", {"EFI/BOOT/BOOTX64.EFI": CHECK_EFI}, mib=4)
    guest = uefi(*members(paths, {2: FAULTS[3]} if kind == "junk" else {}, bootindex=1),
                 *block_node("ordinary", ordinary), "-device", "ide-hd,drive=ordinary,bootindex=9")
    for phy in range(4):
        guest.wait_for(rf'failed to load Boot[0-9A-F]{{4}} "UEFI OCZ-REVODRIVE3 X2 SSD-{phy} "', 180)
    guest.wait_for(r'starting Boot[0-9A-F]{4} "UEFI QEMU HARDDISK ', 60)
    guest.wait_for("check.efi: .*: BAD", 60)


def test_c045_bootindex_chooses_over_two_cards(uefi, tmp_path):
    """C045: four bootable SSDs on two cards; the firmware starts them in the order of bootindex. Each program
    returns, so the boot goes on to the next entry. The second card is behind a root port."""
    image = ovmf.fat_disk(tmp_path / "boot.img", {"EFI/BOOT/BOOTX64.EFI": CHECK_EFI}, mib=4)
    arguments = ["-device", "pcie-root-port,id=rp0,addr=5", "-device", "marvell-88se9485,id=a,addr=9",
                 "-device", "marvell-88se9485,id=b,bus=rp0"]
    for name, place, more in (("A0", "bus=a.0,port=0", ""), ("A2", "bus=a.0,port=2", ",bootindex=0"),
                              ("B1", "bus=b.0,port=1", ",bootindex=1"), ("B5", "bus=b.0,port=5", "")):
        arguments += ["-blockdev", f"driver=raw,node-name={name},read-only=off,file.driver=file,"
                                   f"file.filename={copy_of(image, name)}",
                      "-device", f"sf2281,{place},drive={name},serial=SSD-{name}{more}"]
    guest = uefi(*arguments)
    for name in ("A2", "B1"):
        guest.wait_for(rf'starting Boot[0-9A-F]{{4}} "UEFI OCZ-REVODRIVE3 X2 SSD-{name} "', 180)
        guest.wait_for("check.efi: .*: BAD", 60)
    guest.stop()


def copy_of(image, name):
    path = image.with_name(f"{name}.img")
    path.write_bytes(image.read_bytes())
    return path
