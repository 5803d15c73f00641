# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs revosim on a list of jobs and gives fio's view of each; the same run is never made twice."""

import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import pathlib
import subprocess
import threading


class SimulationError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Run:
    """One invocation: `jobs` are (name, ((option, value), …)) in order, each after the one before it."""

    profile: str
    jobs: tuple
    overrides: tuple = ()
    preset: str = "fresh"
    placement: str = "stripe"

    def job_file(self):
        lines = []
        for position, (name, options) in enumerate(self.jobs):
            lines += [f"[{name}]"] + [f"{key}={value}" for key, value in options]
            if position:
                lines.append("stonewall")
        return "\n".join(lines) + "\n"

    def key(self):
        text = repr((self.profile, self.job_file(), self.overrides, self.preset,
                     self.placement))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Outcome:
    """What revosim's JSON says of a run."""

    def __init__(self, report):
        self.report = report
        self.jobs = {job["jobname"]: job for job in report["jobs"]}

    def side(self, job, direction):
        return self.jobs[job][direction]

    def mb_s(self, job, direction):
        """MB/s of 10^6 bytes, as reviews print it."""
        return self.side(job, direction)["bw_bytes"] / 1e6

    def iops(self, job, direction):
        return self.side(job, direction)["iops"]

    def latency_ms(self, job, direction):
        return self.side(job, direction)["lat_ns"]["mean"] / 1e6

    def extra(self):
        """What fio has no words for: of the whole run, not of one job."""
        return self.report["revosim"]


class Simulator:
    def __init__(self, program, folder):
        self.program, self.folder = str(program), pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.version = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()[:12]
        self.done = {}
        self.lock = threading.Lock()

    def __call__(self, run):
        with self.lock:
            future = self.done.get(run)
            mine = future is None
            if mine:
                future = self.done[run] = concurrent.futures.Future()
        if mine:
            try:
                future.set_result(self.fetch(run))
            except Exception as error:
                future.set_exception(error)
        return future.result()

    @functools.cache
    def settings(self, profile):
        done = subprocess.run([self.program, "--profile", profile, "--show-settings"], capture_output=True, text=True)
        if done.returncode:
            raise SimulationError(done.stderr.strip())
        return dict(line.split("=", 1) for line in done.stdout.splitlines())

    def fetch(self, run):
        stem = self.folder / f"{self.version}-{run.key()}"
        kept = stem.with_suffix(".json")
        if not kept.exists():
            jobs = stem.with_suffix(".fio")
            jobs.write_text(run.job_file(), encoding="utf-8")
            command = [self.program, "--profile", run.profile, f"--preset={run.preset}",
                       f"--placement={run.placement}", "--output-format=json"]
            for override in run.overrides:
                command += ["--set", override]
            done = subprocess.run([*command, str(jobs)], capture_output=True, text=True)
            if done.returncode:
                raise SimulationError(f"{' '.join(command)} {jobs}: status {done.returncode}\n{done.stderr.strip()}")
            kept.write_text(done.stdout, encoding="utf-8")
        return Outcome(json.loads(kept.read_text(encoding="utf-8")))
