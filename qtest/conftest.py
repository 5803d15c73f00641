# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the qtest suites. A test gets machines from `launch` or a probed card from `rig`.

Every machine is closed after its test: QEMU must end by itself with status 0, print nothing from a
sanitizer, and have left the guard bytes around every guest buffer alone. What QEMU printed is shown
when the test fails.
"""
import dataclasses
import os
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from revodrive_qtest import Bridge, Machine, card_of, storage  # noqa: E402

_SANITIZER = re.compile(r"(AddressSanitizer|LeakSanitizer|runtime error:|UndefinedBehavior)")


def pytest_addoption(parser):
    parser.addoption("--plugin", help="revodrive.so to test (default: REVODRIVE_PLUGIN or build/)")
    parser.addoption("--preload", help="library for QEMU's LD_PRELOAD, e.g. libasan.so.8")
    parser.addoption("--seed", type=int, help="seed of the random tests; they print theirs")


def pytest_configure(config):
    for option, variable in (("--plugin", "REVODRIVE_PLUGIN"), ("--preload", "REVODRIVE_PRELOAD")):
        if config.getoption(option):
            os.environ[variable] = config.getoption(option)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    for number, machine in enumerate(getattr(item, "machines", [])):
        if report.failed and machine.log():
            report.sections.append((f"QEMU {number}", machine.log()))


@pytest.fixture
def launch(request):
    """launch(*qemu_args, **options): a Machine that is closed and checked after the test."""
    machines = request.node.machines = []

    def start(*args, **options):
        machine = Machine(*args, **options)
        machines.append(machine)
        return machine

    yield start
    for machine in machines:
        if machine.process.is_running():
            check_guards(machine)
        log = machine.close()
        assert not _SANITIZER.search(log), f"a sanitizer complained:\n{log}"


def check_guards(machine):
    if machine.qmp("query-status")["status"] == "running":
        machine.memory.check_guards()


@dataclasses.dataclass
class Rig:
    """A machine with one card and what the driver made of it."""
    machine: Machine
    bridge: Bridge
    images: list

    @property
    def disks(self):
        return self.bridge.disks()

    @property
    def core(self):
        return self.bridge.cores[0]

    @property
    def phy(self):
        return self.core.phys[0]

    @property
    def disk(self):
        return self.disks[0]


@pytest.fixture
def rig(launch, tmp_path):
    """rig(...): four stamped 64 MiB raw images on a revodrive3-x2, probed. See make() for options."""

    def make(props="", args=(), members=4, nodes=None, probe=True, machine="q35", memory="256M",
             device="revodrive3-x2", bus="", **bridge):
        images = [tmp_path / f"ssd{i}.img" for i in range(members)]
        words = [*args]
        if nodes is None:
            for i, image in enumerate(images):
                words += storage.raw_node(f"d{i}", storage.raw_image(image))
        else:
            words += nodes
        drives = "".join(f",drive{i}=d{i}" for i in range(members))
        words += ["-device", f"{device},id=card{bus or ',addr=4'}{drives}{props and ',' + props}"]
        vm = launch(*words, machine=machine, memory=memory)
        made = Bridge(card_of(vm), timing="timing=off" not in props, **bridge)
        return Rig(vm, made.probe() if probe else made, images)

    return make


@pytest.fixture
def bare(launch, tmp_path):
    """bare(ports): the explicit form; member i is `ssd<i>` on the bus `hba.0`, node `d<i>`."""

    def make(ports=(0,), args=(), props=""):
        images = {i: storage.raw_image(tmp_path / f"ssd{i}.img") for i in ports}
        words = [*args]
        for i, image in images.items():
            words += storage.raw_node(f"d{i}", image)
        words += ["-device", f"marvell-88se9485,id=hba,addr=4{props and ',' + props}"]
        for i in ports:
            words += ["-device", f"sf2281,id=ssd{i},bus=hba.0,port={i},drive=d{i}"]
        vm = launch(*words)
        return Rig(vm, Bridge(card_of(vm), timing="timing=off" not in props).probe(), images)

    return make


@pytest.fixture
def seed(request):
    """The seed of a random test: printed, and settable with --seed."""
    chosen = request.config.getoption("--seed")
    value = int.from_bytes(os.urandom(4), "little") if chosen is None else chosen
    print(f"seed: repeat with --seed {value}")
    return value
