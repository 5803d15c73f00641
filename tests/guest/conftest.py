# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the guest suites, and the guest's console in the report of a failed test."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import Guest  # noqa: E402  # the path comes first
from harness.guest import running  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "locked: the kernel's log may have refused reads of a locked drive")


@pytest.fixture
def boot():
    """boot(card="…", smp=4, …): a running guest with these Options; it is powered off after the test."""
    guests = []

    def start(judge=True, **options):
        guest = Guest(judge=judge, **options)
        guests.append(guest)
        return guest.start()

    yield start
    for guest in guests:
        guest.stop()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed:
        for guest in list(running):
            report.sections.append(("guest console", "\n".join(guest.console().splitlines()[-80:])))
