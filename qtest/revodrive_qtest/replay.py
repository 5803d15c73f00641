# SPDX-License-Identifier: GPL-2.0-or-later
"""revosim's commands, one by one, given to the card in QEMU at the very times revosim gave them.

They follow interrupts, so the machine is there at the nanosecond: the model is one, only its host is another.
"""
import csv
import os
import pathlib
import subprocess

from .phy import MS

ROOT = pathlib.Path(__file__).resolve().parents[2]
REVOSIM = os.environ.get("REVOSIM", str(ROOT / "build" / "revosim"))


def simulate(folder, *options):
    """The commands of a run of revosim, in order of submission."""
    subprocess.run([REVOSIM, "--dump-commands=c.csv", *options], cwd=folder, check=True, capture_output=True,
                   timeout=120)
    with open(folder / "c.csv", encoding="ascii", newline="") as file:
        rows = [{key: int(value, 0) for key, value in row.items()} for row in csv.DictReader(file)]
    return sorted(rows, key=lambda row: row["number"])


def replay(bridge, rows, issue):
    """issue(row) gives a command to the card; returns when each ended, in ns like the rows' own."""
    bridge.sleep(100 * MS)
    machine = bridge.machine
    base = machine.now_ns
    requests, outstanding = [], []
    while len(requests) < len(rows):
        row = rows[len(requests)]
        now = machine.now_ns - base
        assert now <= row["submit_ns"], f"command {row} should have gone out already at {now}"
        if now == row["submit_ns"]:
            requests.append(issue(row))
            outstanding.append(requests[-1])
        else:
            outstanding = [r for r in outstanding if not r.done()]
            bridge.run_until(lambda: any(r.done() for r in outstanding), what="an interrupt")
    bridge.wait(*requests)
    return [request.completion.time_ns - base for request in requests]


def judge(rows, ends):
    """Each command ended at the nanosecond at which revosim says it did."""
    wrong = [(row, end) for row, end in zip(rows, ends) if row["done_ns"] != end]
    assert not wrong, f"{len(wrong)} of {len(rows)} differ, first {wrong[0]}"
