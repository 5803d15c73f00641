# SPDX-License-Identifier: GPL-2.0-or-later
"""From the firmware's hands to the driver's: one boot of the installed system, watched from both sides."""

import re

MEMBERS = 4
# What the block layer counts of a disk (Documentation/admin-guide/iostats.rst in Linux), and the card of an SSD. The
# block layer takes a flush for a write, hence no number of writes.
SERVED = {"reads": 0, "read-sectors": 2, "write-sectors": 6}
# What the kernel must not have said on the way: a fight over the card, lost commands, resets of links.
TROUBLE = re.compile(r"hard resetting link|SError|failed command|exception Emask|timed out|I/O error|nobody cared"
                     r"|lost interrupt|mvsas.*(fail|error)", re.I)


def boot(guest, *words):
    """Waits for these words of firmware and loader, then for the login, and judges how the card changed hands. The
    SSD the system is on, by number."""
    for pattern in words:
        guest.expect(pattern)
    guest.expect(r"\] Linux version")
    before = counters(guest)
    guest.login()
    return judge(guest, before)


def counters(guest):
    members = [{name: guest.counter(name, member) for name in ("link-resets", *SERVED)}
               for member in range(MEMBERS)]
    return members, {name: guest.counter(name) for name in ("rejected", "dma-errors", "commands", "completions")}


def judge(guest, before):
    """The root file system is on the card, the driver found all SSDs, and had no trouble with what firmware left:
    one reset of each link, and each command of the block layer ran once."""
    source = guest.run("findmnt -no SOURCE /", check=True).output.strip()
    disk = re.fullmatch(r"/dev/(sd[a-z]+)3", source)[1]
    path = guest.run(f"readlink -f /sys/class/block/{disk}", check=True).output
    place = re.search(r"/(0000:[^/]*)/host\d+/port-\d+:(\d)/", path)
    assert place, path
    assert guest.run(f"test -d /sys/bus/pci/drivers/mvsas/{place[1]}").status == 0
    assert guest.run("test -d /sys/firmware/efi").status == (0 if guest.firmware == "uefi" else 1)
    log = guest.run("dmesg").output
    assert "mvsas" in log and [line for line in log.splitlines() if TROUBLE.search(line)] == []
    judge_counters(guest, before, disk, int(place[2]))
    return int(place[2])


def judge_counters(guest, before, disk, member):
    (old, card_old), first, (new, card_new), last = before, served(guest, disk), counters(guest), served(guest, disk)
    for one, now in zip(old, new):
        assert now["link-resets"] - one["link-resets"] == 1
    assert (card_new["rejected"], card_new["dma-errors"]) == (card_old["rejected"], card_old["dma-errors"])
    assert card_new["commands"] - card_old["commands"] == card_new["completions"] - card_old["completions"]
    for name in SERVED:
        done = new[member][name] - old[member][name]
        assert first[name] <= done <= last[name], f"{name}: the kernel asked for {first[name]} to {last[name]}"


def served(guest, disk):
    """What the block layer has got, for a system that has nothing to do."""
    words = guest.run(f"sync; cat /sys/class/block/{disk}/stat", check=True).output.split()
    return {name: int(words[field]) for name, field in SERVED.items()}
