# SPDX-License-Identifier: GPL-2.0-or-later
"""A stock kernel meets broken drives: bad sectors, silent ones, crashed firmware (C012, C013, C016, C018, C036)."""

import json
import re

import pytest

from harness import Guest, Options

BAD_LBA = 0x12345
QUICK = "--ioengine=libaio --direct=1 --iodepth=31"
#: 16 MiB around the bad sector: each 4 KiB block is read once, in random order.
AROUND = f"--offset={(BAD_LBA * 512 - (8 << 20)) & ~4095} --size=16m"


@pytest.fixture(scope="module")
def guest():
    with Guest(Options()) as running:
        for number in range(4):
            running.run(f"echo 6 > /sys/block/$(basename $(readlink -f /dev/ssd{number}))/device/timeout")
        yield running


@pytest.fixture
def calm(guest):
    """The same guest without rules and with an empty kernel log."""
    guest.run("dmesg -c > /dev/null")
    yield guest
    for member in range(4):
        fault(guest, "clear", member)


def path(member):
    return f"/machine/peripheral/card0/port{member}"


def fault(guest, text, member=0):
    guest.qmp("qom-set", path=path(member), property="faults", value=text)


def counter(guest, name, member=0):
    return guest.qmp("qom-get", path=path(member), property=name)


def fio(guest, words, member=0, check=True, start=False):
    command = f"fio --name=job{member} --filename=/dev/ssd{member} --output-format=json {words}"
    if start:
        return guest.start_command(command)
    result = guest.run(command, check=check)
    return json.loads(result.stdout[result.stdout.index("{"):])["jobs"][0]


def blamed(guest):
    """(disk, sector) of each error that a reader got."""
    lines = "\n".join(guest.kernel_log())
    return {(dev, int(sector)) for dev, sector in re.findall(r"error, dev (sd\w+), sector (\d+)", lines)}


def disk_name(guest, member):
    return guest.run(f"basename $(readlink -f /dev/ssd{member})").stdout.strip()


def test_c013_smart_polling_under_load(calm):
    """libata lets the queue run empty before each SMART command: never a collision."""
    job = fio(calm, f"--rw=randread --bs=4k {QUICK} --time_based --runtime=8", start=True)
    for _ in range(10):
        calm.run("smartctl -A /dev/ssd0 > /dev/null; test $(($? & 7)) -eq 0")
    calm.wait(job)
    assert counter(calm, "mixed-ncq") == 0
    assert not [line for line in calm.kernel_log("warn") if "ata" in line]


def test_c012_one_bad_sector(calm):
    """Only the read that covers it fails, the rest is whole, and no timeout is waited for."""
    fio(calm, f"--rw=write --bs=64k {QUICK} {AROUND} --verify=crc32c --do_verify=0")
    fault(calm, f"name=bad,action=fail,error=unc,lba={BAD_LBA:#x}")
    job = fio(calm, f"--rw=randread --bs=4k {QUICK} {AROUND} --continue_on_error=read", check=False)
    assert job["total_err"] == 1
    where = blamed(calm)
    assert {dev for dev, _ in where} == {disk_name(calm, 0)}
    assert all(BAD_LBA & ~7 <= sector <= BAD_LBA for _, sector in where)
    recovery = [line for line in calm.kernel_log() if "sas_scsi_recover_host" in line]
    stamps = [float(re.search(r"\[\s*([\d.]+)\]", line)[1]) for line in recovery]
    assert stamps, "libsas has told of its recovery"
    assert max(stamps) - min(stamps) < 20, "seconds of the guest's clock"
    assert not [line for line in calm.kernel_log() if "timed out" in line or "(timeout)" in line]
    fault(calm, "clear")
    fio(calm, f"--rw=read --bs=64k {QUICK} {AROUND} --verify=crc32c --verify_only=1")


def test_bad_sector_heals_when_rewritten(calm):
    fault(calm, f"action=fail,error=unc,lba={BAD_LBA:#x},heal=write")
    read = f"dd if=/dev/ssd0 of=/dev/null bs=512 count=1 skip={BAD_LBA} iflag=direct"
    assert calm.run(read, check=False).status != 0
    calm.run(f"dd if=/dev/zero of=/dev/ssd0 bs=512 count=1 seek={BAD_LBA} oflag=direct")
    calm.run(read)


def test_c016_error_log_does_not_answer(calm):
    """The log read times out once: the link is reset, and the disk works with all its data."""
    fio(calm, f"--rw=write --bs=64k {QUICK} {AROUND} --verify=crc32c --do_verify=0")
    resets = counter(calm, "link-resets")
    fault(calm, f"name=bad,action=fail,error=unc,lba={BAD_LBA:#x},count=1;name=mute,action=drop,op=log10,count=1")
    fio(calm, f"--rw=randread --bs=4k {QUICK} {AROUND} --continue_on_error=read", check=False)
    assert "hits=1" in calm.qmp("qom-get", path=path(0), property="faults").splitlines()[1]
    assert counter(calm, "link-resets") > resets
    fio(calm, f"--rw=read --bs=64k {QUICK} {AROUND} --verify=crc32c --verify_only=1")


def test_c018_one_silent_drive(calm):
    """The others may pause while the host recovers, and lose nothing; no command is leaked."""
    verify = f"--rw=randrw --bs=16k {QUICK} --size=32m --verify=crc32c --verify_fatal=1"
    jobs = [fio(calm, verify, member, start=True) for member in (0, 1, 3)]
    fault(calm, "name=dead,action=drop", 2)
    silent = fio(calm, "--rw=randread --bs=4k --ioengine=libaio --direct=1 --iodepth=8 --size=64k", 2, start=True)
    for job in jobs:
        assert calm.wait(job, timeout=300).status == 0
    fault(calm, "clear", 2)
    calm.wait(silent, timeout=300)
    names = {disk_name(calm, member) for member in (0, 1, 3)}
    assert not [where for where in blamed(calm) if where[0] in names]
    assert not [line for line in calm.kernel_log("warn") if "leak" in line.lower()]


def test_c036_firmware_panic():
    """smartctl shows the generic name and 32 KiB without SMART; reads fail; the others work."""
    words = []
    for number in range(4):
        words += ["-blockdev", f"null-co,node-name=n{number},size={1 << 30},read-zeroes=on"]
        panic = ",panic-mode=on" if number == 1 else ""
        words += ["-device", f"sf2281,bus=card0.0,port={number},drive=n{number}{panic}"]
    with Guest(Options(card="marvell-88se9485", disks=4, qemu=words)) as guest:
        facts = guest.run("smartctl -i /dev/ssd1", check=False).stdout
        assert re.search(r"Device Model:\s+SandForce\{200026BB\}\n", facts)
        assert re.search(r"Serial Number:\s+1\n", facts) and re.search(r"Firmware Version:\s+402ABBR0\n", facts)
        assert "32,768 bytes" in facts and "512 bytes logical, 4096 bytes physical" in facts
        assert re.search(r"SMART support is:\s+Unavailable", facts)
        assert guest.run("blockdev --getsize64 /dev/ssd1").stdout.strip() == "32768"
        assert guest.run("dd if=/dev/ssd1 of=/dev/null count=1 iflag=direct", check=False).status != 0
        for number in (0, 2, 3):
            guest.run(f"dd if=/dev/ssd{number} of=/dev/null bs=1M count=8 iflag=direct")
