# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/run --installed --exec: output and status of the command, and nothing else on stdout."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("firmware", ["bios", "uefi"])
def test_run_installed_executes_a_command(system, firmware):
    command = ("printf 'root: '; findmnt -no SOURCE / >/dev/null && echo there; "
               "if test -d /sys/firmware/efi; then echo uefi; else echo bios; fi; printf 'no end of line'; exit 3")
    done = subprocess.run([ROOT / "scripts" / "run", "--installed", "--firmware", firmware, "--image", system,
                           "--snapshot", "--exec", command], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (f"root: there\n{firmware}\nno end of line", 3), done.stderr
