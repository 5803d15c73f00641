# SPDX-License-Identifier: GPL-2.0-or-later
"""mode=vca,policy=dispatch under a stock kernel, and QEMU killed under a file system with either policy."""

import random

import pytest

from harness import Guest, Options
from test_vca import VERIFY_JOB, complaints


@pytest.fixture(scope="module")
def guest():
    with Guest(Options(card="mode=vca,policy=dispatch,vca-phys=4")) as running:
        yield running


def test_one_disk_behind_a_wide_port(guest):
    assert len(guest.run("lsblk -dno NAME").stdout.split()) == 1
    assert "lbprz=1" in guest.run("sg_readcap -l /dev/sda").stdout
    assert guest.run("ls -d /sys/class/sas_port/port-0:0/device/phy-* | wc -l").stdout.strip() == "4"
    assert complaints(guest) == []


def test_health_ends_with_status_0(guest):
    words = guest.run("smartctl -x /dev/sda").stdout
    assert "SMART Health Status: OK" in words


def test_verify_and_discard(guest):
    guest.put("/tmp/verify.fio", VERIFY_JOB.encode())
    guest.run("fio /tmp/verify.fio")
    guest.run("blkdiscard -f -o 65536 -l 1048576 /dev/sda")
    assert guest.run("dd if=/dev/sda bs=64k skip=1 count=16 iflag=direct | tr -d '\\0' | wc -c").stdout.strip() == "0"
    guest.run(
        "mkfs.ext4 -q /dev/sda && mount -o discard /dev/sda /mnt && dd if=/dev/urandom of=/mnt/f bs=1M count=16 &&"
        "cp /mnt/f /mnt/g && cmp /mnt/f /mnt/g && rm /mnt/f && fstrim /mnt && umount /mnt && fsck.ext4 -fn /dev/sda"
    )
    assert complaints(guest) == []


@pytest.mark.parametrize("policy", ["stripe", "dispatch"])
def test_killed_under_a_file_system(boot, tmp_path, policy):
    """Files that were synced before QEMU was killed are whole, and ext4 recovers from its journal."""
    images = []
    for member in range(4):
        with open(tmp_path / f"member{member}", "wb") as file:
            file.truncate(64 << 20)
        images.append(file.name)
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    card = f"mode=vca,policy={policy}"
    guest = boot(card=card, images=images, judge=False)
    guest.run("mkfs.ext4 -q /dev/sda && mount /dev/sda /mnt && echo 0 > /mnt/last && sync")
    guest.start_command(
        "n=0; while true; do n=$((n + 1)); f=$((n % 20)); dd if=/dev/urandom of=/mnt/f$f bs=16k count=4 2>/dev/null;"
        "md5sum /mnt/f$f > /mnt/sum$f; sync; echo $n > /mnt/last; sync; done"
    )
    guest.run(f"usleep {random.Random(seed).randrange(2_000_000, 6_000_000)}")
    guest.end_qemu()
    again = boot(card=card, images=images)
    again.run("fsck.ext4 -p /dev/sda || test $? -le 1; mount /dev/sda /mnt")
    last = int(again.run("cat /mnt/last").stdout)
    again.run(f"test {last} -gt 0 && md5sum -c /mnt/sum{last % 20}")
    again.run("umount /mnt && fsck.ext4 -fn /dev/sda")
