# SPDX-License-Identifier: GPL-2.0-or-later
"""revosim on the card's own volume: --placement=vca-stripe and vca-dispatch."""
import pytest

POLICIES = pytest.mark.parametrize("placement", ["vca-stripe", "vca-dispatch", "vca-dispatch:16k"])


@POLICIES
def test_every_kind_arrives(sim, placement):
    result = sim(f"--placement={placement}", "--name=a", "--rw=randrw", "--bs=8k", "--size=4m", "--iodepth=200",
                 "--fsync=50", "--end_fsync=1", "--name=b", "--stonewall", "--rw=trim", "--bs=64k", "--size=4m")
    first, second = result.json["jobs"]
    assert first["read"]["total_ios"] + first["write"]["total_ios"] == 512
    assert second["trim"]["total_ios"] == 64
    changes = result.json["revosim"]["changes"]
    assert sum(changes.get(f"port{port}.writes", 0) for port in range(4)) >= first["write"]["total_ios"]
    assert sum(changes.get(f"port{port}.trims", 0) for port in range(4)) > 0
    assert result.json["revosim"]["counters"]["volume_failed"] == 0


@POLICIES
def test_the_same_twice(sim, placement):
    words = (f"--placement={placement}", "--name=a", "--rw=randrw", "--iodepth=64", "--number_ios=1500")
    assert sim(*words).json == sim(*words).json


def test_dispatch_spreads_what_meets_one_chunk(sim):
    """A burst into one chunk: one SSD of a stripe has it all; dispatch gives each a quarter."""

    def iops(placement):
        return sim(f"--placement={placement}", "--name=a", "--rw=randwrite", "--bs=4k", "--size=64k", "--iodepth=16",
                   "--refill_buffers", "--loops=40").job()["write"]["iops"]

    assert iops("vca-dispatch") > 1.5 * iops("vca-stripe")


def test_the_map_is_part_of_a_state(sim, tmp_path):
    state = tmp_path / "s"
    words = (f"--state={state}", "--placement=vca-dispatch", "--name=a", "--size=4m", "--bs=64k")
    sim(*words, "--rw=write")
    changes = sim(*words, "--rw=read").json["revosim"]["changes"]
    assert sum(changes.get(f"port{port}.reads", 0) for port in range(4)) >= 64


@pytest.mark.parametrize("words, named", [
    (("--placement=vca-mirror",), "vca-stripe or vca-dispatch"),
    (("--placement=vca-stripe:3000",), "power of two"),
    (("--placement=vca-stripe", "--filename=ssd0"), "there is card alone")])
def test_refused(sim, words, named):
    assert named in sim.refused(*words, "--name=a", "--rw=read", "--size=1m")
