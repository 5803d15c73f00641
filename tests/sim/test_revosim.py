# SPDX-License-Identifier: GPL-2.0-or-later
"""revosim end to end: what a job does, what it prints, what it refuses."""
import json
import re
import shutil
import signal
import subprocess

import pytest

MIB = 1 << 20
DIRECTIONS = ("read", "write", "trim")


def ios(job):
    return tuple(job[direction]["total_ios"] for direction in DIRECTIONS)


@pytest.mark.parametrize("kind, wanted", [
    ("read", (256, 0, 0)), ("write", (0, 256, 0)), ("randread", (256, 0, 0)), ("randwrite", (0, 256, 0)),
    ("trim", (0, 0, 256)), ("randtrim", (0, 0, 256)), ("trimwrite", (0, 256, 256))])
def test_kinds(sim, kind, wanted):
    """1 MiB in blocks of 4 KiB, each kind; the drives saw as many commands."""
    result = sim("--name=a", f"--rw={kind}", "--size=1m", "--filename=ssd1", "--iodepth=4")
    assert ios(result.job()) == wanted
    changes = result.json["revosim"]["changes"]
    counted = tuple(changes.get(f"port1.{name}", 0) for name in ("reads", "writes", "trims"))
    assert counted == wanted
    assert "port0.reads" not in changes and "port0.writes" not in changes


def test_mix(sim):
    job = sim("--name=a", "--rw=randrw", "--rwmixread=70", "--number_ios=4000", "--iodepth=8").job()
    assert job["read"]["total_ios"] + job["write"]["total_ios"] == 4000
    assert 0.66 < job["read"]["total_ios"] / 4000 < 0.74


def test_block_sizes(sim):
    job = sim("--name=a", "--rw=randrw", "--bs=4k,16k", "--number_ios=500").job()
    assert job["read"]["io_bytes"] == 4096 * job["read"]["total_ios"]
    assert job["write"]["io_bytes"] == 16384 * job["write"]["total_ios"]
    split = sim("--name=a", "--rw=randread", "--bssplit=4k/75:64k/25", "--number_ios=2000").job()["read"]
    assert 17000 < split["io_bytes"] / split["total_ios"] < 21500


def test_depth_is_reached_and_not_passed(sim):
    deep = sim("--name=a", "--rw=randread", "--iodepth=16", "--number_ios=2000", "--filename=ssd0").job()
    assert deep["iodepth_level"]["16"] > 1 and deep["iodepth_level"]["32"] == 0
    flat = sim("--name=a", "--rw=randread", "--number_ios=200", "--filename=ssd0").job()
    assert flat["iodepth_level"]["1"] == 100
    assert deep["read"]["iops"] > 2 * flat["read"]["iops"]


def test_runtime_and_ramp(sim):
    job = sim("--name=a", "--rw=randread", "--runtime=200ms", "--time_based", "--size=1m", "--ramp_time=100ms").job()
    assert 199 <= job["read"]["runtime"] <= 201
    whole = sim("--name=a", "--rw=randread", "--runtime=300ms", "--time_based", "--size=1m").job()
    assert 0.6 < job["read"]["total_ios"] / whole["read"]["total_ios"] < 0.7


def test_rates_and_think_time(sim):
    job = sim("--name=a", "--rw=randread", "--rate_iops=1000", "--runtime=500ms").job()
    assert 495 <= job["read"]["total_ios"] <= 505
    job = sim("--name=a", "--rw=read", "--rate=4m", "--runtime=500ms").job()
    assert 0.98 < job["read"]["io_bytes"] / (2 * MIB) < 1.02
    job = sim("--name=a", "--rw=randread", "--thinktime=10ms", "--thinktime_blocks=2", "--runtime=500ms").job()
    assert 90 <= job["read"]["total_ios"] <= 102


@pytest.mark.parametrize("options, reads, writes", [
    ("--rate_iops=1000,200", (1950, 2001), (390, 401)), ("--rate_iops=,100", (5000, 10**6), (195, 201)),
    ("--rate=4m,1m", (1950, 2049), (490, 513)), ("--rate_iops=500 --rwmixread=90", (990, 1001), (990, 1001))])
def test_each_direction_of_a_mix_has_its_rate(sim, options, reads, writes):
    """As with fio 3.33, whatever the mix says: its share is of what the rates leave open."""
    job = sim("--name=a", "--rw=randrw", "--runtime=2s", "--time_based", *options.split()).job()
    assert reads[0] <= job["read"]["total_ios"] <= reads[1]
    assert writes[0] <= job["write"]["total_ios"] <= writes[1]


def test_shares_are_exact(sim):
    """As with fio 3.33: nothing of the whole is lost, and a share of it begins with a whole block."""
    def offsets(*options):
        sim("--set", "card.member_bytes=16777216", "--name=a", "--write_iolog=a.log", *options, small=False)
        lines = (sim.folder / "a.log").read_text().splitlines()
        return [int(line.split()[-2]) for line in lines if "read " in line]

    whole = 64 * MIB
    assert offsets("--rw=read", "--bs=128k", "--size=100%") == list(range(0, whole, 131072))
    assert offsets("--rw=read", "--offset=50%") == list(range(whole // 2, whole, 4096))
    assert offsets("--rw=read", "--offset=33%") == list(range(22147072, whole, 4096))


def test_syncs_of_a_job_that_only_reads_are_none(sim):
    sim.file("a.fio", "[global]\nsize=1m\nfsync=32\n[r]\nrw=read\n[w]\nrw=write\n")
    assert [job["sync"]["total_ios"] for job in sim("a.fio").json["jobs"]] == [0, 8]


def test_waves_and_groups(sim):
    """stonewall: the second job starts when the first is done; group_reporting joins clones."""
    sim.file("a.fio", "[global]\nsize=1m\ngroup_reporting\n[one]\nrw=write\nnumjobs=3\n[two]\nstonewall\nrw=read\n")
    result = sim("--dump-commands=c.csv", "a.fio")
    jobs = result.json["jobs"]
    assert [(job["jobname"], job["groupid"]) for job in jobs] == [("one", 0), ("two", 1)]
    assert ios(jobs[0]) == (0, 768, 0) and ios(jobs[1]) == (256, 0, 0)
    rows = [line.split(",") for line in (sim.folder / "c.csv").read_text().splitlines()[1:]]
    last_write = max(int(row[6]) for row in rows if row[2] == "0x61")
    assert min(int(row[5]) for row in rows if row[2] == "0x60") >= last_write


def test_syncs(sim):
    job = sim("--name=a", "--rw=write", "--size=1m", "--fsync=64", "--end_fsync=1", "--filename=ssd0").job()
    assert job["sync"]["total_ios"] == 5


def test_random_map_covers_everything_once(sim):
    sim("--name=a", "--rw=randread", "--filename=ssd0", "--size=4m", "--dump-commands=c.csv")
    rows = [line.split(",") for line in (sim.folder / "c.csv").read_text().splitlines()[1:]]
    assert sorted(int(row[3]) for row in rows) == list(range(0, 8192, 8))
    assert [int(row[3]) for row in rows] != sorted(int(row[3]) for row in rows)


def test_volume_spreads_over_all_ssds(sim):
    result = sim("--name=a", "--rw=write", "--bs=256k", "--size=8m")
    assert [result.json["revosim"]["changes"][f"port{port}.write_sectors"] for port in range(4)] == [4096] * 4


def test_dispatch_fills_the_idle_ssd(sim):
    """Requests go whole to one SSD each, and evenly; what was written is read from there."""
    result = sim("--placement=dispatch", "--name=a", "--rw=randwrite", "--bs=64k", "--iodepth=16", "--size=32m")
    written = [result.json["revosim"]["changes"][f"port{port}.writes"] for port in range(4)]
    assert sum(written) == 512 and max(written) - min(written) < 16


def test_host_cost_is_paid(sim):
    plain = sim("--name=a", "--rw=randread", "--number_ios=200", "--filename=ssd0").job()["read"]
    cost = sim("--set", "host.submit_ns=5000", "--set", "host.complete_ns=7000", "--name=a", "--rw=randread",
               "--number_ios=200", "--filename=ssd0").job()["read"]
    assert cost["slat_ns"]["mean"] == 5000 and plain["slat_ns"]["mean"] == 0
    assert cost["lat_ns"]["mean"] - cost["clat_ns"]["mean"] == pytest.approx(5000)
    assert cost["clat_ns"]["min"] - plain["clat_ns"]["min"] == pytest.approx(7000, abs=500)


def test_c084_same_input_same_output(sim):
    """C084: two runs agree to the last byte; another seed gives another run."""
    arguments = ("--name=a", "--rw=randrw", "--iodepth=32", "--numjobs=2", "--number_ios=3000", "--refill_buffers",
                 "--random_distribution=zipf:1.1", "--timeline=t.json", "--dump-commands=c.csv")
    seen = []
    for _ in range(2):
        text = sim(*arguments).text
        seen.append((text, (sim.folder / "t.json").read_bytes(), (sim.folder / "c.csv").read_bytes()))
    assert seen[0] == seen[1]
    assert sim(*arguments, "--randseed=5").text != seen[0][0]


def test_c073_settings_are_obeyed_or_refused(sim):
    """C073: an unknown key stops the start, a value in force can be read, a changed one moves results."""
    assert "unknown key 'colour'" in sim.refused("--set", "flash.colour=1", "--name=a")
    assert "no_such" in sim.refused("--profile=no_such", "--name=a")
    shown = sim.run("--set", "flash.read_page_us=150", "--show-settings").text
    assert "flash.read_page_us=150\n" in shown and "card.members=4\n" in shown
    job = ("--name=a", "--rw=randread", "--number_ios=300", "--filename=ssd0", "--set", "host.coalesce_count=0")
    sim("--state=s", "--name=f", "--rw=write", "--bs=128k", "--iodepth=8", "--set", "host.coalesce_count=0")
    slow = sim("--set", "sata.speed=1", *job).job()["read"]["clat_ns"]["mean"]
    assert slow > sim(*job).job()["read"]["clat_ns"]["mean"] * 1.01


def test_c088_sizes_that_disagree(sim):
    """C088: a size that makes no drive, or no room for a block, is refused with the numbers."""
    assert "1048577" in sim.refused("--set", "card.member_bytes=1048577", "--name=a")
    assert "999" in sim.refused("--set", "card.member_bytes=999", "--name=a")
    said = sim.refused(*sim.sizes, "--name=a", "--filename=ssd0", "--offset=300m")
    assert "268435456" in said and "314572800" in said
    assert "ssd0 to ssd3" in sim.refused("--name=a", "--filename=ssd4")


@pytest.mark.parametrize("option", ["unlink=1", "verify=crc32c", "foo=1", "bs=3000", "buffered=1", "rw=readwrote"])
def test_unsupported_options_name_file_and_line(sim, option):
    sim.file("j.fio", f"[global]\nsize=1m\n\n[a]\n{option}\n")
    said = sim.refused("j.fio")
    assert "j.fio:5" in said and option in said


def test_help_version_profiles(sim):
    assert "--timeline" in sim.run("--help").text
    assert re.fullmatch(r"revosim \d+\.\d+\.\d+\n", sim.run("--version").text)
    assert "revodrive3-x2-480" in sim.run("--list-profiles").text.split()


def test_json_has_fios_schema(sim, tmp_path):
    """Every key that fio itself writes for a job is there; fio's own tool reads the file."""
    arguments = ["--name=a", "--rw=randrw", "--number_ios=100", "--bs=4k", "--iodepth=4", "--size=4m"]
    if not shutil.which("fio"):
        pytest.fail("fio is missing: scripts/setup installs it")
    real = json.loads(subprocess.run(["fio", "--ioengine=null", "--output-format=json", *arguments], text=True,
                                     check=True, capture_output=True, cwd=tmp_path).stdout)
    ours = sim(*arguments).json

    def missing(wanted, got, path=""):
        if isinstance(wanted, dict):
            for key, value in wanted.items():
                if key not in got:
                    yield f"{path}/{key}"
                elif key not in ("job options", "percentile"):
                    yield from missing(value, got[key], f"{path}/{key}")

    assert list(missing(real["jobs"][0], ours["jobs"][0])) == []
    assert set(real) - {"global options"} <= set(ours)


def test_fios_tool_reads_json_plus(sim):
    """fio_jsonplus_clat2csv makes a table of the bins; its counts are those of the job."""
    result = sim("--output-format=json+", "--name=a", "--rw=randread", "--number_ios=300", "--iodepth=4")
    sim.file("plus.json", result.text)
    subprocess.run(["fio_jsonplus_clat2csv", "plus.json", "t.csv"], cwd=sim.folder, check=True, capture_output=True)
    rows = [line.split(", ") for line in (sim.folder / "t_job0.csv").read_text().splitlines()]
    column = rows[0].index("read_clat_ns_count")
    assert sum(int(row[column] or 0) for row in rows[1:]) == 300


def test_disk_use(sim):
    """An SSD that always has work is busy all the time, one without is idle."""
    result = sim("--name=a", "--rw=randread", "--number_ios=500", "--iodepth=4", "--filename=ssd1").json
    use = {disk["name"]: disk for disk in result["disk_util"]}
    assert use["ssd1"]["util"] > 99 and use["ssd0"]["util"] == 0
    assert use["ssd1"]["read_ios"] == 500 and use["ssd1"]["read_ticks"] == use["ssd1"]["in_queue"] > 0


def test_placement_is_checked(sim):
    for placement in ("mirror", "stripe:5000", "dispatch:8m", "stripe:4k:4k"):
        assert placement in sim.refused(f"--placement={placement}", "--name=a", "--filename=ssd0", "--size=4k")
    assert "--state" in sim.refused("--placement=dispatch", "--state=s", "--name=a")


def test_stages_add_up(sim):
    stages = sim("--name=a", "--rw=randrw", "--iodepth=16", "--number_ios=2000").json["revosim"]["stages"]
    assert set(stages) >= {"read", "write"}
    for kind in stages.values():
        parts = sum(value for name, value in kind.items() if name not in ("commands", "mean_ns"))
        assert parts == pytest.approx(kind["mean_ns"], rel=1e-9)


def test_timeline_is_a_trace(sim):
    """One track a resource, no two spans of one overlap, all inside the window."""
    sim("--name=a", "--rw=randrw", "--iodepth=8", "--filename=ssd0", "--number_ios=500", "--timeline=t.json",
        "--timeline-window=1ms-3ms")
    events = json.loads((sim.folder / "t.json").read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert any("sata" in name for name in names.values()) and any("die" in name for name in names.values())
    spans = {}
    for event in events:
        if event["ph"] == "X":
            assert event["ts"] < 2000 and event["ts"] + event["dur"] > 0
            spans.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    for track, list_ in spans.items():
        list_.sort()
        for (_, end), (start, _) in zip(list_, list_[1:]):
            assert start >= end - 1e-6, names[track]


def test_histogram(sim):
    job = sim("--name=a", "--rw=randread", "--number_ios=500", "--histogram=h.json").job()
    buckets = json.loads((sim.folder / "h.json").read_text())["read"]
    assert sum(bucket["count"] for bucket in buckets) == 500
    assert buckets[0]["from_ns"] <= job["read"]["clat_ns"]["min"] <= buckets[0]["to_ns"]
    sim("--name=a", "--rw=randread", "--number_ios=500", "--histogram=h.txt")
    assert "read: 500\n" in (sim.folder / "h.txt").read_text()


def test_state_goes_on(sim):
    """Drives keep what an earlier run did to them; another card, or a damaged file, is refused."""
    sim("--state=s", "--name=f", "--rw=write", "--bs=128k", "--size=64m")
    again = sim("--state=s", "--name=r", "--rw=randread", "--number_ios=100").json["revosim"]
    assert sum(again["counters"][f"port{port}.write_sectors"] for port in range(4)) == 64 * MIB // 512
    said = sim.refused("--state=s", "--name=r")
    assert "--state=s" in said and "268435456" in said
    assert "profile" in sim.refused("--state=s", *sim.sizes, "--set", "sata.speed=2", "--name=r")
    bytes_ = bytearray((sim.folder / "s").read_bytes())
    bytes_[len(bytes_) // 2] ^= 1
    (sim.folder / "s").write_bytes(bytes_)
    assert "damaged" in sim.refused("--state=s", *sim.sizes, "--name=r")


def test_c087_signs_of_life_and_interrupt(sim):
    """C087: a long run shows progress; SIGINT ends it with partial results and status 130."""
    process = sim.start("--output-format=json", "--name=f", "--rw=randread", "--runtime=100h", "--time_based")
    line = process.stderr.readline()  # comes after a second, or the test hangs
    assert re.search(r"% done, virtual time .* IOPS", line)
    process.send_signal(signal.SIGINT)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    result = json.loads(text)
    assert result["revosim"]["interrupted"] == 1 and result["jobs"][0]["read"]["total_ios"] > 0


def test_c070_depth_never_hurts(sim):
    """C070: more in flight is never slower by more than 5 %."""
    rates = [sim("--name=a", "--rw=randread", f"--iodepth={depth}", "--number_ios=3000").job()["read"]["iops"]
             for depth in (1, 4, 16, 64)]
    assert all(later > 0.95 * earlier for earlier, later in zip(rates, rates[1:]))


def test_bytes_of_a_map_are_not_the_hosts(sim):
    """A flush after every few writes: the map is a good part of what the drives get."""
    result = sim("--name=a", "--placement=vca-dispatch", "--set", "card.member_bytes=268435456", "--rw=randwrite",
                 "--number_ios=1000", "--fsync=8", "--refill_buffers").json["revosim"]
    changes = result["changes"]
    flash, to_drives = (sum(changes[f"port{i}.{name}"] for i in range(4)) for name in
                        ("nand_write_bytes", "write_sectors"))
    assert changes["volume_write_sectors"] == 8 * 1000
    assert to_drives > 1.5 * 8 * 1000
    assert result["write_amplification"] == pytest.approx(flash / (4096 * 1000))


def test_c091_compress_percentage(sim):
    """C091: 100 is fully compressible. What the drives wrote to flash shows it."""
    amplification = {}
    for percent in (0, 10, 90, 100):
        result = sim("--name=a", "--rw=write", "--bs=128k", "--size=64m", "--refill_buffers", "--filename=ssd0",
                     f"--buffer_compress_percentage={percent}", "--buffer_compress_chunk=4k")
        amplification[percent] = result.json["revosim"]["write_amplification"]
    assert amplification[100] < 0.3
    assert amplification[100] <= amplification[90] < amplification[10] <= amplification[0]
    # The floor of the drives' compression, 0.14, is above what 90 % leaves of a block.
    assert amplification[10] / amplification[0] == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize("placement", ["stripe", "vca-stripe", "vca-dispatch"])
def test_idle_time_costs_energy(sim, placement):
    """Ten seconds of thought between two reads are ten seconds of power, for the job that thought; no other time is."""
    shared = (f"--placement={placement}", "--rw=randread", "--number_ios=2")
    result = sim(*shared, "--name=quick", "--name=slow", "--stonewall", *shared[1:], "--thinktime=10s")
    idle_w = sum(int(value) for value in [result.json["revosim"]["members"]]) * 0.5
    quick, slow = (job["revosim_energy_j"] for job in result.json["jobs"])
    assert quick < 0.01
    assert slow == pytest.approx(10 * idle_w, rel=0.02)
    assert result.json["revosim"]["energy_j"] == pytest.approx(quick + slow, rel=0.001)
