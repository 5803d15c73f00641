# SPDX-License-Identifier: GPL-2.0-or-later
"""mode=vca,policy=dispatch under a stock kernel, and QEMU killed under a file system with either policy."""

import random

import pytest

from harness import Guest, Options
from test_plug import unplug
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


def sums(guest):
    """Of each of the first 64 chunks, and None where it cannot be read."""
    script = (
        "for i in $(seq 0 63); do s=$(dd if=/dev/sda bs=64k skip=$i count=1 iflag=direct status=none 2>&1 | md5sum);"
        "dd if=/dev/sda of=/dev/null bs=64k skip=$i count=1 iflag=direct 2>/dev/null && echo $s || echo lost; done"
    )
    return [None if line == "lost" else line for line in guest.run(script, timeout=300).stdout.splitlines()]


def test_lost_member_under_load(guest):
    """Reads of its share fail and no others, no write is half done, nothing hangs, and all is there when it is back."""
    guest.run("dd if=/dev/urandom of=/dev/sda bs=64k count=64 oflag=direct,sync")
    whole = sums(guest)
    assert None not in whole
    load = [
        guest.start_command(
            f"fio --name=load --filename=/dev/sda --direct=1 --ioengine=libaio --iodepth=32 --rw={kind} --bs=4k "
            f"--offset={offset} --size=1g --time_based --runtime=600"
        )
        for kind, offset in (("randread", 0), ("randwrite", "1g"))
    ]
    guest.run("usleep 2000000")
    unplug(guest, 2)
    assert all(guest.wait(job, timeout=120).status != 0 for job in load)
    assert guest.qmp("qom-get", path="/machine/peripheral/card0", property="volume-degraded") == 1
    degraded = sums(guest)
    assert 0 < degraded.count(None) < 64
    assert all(now in (None, before) for now, before in zip(degraded, whole))
    refused = guest.run("dd if=/dev/zero of=/dev/sda bs=64k count=1 oflag=direct", check=False)
    assert refused.status != 0
    assert any("critical target error" in line for line in guest.kernel_log())
    guest.qmp("device_add", driver="sf2281", bus="card0.0", port=2, drive="card0-drive2", id="member2")
    assert sums(guest) == whole
    guest.run("dd if=/dev/zero of=/dev/sda bs=64k count=64 oflag=direct,sync && cmp -n 4194304 /dev/sda /dev/zero")
