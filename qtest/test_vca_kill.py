# SPDX-License-Identifier: GPL-2.0-or-later
"""mode=vca: QEMU is killed in the middle of a load full of flushes. What a flush has acknowledged is there, what was
written since is there or not, and no block shows another's data."""
import random

import pytest

from revodrive_qtest import Bridge, card_of, storage
from revodrive_qtest.volume import Volume, card

KILLS = 25
BLOCKS = 1024  # sectors under load
ZERO = bytes(512)


def content(lba, version):
    return (lba.to_bytes(8, "little") + version.to_bytes(8, "little")) * 32


def version_of(lba, sector):
    if sector == ZERO:
        return 0
    version = int.from_bytes(sector[8:16], "little")
    assert sector == content(lba, version), f"block {lba} shows {sector[:16].hex()}"
    return version


class Load:
    """Versions that may be read of each block: the oldest that a flush has made safe, and all later ones."""

    def __init__(self, rng):
        self.rng, self.version = rng, 0
        self.allowed = [[0] for _ in range(BLOCKS)]
        self.pending = []

    def check(self, disk):
        for start in range(0, BLOCKS, 256):
            data = disk.read(start, 256)
            for i in range(256):
                found = version_of(start + i, data[512 * i:512 * i + 512])
                assert found in self.allowed[start + i], f"block {start + i}: {found}, not {self.allowed[start + i]}"
                self.allowed[start + i] = [found]

    def write(self, disk):
        count = self.rng.choice((1, 3, 8, 8, 8, 40, 200))
        first = self.rng.randrange(BLOCKS - count)
        first -= first % 8 if count == 8 else 0
        if any(first < lba + n and lba < first + count for _, lba, n, _ in self.pending):
            return
        self.version += 1
        for lba in range(first, first + count):
            self.allowed[lba].append(self.version)
        data = b"".join(content(lba, self.version) for lba in range(first, first + count))
        forced = 8 if self.rng.random() < 0.1 else 0
        cdb = disk.write_cdb(first, count)
        request = disk.issue([cdb[0], forced, *cdb[2:]], data)
        self.pending.append((request, first, count, (self.version, forced)))

    def collect(self, disk, wait):
        left = []
        for request, first, count, (version, forced) in self.pending:
            if request.completion is None and not wait:
                left.append((request, first, count, (version, forced)))
                continue
            disk.finish(request)
            if forced:
                self.safe(first, count, version)
        self.pending = left

    def safe(self, first, count, version):
        for lba in range(first, first + count):
            versions = self.allowed[lba]
            del versions[:versions.index(version)]

    def flush(self, disk):
        self.collect(disk, True)
        newest = [versions[-1] for versions in self.allowed]
        disk.run([0x35])
        self.allowed = [[version] for version in newest]

    def run(self, disk):
        """Some commands, of which the last ones are in flight when it returns."""
        for _ in range(self.rng.randrange(4, 40)):
            choice = self.rng.random()
            if choice < 0.2:
                self.flush(disk)
            elif choice < 0.4:
                disk.core.machine.clock_step(self.rng.randrange(1, 400_000))
                self.collect(disk, False)
            else:
                self.write(disk)
        disk.issue([0x35])
        disk.core.machine.clock_step(self.rng.randrange(1, 3_000_000))
        self.pending.clear()


@pytest.mark.parametrize("policy", ["stripe", "dispatch"])
def test_killed_under_load(launch, tmp_path, seed, policy):
    words = []
    for i in range(4):
        words += storage.raw_node(f"d{i}", storage.raw_image(tmp_path / f"{i}", stamped_sectors=0))
    load = Load(random.Random(seed))
    for _ in range(KILLS):
        vm = launch(*words, *card(policy))
        disk = Volume(Bridge(card_of(vm)).probe())
        disk.clear_attention()
        load.check(disk)
        load.run(disk)
        vm.close(kill=True)
    vm = launch(*words, *card(policy))
    disk = Volume(Bridge(card_of(vm)).probe())
    disk.clear_attention()
    load.check(disk)
