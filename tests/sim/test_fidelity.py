# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/fidelity: figures that the profiles reproduce stay reproduced, and the others have their reason."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/fidelity"))

import figures  # noqa: E402  # from the folder above
import recipes  # noqa: E402
import run  # noqa: E402


def test_quick_figures_are_reproduced():
    command = ["/usr/bin/python3", ROOT / "tests/fidelity/run.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True)
    off = [line for line in done.stdout.splitlines() if line.endswith(" OFF") or " -- " in line]
    assert not off, "\n".join(off)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" ok\n") >= 30


def test_all_others_are_reproduced_or_explained():
    command = ["/usr/bin/python3", ROOT / "tests/fidelity/run.py", "--no-report"]
    done = subprocess.run(command, capture_output=True, text=True)
    news = [line for line in done.stdout.splitlines() if " OFF" in line or " -- " in line or "UNREACHED" in line]
    assert done.returncode == 0 and not news, "\n".join(news) + done.stderr


def test_what_is_not_reproduced_is_explained():
    known = figures.load()
    assert set(recipes.RECIPES) | set(recipes.OUTSIDE) == set(known)
    assert set(recipes.UNREACHED) <= set(recipes.RECIPES)
    assert not set(recipes.UNREACHED) & set(run.QUICK)
    explained = (ROOT / "docs/model.md").read_text(encoding="utf-8").split("### Not reproduced")[1]
    assert [name for name in recipes.UNREACHED if name not in explained] == []


def test_verdicts_with_and_without_a_reason():
    known = figures.load()
    reached, unreached = known["F101"], known["F111"]
    assert run.Verdict(reached, reached.value).settled
    assert not run.Verdict(reached, 2 * reached.value).settled
    assert run.Verdict(unreached, 2 * unreached.value).settled
    assert run.line(run.Verdict(unreached, 2 * unreached.value)).endswith("off: " + recipes.UNREACHED["F111"])
    # What comes to be reproduced must not go on to be excused.
    assert not run.Verdict(unreached, unreached.value).settled
    assert "UNREACHED" in run.line(run.Verdict(unreached, unreached.value))
    assert not run.Verdict(reached, problem="no such profile").settled
