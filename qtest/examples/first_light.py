#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts a card with four fresh images, probes it, and shows what a queue of reads costs."""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from revodrive_qtest import Bridge, Machine, ata, card_of, storage  # noqa: E402


def main():
    with tempfile.TemporaryDirectory() as folder:
        words = []
        for i in range(4):
            words += storage.raw_node(f"d{i}", storage.raw_image(f"{folder}/ssd{i}.img"))
        drives = ",".join(f"drive{i}=d{i}" for i in range(4))
        with Machine(*words, "-device", f"revodrive3-x2,id=card,addr=4,{drives}") as machine:
            show(Bridge(card_of(machine)).probe())


def show(bridge):
    print(f"link status {bridge.link_status:#x}, disks on {[d.phy for d in bridge.disks()]}")
    disk = bridge.disks()[0]
    print(ata.ata_string(disk.identify(), 27, 46), disk.sectors(), "sectors")
    disk.write(100, b"hello".ljust(512))
    disk.flush()
    assert disk.read(100, 1).startswith(b"hello")
    for request in disk.ncq([ata.read_ncq(tag, 64 * tag, 8) for tag in range(32)]):
        took_us = (request.completion.time_ns - request.issue_ns) / 1000
        print(f"tag {request.command.tag:2}  LBA {request.command.lba:5}  {took_us:7.1f} us")
    disk.trim((4096, 1024))


if __name__ == "__main__":
    main()
