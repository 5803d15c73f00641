# SPDX-License-Identifier: GPL-2.0-or-later
"""How scripts/run --installed gets commands through a console, without a machine."""

import pexpect
import pytest

from harness.installed import Clean, Installed


@pytest.mark.parametrize("command, status, output", [
    ("echo hi; exit 3", 3, "hi\n"),
    ("printf 'a\\nb'", 0, "a\nb"),
    ("true", 0, ""),
    ("printf '\\n\\n'; false", 1, "\n\n"),
    ("echo " + "x" * 3000, 0, "x" * 3000 + "\n"),
    ("kill -9 $$", 137, "Killed\n"),
    ("read x; echo got $x", 0, "got\n")], ids=["status", "no-end", "nothing", "blank", "long", "killed", "no-stdin"])
def test_commands_on_a_console(tmp_path, command, status, output):
    """Status and output come through a terminal unharmed: here one with a shell of this machine behind it."""
    console = Installed([])
    console.log = Clean(tmp_path / "console.log")
    console.child = pexpect.spawn("/bin/bash", ["--norc", "-i"], timeout=60,
                                  env={"PS1": "root# ", "PATH": "/usr/bin:/bin"})
    console.child.logfile_read, console.child.delaybeforesend = console.log, None
    console.expect("# $")
    console.take_shell()
    heard = []
    done = console.run(command, sink=heard.append)
    console.stop()
    assert (done.status, done.output, "".join(heard)) == (status, output, output)
