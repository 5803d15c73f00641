# SPDX-License-Identifier: GPL-2.0-or-later
"""What job files, profiles and values may look like, and that messages name the thing that is wrong."""
import os
import subprocess

import pytest


@pytest.mark.parametrize("text", [
    "[r] ; the job\nrw=write ; comment\nbs=8k # c\nsize=1m\n", "[r] # the job\nrw=write;c\nbs=8k#c\nsize=1m;;\n",
    "  ; indented\n\t# too\n[r]\nrw=write\nbs=8k ; a # b ; c\nsize=1m ;\n", "\ufeff[r]\nrw=write\nbs=8k\nsize=1m\n",
    "[r]\r\nrw=write\r\nbs=8k ; c\r\nsize=1m\r\n"])
def test_comments_are_those_of_fio(sim, text):
    """The job is the same for fio itself, but that fio knows no byte order mark."""
    (sim.folder / "j.fio").write_bytes(text.encode())
    job = sim("j.fio").job()
    assert job["jobname"] == "r" and job["write"]["total_ios"] == 128
    if text.startswith("\ufeff"):
        return
    shown = subprocess.run(["fio", "--showcmd", "j.fio"], cwd=sim.folder, text=True, check=True,
                           capture_output=True).stdout
    assert shown.split() == ["fio", "--name=r", "--rw=write", "--bs=8k", "--size=1m"]


@pytest.mark.parametrize("text, place", [(b"[a]\nrw=re\0ad\n", "j.fio:2"), (b"[a]\n\nbs=4k\n\0\n", "j.fio:4"),
                                         ("[a]\nrw=read\n".encode("utf-16"), "j.fio:1")])
def test_nul_bytes(sim, text, place):
    (sim.folder / "j.fio").write_bytes(text)
    said = sim.refused("j.fio")
    assert place in said and "NUL" in said


@pytest.mark.parametrize("text, place", [
    (b"[a\xff]\nrw=read\n", "j.fio:1"), (b"[a]\n\ndescription=\xe9\n", "j.fio:3"), (b"[a]\nb\xffs=4k\n", "j.fio:2")])
def test_jobs_are_utf8(sim, text, place):
    (sim.folder / "j.fio").write_bytes(text)
    said = sim.refused("j.fio")
    assert place in said and "UTF-8" in said
    assert "UTF-8" in sim.refused(os.fsdecode(b"--name=\xff"))
    assert sim("--name=\u00e9", "--number_ios=1").job()["jobname"] == "\u00e9"


@pytest.mark.parametrize("option, others, said", [
    ("filename=ssd7", "", "ssd0 to ssd3"), ("offset=2g", "", "no block"), ("size=512", "", "no block"),
    ("offset=3", "", "begins at byte 3: must be a multiple of 512"),
    ("buffer_pattern=0x11", "zero_buffers", "zero_buffers (j.fio:7)"), ("time_based", "", "runtime"),
    ("blockalign=1000", "", "512"), ("replay_align=1000", "", "power of two"),
    ("bs=4k,8k,16k", "rw=trimwrite", "block size"), ("write_iolog=none/x", "", "No such file"),
    ("read_iolog=none", "", "No such file"), ("replay_redirect=sdz", "read_iolog=t.log", "replay_redirect=sdz"),
    ("replay_redirect=ssd7", "read_iolog=t.log", "replay_redirect=ssd7"),
    ("read_iolog=high.log", "", "'ssd5'")])
def test_errors_of_a_job_name_the_options_line(sim, option, others, said):
    """In the job, and in [global], whose line it is then."""
    sim.file("t.log", "fio version 2 iolog\n/dev/sdx add\n/dev/sdx read 0 4096\n")
    sim.file("high.log", "fio version 2 iolog\nssd5 add\nssd5 read 0 4096\n")
    sim.file("j.fio", f"[global]\nfilename=ssd0\n\n[a]\n{option}\n\n{others}\n")
    message = sim.refused(*sim.sizes, "j.fio")
    assert "j.fio:5: job 'a':" in message and said in message
    sim.file("j.fio", f"[global]\nfilename=ssd0\n{option}\n\n[b]\n\n{others}\n\n[c]\n{others}\n")
    message = sim.refused(*sim.sizes, "j.fio")
    assert "j.fio:3: job 'b':" in message and said in message


@pytest.mark.parametrize("words, named", [
    (("--placement=vca-stripe:3k",), "--placement=vca-stripe:3k"),
    (("--placement=vca-dispatch:32m",), "--placement=vca-dispatch:32m"),
    (("--preset=used",), "--preset=used: must be fresh, full or steady"),
    (("--preset=image",), "--preset=image: must be fresh, full or steady; the drives here have no image"),
    (("--placement=vca-stripe", "--replay_redirect=ssd1", "--read_iolog=t.log"), "replay_redirect=ssd1")])
def test_messages_name_what_was_said(sim, words, named):
    sim.file("t.log", "fio version 2 iolog\n/dev/sdx add\n/dev/sdx read 0 4096\n")
    assert named in sim.refused(*sim.sizes, *words, "--name=a", "--size=1m")


def test_a_state_of_another_chunk(sim):
    sim("--state=s", "--placement=vca-dispatch", "--name=a", "--rw=write", "--bs=64k", "--size=1m")
    said = sim.refused(*sim.sizes, "--state=s", "--placement=vca-dispatch:128k", "--name=a", "--size=1m")
    for word in ("--state=s", "chunk=65536", "chunk=131072", "--placement=vca-dispatch:128k"):
        assert word in said
    assert "--state=s" in sim.refused(*sim.sizes, "--state=s", "--placement=vca-stripe", "--name=a", "--size=1m")


def test_unknown_sections_and_keys(sim):
    said = sim.refused("--set", "flosh.read_page_us=50", "--name=a")
    assert "unknown section [flosh]" in said and "[flash]" in said and "[host]" in said
    sim.file("p.ini", "[profile]\nbase=revodrive3-x2-480\n\n[flash]\n# c\ncolour=1\n")
    assert "./p.ini:6: unknown key 'colour' in section [flash]" in sim.refused("--profile=./p.ini", "--name=a")
    sim.file("p.ini", "[profile]\nbase=revodrive3-x2-480\n[sota]\nspeed=1\n")
    assert "./p.ini:4: unknown section [sota]" in sim.refused("--profile=./p.ini", "--name=a")
    sim.file("p.ini", "[profile]\nbase=revodrive3-x2-480\n[flash]\nraise=1\n[sata]\n speed = 9\n")
    said = sim.refused("--profile=./p.ini", "--name=a")
    assert "./p.ini:6: [sata] speed=9" in said and "1 to 3" in said
    assert "without a unit" in sim.refused("--set", "card.member_bytes=1t", "--name=a")


def test_a_profile_is_a_regular_file(sim):
    os.mkfifo(sim.folder / "pipe.ini")
    for path in ("./pipe.ini", "/dev/zero", "./"):
        assert "regular file" in sim.refused(f"--profile={path}", "--name=a")


@pytest.mark.parametrize("setting, allowed", [
    ("pcie.lanes=3", "power of two from 1 to 16"), ("pcie.max_payload_bytes=300", "power of two from 128 to 4096"),
    ("flash.planes=3", "power of two from 1 to 4"), ("flash.page_bytes=5000", "power of two"),
    ("flash.map_unit_bytes=5000", "power of two"), ("flash.block_pages=1", "16 to 4096"),
    ("flash.codeword_bytes=3000", "divide page_bytes=8192"), ("flash.codeword_bytes=16384", "divide page_bytes=8192")])
def test_impossible_geometry(sim, setting, allowed):
    said = sim.refused("--set", setting, "--show-settings")
    assert setting.split(".")[1] in said and allowed in said


def test_builtin_profiles_are_possible(sim):
    for name in sim.run("--list-profiles").text.split():
        assert sim.run(f"--profile={name}", "--show-settings").status == 0, name
