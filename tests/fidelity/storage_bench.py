# SPDX-License-Identifier: GPL-2.0-or-later
"""AnandTech Storage Bench 2011, made from what was published of it (F023-F032, F072-F079).

The recordings themselves are not public: counts, shares of the listed sizes, share of sequential requests, average
queue depth and (heavy) the share at queue depth 1 are. What the size tables leave out is filled with 8 KiB and 128 KiB
so that the heavy mix comes to the published mean write of 60 KB; the light mix, said to have far fewer large requests,
gets half as many. Requests at depth 1 and the deeper rest are played one after the other, a `SHARE` of the whole.
"""

import dataclasses

SHARE = 1 / 100


@dataclasses.dataclass(frozen=True)
class Trace:
    reads: int
    writes: int
    sizes: tuple  # (KiB, percent)
    sequential: float
    depth: float
    at_depth_1: float

    @property
    def operations(self):
        return self.reads + self.writes

    @property
    def mean_bytes(self):
        return sum(kib * 1024 * percent for kib, percent in self.sizes) / 100

    @property
    def deep(self):
        """Depth of the requests that are not at depth 1."""
        return round((self.depth - self.at_depth_1) / (1 - self.at_depth_1))


HEAVY = Trace(2168893, 1783447, ((4, 28), (8, 9), (16, 10), (32, 10), (64, 4), (128, 39)), 0.42, 4.625, 0.59)
LIGHT = Trace(372630, 459709, ((4, 27), (8, 34), (16, 8), (32, 6), (64, 5), (128, 20)), 0.60, 2.2029, 0.75)
TRACES = {"heavy": HEAVY, "light": LIGHT}


def jobs(trace, target="card"):
    """Jobs for simulator.Run: each depth with its sequential and its random part."""
    split = ":".join(f"{kib}k/{percent}" for kib, percent in trace.sizes)
    made = []
    for depth, share in ((1, trace.at_depth_1), (trace.deep, 1 - trace.at_depth_1)):
        for rw, part in (("rw", trace.sequential), ("randrw", 1 - trace.sequential)):
            total = int(trace.operations * trace.mean_bytes * share * part * SHARE) >> 17 << 17
            made.append((f"{rw}-{depth}", (
                ("filename", target), ("rw", rw), ("bssplit", split), ("iodepth", str(max(1, round(depth * part)))),
                ("rwmixread", str(round(100 * trace.reads / trace.operations))), ("norandommap", "1"),
                ("size", "32g"), ("io_size", str(total)), ("buffer_compress_percentage", "50"))))
    return tuple(made)
