# SPDX-License-Identifier: GPL-2.0-or-later
"""hdparm's security cycle, firmware download and host protected area, and TRIM under a file system, from
a stock kernel. Power cycles of an SSD are a removal and a return."""

import pathlib
import subprocess

import pytest

from harness import Guest, Options
from test_disks import complaints

SURE = "--yes-i-know-what-i-am-doing"
MARKER = "ERASE-ME-MARKER!"
MAKE_FIRMWARE = pathlib.Path(__file__).resolve().parents[2] / "scripts/make-firmware"


@pytest.fixture(scope="module")
def guest():
    with Guest(Options(image_size="128M")) as running:
        yield running


def settle(guest):
    guest.run("until card-state settled 4; do usleep 50000; done; name-members", timeout=120)


def power_cycle(guest, port):
    guest.qmp("device_del", id=f"card0/port{port}")
    guest.wait_event("DEVICE_DELETED")
    guest.run("sleep 3.5")
    guest.qmp("device_add", driver="sf2281", bus="card0.0", port=port, drive=f"card0-drive{port}",
              id=f"again{port}")
    settle(guest)


@pytest.fixture(autouse=True)
def quiet(request, guest):
    """Nothing in the kernel's log, except where a locked drive refuses what Linux reads by itself."""
    before = len(complaints(guest))
    yield
    if "locked" not in request.keywords:
        assert complaints(guest)[before:] == []


def write_marker(guest, disk):
    guest.put("/tmp/marker", MARKER.encode() * (4 << 20 >> 4))
    guest.run(f"dd if=/tmp/marker of={disk} bs=1M oflag=direct")


def report_errors(guest, disk):
    """Has libata report errors in the form that hdparm reads; with the other one hdparm prints "bad or
    missing sense data" and ends with status 0, whatever the drive."""
    guest.run(f"sg_wr_mode --page=0xa --contents=0a,0a,06,00,00,00,00,00,ff,ff,00,1e {disk}")


def counter(guest, port, name):
    return guest.qmp("qom-get", path=f"/machine/peripheral/card0/port{port}", property=name)


def security_block(guest, disk):
    """hdparm's lines below "Security:", without the indentation."""
    text = guest.run(f"hdparm -I {disk}").stdout.split("Security:")[1]
    return [" ".join(line.split()) for line in text.splitlines()]


def test_c039_security_block(guest):
    block = security_block(guest, "/dev/ssd1")
    for line in ("supported", "not enabled", "not locked", "not frozen", "supported: enhanced erase"):
        assert line in block
    assert any("2min for SECURITY ERASE UNIT. 2min for ENHANCED SECURITY ERASE UNIT." in line
               for line in block)


def test_c039_c044_erase(guest):
    disk = "/dev/ssd1"
    write_marker(guest, disk)
    assert MARKER.encode() in pathlib.Path(guest.images[1]).read_bytes()
    guest.run(f"hdparm --user-master u --security-set-pass p {disk}")
    assert "enabled" in security_block(guest, disk)
    took = guest.run(f"t=$(cut -d. -f1 /proc/uptime); hdparm --user-master u --security-erase p {disk} >&2;"
                     "echo $(($(cut -d. -f1 /proc/uptime) - t))", timeout=300)
    assert int(took.stdout) <= 120
    assert "not enabled" in security_block(guest, disk)
    guest.run(f"cmp -n $(blockdev --getsize64 {disk}) {disk} /dev/zero", timeout=300)
    assert not pathlib.Path(guest.images[1]).read_bytes().strip(b"\0")
    guest.run(f"hdparm --user-master u --security-set-pass p {disk}")
    guest.run(f"hdparm --user-master u --security-erase-enhanced p {disk}", timeout=300)


def test_c040_freeze(guest):
    disk = "/dev/ssd3"
    report_errors(guest, disk)
    guest.run(f"hdparm --security-freeze {disk}")
    assert "frozen" in security_block(guest, disk)
    assert guest.run(f"hdparm --user-master u --security-set-pass p {disk}", check=False).status != 0
    guest.run(f"dd if={disk} of=/dev/null count=8 iflag=direct")


@pytest.mark.locked
def test_c041_unlock(guest):
    disk = "/dev/ssd3"
    power_cycle(guest, 3)  # and thaws it (C040)
    assert "not frozen" in security_block(guest, disk)
    guest.run(f"echo {MARKER} | dd of={disk} seek=64 conv=fsync")
    guest.run(f"hdparm --user-master u --security-set-pass secret {disk}")
    guest.qmp("device_del", id="again3")
    guest.wait_event("DEVICE_DELETED")
    guest.run("sleep 3.5")
    guest.qmp("device_add", driver="sf2281", bus="card0.0", port=3, drive="card0-drive3", id="once3")
    settle(guest)
    assert "locked" in security_block(guest, disk)
    report_errors(guest, disk)
    assert guest.run(f"dd if={disk} of=/dev/null count=1 iflag=direct", check=False).status != 0
    assert guest.run(f"hdparm --user-master u --security-unlock wrong {disk}", check=False).status != 0
    guest.run(f"hdparm --user-master u --security-unlock secret {disk}")
    assert guest.run(f"dd if={disk} skip=64 count=1 2>/dev/null | head -c {len(MARKER)}").stdout == MARKER
    guest.run(f"hdparm --user-master u --security-disable secret {disk}")
    assert "not enabled" in security_block(guest, disk)


@pytest.mark.parametrize("mode", ["--fwdownload", "--fwdownload-mode3-max", "--fwdownload-mode7"])
def test_firmware_download(guest, tmp_path, mode):
    disk = "/dev/ssd2"
    revision = f"2.5{len(mode) % 10}"
    image = tmp_path / "fw"
    subprocess.run([str(MAKE_FIRMWARE), revision, str(image), "--size", "32768"], check=True)
    good = image.read_bytes()
    guest.put("/tmp/good", good)
    guest.put("/tmp/bad", good[:-1] + b"?")
    sure = f"{SURE} --please-destroy-my-drive"
    report_errors(guest, disk)
    before = guest.run(f"hdparm -I {disk} | grep Firmware").stdout
    assert guest.run(f"hdparm {sure} {mode} /tmp/bad {disk}", check=False).status != 0
    assert guest.run(f"hdparm -I {disk} | grep Firmware").stdout == before
    guest.run(f"hdparm {sure} {mode} /tmp/good {disk}")
    assert revision in guest.run(f"hdparm -I {disk} | grep Firmware").stdout


def test_host_protected_area(guest):
    disk = "/dev/ssd2"
    native = int(guest.run(f"blockdev --getsz {disk}").stdout)
    assert f"{native}/{native}" in guest.run(f"hdparm -N {disk}").stdout
    guest.run(f"hdparm {SURE} -N {native // 2} {disk}")
    shown = guest.run(f"hdparm -N {disk}").stdout
    assert f"{native // 2}/{native}" in shown and "HPA is enabled" in shown
    guest.run(f"hdparm {SURE} -N {native} {disk}")
    assert f"{native}/{native}" in guest.run(f"hdparm -N {disk}").stdout


def test_c027_c028_trim(guest):
    disk = "/dev/ssd0"
    name = guest.run(f"basename $(readlink -f {disk})").stdout.strip()
    limit = int(guest.run(f"cat /sys/block/{name}/queue/discard_max_bytes").stdout)
    assert limit == 2147450880
    sectors = int(guest.run(f"blockdev --getsz {disk}").stdout)
    before = counter(guest, 0, "trim-sectors")
    guest.run(f"blkdiscard {disk}")
    assert counter(guest, 0, "trim-sectors") - before == sectors
    write_marker(guest, disk)
    guest.run(f"blkdiscard -o 1M -l 1M {disk}")
    read = f"dd if={disk} bs=1M skip=1 count=1 iflag=direct 2>/dev/null | md5sum"
    first = guest.run(read).stdout
    assert first == guest.run(read).stdout
    zeroes = guest.run("head -c 1M /dev/zero | md5sum").stdout
    assert first != zeroes, "repeatable, and not zeroes"


def test_c029_c031_online_discard(guest):
    """ext4 with -o discard under load: plain TRIM only, and as many sectors as the guest asked for."""
    disk = "/dev/ssd0"
    name = guest.run(f"basename $(readlink -f {disk})").stdout.strip()
    guest.run(f"mkfs.ext4 -q -E nodiscard {disk}")
    asked = f"awk '{{print $12, $14}}' /sys/block/{name}/stat"
    first = [int(word) for word in guest.run(asked).stdout.split()]
    trimmed = counter(guest, 0, "trim-sectors")
    guest.run(f"mount -o discard {disk} /mnt")
    load = guest.start_command(
        "fio --name=load --directory=/mnt --rw=randwrite --bs=4k --size=24m --ioengine=libaio --direct=1"
        " --iodepth=31 --time_based --runtime=20 --verify=crc32c --verify_backlog=64")
    guest.run("for i in 1 2 3 4 5 6; do dd if=/dev/urandom of=/mnt/x$i bs=1M count=6 2>/dev/null; sync;"
              " rm /mnt/x$i; sync; done", timeout=300)
    guest.wait(load)
    guest.run("umount /mnt")
    last = [int(word) for word in guest.run(asked).stdout.split()]
    assert last[0] > first[0]
    assert counter(guest, 0, "trim-sectors") - trimmed == last[1] - first[1]
    guest.run(f"fsck.ext4 -fn {disk}")


def test_c027_over_a_reboot(guest):
    read = "dd if=/dev/ssd0 bs=1M skip=40 count=1 iflag=direct 2>/dev/null | md5sum"
    guest.run("blkdiscard -o 40M -l 1M /dev/ssd0")
    first = guest.run(read).stdout
    guest.reboot()
    assert guest.run(read).stdout == first
