# SPDX-License-Identifier: GPL-2.0-or-later
"""What the reviewers ran, as revosim jobs.

Rates settle within a second or two of virtual time, so `SECONDS` of it stand for a reviewer's minutes where nothing
changes over time; where something does (torture), the drive is made smaller instead and the time with it: the model's
over-provisioning, dies and timing do not depend on the size.
"""

SECONDS = 2
COMPRESSIBLE = (("refill_buffers", "0"), ("buffer_compress_percentage", "100"))
# The same random bytes again and again. Not fio's scrambling: it puts numbers at changing places of each sector, and a
# buffer that was used a hundred times holds little else and compresses to a third.
INCOMPRESSIBLE = (("refill_buffers", "0"), ("scramble_buffers", "0"), ("buffer_compress_percentage", "0"))
DATA = {"compressible": COMPRESSIBLE, "incompressible": INCOMPRESSIBLE}


def job(name, rw, bs, depth, data="compressible", target="card", seconds=SECONDS, **options):
    """One job as (name, options) for simulator.Run; seconds=0: it ends with its size instead."""
    lines = [("filename", target), ("rw", rw), ("bs", bs), ("iodepth", str(depth)), ("norandommap", "1")]
    if seconds:
        lines += [("runtime", str(seconds)), ("time_based", "1")]
    lines += DATA[data]
    lines += [(key, str(value)) for key, value in options.items()]
    return name, tuple(lines)


def random_4k(rw, depth, data="compressible", span="8g", **options):
    """Iometer's 4 KiB random test over a span of the drive."""
    return job("measure", rw, "4k", depth, data, size=span, **options)


def response(rw):
    """Tom's Hardware's response times of 4 KiB. The page does not state the depth: with 1, 0.07 ms for a write (F101)
    exclude a user's 0.041 (F110); with 4 they are 57,000 writes a second, of the 60,000 that are claimed (F130)."""
    return random_4k(rw, 4)


def sequential_128k(rw, depth=1, data="compressible", span="100%", **options):
    """Iometer's 128 KiB sequential test."""
    return job("measure", rw, "128k", depth, data, size=span, **options)


def atto(rw, transfer, data="compressible"):
    """ATTO at its queue depth of 4, on its file of 256 MB."""
    return job("measure", rw, transfer, 4, data, size="256m")


def as_ssd_file(rw, size="1g", name="measure"):
    """The same to the end of its file, for what comes with each superblock."""
    return job(name, rw, "512k", 32, "incompressible", seconds=0, size=size)


def as_ssd(rw, share=1):
    """AS SSD sequential: 1 GiB in requests of 16 MiB one at a time, which the driver cuts into 512 KiB at most.

    Of a drive that was made smaller (`share` of it), as much less: it is what the drive has free that counts.
    """
    size = f"{round(1024 / share)}m"
    return job("measure", rw, "512k", 32, "incompressible", seconds=SECONDS if share == 1 else 0, size=size)


# Windows cuts a request into what its driver takes at once (SplitTransferRequest in Microsoft's documentation), by ATA
# without queueing 256 sectors; here they are taken to go one after the other.
WINDOWS_PIECE = "128k"


def crystal_disk_mark(rw, bs, depth, data="incompressible", **options):
    return job("measure", rw, bs, depth, data, size="1000m", **options)


def fill(data, size="100%", name="fill", target="card"):
    """The drive, or its first part, written once from end to end."""
    return job(name, "write", "128k", 32, data, target, seconds=0, size=size)


def fill_spare():
    """To a full drive: once more from end to end, after which no flash is left that was never written."""
    return fill("incompressible", name="again")


def torture(seconds, name="torture", size="100%"):
    """4 KiB random writes of incompressible data at queue depth 32 over the whole drive."""
    return job(name, "randwrite", "4k", 32, "incompressible", seconds=seconds, size=size)


def trim_all(name="trim"):
    return job(name, "trim", "1m", 4, seconds=0, size="100%")
