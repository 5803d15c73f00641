# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that counts instructions as time: its own clock gives the same figures on any host, and revosim's."""

import json
import os
import subprocess

import pytest

from harness import Guest, Options, paths
from test_disks import complaints, verify_job

JOBS = """\
[global]
filename={disk}
zero_buffers=1
size=64m
stonewall
iodepth=1
{more}
[write-128k]
rw=write
bs=128k
[read-128k]
rw=read
bs=128k
[read-4k]
rw=randread
bs=4k
number_ios=1000
[write-4k]
rw=randwrite
bs=4k
number_ios=1000
"""
DRIVER = ("host.coalesce_count=511", "host.coalesce_us=128")  # as mvsas programs the card
REVOSIM = os.environ.get("REVOSIM", os.path.join(paths.ROOT, "build", "revosim"))


def results(output):
    jobs = json.loads(output)["jobs"]
    return {job["jobname"]: job["read" if "read" in job["jobname"] else "write"] for job in jobs}


def rates(jobs):
    return {name: job["bw_bytes"] for name, job in jobs.items()}


@pytest.fixture(scope="module")
def guest():
    with Guest(Options(icount="shift=0,sleep=off")) as running:
        yield running


def test_fio_sees_what_revosim_computes(guest, tmp_path):
    """Within 10 %, at depth 1: what the guest needs to submit a command is taken from fio, its other work is little."""
    guest.put("/tmp/jobs.fio", JOBS.format(disk="/dev/ssd0", more="direct=1\nioengine=libaio").encode())
    seen = results(guest.run("fio --output-format=json /tmp/jobs.fio", timeout=600).stdout)
    submit_ns = round(seen["write-4k"]["slat_ns"]["mean"])
    jobs = tmp_path / "jobs.fio"
    jobs.write_text(JOBS.format(disk="ssd0", more=""), encoding="ascii")
    command = [REVOSIM, f"--set=card.member_bytes={1 << 30}", *(f"--set={word}" for word in DRIVER),
               f"--set=host.submit_ns={submit_ns}"]
    done = subprocess.run([*command, "--output-format=json", str(jobs)], check=True, capture_output=True, text=True)
    print("submission:", submit_ns, "ns")
    assert rates(seen) == pytest.approx(rates(results(done.stdout)), rel=0.1)


def test_no_io_is_late(guest):
    guest.put("/tmp/verify.fio", verify_job().replace("size=48m", "size=4m").encode())
    guest.run("fio /tmp/verify.fio")
    assert complaints(guest) == []
    late = guest.qmp("qom-get", path="/machine/peripheral/card0", property="late-ios")
    assert late == 0
