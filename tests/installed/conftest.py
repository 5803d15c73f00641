# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the installed suite: scripts/mkguest makes the system (once; the tree is kept), machines boot it. Each
machine writes to a file over the image."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).parent), str(ROOT / "tests" / "guest"), str(ROOT / "tests" / "firmware")]

from harness.installed import Installed  # noqa: E402  # the path comes first


@pytest.fixture(scope="session")
def system():
    image = ROOT / ".deps" / "system" / "test.img"
    subprocess.run([ROOT / "scripts" / "mkguest", "--if-changed", image], check=True)
    return str(image)


@pytest.fixture
def machine(request):
    """machine(images, **options): a running Installed; its console is shown when the test fails."""
    request.node.machines = machines = []

    def start(images, **options):
        machines.append(Installed(images, **options))
        return machines[-1].start()

    yield start
    for one in machines:
        one.stop()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        for number, one in enumerate(getattr(item, "machines", [])):
            report.sections.append((f"machine {number}", one.report()))
