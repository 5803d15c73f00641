# SPDX-License-Identifier: GPL-2.0-or-later
"""C052: the machine is saved and restored, idle and under load, and the guest goes on."""

from test_disks import complaints, verify_job


def test_idle_snapshot_brings_back_the_older_data(boot):
    guest = boot(image_format="qcow2")
    guest.run("echo older | dd of=/dev/ssd0 conv=fsync; echo 3 > /proc/sys/vm/drop_caches")
    guest.save("idle")
    guest.run("echo newer | dd of=/dev/ssd0 conv=fsync")
    guest.load("idle")
    assert guest.run("dd if=/dev/ssd0 iflag=direct count=1 | head -c 5").stdout == "older"
    assert complaints(guest) == []


def test_busy_snapshot_goes_on(boot):
    """Saved while queues are full; fio checks every block both in the first and in the restored life."""
    guest = boot(image_format="qcow2")
    guest.put("/tmp/verify.fio", verify_job().encode())
    guest.run("sh -c 'fio /tmp/verify.fio > /tmp/out 2>&1; echo $? > /tmp/status' >/dev/null 2>&1 </dev/null &")
    guest.run("until grep -q . /tmp/out 2>/dev/null; do usleep 100000; done")
    for name in ("busy1", "busy2", "busy3"):
        guest.save(name)
    finished = "until [ -s /tmp/status ]; do usleep 200000; done; cat /tmp/status"
    assert guest.run(finished).stdout.strip() == "0"
    for name in ("busy1", "busy3"):
        guest.load(name)
        assert guest.run(finished).stdout.strip() == "0", guest.run("cat /tmp/out").stdout
        assert complaints(guest) == []
