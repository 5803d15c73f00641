# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives and cards that come and go while a stock Linux uses them."""

import time

import pytest

from harness import Guest, Options, paths
from test_disks import verify_job

DEADLINE_S = 90


def unplug(guest, port):
    """Pulls a member out: a surprise removal, which asks nobody."""
    path = f"/machine/peripheral/card0/port{port}"
    guest.qmp("device_del", id=path if path in created(guest) else f"member{port}")
    names = (f"port{port}", f"member{port}")
    guest.wait_event("DEVICE_DELETED", timeout=20, match=lambda data: data["path"].endswith(names))


def created(guest):
    children = guest.qmp("qom-list", path="/machine/peripheral/card0")
    return {f"/machine/peripheral/card0/{child['name']}" for child in children}


def plug(guest, port):
    guest.qmp("device_add", driver="sf2281", bus="card0.0", port=port, drive=f"card0-drive{port}", id=f"member{port}")


def disks(guest):
    return guest.run("name-members; cd /dev; echo ssd?").stdout.split()


def until(guest, condition, what):
    """Plug events take the driver two seconds and more of guest time; the bound only ends a hang."""
    end = time.monotonic() + DEADLINE_S
    while not condition(guest):
        assert time.monotonic() < end, f"{what}: not within {DEADLINE_S} s; disks are {disks(guest)}"
        guest.run("usleep 300000")



@pytest.fixture(scope="module")
def guest():
    with Guest(Options()) as running:
        yield running


def test_c019_unplug_with_a_full_queue(guest):
    """C019: the pulled disk's I/O fails and its node goes; the others verify clean. Then it comes back."""
    victim = guest.run("readlink /dev/ssd1").stdout.strip()
    others = [name for name in ("sda", "sdb", "sdc", "sdd") if name != victim]
    guest.put("/tmp/verify.fio", verify_job([name[2:] for name in others]).encode())
    verify = guest.start_command("fio /tmp/verify.fio")
    load = guest.start_command(
        f"fio --name=load --filename=/dev/{victim} --direct=1 --ioengine=libaio --iodepth=32 --rw=randread --bs=4k "
        "--time_based --runtime=600"
    )
    guest.run("usleep 3000000")
    unplug(guest, 1)
    assert guest.wait(load, timeout=120).status != 0
    until(guest, lambda g: disks(g) == ["ssd0", "ssd2", "ssd3"], "the removal")
    assert guest.wait(verify, timeout=300).status == 0
    assert [line for line in guest.kernel_log("err") if "I/O error" in line and victim not in line] == []
    plug(guest, 1)
    until(guest, lambda g: disks(g) == ["ssd0", "ssd1", "ssd2", "ssd3"], "the return")
    guest.run("dd if=/dev/ssd1 of=/dev/null bs=64k count=64 iflag=direct")


def test_c022_same_serial_after_each_round(guest):
    serial = guest.run("hdparm -I /dev/ssd2 | sed -n 's/.*Serial Number: *//p'").stdout
    for _ in range(3):
        unplug(guest, 2)
        until(guest, lambda g: "ssd2" not in disks(g), "the removal")
        plug(guest, 2)
        until(guest, lambda g: "ssd2" in disks(g), "the return")
    assert guest.run("hdparm -I /dev/ssd2 | sed -n 's/.*Serial Number: *//p'").stdout == serial


def test_raid5_survives_a_lost_member(guest):
    """md RAID 5 over the four members, one pulled under load, rebuilt after its return, every block right."""
    guest.run(
        "for n in 0 1 2 3; do wipefs -qa /dev/ssd$n; done;"
        "mdadm --create /dev/md0 --run --level=5 --size=64M --assume-clean --bitmap=none --raid-devices=4 "
        "/dev/ssd0 /dev/ssd1 /dev/ssd2 /dev/ssd3"
    )
    # Parity that was assumed clean over zeroed images is clean.
    job = (
        "fio --name=md --filename=/dev/md0 --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite --bs=64k "
        "--size=128m --verify=crc32c --randseed=5"
    )
    load = guest.start_command(f"{job} --do_verify=1 --verify_fatal=1")
    guest.run("usleep 500000")
    victim = guest.run("readlink /dev/ssd3").stdout.strip()
    unplug(guest, 3)
    assert guest.wait(load, timeout=300).status == 0
    until(guest, lambda g: "ssd3" not in disks(g), "the removal")
    assert "[4/3] [UUU_]" in guest.run("cat /proc/mdstat").stdout
    guest.run("mdadm /dev/md0 --remove detached", check=False)
    plug(guest, 3)
    until(guest, lambda g: "ssd3" in disks(g), "the return")
    guest.run("wipefs -qa /dev/ssd3; mdadm /dev/md0 --add /dev/ssd3")
    until(guest, lambda g: "[4/4] [UUUU]" in g.run("cat /proc/mdstat").stdout, f"the rebuild of {victim}")
    guest.run(f"{job} --verify_only", timeout=300)
    guest.run("cd /sys/block/md0/md; echo check > sync_action; until grep -q idle sync_action; do usleep 200000; done")
    assert guest.run("cat /sys/block/md0/md/mismatch_cnt").stdout.strip() == "0"
    guest.run("mdadm --stop /dev/md0")


def test_card_leaves_and_comes_through_its_root_port(guest):
    """The orderly way, under load: the port asks the guest, which lets go of the card; then a new one comes, twice."""
    nodes = [f"card0-drive{port}" for port in range(4)]
    for _ in range(2):
        load = guest.start_command(
            "fio --ioengine=libaio --direct=1 --iodepth=8 --rw=randwrite --bs=16k --time_based --runtime=600 "
            "--name=a --filename=/dev/ssd0 --name=b --filename=/dev/ssd2"
        )
        guest.run("usleep 1000000")
        guest.qmp("device_del", id="card0")
        guest.wait_event("DEVICE_DELETED", timeout=120, match=lambda data: data.get("device") == "card0")
        assert guest.wait(load, timeout=120).status != 0
        until(guest, lambda g: disks(g) == ["ssd?"], "the removal of the card")
        drives = {f"drive{port}": node for port, node in enumerate(nodes)}
        guest.monitor.cmd("device_add", {"driver": "revodrive3-x2", "id": "card0", "bus": "port0", **drives})
        until(guest, lambda g: disks(g) == ["ssd0", "ssd1", "ssd2", "ssd3"], "the new card")
    guest.run("dd if=/dev/ssd0 of=/dev/null bs=64k count=64 iflag=direct")


def test_c023_no_driver_no_consent(boot):
    """C023: with no driver in the guest a member goes at once, and coming back is as easy."""
    guest = boot(judge=False, append="guest.nodriver")
    for _ in range(2):
        unplug(guest, 0)
        plug(guest, 0)
    guest.run("modprobe mvsas && until card-state settled 4; do usleep 50000; done")
    assert disks(guest) == ["ssd0", "ssd1", "ssd2", "ssd3"]


def test_c025_machine_built_by_qmp(boot):
    """C025: a card hot-added to a running guest through a bare root port, its members after it."""
    guest = boot(
        card="none",
        judge=False,
        qemu=["-plugin", paths.plugin(), "-device", "pcie-root-port,id=port0,chassis=1,slot=1"],
    )
    guest.qmp("device_add", driver="marvell-88se9485", id="card0", bus="port0")
    for port in range(4):
        guest.qmp("blockdev-add", driver="null-co", node_name=f"card0-drive{port}", size=1 << 30, read_zeroes=True)
        plug(guest, port)
    guest.run("modprobe mvsas")
    until(guest, lambda g: disks(g) == ["ssd0", "ssd1", "ssd2", "ssd3"], "the disks")
