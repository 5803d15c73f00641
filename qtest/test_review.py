# SPDX-License-Identifier: GPL-2.0-or-later
"""The review's figures through the path that the reviewer had: SCSI commands to the volume of mode=vca.

The same commands at the same times as in revosim, so each must end at the same nanosecond, too; and the rate over their
middle is what the review measured (AnandTech, OCZ RevoDrive 3 X2 preview, 2011).
"""
import pytest

from revodrive_qtest import storage
from revodrive_qtest.replay import judge, replay, simulate
from revodrive_qtest.volume import Volume

PROFILE = "revodrive3-x2-480"
SIZE = 120034123776  # card.member_bytes
BLOCK = 512
READ = 0x60  # as the commands are dumped

RANDOM = ("--name=job", "--zero_buffers", "--rw=randwrite", "--bs=4k", "--size=8g", "--norandommap")


def atto(kind, count, loops):
    return (f"--name={kind}", "--zero_buffers", f"--rw={kind}", "--bs=1m", "--iodepth=4", "--size=8m",
            f"--loops={loops}", f"--number_ios={count}")


def rate(rows, ends):
    """MB/s of the last job between its first and last quarter, in which the queues fill and drain."""
    kind = rows[-1]["opcode"]
    order = sorted((end, row["sectors"]) for end, row in zip(ends, rows) if row["opcode"] == kind)
    (first, _), *rest = order[len(order) // 4:-len(order) // 4]
    return sum(sectors for _, sectors in rest) * BLOCK * 1e3 / (rest[-1][0] - first)


def run(rig, tmp_path, *job, policy="stripe"):
    rows = simulate(tmp_path, "--profile", PROFILE, f"--placement=vca-{policy}", *job)
    card = rig(f"profile={PROFILE},mode=vca,policy={policy}",
               nodes=[word for i in range(4) for word in storage.null_node(f"d{i}", SIZE)])
    card.core.set_coalescing(0, 0)
    disk = Volume(card.bridge)
    disk.clear_attention()
    disk.run([0])  # like revosim: until it is ready, for which a map is read

    def issue(row):
        if row["opcode"] == READ:
            return disk.issue(disk.read_cdb(row["lba"], row["sectors"]), length=BLOCK * row["sectors"])
        return disk.issue(disk.write_cdb(row["lba"], row["sectors"]), bytes(BLOCK * row["sectors"]))

    ends = replay(card.bridge, rows, issue)
    judge(rows, ends)
    return rate(rows, ends)


def test_random_writes_at_depth_32(rig, tmp_path):
    assert run(rig, tmp_path, *RANDOM, "--iodepth=32", "--number_ios=1500") == pytest.approx(756, rel=0.05)


def test_two_threads_of_64(rig, tmp_path):
    iops = run(rig, tmp_path, *RANDOM, "--iodepth=64", "--numjobs=2", "--number_ios=2000") / 4096 * 1e6
    assert iops == pytest.approx(200_000, rel=0.05)


def test_atto_writes(rig, tmp_path):
    """Up to 1250 MB/s."""
    assert run(rig, tmp_path, *atto("write", 24, 3)) == pytest.approx(1250, rel=0.05)


def test_atto_reads(rig, tmp_path):
    """Just under 1500 MB/s."""
    mb_s = run(rig, tmp_path, *atto("write", 8, 1), *atto("read", 100, 20), "--stonewall")
    assert 0.95 * 1500 < mb_s < 1500


@pytest.mark.parametrize("job", [(*RANDOM, "--iodepth=128", "--number_ios=800"),
                                 (*atto("write", 12, 2), *atto("read", 50, 10), "--stonewall")],
                         ids=["random", "sequential"])
def test_dispatch(rig, tmp_path, job):
    """The other policy's figures are revosim's, whatever they are."""
    assert run(rig, tmp_path, *job, policy="dispatch") > 0
