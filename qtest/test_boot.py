# SPDX-License-Identifier: GPL-2.0-or-later
"""What firmware finds: the option ROM in its BAR, and the members' entries in the boot order (C045, C046)."""
import struct

import pytest

from revodrive_qtest import card_of, refused, storage

ROM_BAR = 0x30
ROM_BYTES = 256 * 1024
FW_CFG_SELECT, FW_CFG_DATA, FW_CFG_DIRECTORY = 0x510, 0x511, 0x19
LAST_IMAGE = 0x80


def read_fw_cfg(vm, key, length):
    vm.outl(FW_CFG_SELECT, key, 2)
    return bytes(vm.inl(FW_CFG_DATA, 1) for _ in range(length))


def boot_order(vm):
    """The lines of the file "bootorder", as SeaBIOS and OVMF read it after a reset."""
    vm.qmp("system_reset")
    vm.wait_event("RESET")
    count = struct.unpack(">I", read_fw_cfg(vm, FW_CFG_DIRECTORY, 4))[0]
    vm.outl(FW_CFG_SELECT, FW_CFG_DIRECTORY, 2)
    directory = read_fw_cfg(vm, FW_CFG_DIRECTORY, 4 + 64 * count)[4:]
    for at in range(0, len(directory), 64):
        size, key, _, name = struct.unpack(">IHH56s", directory[at:at + 64])
        if name.rstrip(b"\0") == b"bootorder":
            return read_fw_cfg(vm, key, size).rstrip(b"\0").decode().splitlines()
    return []


def entry(phy, slot=4, above="/pci@i0cf8"):
    """SeaBIOS wants the phy behind "rom", OVMF an AHCI disk."""
    instance = f":rom{phy:x}" if phy else ""
    return f"{above}/pci8086,2922@{slot:x}{instance}/drive@{phy:x}/disk@0"


def member(phy, **properties):
    more = "".join(f",{name}={value}" for name, value in properties.items())
    return [*storage.null_node(f"n{phy}"), "-device", f"sf2281,id=ssd{phy},bus=hba.0,port={phy},drive=n{phy}{more}"]


def bare(*members, place="addr=4"):
    return ["-device", f"marvell-88se9485,id=hba,{place}", *(word for words in members for word in words)]


def rom_of(vm):
    """The bytes behind the ROM BAR."""
    function = card_of(vm)
    function.write(ROM_BAR, 0xFFFFF800, 4)
    if not function.read(ROM_BAR, 4):
        return b""
    assert -(function.read(ROM_BAR, 4) & ~0x7FF) & 0xFFFFFFFF == ROM_BYTES
    function.write(ROM_BAR, 0xF0000000 | 1, 4)
    function.set_command(2)
    return vm.read(0xF0000000, ROM_BYTES)


def images_of(rom):
    at = 0
    while True:
        pcir = at + struct.unpack_from("<H", rom, at + 0x18)[0]
        assert rom[at:at + 2] == b"\x55\xaa" and rom[pcir:pcir + 4] == b"PCIR"
        length = 512 * struct.unpack_from("<H", rom, pcir + 0x10)[0]
        yield rom[at:at + length], struct.unpack_from("<HH", rom, pcir + 4), rom[pcir + 0x14]
        if rom[pcir + 0x15] & LAST_IMAGE:
            return
        at += length


@pytest.mark.parametrize("device, ids", [
    ("revodrive3-x2,drive=n0", (0x1B85, 0x1041)), ("revodrive3,drive=n0", (0x1B85, 0x1021)),
    ("marvell-88se9485", (0x1B4B, 0x9485)), ("marvell-88se9485,vendor-id=0x1b85,device-id=0x1084", (0x1B85, 0x1084))])
def test_rom_has_the_ids_of_the_function(launch, device, ids):
    """In each image, and the checksum of the legacy one still holds."""
    vm = launch(*storage.null_node("n0"), "-device", f"{device},addr=4")
    kinds = []
    for image, found, kind in images_of(rom_of(vm)):
        assert found == ids
        kinds.append(kind)
        if kind == 0:
            assert image[2] * 512 == len(image) and sum(image) % 256 == 0
    assert kinds == [0, 3]  # BIOS, EFI


def test_rom_of_the_user(launch, tmp_path):
    """romfile= and rombar=0 are stronger than the card's own."""
    path = tmp_path / "own.rom"
    path.write_bytes(b"\x55\xaa\x01" + bytes(509))
    vm = launch("-device", f"marvell-88se9485,addr=4,romfile={path},romsize={ROM_BYTES}")
    assert rom_of(vm)[:512] == path.read_bytes()
    for setting in ("romfile=", "rombar=0"):
        assert rom_of(launch("-device", f"marvell-88se9485,addr=4,{setting}")) == b""


def test_rom_that_does_not_fit_is_refused():
    words = refused("-device", "marvell-88se9485,id=hba,romsize=2048")
    assert "hba: romsize=2048: the card's option ROM has" in words


@pytest.mark.parametrize("machine, port", [("pc", False), ("q35", False), ("q35", True)])
def test_boot_order(launch, machine, port):
    """Lowest index first; each member by its phy, on a root bus and behind a port."""
    words = bare(member(0, bootindex=5), member(2, bootindex=1), member(3), member(1, bootindex=3),
                 place="bus=rp" if port else "addr=4")
    vm = launch(*(["-device", "pcie-root-port,id=rp,addr=7"] if port else []), *words, machine=machine)
    above, slot = ("/pci@i0cf8/pci-bridge@7", 0) if port else ("/pci@i0cf8", 4)
    assert boot_order(vm) == [entry(phy, slot, above) for phy in (2, 1, 0)]


def test_bootindex_of_a_board_is_its_first_ssd(launch):
    vm = launch(*storage.null_node("n"), "-device", "revodrive3-x2,drive=n,addr=4.1,multifunction=on,bootindex=0")
    assert boot_order(vm) == ["/pci@i0cf8/pci8086,2922@4,1/drive@0/disk@0"]


def test_bootindex_while_it_runs(launch):
    """It changes by QOM, leaves with its member and comes with a new one; a taken one is refused."""
    vm = launch(*bare(member(0, bootindex=0), member(1, bootindex=1)))
    vm.qmp("qom-set", path="ssd1", property="bootindex", value=7)
    vm.qmp("qom-set", path="ssd0", property="bootindex", value=9)
    assert boot_order(vm) == [entry(1), entry(0)]
    with pytest.raises(Exception, match="bootindex 7 has already been used"):
        vm.qmp("qom-set", path="ssd0", property="bootindex", value=7)
    assert vm.qmp("qom-get", path="ssd0", property="bootindex") == 9
    vm.qmp("qom-set", path="ssd0", property="bootindex", value=-1)
    vm.qmp("device_del", id="ssd1")
    vm.wait_event("DEVICE_DELETED", device="ssd1")
    assert boot_order(vm) == []
    vm.qmp("device_add", driver="sf2281", id="ssd1", bus="hba.0", port=1, drive="n1", bootindex=7)
    assert boot_order(vm) == [entry(1)]


def test_the_same_bootindex_twice_is_refused():
    words = refused(*bare(member(0, bootindex=3), member(1, bootindex=3)))
    assert "bootindex 3 has already been used" in words


def test_a_volume_has_the_cards_bootindex(launch):
    """mode=vca: one entry, a SCSI disk. A member does not boot by itself, a replaced one neither."""
    drives = "".join(f",drive{number}=n{number}" for number in range(4))
    vm = launch(*(word for number in range(4) for word in storage.null_node(f"n{number}")),
                "-device", f"revodrive3-x2,id=card,addr=4,mode=vca,bootindex=3{drives}")
    assert boot_order(vm) == ["/pci@i0cf8/scsi@4/channel@0/disk@0,0"]
    path = "/machine/peripheral/card/port1"
    vm.qmp("device_del", id=path)
    vm.wait_event("DEVICE_DELETED", path=path)
    with pytest.raises(Exception, match="bootindex=4 on the SSD of phy 1: .* give the card a bootindex"):
        vm.qmp("device_add", driver="sf2281", bus="card.0", port=1, drive="n1", bootindex=4)
