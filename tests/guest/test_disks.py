# SPDX-License-Identifier: GPL-2.0-or-later
"""A stock kernel finds four disks on the card and uses them; the host finds the data in the images."""

import subprocess

import pytest

from harness import Guest, Options

FOUR = "abcd"
KERNEL_SOURCES = ("ata", "sas", "scsi", "mvsas", "sd ")

#: Mixed sizes at QD32 on all members at once, every block checked after it was written.
VERIFY_JOB = """[global]
ioengine=libaio
direct=1
iodepth=32
rw=randrw
bssplit=512/10:4k/40:16k/20:64k/20:512k/10
size=48m
verify=crc32c
verify_fatal=1
do_verify=1
randseed=4711
"""


def verify_job(names=FOUR):
    return VERIFY_JOB + "".join(f"[{name}]\nfilename=/dev/sd{name}\n" for name in names)


def complaints(guest):
    """What the kernel said at warning level or above about the card and its disks."""
    return [line for line in guest.kernel_log("warn") if any(word in line for word in KERNEL_SOURCES)]


@pytest.fixture(scope="module")
def guest():
    with Guest(Options()) as running:
        yield running


def test_c001_c003_identity(guest):
    """C001, C003: bound by its ids alone, the link reported as x4 at 5 GT/s, eight phys, four disks."""
    assert "[1b85:1041] (rev 02)" in guest.run("lspci -nn").stdout
    assert any("PCI-E x4, Bandwidth Usage: 5.0 Gbps" in line for line in guest.kernel_log())
    assert guest.run("ls /sys/class/sas_phy | wc -l").stdout.strip() == "8"
    models = guest.run("lsblk -dno MODEL /dev/ssd?").stdout.splitlines()
    assert [line.strip() for line in models] == 4 * ["OCZ-REVODRIVE3 X"]


def test_c004_no_missing_signature(guest):
    assert not [line for line in guest.kernel_log() if "No sig fis" in line]


def test_identity_is_whole(guest):
    for name in FOUR:
        words = guest.run(f"hdparm -I /dev/sd{name}").stdout
        assert "Model Number:       OCZ-REVODRIVE3 X2 " in words
        assert "Data Set Management TRIM supported (limit 1 block)" in words
        assert "Queue depth: 32" in words
    serials = guest.run("hdparm -I /dev/sd? | grep Serial.Number").stdout.split("\n")[:4]
    assert len(set(serials)) == 4
    assert "SandForce Driven SSDs" in guest.run("smartctl -i /dev/ssd0").stdout


def test_fio_verify_on_all_members(guest):
    guest.put("/tmp/verify.fio", verify_job().encode())
    guest.run("fio /tmp/verify.fio")
    assert complaints(guest) == []


def test_discard_of_whole_disks(guest):
    for name in FOUR:
        guest.run(f"blkdiscard /dev/sd{name}")
    assert complaints(guest) == []


def test_file_system_and_its_image_on_the_host(guest, tmp_path):
    guest.run(
        "mkfs.ext4 -q /dev/ssd1 && mount /dev/ssd1 /mnt && dd if=/dev/urandom of=/mnt/file bs=1M count=16 &&"
        "cp /mnt/file /mnt/copy && cmp /mnt/file /mnt/copy && umount /mnt && fsck.ext4 -fn /dev/ssd1"
    )
    digest = guest.run("mount -o ro /dev/ssd1 /mnt && md5sum < /mnt/copy; umount /mnt").stdout.split()[0]
    assert complaints(guest) == []
    found = tmp_path / "copy"
    subprocess.run(["debugfs", "-R", f"dump /copy {found}", guest.images[1]], check=True, capture_output=True)
    assert subprocess.run(["md5sum", found], check=True, capture_output=True, text=True).stdout.split()[0] == digest


def test_c010_partition_beyond_the_disk(guest):
    """C010: a partition table of a striped volume stays a complaint about a partition; no other disk's data."""
    sectors = int(guest.run("blockdev --getsz /dev/ssd2").stdout)
    table = bytearray(512)
    first, length = (2048).to_bytes(4, "little"), (2 * sectors).to_bytes(4, "little")
    table[446:462] = bytes([0, 0, 0, 0, 0x83, 0, 0, 0]) + first + length
    table[510:] = b"\x55\xaa"
    guest.put("/tmp/mbr", bytes(table))
    guest.run("dd if=/tmp/mbr of=/dev/ssd2 bs=512 count=1 conv=fsync; blockdev --rereadpt /dev/ssd2")
    assert any("beyond" in line for line in guest.kernel_log())
    copied = guest.run(f"dd if=/dev/ssd2 skip={sectors} count=1 2>/dev/null | wc -c").stdout.strip()
    assert copied == "0"
    guest.run("dd if=/dev/zero of=/dev/ssd2 bs=512 count=1 conv=fsync; blockdev --rereadpt /dev/ssd2")


def test_rebind_ten_times(guest):
    """The driver leaves the chip running with dangling addresses; ten new lives must find it usable."""
    address = guest.run("basename $(ls -d /sys/bus/pci/drivers/mvsas/0000:*)").stdout.strip()
    for _ in range(10):
        for file in ("unbind", "bind"):
            guest.run(f"echo {address} > /sys/bus/pci/drivers/mvsas/{file}")
        guest.run("until card-state settled 4; do usleep 50000; done; name-members", timeout=120)
        guest.run("ls /dev/sda /dev/sdb /dev/sdc /dev/sdd")
    guest.run("dd if=/dev/ssd3 of=/dev/null bs=64k count=64 iflag=direct")


def test_reboot(guest):
    guest.run("echo marker | dd of=/dev/ssd0 seek=100 conv=fsync")
    guest.reboot()
    assert guest.run("dd if=/dev/ssd0 skip=100 count=1 2>/dev/null | head -c 6").stdout == "marker"
    guest.reset()
    assert guest.run("dd if=/dev/ssd0 skip=100 count=1 2>/dev/null | head -c 6").stdout == "marker"
