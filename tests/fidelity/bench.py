# SPDX-License-Identifier: GPL-2.0-or-later
"""What recipes are made of: a Bench that answers questions about runs and profiles, and the table they enter."""

import configparser
import pathlib

from simulator import Run

PROFILES = pathlib.Path(__file__).parents[2] / "hw/profiles"


class Bench:
    """The simulator with the questions that recipes ask."""

    def __init__(self, simulate):
        self.simulate = simulate

    def run(self, profile, *jobs, overrides=()):
        return self.simulate(Run(profile, tuple(jobs), tuple(overrides)))

    def rate(self, profile, *jobs, side=None, overrides=()):
        """MB/s of the last job."""
        name, options = jobs[-1]
        return self.run(profile, *jobs, overrides=overrides).mb_s(name, side or side_of(options))

    def iops(self, profile, *jobs):
        name, options = jobs[-1]
        return self.run(profile, *jobs).iops(name, side_of(options))

    def latency_ms(self, profile, *jobs):
        name, options = jobs[-1]
        return self.run(profile, *jobs).latency_ms(name, side_of(options))

    def profile(self, name, section, key):
        """A number as the profile states it."""
        parser = configparser.ConfigParser()
        parser.read(PROFILES / f"{name}.ini", encoding="utf-8")
        if not parser.has_option(section, key) and parser.has_option("profile", "base"):
            return self.profile(parser["profile"]["base"], section, key)
        return float(parser[section][key])


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


def dies(profile):
    def count(bench):
        return bench.profile(profile, "flash", "channels") * bench.profile(profile, "flash", "dies_per_channel")

    return count
