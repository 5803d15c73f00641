# SPDX-License-Identifier: GPL-2.0-or-later
"""mode=vca: a stock kernel finds one SAS disk over all SSDs, and the images are those of a RAID 0 of md."""

import pytest

from harness import Guest, Options
from test_disks import complaints as all_complaints
from test_disks import verify_job
from test_plug import unplug

VERIFY_JOB = verify_job(names="").replace("iodepth=32", "iodepth=128").replace("size=48m", "size=64m") + """\
filename=/dev/sda
[a]
[b]
offset=256m
"""


def complaints(guest):
    """Without the line that any SAS disk gets: the power-on's unit attention is a warning to the kernel."""
    return [line for line in all_complaints(guest) if "Power-on or device reset occurred" not in line]


@pytest.fixture(scope="module")
def guest():
    with Guest(Options(card="mode=vca")) as running:
        yield running


def test_one_disk_of_the_full_size(guest):
    assert guest.run("lsblk -bdno NAME,SIZE").stdout.split() == ["sda", str(4 << 30)]
    assert "SPC-4" in guest.run("sg_inq /dev/sda").stdout
    assert "number of logical blocks=8388608" in guest.run("sg_readcap -l /dev/sda").stdout.lower()
    assert "imples 4 lun entries" in guest.run("sg_luns /dev/sda").stdout
    assert complaints(guest) == []


def test_pages_and_operations(guest):
    pages = guest.run("sg_inq -p 0 /dev/sda; sg_vpd -a /dev/sda").stdout
    for words in ("ATA information", "Block limits", "Logical block provisioning", "Unmap command supported (LBPU): 1"):
        assert words in pages
    operations = guest.run("sg_opcodes /dev/sda").stdout
    for words in ("Unmap", "Write same(16)", "Sanitize, block erase", "ATA pass-through(16)"):
        assert words in operations
    assert "Current temperature = " in guest.run("sg_logs -a /dev/sda").stdout
    assert "Caching" in guest.run("sg_modes -a /dev/sda").stdout
    assert "No Sense" in guest.run("sg_requests /dev/sda 2>&1").stdout
    assert complaints(guest) == []


def test_smart_of_the_whole_and_of_each(guest):
    whole = guest.run("smartctl -a /dev/sda", check=False).stdout
    assert "SMART Health Status: OK" in whole
    assert "Percentage used endurance indicator: 0%" in whole
    serials = set()
    for node in ("sda", "sg1", "sg2", "sg3"):
        words = guest.run(f"smartctl -x -d sat /dev/{node}", check=False).stdout
        assert "SandForce Driven SSDs" in words and "SSD_Life_Left" in words
        serials.add(next(line for line in words.splitlines() if line.startswith("Serial Number")))
    assert len(serials) == 4


def test_fio_verify_at_depth_128(guest):
    guest.put("/tmp/verify.fio", VERIFY_JOB.encode())
    guest.run("fio /tmp/verify.fio")
    assert complaints(guest) == []


def test_file_system_and_discard(guest):
    guest.run(
        "mkfs.ext4 -q /dev/sda && mount /dev/sda /mnt && dd if=/dev/urandom of=/mnt/file bs=1M count=16 &&"
        "cp /mnt/file /mnt/copy && cmp /mnt/file /mnt/copy && umount /mnt && fsck.ext4 -fn /dev/sda"
    )
    before = int(guest.qmp("qom-get", path="/machine/peripheral/card0/port3", property="trim-sectors"))
    guest.run("blkdiscard -f -o 65536 -l 131072 /dev/sda && blkdiscard -f /dev/sda")
    after = int(guest.qmp("qom-get", path="/machine/peripheral/card0/port3", property="trim-sectors"))
    assert after - before == (1 << 30) // 512
    assert complaints(guest) == []


def left(guest, blocks, byte):
    """How many bytes of these blocks are another byte than this one."""
    return int(guest.run(f"dd if=/dev/sda bs=512 {blocks} iflag=direct | tr -d '{byte}' | wc -c").stdout)


def test_unmap_and_write_same(guest):
    guest.run("dd if=/dev/urandom of=/dev/sda bs=64k count=16 oflag=direct")
    guest.run("sg_write_same --16 -U --lba=129 --num=3 -x 512 /dev/sda")
    assert left(guest, "skip=129 count=3", "\\377") == 0
    guest.run("sg_write_same --lba=300 --num=1000 -x 512 /dev/sda")
    assert left(guest, "skip=300 count=1000", "\\0") == 0
    guest.run("sg_verify --lba=0 --count=2048 /dev/sda")


def test_sanitize_erases_every_member(guest):
    guest.run("dd if=/dev/urandom of=/dev/sda bs=64k count=8 oflag=direct")
    guest.run("sg_sanitize --block --wait --quick /dev/sda")
    assert left(guest, "count=1024", "\\0") == 0
    for port in range(4):
        assert guest.qmp("qom-get", path=f"/machine/peripheral/card0/port{port}", property="secure-erases") == 1


def test_timeout_is_answered_by_abort_task(guest):
    """A member keeps a command: the kernel aborts it with task management and tries again."""
    guest.run("echo 3 > /sys/block/sda/device/timeout; echo 3 > /sys/block/sda/device/eh_timeout")
    path = "/machine/peripheral/card0/port1"
    guest.qmp("qom-set", path=path, property="faults", value="name=held,op=read,stage=fetch,action=drop,count=1")
    guest.run("dd if=/dev/sda of=/dev/null bs=64k count=4 iflag=direct", timeout=120)
    assert "hits=1" in str(guest.qmp("qom-get", path=path, property="faults"))
    guest.qmp("qom-set", path=path, property="faults", value="clear")
    guest.run("dd if=/dev/sda of=/dev/null bs=64k count=64 iflag=direct")


def test_lost_member_under_load(guest):
    """Errors on its share, none elsewhere, nothing hangs. It goes last: the volume stays degraded."""
    load = guest.start_command(
        "fio --name=load --filename=/dev/sda --direct=1 --ioengine=libaio --iodepth=64 --rw=randread --bs=4k "
        "--time_based --runtime=600"
    )
    guest.run("usleep 2000000")
    unplug(guest, 2)
    assert guest.wait(load, timeout=120).status != 0
    for chunk in range(8):
        result = guest.run(f"dd if=/dev/sda of=/dev/null bs=64k skip={chunk} count=1 iflag=direct", check=False)
        assert (result.status != 0) == (chunk % 4 == 2), chunk
    assert any("critical target error" in line for line in guest.kernel_log())
    assert guest.qmp("qom-get", path="/machine/peripheral/card0", property="volume-degraded") == 1
    assert "asc = 0x5d, ascq = 0x10" in guest.run("sg_logs --page=0x2f /dev/sda").stdout
    guest.qmp("device_add", driver="sf2281", bus="card0.0", port=2, drive="card0-drive2", id="member2")
    guest.run("dd if=/dev/sda of=/dev/null bs=64k count=8 iflag=direct")


def test_images_are_those_of_md(boot, tmp_path):
    """Written as a volume, read by md over four disks, written by md, read as a volume."""
    images = []
    for member in range(4):
        image = tmp_path / f"member{member}"
        with open(image, "wb") as file:
            file.truncate(64 << 20)
        images.append(str(image))
    script = "dd if=/dev/sda bs=1M skip=1 count=8 iflag=direct | md5sum"
    build = (
        "mdadm --build /dev/md0 --level=0 --chunk=64 --raid-devices=4 /dev/ssd0 /dev/ssd1 /dev/ssd2 /dev/ssd3 &&"
    )
    first = boot(card="mode=vca", images=images)
    first.run("dd if=/dev/urandom of=/dev/sda bs=1M seek=1 count=8 oflag=direct")
    written = first.run(script).stdout.split()[0]
    first.stop()
    second = boot(images=images)
    found = second.run(build + script.replace("/dev/sda", "/dev/md0")).stdout.split()[0]
    assert found == written
    second.run("dd if=/dev/urandom of=/dev/md0 bs=1M seek=1 count=8 oflag=direct && sync")
    written = second.run(script.replace("/dev/sda", "/dev/md0")).stdout.split()[0]
    second.stop()
    third = boot(card="mode=vca", images=images)
    assert third.run(script).stdout.split()[0] == written
