# SPDX-License-Identifier: GPL-2.0-or-later
"""One model, two hosts: what revosim computes is what QEMU's card does, to the nanosecond.

revosim runs a job and dumps its ATA commands with their times. The same commands go to the card in
QEMU at the same times (they follow interrupts, so the machine is there at the very nanosecond); they
must end at the same times, too.
"""
import csv
import os
import pathlib
import subprocess

import pytest

from revodrive_qtest import ata
from revodrive_qtest.phy import MS

ROOT = pathlib.Path(__file__).resolve().parents[1]
# As the driver of these tests programs it, like Linux.
COALESCING = ("--set=host.coalesce_count=511", "--set=host.coalesce_us=128")
REVOSIM = os.environ.get("REVOSIM", str(ROOT / "build" / "revosim"))
SIZE = 64 << 20  # of the rig's images

JOBS = {
    "reads": ["--rw=randread", "--bs=4k", "--iodepth=8", "--number_ios=400"],
    "written": ["--rw=randrw", "--bs=8k", "--size=2m", "--loops=2", "--iodepth=16"],
    "deep": ["--rw=randrw", "--bs=4k", "--iodepth=100", "--number_ios=600"],
    # Up to what has one piece of memory for each SSD: the number of PRDs is time, too.
    "sizes": ["--rw=rw", "--bsrange=4k-192k", "--iodepth=6", "--number_ios=150"],
    "syncs": ["--rw=randwrite", "--bs=16k", "--iodepth=4", "--number_ios=200", "--fsync=25", "--end_fsync=1"],
    "trims": ["--rw=randtrimwrite", "--bs=8k", "--iodepth=4", "--number_ios=200"],
}


def simulate(folder, job):
    """The job's commands, in order of submission."""
    subprocess.run([REVOSIM, "--set", f"card.member_bytes={SIZE}", *COALESCING, "--dump-commands=c.csv",
                    "--name=job", "--zero_buffers", *job], cwd=folder, check=True, capture_output=True, timeout=120)
    with open(folder / "c.csv", encoding="ascii", newline="") as file:
        rows = [{key: int(value, 0) for key, value in row.items()} for row in csv.DictReader(file)]
    return sorted(rows, key=lambda row: row["number"])


def command_of(row):
    if row["opcode"] == 0x60:
        return ata.read_ncq(row["tag"], row["lba"], row["sectors"])
    if row["opcode"] == 0x61:
        return ata.write_ncq(row["tag"], row["lba"], bytes(512 * row["sectors"]))
    if row["opcode"] == 0x06:
        return ata.trim([(row["lba"], row["sectors"])])
    return ata.Command(row["opcode"])


@pytest.mark.parametrize("name", JOBS)
def test_same_completion_times(rig, tmp_path, name):
    rows = simulate(tmp_path, JOBS[name])
    assert len(rows) > 100
    card = rig()
    disks = card.disks
    card.bridge.sleep(100 * MS)
    base = card.machine.now_ns
    requests = []
    while len(requests) < len(rows):
        row = rows[len(requests)]
        now = card.machine.now_ns - base
        assert now <= row["submit_ns"], f"command {row} should have gone out already at {now}"
        if now == row["submit_ns"]:
            requests.append(disks[row["port"]].issue(command_of(row)))
        else:
            count = sum(r.done() for r in requests)
            card.bridge.run_until(lambda: sum(r.done() for r in requests) > count, what="an interrupt")
    card.bridge.wait(*requests)
    ends = [request.completion.time_ns - base for request in requests]
    wrong = [(row, end) for row, end in zip(rows, ends) if row["done_ns"] != end]
    assert not wrong, f"{len(wrong)} of {len(rows)} differ, first {wrong[0]}"
