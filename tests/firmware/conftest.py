# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the firmware suites: the card as a BIOS and UEFI see it."""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "qtest")]

from pc import Pc  # noqa: E402  # the path comes first


@pytest.fixture
def pc(request, tmp_path):
    """pc(*qemu_arguments, machine=…): a running Pc, ended after the test."""
    machines = request.node.machines = []

    def start(*arguments, **options):
        folder = tmp_path / f"pc{len(machines)}"
        folder.mkdir()
        machines.append(Pc(folder, *arguments, **options))
        return machines[-1].start()

    yield start
    for machine in machines:
        machine.stop()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    for number, machine in enumerate(getattr(item, "machines", [])):
        if report.failed:
            report.sections.append((f"PC {number}", machine.report()))
