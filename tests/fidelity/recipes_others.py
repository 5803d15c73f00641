# SPDX-License-Identifier: GPL-2.0-or-later
"""Recipes of the older and lesser products, and of what the profiles only state (see recipes.py)."""

from bench import capacity_gb, dies, figure, raw_gib, stated
from workloads import (WINDOWS_PIECE, as_ssd, as_ssd_file, crystal_disk_mark, fill, fill_spare, job, random_4k,
                       response, sequential_128k)

DRIVE = "vertex3-240"
ELECTRA = "electra-max-960"
# One of the Electra's controllers by itself.
SF2181 = ("sata.speed=2", "flash.compress_mb_s=255", "flash.store_mb_s=115")

# --------------------------------------------------------------------------------- SF-2100, Agility 3


@figure("F059", "F168")
def sf2100_sequential(bench):
    return bench.rate(DRIVE, sequential_128k("write", 32), overrides=SF2181)


@figure("F058")
def sf2181_random(bench):
    """Stated for "random read/write": half of each."""
    name, options = random_4k("randrw", 32)
    run = bench.run(DRIVE, (name, options), overrides=SF2181)
    return run.iops(name, "read") + run.iops(name, "write")


@figure("F063")
def two_sf2181(bench):
    return 2 * sf2181_random(bench)


@figure("F064")
def sata_3g_random(bench):
    """A read is four small FISes and one with the data."""
    per_command = bench.profile(ELECTRA, "sata", "fis_overhead_bytes") * 5 + 4096 + 20 + 28 + 8 + 8
    return 300e3 * bench.profile(ELECTRA, "sata", "efficiency_permille") / per_command


# A sixteenth in blocks of the real size (the write buffer must not bridge an erasure): the same 128 GiB of flash for
# 120 GB and for 100.
USED_120 = ("card.member_bytes=7502135296", "flash.blocks_per_plane=128")
AGILITY = "agility3-120"


def agility(bench, rw, bs, depth):
    return bench.rate(AGILITY, crystal_disk_mark(rw, bs, depth), preset="full")


@figure("F159", "F160")
def agility_read(bench):
    return agility(bench, "read", WINDOWS_PIECE, 1)


@figure("F161")
def agility_write(bench):
    """A system drive: no flash is left that was never written."""
    return bench.rate(AGILITY, fill_spare(), crystal_disk_mark("randwrite", WINDOWS_PIECE, 1), preset="full",
                      overrides=USED_120)


@figure("F162", "F163")
def agility_random_read(bench):
    return agility(bench, "randread", "4k", 1)


@figure("F164")
def agility_read_ahci(bench):
    return agility(bench, "read", WINDOWS_PIECE, 1)


# ------------------------------------------------------------------------------------ first generation


@figure("F102")
def old_card_read_response(bench):
    return bench.latency_ms("revodrive-x2-240", fill("compressible", "8g"), response("randread"))


@figure("F103")
def old_card_write_response(bench):
    return bench.latency_ms("revodrive-x2-240", response("randwrite"))


@figure("F185")
def old_card_read(bench):
    return bench.rate("revodrive-x2-240", fill("compressible", "4g"), job("measure", "read", "1m", 4, size="4g"))


@figure("F186")
def old_card_write(bench):
    return bench.rate("revodrive-x2-240", job("measure", "write", "1m", 4, size="4g"))


@figure("F187")
def old_card_link(bench):
    return (bench.profile("revodrive-x2-240", "pcie", "lanes")
            * bench.profile("revodrive-x2-240", "pcie", "lane_mb_s") / 1000)


@figure("F188")
def old_small_card(bench):
    return bench.rate("revodrive-120", fill("compressible", "4g"), job("measure", "read", "1m", 4, size="4g"))


@figure("F189")
def old_small_card_as_ssd(bench):
    return bench.rate("revodrive-120", as_ssd("write"))


@figure("F126")
def sf1200_as_ssd(bench):
    return bench.rate("vertex2-120", as_ssd("write"))


USED_100 = ("card.member_bytes=6251890176", "flash.blocks_per_plane=128")


@figure("F127")
def sf1200_as_ssd_dirty(bench):
    """The reviewer wrote the whole drive, and again for the spare part."""
    return bench.rate("vertex2-120", fill_spare(), as_ssd_file("write"), preset="full", overrides=USED_120)


@figure("F190")
def vertex2_100_used(bench):
    return bench.rate("vertex2-120", fill_spare(), as_ssd_file("write"), preset="full", overrides=USED_100)


# ------------------------------------------------------------------------------------------- profiles


for _id, _recipe in {
    "F044": lambda bench: dies(bench, ELECTRA) / 4,
    "F060": stated(ELECTRA, "flash", "channels"),
    "F080": lambda bench: dies(bench, ELECTRA),
    "F123": lambda bench: raw_gib(bench, "vertex3-120"),
    "F124": lambda bench: capacity_gb(bench, "vertex3-120") * 1e9 / 2**30,
    "F125": stated(DRIVE, "flash", "channels"),
    "F131": lambda bench: dies(bench, DRIVE) / 2,
    "F132": lambda bench: raw_gib(bench, DRIVE) - 240,
    "F153": stated(DRIVE, "flash", "bus_mb_s"),
    "F154": lambda bench: capacity_gb(bench, DRIVE) * 1e9 / 2**30,
    "F081": lambda bench: raw_gib(bench, "octane-512-fw113") * 2**10
    / bench.profile("octane-512-fw113", "flash", "page_bytes"),
    "F171": stated(DRIVE, "flash", "page_bytes"),
    "F172": stated(DRIVE, "flash", "page_spare_bytes"),
    "F173": stated(DRIVE, "flash", "block_pages"),
    "F174": lambda bench: raw_gib(bench, DRIVE) * 2**30 / dies(bench, DRIVE)
    / bench.profile(DRIVE, "flash", "page_bytes") / bench.profile(DRIVE, "flash", "block_pages"),
    "F175": stated(DRIVE, "flash", "read_page_us"),
    "F176": stated(DRIVE, "flash", "program_page_us"),
    "F177": stated(DRIVE, "flash", "erase_block_us", 1000),
    "F179": stated(ELECTRA, "flash", "bus_mb_s"),
}.items():
    figure(_id)(_recipe)
