# SPDX-License-Identifier: GPL-2.0-or-later
"""Sanity of direction, over the whole path: what ought to cost time costs time, what ought to help helps.

Every key of a profile that has to do with time has a row here that says on which job it shows and how much; a key
without a row fails. All keys that matter are pinned first, so that the rows say something of the model and nothing of
the numbers that a product happens to have.
"""
import functools

import pytest

SECTIONS = ("pcie", "bridge", "sata", "flash", "host", "volume")

PINNED = {
    "pcie.lanes": 4, "pcie.lane_mb_s": 500, "pcie.max_payload_bytes": 128, "pcie.tlp_overhead_bytes": 28,
    "pcie.read_latency_ns": 600, "bridge.command_ns": 500, "bridge.completion_ns": 500, "sata.speed": 3,
    "sata.fis_overhead_bytes": 128, "flash.command_ns": 2000, "flash.read_unit_ns": 2000, "flash.write_unit_ns": 2000,
    "flash.read_latency_ns": 1000, "flash.write_latency_ns": 1000, "flash.store_mb_s": 2000, "flash.decode_mb_s": 0,
    "flash.write_command_ns": 0, "flash.compress_segment_bytes": 4096, "pcie.completion_bytes": 64,
    "sata.efficiency_permille": 1000,
    "flash.trim_range_ns": 2000, "flash.compress_mb_s": 500, "flash.decompress_mb_s": 500,
    "flash.store_floor_permille": 130, "flash.write_buffer_bytes": 262144, "flash.read_ahead_bytes": 0,
    "flash.channels": 8, "flash.dies_per_channel": 2, "flash.planes": 2, "flash.page_bytes": 8192,
    "flash.page_spare_bytes": 448, "flash.read_page_us": 75, "flash.program_page_us": 1300,
    "flash.erase_block_us": 3800, "flash.codeword_bytes": 1024, "flash.bus_mb_s": 166, "flash.bus_command_ns": 1000,
    "flash.raw_permille": 1200, "flash.raise": 1, "flash.journal_permille": 10, "flash.map_unit_bytes": 4096,
    "flash.map_cache_units": 8192, "flash.map_page_units": 1024, "flash.map_miss_ns": 2000,
    "flash.throttle_iops": 0, "flash.throttle_kb_s": 0, "flash.throttle_burst_ios": 1000,
    "flash.throttle_burst_kb": 1000, "flash.idle_mw": 600, "flash.active_mw": 1200, "flash.read_nj": 6000,
    "flash.program_nj": 100000, "flash.erase_nj": 300000, "flash.bus_pj_byte": 200, "flash.dedupe_window_chunks": 0,
    "host.submit_ns": 0, "host.complete_ns": 0, "host.coalesce_count": 0, "host.coalesce_us": 128,
    "host.queue_depth": 32, "host.max_transfer_kib": 512,
}

ONE_SSD = "--filename=ssd0"
NOISE = ("--scramble_buffers=0",)
JOBS = {
    "read1": ("full", "--rw=randread", "--iodepth=1", "--number_ios=1000", ONE_SSD),
    "read32": ("full", "--rw=randread", "--iodepth=32", "--number_ios=4000", ONE_SSD),
    "narrow": ("full", "--rw=randread", "--iodepth=32", "--number_ios=4000", "--size=8m", "--norandommap", ONE_SSD),
    "unmapped": ("fresh", "--rw=randread", "--iodepth=32", "--number_ios=4000", ONE_SSD),
    "stream": ("full", "--rw=read", "--bs=128k", "--iodepth=8", "--size=64m", ONE_SSD),
    "big": ("full", "--rw=read", "--bs=512k", "--iodepth=4", "--size=64m", ONE_SSD),
    "card": ("fresh", "--rw=read", "--bs=128k", "--iodepth=64", "--size=256m"),
    "card-write": ("fresh", "--rw=write", "--bs=128k", "--iodepth=64", "--size=256m", "--zero_buffers"),
    "zeros": ("full", "--rw=randwrite", "--iodepth=8", "--number_ios=4000", "--zero_buffers", ONE_SSD),
    "zero-stream": ("fresh", "--rw=write", "--bs=128k", "--size=64m", "--zero_buffers", ONE_SSD),
    "noise": ("fresh", "--rw=write", "--bs=128k", "--iodepth=8", "--size=200m", *NOISE, ONE_SSD),
    "same": ("fresh", "--rw=write", "--bs=4k", "--iodepth=8", "--size=16m", "--dedupe_percentage=90", ONE_SSD),
    "random": ("full", "--rw=randwrite", "--iodepth=8", "--number_ios=4000", *NOISE, ONE_SSD),
    "steady": ("steady", "--rw=randwrite", "--iodepth=8", "--number_ios=20000", "--norandommap", *NOISE, ONE_SSD),
    "trim": ("full", "--rw=randtrim", "--iodepth=1", "--number_ios=500", ONE_SSD),
}

# Key: its other value, the job that shows it, and between what the ratio of the times lies then; what else is set.
ROWS = {
    "pcie.lanes": (1, "card", 1.5, 5),
    "pcie.lane_mb_s": (125, "card", 1.5, 5),
    "pcie.max_payload_bytes": (256, "card", 0.8, 0.97, {"pcie.lanes": 1}),
    "pcie.tlp_overhead_bytes": (128, "card", 1.3, 2, {"pcie.lanes": 1}),
    "pcie.completion_bytes": (256, "card-write", 0.6, 0.98, {"pcie.lanes": 1}),
    "pcie.read_latency_ns": (20000, "read1", 1.1, 2),
    "bridge.command_ns": (50000, "unmapped", 3, 50),
    "bridge.completion_ns": (100000, "read1", 1.3, 3),
    "sata.speed": (2, "stream", 1.2, 2.2),
    "sata.efficiency_permille": (500, "stream", 1.2, 2.2),
    "sata.fis_overhead_bytes": (4096, "stream", 1.2, 3),
    "flash.command_ns": (20000, "unmapped", 2, 12),
    "flash.read_unit_ns": (40000, "read32", 1.5, 20),
    "flash.write_unit_ns": (40000, "zeros", 1.5, 20),
    "flash.read_latency_ns": (200000, "read1", 1.5, 4),
    "flash.write_latency_ns": (200000, "zeros", 1.05, 10, {"flash.write_unit_ns": 0}),
    "flash.store_mb_s": (100, "noise", 1.5, 10),
    "flash.decode_mb_s": (10, "stream", 1.5, 40),
    "flash.write_command_ns": (50000, "zeros", 1.5, 30),
    "flash.compress_segment_bytes": (131072, "zero-stream", 1.02, 3),
    "flash.trim_range_ns": (400000, "trim", 1.5, 200),
    "flash.compress_mb_s": (100, "zero-stream", 2, 6),
    "flash.decompress_mb_s": (50, "stream", 1.8, 12),
    "flash.store_floor_permille": (1000, "zero-stream", 1.02, 8, {"flash.bus_mb_s": 20}),
    "flash.write_buffer_bytes": (65536, "random", 1, 4),
    "flash.channels": (4, "read32", 1.3, 2.5),
    "flash.dies_per_channel": (1, "read32", 1.2, 2.5),
    "flash.planes": (1, "noise", 1.2, 2.2),
    "flash.page_bytes": (4096, "noise", 1.2, 2.2, {"flash.page_spare_bytes": 224}),
    "flash.page_spare_bytes": (4096, "read1", 1.01, 1.5),
    "flash.codeword_bytes": (8192, "read1", 1.05, 1.6),
    "flash.bus_mb_s": (40, "stream", 1.5, 6),
    "flash.bus_command_ns": (50000, "read1", 1.05, 2),
    "flash.read_page_us": (150, "read1", 1.3, 2),
    "flash.program_page_us": (2600, "noise", 1.4, 2.1),
    "flash.erase_block_us": (800000, "steady", 1.5, 60),
    "flash.raise": (0, "noise", 0.85, 0.98),
    "flash.journal_permille": (100, "noise", 1.04, 1.15),
    "flash.raw_permille": (1400, "steady", 0.2, 0.8),
    "flash.map_unit_bytes": (32768, "random", 2, 80),
    "flash.map_cache_units": (0, "read32", 0.2, 0.9),
    "flash.map_page_units": (65536, "read32", 0.2, 0.95),
    "flash.map_miss_ns": (50000, "read32", 1.3, 20),
    "flash.read_ahead_bytes": (262144, "stream1", 0.2, 0.95),
    "flash.throttle_iops": (500, "zeros", 1.5, 1000),
    "flash.throttle_burst_ios": (100000, "zeros", 0.001, 0.7, {"flash.throttle_iops": 500}),
    "flash.throttle_kb_s": (10000, "noise", 2, 50),
    "flash.throttle_burst_kb": (1000000, "noise", 0.02, 0.7, {"flash.throttle_kb_s": 10000}),
    "host.submit_ns": (100000, "read32", 2, 100),
    "host.complete_ns": (100000, "read32", 2, 100),
    "host.coalesce_count": (511, "read1", 1.2, 3),
    "host.coalesce_us": (1000, "read1", 2, 10, {"host.coalesce_count": 511}),
    "host.queue_depth": (1, "read32", 2, 20),
    "host.max_transfer_kib": (64, "big", 1.05, 10, {"flash.command_ns": 300000}),
}
JOBS["stream1"] = ("full", "--rw=read", "--bs=64k", "--iodepth=1", "--size=32m", ONE_SSD)

# These change the energy, on that job.
ENERGY = {"flash.idle_mw": "read1", "flash.active_mw": "read32", "flash.read_nj": "read32", "flash.program_nj": "noise",
          "flash.erase_nj": "steady", "flash.bus_pj_byte": "stream"}

ELSEWHERE = {
    "sata.link_up_us": "is over before the driver's first command; tests/test_phy.cc",
    "flash.compress_measure": "by what compressed sizes are found, which are the same but for small errors; "
                              "tests/test_compressor.cc",
    "flash.gc_cost_benefit": "which superblock is collected; tests/test_flash_direction.cc",
    "flash.gc_free_permille": "how many superblocks stay free; tests/test_ftl.cc",
    "flash.erase_at_once": "test_erasing_in_turn_takes_time below; tests/test_flash_direction.cc",
    "flash.idle_gc_ms": "test_rest_helps_when_garbage_is_collected_in_it below; tests/test_flash_idle.cc",
    "flash.idle_gc_free_permille": "the same",
    "flash.wear_delta": "wear; tests/test_ftl.cc",
    "flash.endurance_cycles": "wear; tests/test_ftl.cc",
    "flash.block_fail_ppb": "wear; tests/test_ftl.cc",
    "flash.spare_blocks_permille": "wear; tests/test_ftl.cc",
    "flash.block_pages": "follows the drive's size; tests/test_ftl.cc",
    "flash.blocks_per_plane": "follows the drive's size; tests/test_ftl.cc",
    "flash.dedupe_window_chunks": "test_deduplication below",
    "flash.dedupe_reference_bytes": "test_deduplication below",
    "volume.balance_kib": "where writes go, not how long they take; tests/test_dispatch.cc",
}
# Costs of the volume that the card makes, and the policy that has them.
VOLUME = {"volume.command_ns": "stripe", "volume.part_ns": "stripe", "volume.dispatch_ns": "dispatch",
          "volume.map_ns": "dispatch"}


@pytest.fixture
def keys(sim):
    lines = sim.run("--show-settings").text.split()
    return [line.split("=")[0] for line in lines if line.split(".")[0] in SECTIONS]


@pytest.fixture
def measure(sim, keys):
    """Runs one of JOBS with some keys changed: virtual ns, and the whole report."""

    @functools.cache
    def run(job, changes=()):
        preset, *options = JOBS[job]
        settings = PINNED | dict(changes)
        sets = [word for key, value in settings.items() if key in keys for word in ("--set", f"{key}={value}")]
        report = sim(*sets, f"--preset={preset}", "--name=j", *options).json
        return report["revosim"]["virtual_ns"], report

    return lambda job, changes=None: run(job, tuple((changes or {}).items()))


def test_every_key_has_a_row(keys):
    known = {*ROWS, *ENERGY, *ELSEWHERE, *VOLUME}
    assert not set(keys) - known, "say in ROWS what the key does to time, or in ELSEWHERE why nothing"


@pytest.mark.parametrize("key", ROWS)
def test_c073_time_follows_the_key(measure, keys, key):
    if key not in keys:
        pytest.skip("no such key")
    value, job, least, most, *more = ROWS[key]
    base = more[0] if more else {}
    before, after = measure(job, base)[0], measure(job, base | {key: value})[0]
    assert least <= after / before <= most, f"{key}={value}: {job} takes {after / before:.3f} of the time"


@pytest.mark.parametrize("key, policy", VOLUME.items())
def test_time_follows_the_volume(sim, key, policy):
    job = ("--name=j", "--rw=randwrite", "--iodepth=64", "--number_ios=5000", "--zero_buffers")
    times = [sim(f"--placement=vca-{policy}", "--set", f"{key}={cost}", *job).json["revosim"]["virtual_ns"]
             for cost in (0, 20000, 40000)]
    assert times[0] < times[1] < 0.75 * times[2]


COSTS = [key for key, (value, *_) in ROWS.items() if key.endswith(("_ns", "_us")) and value > PINNED[key]]


@pytest.mark.parametrize("key", COSTS)
def test_what_costs_time_never_saves_any(measure, keys, key):
    if key not in keys:
        pytest.skip("no such key")
    for job in ("read1", "read32", "stream", "zeros", "noise"):
        before, after = measure(job)[0], measure(job, {key: 2 * PINNED[key]})[0]
        # Commands that happen to meet in another order may gain a percent or two.
        assert after > 0.97 * before, f"{key} doubled: {job} takes {after / before:.3f} of the time"


@pytest.mark.parametrize("key", ENERGY)
def test_energy_follows_the_key(measure, key):
    before, after = (measure(ENERGY[key], change)[1]["revosim"]["energy_j"]
                     for change in ({}, {key: 10 * PINNED[key]}))
    assert 1.01 * before < after < 10 * before


def test_deduplication(measure):
    window = {"flash.dedupe_window_chunks": 65536, "flash.dedupe_reference_bytes": 16}
    without, cheap, dear = (measure("same", change)[1]["revosim"]["write_amplification"]
                            for change in ({}, window, window | {"flash.dedupe_reference_bytes": 512}))
    assert cheap < 0.5 * without and cheap < dear < without


def test_c074_the_better_it_compresses_the_faster(sim):
    rates = [sim("--preset=fresh", "--name=w", "--rw=write", "--bs=128k", "--iodepth=32", "--size=400m",
                 "--refill_buffers", f"--buffer_compress_percentage={percent}",
                 "--buffer_compress_chunk=4k").job()["write"]["bw"] for percent in (0, 30, 60, 90)]
    assert all(later > 0.98 * earlier for earlier, later in zip(rates, rates[1:]))
    assert rates[-1] > 1.2 * rates[0]


def test_a_narrow_span_is_faster(measure):
    assert measure("narrow")[0] < 0.9 * measure("read32")[0]


def test_more_dies_are_never_slower(measure):
    times = [measure("read32", {"flash.dies_per_channel": dies})[0] for dies in (1, 2, 4, 8)]
    assert all(later < 1.01 * earlier for earlier, later in zip(times, times[1:]))


def test_torture_slows_and_trim_restores(sim):
    torture = ("--rw=randwrite", "--iodepth=32", "--norandommap", "--number_ios=20000", *NOISE, ONE_SSD)

    def rate(preset, *before):
        jobs = sim(f"--preset={preset}", *before, "--name=t", "--stonewall", *torture).json["jobs"]
        return jobs[-1]["write"]["iops"]

    trim = ("--name=x", "--rw=trim", "--bs=1m", ONE_SSD)
    fresh, steady, trimmed = rate("fresh"), rate("steady"), rate("steady", *trim)
    assert steady < 0.6 * fresh
    assert trimmed > 0.8 * fresh


def test_rest_helps_when_garbage_is_collected_in_it(sim):
    jobs = ("--name=before", "--rw=randwrite", "--iodepth=8", "--number_ios=2000", "--norandommap", *NOISE, ONE_SSD,
            "--name=after", "--stonewall", "--startdelay=60", "--rw=randwrite", "--iodepth=8", "--number_ios=2000",
            "--norandommap", *NOISE, ONE_SSD)

    def rate(idle_ms, free=20):
        settings = ("--set", f"flash.idle_gc_ms={idle_ms}", "--set", f"flash.idle_gc_free_permille={free}")
        report = sim("--preset=steady", *settings, *jobs).json
        return report["jobs"][-1]["write"]["iops"], report["revosim"]["counters"]["port0.idle_gc_units"]

    (never, nothing), (late, none), (some, few), (more, many) = rate(0), rate(61000), rate(1000, 10), rate(1000, 40)
    assert nothing == none == 0 < few < many
    assert never == late < some < more


def test_erasing_in_turn_takes_time(sim):
    """Flash that was never written, or erased since, need not be erased: only a used drive is slower."""
    def rates(blocks):
        passes = [word for i in range(3) for word in (
            f"--name=pass{i}", "--stonewall", "--rw=write", "--bs=128k", "--iodepth=8", "--size=100%", *NOISE, ONE_SSD)]
        sets = [word for setting in ("card.member_bytes=805306368", "flash.blocks_per_plane=20",
                                     f"flash.erase_at_once={blocks}") for word in ("--set", setting)]
        report = sim(*sets, *passes).json
        return [job["write"]["bw"] for job in report["jobs"]]

    all_at_once, four, one = rates(0), rates(4), rates(1)
    assert all_at_once[0] == four[0] == one[0]
    assert one[2] < 0.95 * four[2] < 0.95 * all_at_once[2]
    assert one[2] < 0.9 * one[0]
