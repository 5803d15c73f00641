# SPDX-License-Identifier: GPL-2.0-or-later
"""Replay of fio's I/O logs."""
import json


def test_c081_each_action_arrives(sim):
    """C081: write, read, trim and sync of one block: one of each at the drive."""
    sim.file("l.log", "fio version 2 iolog\nssd2 add\nssd2 open\nssd2 write 8192 4096\nssd2 read 8192 4096\n"
                      "ssd2 trim 8192 4096\nssd2 sync 0 0\nssd2 close\n")
    result = sim("--name=r", "--read_iolog=l.log")
    changes = result.json["revosim"]["changes"]
    assert [changes[f"port2.{name}"] for name in ("writes", "reads", "trims", "flushes")] == [1, 1, 1, 1]
    sim.file("bad.log", "fio version 2 iolog\nssd2 add\nssd2 open\nssd2 discard 0 4096\n")
    said = sim.refused("--name=r", "--read_iolog=bad.log")
    assert "bad.log:4" in said and "discard" in said


def trace(lines, gap_us, version=3):
    if version == 3:
        return "fio version 3 iolog\n0 card add\n0 card open\n" + "".join(
            f"{gap_us * i} card read {4096 * i} 4096\n" for i in range(lines))
    return "fio version 2 iolog\ncard add\ncard open\n" + "".join(
        f"card wait {gap_us}\ncard read {4096 * i} 4096\n" for i in range(lines))


def test_c080_replay_keeps_time(sim):
    """C080: a minute of one read a millisecond: no lateness that grows, in both versions."""
    for version in (2, 3):
        sim.file("l.log", trace(60000, 1000, version))
        job = sim("--name=r", "--read_iolog=l.log").job()
        replay = job["revosim_replay"]
        assert replay["commands"] == 60000
        assert replay["late_last_ns"] == 0 and replay["late_max_ns"] < 1_000_000
        assert 59_990 <= job["read"]["runtime"] <= 60_010


def test_time_scale_and_no_stall(sim):
    sim.file("l.log", trace(1000, 1000))
    assert 1990 < sim("--name=r", "--read_iolog=l.log", "--replay_time_scale=50").job()["read"]["runtime"] < 2010
    assert 490 < sim("--name=r", "--read_iolog=l.log", "--replay_time_scale=200").job()["read"]["runtime"] < 510
    quick = sim("--name=r", "--read_iolog=l.log", "--replay_no_stall=1", "--iodepth=8").job()
    assert quick["read"]["runtime"] < 200 and "revosim_replay" not in quick


def test_where_a_replay_goes(sim):
    """Names that are no target need replay_redirect; offsets can be scaled and aligned."""
    sim.file("l.log", "fio version 3 iolog\n0 /dev/sda add\n0 /dev/sda open\n5 /dev/sda read 1000448 4096\n")
    assert "replay_redirect" in sim.refused(*sim.sizes, "--name=r", "--read_iolog=l.log")
    sim("--name=r", "--read_iolog=l.log", "--replay_redirect=ssd3", "--replay_scale=2", "--replay_align=4k",
        "--dump-commands=c.csv")
    port, _, _, lba, sectors, *_ = (sim.folder / "c.csv").read_text().splitlines()[1].split(",")
    assert (port, lba, sectors) == ("3", str(499712 // 512), "8")


def test_c086_repeats_and_ends(sim):
    """C086: entries beyond the end are refused by line, or wrapped and counted; ten repeats of random
    writes over twice a tiny drive are one long trace."""
    size = 8 << 20
    lines = [f"{100 * i} ssd0 write {(i * 7919 * 4096) % (2 * size)} 4096" for i in range(500)]
    sim.file("l.log", "fio version 3 iolog\n0 ssd0 add\n0 ssd0 open\n" + "\n".join(lines) + "\n")
    small = ("--set", f"card.member_bytes={size}", "--set", "card.members=1")
    said = sim.refused(*small, "--name=r", "--read_iolog=l.log")
    assert "l.log:" in said and str(size) in said and "replay_wrap" in said
    result = sim(*small, "--name=r", "--read_iolog=l.log", "--replay_wrap=1", "--loops=10", small=False)
    replay = result.job()["revosim_replay"]
    assert replay["commands"] == 5000 and replay["wrapped"] >= 2000
    assert result.json["revosim"]["changes"]["port0.writes"] == 5000
    assert result.job()["write"]["runtime"] >= 10 * 49


def test_what_was_written_can_be_replayed(sim):
    """write_iolog, then read_iolog: the same commands."""
    sim("--name=a", "--rw=randrw", "--size=4m", "--number_ios=300", "--iodepth=4", "--write_iolog=w.log", "--fsync=50",
        "--dump-commands=a.csv")
    assert (sim.folder / "w.log").read_text().startswith("fio version 3 iolog\n")
    sim("--name=r", "--read_iolog=w.log", "--iodepth=8", "--dump-commands=b.csv")

    def commands(name):
        rows = [line.split(",") for line in (sim.folder / name).read_text().splitlines()[1:]]
        return sorted((row[0], row[2], row[3], row[4]) for row in rows)

    assert commands("a.csv") == commands("b.csv")


def test_lateness_is_told(sim):
    """A trace that the drive cannot keep up with says so."""
    sim.file("l.log", trace(2000, 1))
    replay = json.loads(sim("--name=r", "--read_iolog=l.log").text)["jobs"][0]["revosim_replay"]
    assert replay["late_max_ns"] >= replay["late_last_ns"] > 1_000_000
