# SPDX-License-Identifier: GPL-2.0-or-later
"""What a user of scripts/guest is told when something is wrong, and that a command's status is the script's."""

import os
import subprocess

import pytest

from harness import DriverMissing

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "guest")


def register_accesses(guest):
    names = ("register-reads", "register-writes")
    return sum(guest.qmp("qom-get", path="/machine/peripheral/card0", property=name) for name in names)


def test_c008_missing_driver_is_told_from_a_broken_device(boot):
    """C008: no driver in the guest ends in that verdict, and nothing has touched the card's registers."""
    guest = boot(judge=False, append="guest.nodriver", card="rombar=0")  # its ROM would look for SSDs
    assert guest.card_state()
    with pytest.raises(DriverMissing) as verdict:
        guest.judge_card()
    assert "mvsas" in str(verdict.value)
    assert register_accesses(guest) == 0
    guest.run("modprobe mvsas && until card-state settled 4; do usleep 50000; done")
    assert register_accesses(guest) > 500


def test_status_and_output_of_a_command():
    command = [SCRIPT, "--exec", "echo out; echo err >&2; exit 7"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 7
    assert done.stdout == "out\n"
    assert "err\n" in done.stderr
