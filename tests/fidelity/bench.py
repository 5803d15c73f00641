# SPDX-License-Identifier: GPL-2.0-or-later
"""What recipes are made of: a Bench that answers questions about runs and profiles, and the table they enter."""

from simulator import Run


class Bench:
    """The simulator with the questions that recipes ask."""

    def __init__(self, simulate, policy="stripe"):
        self.simulate = simulate
        self.policy = policy

    def run(self, profile, *jobs, overrides=(), preset="fresh", placement=None):
        """A RevoDrive 3 is tested as the volume that the card makes; the older cards are RAID 0 of their driver."""
        usual = f"vca-{self.policy}" if profile.startswith("revodrive3") else "stripe"
        return self.simulate(Run(profile, tuple(jobs), tuple(overrides), preset, placement or usual))

    def rate(self, profile, *jobs, **settings):
        """MB/s of the last job."""
        name, options = jobs[-1]
        return self.run(profile, *jobs, **settings).mb_s(name, side_of(options))

    def iops(self, profile, *jobs, **settings):
        name, options = jobs[-1]
        return self.run(profile, *jobs, **settings).iops(name, side_of(options))

    def latency_ms(self, profile, *jobs):
        name, options = jobs[-1]
        return self.run(profile, *jobs).latency_ms(name, side_of(options))

    def profile(self, name, section, key):
        """A number as the profile states it."""
        return float(self.simulate.settings(name)[f"{section}.{key}"])


def side_of(options):
    return "read" if "read" in dict(options)["rw"] else "write"


RECIPES = {}


def figure(*ids):
    def keep(function):
        for name in ids:
            if name in RECIPES:
                raise ValueError(f"{name} has two recipes")
            RECIPES[name] = function
        return function

    return keep


def capacity_gb(bench, profile):
    return bench.profile(profile, "card", "members") * bench.profile(profile, "card", "member_bytes") / 1e9


def stated(name, section, key, scale=1.0):
    """A recipe: what the profile states."""
    return lambda bench: bench.profile(name, section, key) / scale


def dies(bench, profile):
    return bench.profile(profile, "flash", "channels") * bench.profile(profile, "flash", "dies_per_channel")


def raw_gib(bench, profile):
    """Flash of one of its drives."""
    user_bytes = bench.profile(profile, "card", "member_bytes")
    return user_bytes * bench.profile(profile, "flash", "raw_permille") / 1000 / 2**30
