# SPDX-License-Identifier: GPL-2.0-or-later
"""revosim as a user runs it: `sim(arguments…)` runs build/revosim in the test's own folder."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REVOSIM = os.environ.get("REVOSIM", str(ROOT / "build" / "revosim"))


class Result:
    def __init__(self, done):
        self.status, self.text, self.errors = done.returncode, done.stdout, done.stderr

    @property
    def json(self):
        return json.loads(self.text)

    def job(self, number=0):
        return self.json["jobs"][number]


class Sim:
    def __init__(self, folder):
        self.folder = folder
        self.program = REVOSIM
        self.sizes = ["--set", "card.member_bytes=268435456"]

    def file(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def start(self, *arguments, **options):
        return subprocess.Popen([REVOSIM, *arguments], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)

    def run(self, *arguments):
        """Any outcome."""
        done = subprocess.run([REVOSIM, *arguments], cwd=self.folder, text=True, capture_output=True,
                              timeout=300, check=False)
        return Result(done)

    def __call__(self, *arguments, small=True):
        """Must succeed; prints JSON. Small SSDs of 256 MiB, unless told otherwise."""
        result = self.run("--output-format=json", *(self.sizes if small else []), *arguments)
        assert result.status == 0, result.errors
        return result

    def refused(self, *arguments):
        """Must end with status 2 and one message, which is returned."""
        result = self.run(*arguments)
        assert result.status == 2 and result.text == "", result.text + result.errors
        assert result.errors.startswith("revosim: ") and result.errors.count("\n") == 1, result.errors
        return result.errors


@pytest.fixture
def sim(tmp_path):
    return Sim(tmp_path)
