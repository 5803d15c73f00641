# SPDX-License-Identifier: GPL-2.0-or-later
"""How each published figure is got from the model: RECIPES (bench.py) maps its id to a function of a Bench.

Here are the card, the Electra MAX, Octane and Vertex 3; recipes_others.py has the older and lesser products and what
the profiles only state. OUTSIDE names the figures that cannot be compared, with the reason; every figure is in exactly
one of the two. UNREACHED are those of the first that the model does not reproduce, with the reason. USED_TO_FIT are
those that numbers of the profiles were fitted on; the others were only looked at afterwards.
"""

from bench import RECIPES, Bench, capacity_gb, figure, raw_gib  # noqa: F401  # for those who run them
from workloads import (WINDOWS_PIECE, as_ssd, as_ssd_file, atto, crystal_disk_mark, fill, fill_spare, job, random_4k,
                       response, sequential_128k, torture, trim_all)

CARD = "revodrive3-x2-480"
SMALL_CARD = "revodrive3-x2-240"
DRIVE = "vertex3-240"
# The reviewer's Windows: one thread writes 180,000 times a second (F010), two do 200,000 (F013), as the card can.
ANANDTECH = ("host.submit_ns=2500", "host.complete_ns=3000")

# ------------------------------------------------------------------------- RevoDrive 3 X2, the preview


@figure("F001", "F067")
def card_link(bench):
    return bench.profile(CARD, "pcie", "lanes") * bench.profile(CARD, "pcie", "lane_mb_s") / 1000


@figure("F002", "F004")
def card_members(bench):
    return bench.profile(CARD, "card", "members")


@figure("F003")
def small_card_members(bench):
    return bench.profile("revodrive3-240", "card", "members")


@figure("F005")
def card_port_rate(bench):
    return {1: 1.5, 2: 3, 3: 6}[bench.profile(CARD, "sata", "speed")]


@figure("F006")
def smallest(bench):
    return capacity_gb(bench, "revodrive3-120")


@figure("F007")
def largest(bench):
    return capacity_gb(bench, "revodrive3-x2-960")


@figure("F008", "F013")
def card_two_threads_8g(bench):
    return bench.iops(CARD, random_4k("randwrite", 64, numjobs=2, group_reporting=1), overrides=ANANDTECH)


@figure("F009", "F011")
def card_qd32(bench):
    return bench.rate(CARD, random_4k("randwrite", 32), overrides=ANANDTECH)


@figure("F010")
def card_qd32_iops(bench):
    return bench.iops(CARD, random_4k("randwrite", 32), overrides=ANANDTECH)


@figure("F012")
def card_two_threads_full_span(bench):
    return bench.rate(CARD, random_4k("randwrite", 64, span="100%", numjobs=2, group_reporting=1), overrides=ANANDTECH)


@figure("F014")
def card_against_drive(bench):
    return (bench.rate(CARD, random_4k("randwrite", 32, "incompressible"))
            / bench.rate(DRIVE, random_4k("randwrite", 32, "incompressible")))


@figure("F015", "F112")
def card_atto_read(bench):
    return max(bench.rate(CARD, fill("compressible", "256m"), atto("read", size)) for size in ("1m", "2m", "4m", "8m"))


@figure("F016")
def card_atto_write(bench):
    return max(bench.rate(CARD, atto("write", size)) for size in ("1m", "2m", "4m", "8m"))


@figure("F017")
def card_scaling_starts(bench):
    """The largest transfer at which the card is not yet half as fast again as one of its drives."""
    for kib in (4, 8, 16, 32, 64, 128):
        drive = bench.rate("vertex3-120", atto("write", f"{kib}k"))
        if bench.rate(CARD, atto("write", f"{kib}k")) > 1.5 * drive:
            return kib / 2
    return 256


@figure("F018")
def card_low_depth(bench):
    def mapped(profile):
        return bench.rate(profile, fill("compressible", "8g"), random_4k("randread", 3))

    return mapped(CARD) / mapped("vertex3-120")


@figure("F100")
def card_read_response(bench):
    return bench.latency_ms(CARD, fill("compressible", "8g"), response("randread"))


# --------------------------------------------------------------------- RevoDrive 3 X2, other people's


# The flash of a drive in use has no superblock left that was never written; what is on it does not matter.
IN_USE = "full"
CDM_FILE = job("file", "write", "1m", 1, "incompressible", seconds=0, size="1000m")  # what CrystalDiskMark reads


@figure("F108")
def cdm_sequential_read(bench):
    return bench.rate(SMALL_CARD, CDM_FILE, crystal_disk_mark("read", WINDOWS_PIECE, 1), preset=IN_USE)


@figure("F109")
def cdm_random_read(bench):
    return bench.rate(SMALL_CARD, CDM_FILE, crystal_disk_mark("randread", "4k", 1), preset=IN_USE)


@figure("F110")
def cdm_random_write(bench):
    return bench.rate(SMALL_CARD, CDM_FILE, crystal_disk_mark("randwrite", "4k", 1), preset=IN_USE)


@figure("F111")
def cdm_random_read_32(bench):
    return bench.rate(SMALL_CARD, CDM_FILE, crystal_disk_mark("randread", "4k", 32), preset=IN_USE)


# ------------------------------------------------------------------------------ Mercury Electra MAX

ELECTRA = "electra-max-960"


@figure("F037")
def electra_read(bench):
    return bench.rate(ELECTRA, fill("compressible", "4g"), sequential_128k("read", 32, span="4g"))


@figure("F038")
def electra_write(bench):
    return bench.rate(ELECTRA, sequential_128k("write", 32))


@figure("F039")
def electra_read_incompressible(bench):
    return bench.rate(ELECTRA, fill("incompressible", "4g"), sequential_128k("read", 32, span="4g"))


@figure("F040")
def electra_write_incompressible(bench):
    return bench.rate(ELECTRA, sequential_128k("write", 32, "incompressible"))


@figure("F041")
def electra_raw(bench):
    return bench.profile(ELECTRA, "card", "members") * raw_gib(bench, ELECTRA)


@figure("F042")
def electra_capacity(bench):
    return capacity_gb(bench, ELECTRA) * 1e9 / 2**30


@figure("F045")
def electra_random(bench):
    rates = [bench.rate(ELECTRA, fill("incompressible", "8g"), random_4k(rw, depth, "incompressible"))
             for rw in ("randread", "randwrite") for depth in (3, 32)]
    return max(rates, key=lambda rate: abs(rate - 22))


SMALL_ELECTRA = ("card.member_bytes=15002890240",)  # a thirty-second


@figure("F046")
def electra_torture(bench):
    return bench.rate(ELECTRA, torture(112), preset="full", overrides=SMALL_ELECTRA)


@figure("F047")
def electra_torture_total(bench):
    return electra_torture(bench) * 3.6


# ... in fewer blocks, of the real size: the write buffer must not bridge an erasure. After torture what is spare must
# last, so they are a quarter of it there.
WHOLE_BLOCKS = ("flash.blocks_per_plane=64",)
QUARTER_BLOCKS = ("flash.blocks_per_plane=256", "flash.block_pages=64", "flash.erase_block_us=950")


def electra_used(bench, *jobs, blocks=WHOLE_BLOCKS):
    """It could not be erased: the reviewer filled it, and filled it again."""
    return bench.rate(ELECTRA, fill_spare(), *jobs, preset="full", overrides=SMALL_ELECTRA + blocks)


@figure("F048")
def electra_as_ssd(bench):
    return electra_used(bench, as_ssd_file("write"))


@figure("F049")
def electra_as_ssd_tortured(bench):
    return electra_used(bench, torture(112), as_ssd_file("write", "256m"), blocks=QUARTER_BLOCKS)


@figure("F052")
def electra_third(bench):
    """AS SSD after torture and TRIM, for the third time."""
    runs = tuple(as_ssd_file("write", name=name) for name in ("first", "second", "third"))
    return electra_used(bench, torture(112), trim_all(), *runs)


@figure("F053")
def electra_fill(bench):
    """The size of its requests is not stated: 128 KiB, as in the reviewer's other sequential tests."""
    rate = electra_used(bench, job("measure", "write", "128k", 1, "incompressible", seconds=0, size="4g"))
    return capacity_gb(bench, ELECTRA) * 1000 / rate / 3600


# ------------------------------------------------------------------------------------------- Octane


FILLED_8G = (fill("incompressible", "8g"),)


def octane_ratio(bench, size, measure, prepare=()):
    before, after = (bench.rate(f"octane-{size}-fw{firmware}", *prepare, measure) for firmware in (100, 113))
    return after / before


@figure("F092")
def octane_128_write(bench):
    return octane_ratio(bench, 128, random_4k("randwrite", 3), FILLED_8G)


@figure("F093")
def octane_512_write(bench):
    return octane_ratio(bench, 512, random_4k("randwrite", 3), FILLED_8G)


@figure("F094")
def octane_write_deep(bench):
    return min(octane_ratio(bench, size, random_4k("randwrite", 32), FILLED_8G) for size in (128, 512))


@figure("F095")
def octane_read(bench):
    return max(octane_ratio(bench, size, random_4k("randread", 3), FILLED_8G) for size in (128, 512))


@figure("F096")
def octane_sequential_read(bench):
    return max(octane_ratio(bench, size, sequential_128k("read", span="8g"), FILLED_8G) for size in (128, 512))


@figure("F097")
def octane_512_sequential_write(bench):
    return octane_ratio(bench, 512, sequential_128k("write"))


@figure("F098")
def octane_128_sequential_write(bench):
    return octane_ratio(bench, 128, sequential_128k("write"))


@figure("F099")
def octane_read_is_enough(bench):
    return min(bench.rate(f"octane-{size}-fw113", *FILLED_8G, random_4k("randread", 3)) for size in (128, 512))


@figure("F183")
def octane_write_amplification(bench):
    run = bench.run("octane-128-fw100", torture(20), preset="steady",
                    overrides=("card.member_bytes=8001563136",))
    return run.extra()["write_amplification"]


# ------------------------------------------------------------------------------------------ Vertex 3


SMALL_DRIVE = ("card.member_bytes=15003594752",)  # a sixteenth


@figure("F101")
def drive_write_response(bench):
    return bench.latency_ms(DRIVE, response("randwrite"))


@figure("F117")
def drive_as_ssd(bench):
    return bench.rate(DRIVE, as_ssd("write"))


@figure("F118")
def drive_as_ssd_tortured(bench):
    return bench.rate(DRIVE, torture(75), as_ssd("write", 16), preset="full", overrides=SMALL_DRIVE)


@figure("F119")
def small_drive_as_ssd(bench):
    return bench.rate("vertex3-120", as_ssd("write"))


@figure("F122")
def drives_at_3g(bench):
    slow = ("sata.speed=2",)
    test = random_4k("randwrite", 3, "incompressible")
    return bench.rate("vertex3-120", test, overrides=slow) / bench.rate(DRIVE, test, overrides=slow)


@figure("F128")
def drive_hd_tach(bench):
    """Of a drive that was erased: it reads sectors that were never written."""
    return bench.rate(DRIVE, job("measure", "read", "64k", 1, size="100%"))


@figure("F129")
def drive_random_read(bench):
    return bench.rate(DRIVE, fill("incompressible", "8g"), random_4k("randread", 3))


@figure("F130", "F157", "F166")
def drive_random_write_claim(bench):
    return bench.iops(DRIVE, random_4k("randwrite", 32))


@figure("F133")
def drive_hd_tune(bench):
    return bench.rate(DRIVE, job("measure", "read", "64k", 1, size="100%"))


@figure("F135")
def drive_random_read_unmapped(bench):
    return bench.rate(DRIVE, random_4k("randread", 7))


@figure("F136")
def drive_write_qd2(bench):
    return bench.rate(DRIVE, sequential_128k("write", 2))


@figure("F137", "F149")
def drive_read_qd1(bench):
    return bench.rate(DRIVE, fill("compressible", "4g"), sequential_128k("read", span="4g"))


@figure("F138")
def drive_read_at_3g(bench):
    return bench.rate(DRIVE, sequential_128k("read", 4), overrides=("sata.speed=2",))


@figure("F139")
def drive_random_read_qd1_unmapped(bench):
    return bench.rate(DRIVE, random_4k("randread", 1))


@figure("F140")
def smallest_drive_sequential(bench):
    return max(bench.rate("vertex3-60", sequential_128k("write")),
               bench.rate("vertex3-60", fill("compressible", "4g"), sequential_128k("read", span="4g")))


@figure("F148")
def smallest_drive_read(bench):
    return bench.rate("vertex3-60", fill("compressible", "4g"), sequential_128k("read", span="4g"))


def hour_of_writes(bench):
    """A sixteenth of the drive and the hour, which writes its flash nearly three times, in blocks of the real size."""
    small = ("card.member_bytes=3751405056", "flash.blocks_per_plane=128")
    return bench.run("vertex3-60", sequential_128k("write", seconds=225), overrides=small)


@figure("F143")
def hour_host(bench):
    return hour_of_writes(bench).mb_s("measure", "write") * 3.6


@figure("F144")
def hour_flash(bench):
    return hour_host(bench) * hour_amplification(bench)


@figure("F145", "F147")
def hour_amplification(bench):
    return hour_of_writes(bench).extra()["write_amplification"]


@figure("F146")
def hour_rate(bench):
    return hour_of_writes(bench).mb_s("measure", "write")


@figure("F150")
def smallest_drive_write_deep(bench):
    return bench.rate("vertex3-60", sequential_128k("write", 32))


@figure("F155")
def drive_read_claim(bench):
    return bench.rate(DRIVE, fill("compressible", "4g"), sequential_128k("read", 32, span="4g"))


@figure("F156", "F165")
def drive_write_claim(bench):
    return bench.rate(DRIVE, sequential_128k("write", 32))


@figure("F170")
def channel_share(bench):
    return drive_write_claim(bench) / bench.profile(DRIVE, "flash", "channels")


@figure("F065", "F066")
def practical_limit(bench):
    return bench.rate(DRIVE, sequential_128k("read", 32))


@figure("F151")
def drive_idle(bench):
    return bench.profile(DRIVE, "flash", "idle_mw") / 1000


@figure("F057")
def two_drives_idle(bench):
    return 2 * drive_idle(bench)


USED_TO_FIT = set("""F009 F010 F012 F013 F015 F016 F037 F038 F040 F045 F046 F048 F053 F064 F065 F066 F093 F095 F101 F102
F103 F109 F110 F117 F126 F127 F129 F135 F136 F139 F146 F151 F190""".split())

OUTSIDE, UNREACHED = {}, {}


def explain_in(table):
    return lambda reason, *ids: table.update(dict.fromkeys(ids, reason))


outside = explain_in(OUTSIDE)
unreached = explain_in(UNREACHED)

outside("a version, a price or a market fact: nothing to simulate", "F019", "F034", "F035", "F036", "F043", "F056",
        "F083", "F084", "F085", "F086", "F087", "F088", "F089", "F090", "F091")
outside("describes how the reviewer measured; the jobs in workloads.py follow it", "F020", "F021", "F022")
outside("describes a trace, of which storage_bench.py makes its own", "F023", "F024", "F025", "F026", "F027", "F028",
        "F029", "F030", "F031", "F032", "F033", "F072", "F073", "F074", "F075", "F076", "F077", "F078", "F079")
outside("a cap of other makers' firmware; the reviewed cards wrote faster (F010). flash.throttle_iops sets it",
        "F167", "F169")
outside("a part that the model has no use for by itself", "F054", "F184")
outside("another product than those modelled", "F061", "F062", "F068", "F069", "F082", "F134", "F141", "F142",
        "F158", "F178", "F180", "F181", "F182")
outside("names no product: a \"typical SandForce drive\", a device of which its source does not say what it is", "F070",
        "F071", "F107")
outside("three runs of one test, one after the other, gave 207, 133 and 190 MB/s: the last, their median, is compared",
        "F050", "F051")
outside("the bridge's own power, which the model does not have", "F055")
outside("what the host's driver and processor cost, which is outside the card", "F105", "F106", "F114", "F115")
outside("more than one link carries, and nothing says how the drives were combined", "F104")
outside("the workload is not stated closely enough to be repeated", "F113", "F116", "F120", "F121", "F152", "F191",
        "F192", "F193", "F194", "F195", "F196", "F197", "F198")

unreached("the flash programs less by its data sheet; SweClockers saw such drives slow down a lot", "F118")
unreached("the user's host, 23 us for each: the card has answered 200,000 a second for a reviewer (F013)", "F111")
unreached("the same work as F163, as IDE mode has no queue, and a fifth faster", "F162")

import recipes_others  # noqa: E402,F401  # enters the rest into RECIPES
