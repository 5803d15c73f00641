# SPDX-License-Identifier: GPL-2.0-or-later
"""The quick part of scripts/fidelity: figures of the reviews that the profiles reproduce stay reproduced."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


def test_quick_figures_are_reproduced():
    command = ["/usr/bin/python3", ROOT / "tests/fidelity/run.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True)
    off = [line for line in done.stdout.splitlines() if line.endswith(" OFF") or " -- " in line]
    assert not off, "\n".join(off)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" ok\n") >= 30
