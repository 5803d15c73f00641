# SPDX-License-Identifier: GPL-2.0-or-later
"""One model, two hosts: what revosim computes is what QEMU's card does, to the nanosecond.

revosim runs a job and dumps its ATA commands with their times. The same commands go to the card in
QEMU at the same times; they must end at the same times, too.
"""
import pytest

from revodrive_qtest import ata
from revodrive_qtest.replay import judge, replay, simulate

# As the driver of these tests programs it, like Linux.
COALESCING = ("--set=host.coalesce_count=511", "--set=host.coalesce_us=128")
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
    rows = simulate(tmp_path, "--set", f"card.member_bytes={SIZE}", *COALESCING, "--name=job", "--zero_buffers",
                    *JOBS[name])
    assert len(rows) > 100
    card = rig()
    judge(rows, replay(card.bridge, rows, lambda row: card.disks[row["port"]].issue(command_of(row))))
