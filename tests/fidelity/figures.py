# SPDX-License-Identifier: GPL-2.0-or-later
"""The published figures (figures.csv) and what counts as reproducing one.

A figure of the three source reviews (group "review") must come out within 5 %, any other within 15 %. A bound of
a source review must hold as it is, of the others within their 15 %; "just under" is an upper bound that must nearly be
reached; "about" is a statement in words.
"""

import csv
import dataclasses
import pathlib

FILE = pathlib.Path(__file__).with_name("figures.csv")
TOLERANCE = {"review": 0.05, "other": 0.15}
BOUNDS = ("is", "at least", "at most", "just under", "about")


@dataclasses.dataclass(frozen=True)
class Figure:
    id: str
    device: str
    state: str
    metric: str
    workload: str
    block: str
    depth: str
    span: str
    data: str
    bound: str
    value: float
    unit: str
    group: str
    source: str

    @property
    def tolerance(self):
        return TOLERANCE[self.group]

    def error(self, value):
        """Relative, signed; of a bound that holds 0."""
        if self.bound == "at least" and value >= self.value or self.bound == "at most" and value <= self.value:
            return 0.0
        return value / self.value - 1

    def reproduced_by(self, value):
        if self.bound == "just under":
            return self.value * (1 - self.tolerance) <= value < self.value
        if self.bound in ("at least", "at most") and self.group == "review":
            return self.error(value) == 0
        return abs(self.error(value)) <= self.tolerance


def load(file=FILE):
    with open(file, newline="", encoding="utf-8") as stream:
        rows = [dict(row) for row in csv.DictReader(stream)]
    figures = [Figure(**{**row, "value": float(row["value"])}) for row in rows]
    for figure in figures:
        if figure.bound not in BOUNDS or figure.group not in TOLERANCE:
            raise ValueError(f"{file}: {figure.id}: unknown bound or group: {figure.bound}, {figure.group}")
    return {figure.id: figure for figure in figures}
