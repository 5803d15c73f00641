#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Pulls a disk out while its queue is full, as a careless hand would, and puts it back."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from revodrive_qtest import Bridge, Machine, ata, card_of, storage  # noqa: E402

SECOND_NS = 1_000_000_000


def main():
    words = [*storage.null_node("d0"), "-device", "marvell-88se9485,id=hba",
             "-device", "sf2281,id=ssd0,bus=hba.0,port=0,drive=d0"]
    with Machine(*words) as machine:
        bridge = Bridge(card_of(machine)).probe()
        disk = bridge.disks()[0]
        requests = [disk.issue(ata.read_ncq(tag, 8 * tag, 8)) for tag in range(32)]
        machine.qmp("device_del", id="ssd0")
        bridge.sleep(3 * SECOND_NS)
        print("after the pull:", disk.phy.log, sum(r.released for r in requests), "commands given up")
        machine.qmp("device_add", driver="sf2281", id="ssd0", bus="hba.0", port=0, drive="d0")
        bridge.sleep(SECOND_NS)
        print("after the plug:", disk.phy.log, "first sector reads", bridge.disks()[0].read(0, 1)[:4])


if __name__ == "__main__":
    main()
