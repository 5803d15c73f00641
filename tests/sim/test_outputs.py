# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run writes: lost output is an error, known before the run where it can be, and no file dies for nothing."""
import json
import os
import subprocess

import pytest

JOB = ("--name=a", "--rw=randread", "--number_ios=50", "--filename=ssd0")
# Would take minutes: whoever refuses it at once has not run it.
LONG = ("--name=a", "--rw=randread", "--iodepth=32", "--runtime=10h", "--time_based")
OPTIONS = ("--output", "--timeline", "--histogram", "--dump-commands", "--state")


@pytest.mark.parametrize("option", ["--output", "--timeline", "--histogram", "--dump-commands", "--write_iolog"])
def test_a_full_disk_is_an_error(sim, option):
    said = sim.run(*sim.sizes, *JOB, f"{option}=/dev/full")
    assert said.status == 2
    assert f"{option.strip('-')}=/dev/full" in said.errors and "No space left on device" in said.errors


@pytest.mark.parametrize("words", [JOB, ("--show-settings",), ("--list-profiles",), ("--help",)])
def test_standard_output_is_full(sim, words):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([sim.program, *sim.sizes, *words], cwd=sim.folder, stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    assert done.returncode == 2
    assert "standard output" in done.stderr and "No space left on device" in done.stderr


@pytest.mark.parametrize("option", [*OPTIONS, "--write_iolog"])
@pytest.mark.parametrize("path, reason", [("none/x", "No such file or directory"), (".", "")])
def test_unwritable_is_noticed_before_the_run(sim, option, path, reason):
    said = sim.refused(*sim.sizes, *LONG, f"{option}={path}")
    assert f"{option.strip('-')}={path}" in said and reason in said


@pytest.mark.parametrize("option", OPTIONS)
def test_a_run_that_does_not_start_leaves_files_alone(sim, option):
    """Neither an older file nor none is changed by a run that is refused."""
    sim.file("old", "precious")
    sim.refused(f"{option}=old", *sim.sizes, "--name=a", "--filename=ssd9")
    assert (sim.folder / "old").read_text() == "precious"
    sim.refused(f"{option}=new", *sim.sizes, "--name=a", "--filename=ssd9")
    assert [path.name for path in sim.folder.iterdir()] == ["old"]


def test_an_older_file_is_replaced_whole(sim):
    sim.file("r.json", "x" * 1000000)
    sim("--output=r.json", *JOB)
    assert json.loads((sim.folder / "r.json").read_text())["jobs"][0]["read"]["total_ios"] == 50


def test_one_file_for_two_outputs(sim):
    """By the same name, by another name, by a link; also of logs of jobs."""
    sim.file("x", "precious")
    os.link(sim.folder / "x", sim.folder / "hard")
    os.symlink("x", sim.folder / "soft")
    os.symlink("nowhere", sim.folder / "dangling")
    for first, second in [("x", "x"), ("x", "./x"), ("x", "hard"), ("x", "soft"), ("y", "y"), ("dangling", "nowhere")]:
        said = sim.refused(*sim.sizes, *LONG, f"--timeline={first}", f"--output={second}")
        assert f"--timeline={first}" in said and f"--output={second}" in said
    for option in ("--timeline", "--write_iolog"):
        said = sim.refused(*sim.sizes, *LONG, "--state=z", f"{option}=z")
        assert "--state=z" in said and f"{option.strip('-')}=z" in said
    said = sim.refused(*sim.sizes, "--write_iolog=l", "--name=a", "--name=b")
    assert "job 'a'" in said and "job 'b'" in said and "write_iolog=l" in said
    assert (sim.folder / "x").read_text() == "precious" and not (sim.folder / "y").exists()
    sim("--timeline=/dev/null", "--histogram=/dev/null", *JOB)


@pytest.mark.parametrize("option", [*OPTIONS, "--write_iolog"])
def test_no_output_takes_the_place_of_an_input(sim, option):
    """A job file, a profile, a log that is replayed: by name or by link."""
    inputs = {"job.fio": ("[a]\nrw=randread\ntime_based\nruntime=10h\n", "job file"),
              "mine.ini": ("[profile]\nbase = vertex3-120\n", "--profile=mine.ini"),
              "log": ("fio version 2 iolog\nssd0 add\nssd0 open\nssd0 read 0 4096\n", "read_iolog=log")}
    for name, (text, called) in inputs.items():
        sim.file(name, text)
        os.link(sim.folder / name, sim.folder / f"link-{name}")
        words = {"job.fio": ("job.fio",), "mine.ini": ("--profile=mine.ini", *LONG),
                 "log": ("--name=a", "--read_iolog=log")}[name]
        for path in (name, f"./{name}", f"link-{name}"):
            if option == "--write_iolog" and name == "job.fio":
                continue  # an option of the file itself
            said = sim.refused(*words, f"{option}={path}")
            assert called in said and f"{option.strip('-')}={path}" in said and "would be lost" in said
            assert (sim.folder / name).read_text() == text


def test_a_state_keeps_link_and_mode(sim):
    os.symlink("target", sim.folder / "link")
    sim("--state=link", "--name=a", "--rw=write", "--size=1m")
    assert (sim.folder / "link").is_symlink() and not (sim.folder / "target").is_symlink()
    (sim.folder / "target").chmod(0o640)
    before = (sim.folder / "target").read_bytes()
    sim("--state=link", "--name=a", "--rw=write", "--size=1m")
    assert (sim.folder / "link").is_symlink() and (sim.folder / "target").read_bytes() != before
    assert (sim.folder / "target").stat().st_mode & 0o7777 == 0o640
    assert sorted(path.name for path in sim.folder.iterdir()) == ["link", "target"]


def test_a_state_is_a_regular_file(sim):
    os.mkfifo(sim.folder / "pipe")
    for path in ("pipe", "/dev/zero", "."):
        assert "regular file" in sim.refused(f"--state={path}", *JOB)


@pytest.mark.parametrize("option", [*OPTIONS, "--profile", "--placement", "--preset", "--set"])
def test_empty_values(sim, option):
    for words in ((f"{option}=",), (option, "")):
        said = sim.refused(*words, *JOB)
        assert option in said and "needs a value" in said


def test_window_of_the_timeline(sim):
    """Needs a timeline; times in the file begin with it; beyond the end it is empty, and that is said."""
    assert "--timeline-window" in sim.refused("--timeline-window=1ms-2ms", *JOB)
    result = sim(*JOB, "--timeline=t.json", "--timeline-window=10s-20s")
    assert "warning" in result.errors and "10000" in result.errors
    assert not [event for event in json.loads((sim.folder / "t.json").read_text())["traceEvents"] if event["ph"] == "X"]
    words = ("--name=a", "--rw=randrw", "--iodepth=8", "--number_ios=500", "--timeline=t.json")
    result = sim(*words, "--timeline-window=1ms-1100us")
    assert result.errors == ""
    spans = [event for event in json.loads((sim.folder / "t.json").read_text())["traceEvents"] if event["ph"] == "X"]
    assert spans and min(event["ts"] for event in spans) == 0
    assert max(event["ts"] + event["dur"] for event in spans) == pytest.approx(100, abs=0.002)
