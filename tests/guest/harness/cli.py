# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/guest: one guest, one command (or a shell on the terminal), from the command line."""

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from . import paths
from .errors import GuestError, GuestTimeout
from .guest import Guest, check_products
from .options import CommandLine, Options

DESCRIPTION = """\
Boots the small Linux guest that scripts/setup made, with the card in it, and either runs one
command there or gives you a shell (when there is no --exec). Everything is gone afterwards, but
for the files you named with --image or --volume.
"""

EPILOG = """\
exit status (with --exec):
  that of CMD, or 128 + N when signal N ended it; and for what is not CMD's doing:
  120  driver missing: the card is on the guest's bus, but this guest has no driver for it
  121  device broken: the driver is there and tried, but the card or its disks did not come up
  124  the time of --timeout is over
  125  QEMU or the harness failed
  Each of these comes with one line on stderr that says so, and with the end of the console.

examples:
  scripts/guest --exec 'lspci -nn | grep 1b85; lsblk -dno NAME,SIZE,MODEL'
  scripts/guest --card timing=off --smp 4 --memory 4G --exec 'fio --name=r --filename=/dev/sda --rw=read'
  scripts/guest --image disk.qcow2 --exec 'mount /dev/sda1 /mnt && ls /mnt'
  scripts/guest --qemu '-device intel-iommu' --append intel_iommu=on --exec 'dmesg | grep -i dmar'
  scripts/guest                      a shell; Ctrl-A X ends QEMU, Ctrl-A C is its monitor
"""


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="scripts/guest",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--exec", metavar="CMD", dest="command", help="run CMD with sh in the guest, then power off")
    add("--card", metavar="[TYPE,]PROPS", default="", help="card type (default revodrive3-x2) and its properties")
    add("--cards", metavar="N", type=int, default=1, help="number of cards, each with its own images (default 1)")
    add("--no-card", action="store_true", help="the same guest without the card (same as --card none)")
    add("--image", metavar="FILE", action="append", default=[], help="raw or qcow2 file as drive0; again for drive1 …")
    add("--volume", metavar="FILE", default="", help="one raw or qcow2 file as drive=, cut into equal members")
    add("--image-size", metavar="SIZE", default="1G", help="size of each temporary image (default 1G, sparse)")
    add("--disks", metavar="N", type=int, help="wait for N disks; 0: run CMD whatever the card does")
    add("--qemu", metavar="ARGS", action="append", default=[], help="further arguments for QEMU, quoted as for a shell")
    add("--machine", choices=("q35", "pc"), default="q35", help="default q35, with the card on a root port")
    add("--root-bus", action="store_true", help="q35: the card on the root bus itself")
    add("--uefi", action="store_true", help="UEFI firmware (OVMF) instead of SeaBIOS")
    add("--smp", metavar="N", type=int, default=0, help="processors (default 2; with --icount 1)")
    add("--memory", metavar="SIZE", default="1G", help="memory (default 1G)")
    add("--kernel", metavar="FILE", default="", help="your own kernel; modules come from the initramfs")
    add("--initrd", metavar="FILE", default="", help="your own initramfs (no --exec then: it lacks the agent)")
    add("--append", metavar="ARGS", default="", help="further words for the kernel's command line")
    add("--icount", metavar="SPEC", nargs="?", const="shift=0,sleep=off", default="", help="count instructions as time")
    add("--accel", choices=("tcg", "kvm", "auto"), default="tcg", help="auto: KVM where a probe showed that it works")
    add("--timeout", metavar="SECONDS", type=float, default=600, help="the longest time for all of it (default 600)")
    add("--console", action="store_true", help="show the guest's console on stderr, too")
    add("--dry-run", action="store_true", help="print QEMU's command line and end")
    return parser, parser.parse_args(arguments)


def options_of(given):
    return Options(
        card="none" if given.no_card else given.card,
        cards=given.cards,
        images=given.image,
        volume=given.volume,
        image_size=given.image_size,
        machine=given.machine,
        smp=given.smp,
        memory=given.memory,
        kernel=given.kernel,
        initrd=given.initrd,
        append=given.append,
        icount=given.icount,
        accel=given.accel,
        uefi=given.uefi,
        root_bus=given.root_bus,
        disks=given.disks,
        qemu=[word for words in given.qemu for word in shlex.split(words)],
        boot_timeout=given.timeout,
    )


def show(which, data):
    out = sys.stdout.buffer if which == "OUT" else sys.stderr.buffer
    out.write(data)
    out.flush()


def follow(path, stop):
    """Copies a growing file to stderr until `stop` is set."""
    while not os.path.exists(path) and not stop.is_set():
        time.sleep(0.05)
    with open(path, "rb") if os.path.exists(path) else open(os.devnull, "rb") as log:
        while True:
            last = stop.is_set()
            while data := log.read(65536):
                sys.stderr.buffer.write(data.replace(b"\r", b""))
                sys.stderr.flush()
            if last:
                return
            time.sleep(0.1)


def execute(options, given):
    """One command in one guest; its status."""
    deadline = time.monotonic() + given.timeout
    guest, stop = Guest(options), threading.Event()
    follower = None
    try:
        guest.prepare()
        if given.console:
            follower = threading.Thread(target=follow, args=(guest.console_file, stop))
            follower.start()
        guest.start()
        result = guest.run(given.command, timeout=max(1, deadline - time.monotonic()), check=False, sink=show)
        return result.status
    finally:
        stop.set()
        if follower:
            follower.join()
        guest.stop()


def interact(options):
    """A shell on the user's terminal. QEMU has the terminal; we only clean up after it."""
    check_products(options)
    folder = tempfile.mkdtemp(prefix="revodrive-guest-")
    try:
        command = CommandLine(options, folder).build("stdio")
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return subprocess.run(command, env=paths.qemu_environment()).returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def dry_run(options, given):
    folder = tempfile.mkdtemp(prefix="revodrive-guest-")
    try:
        console = "stdio" if given.command is None else os.path.join(folder, "console.log")
        print(shlex.join(CommandLine(options, folder).build(console)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def main(arguments=None):
    parser, given = parse(arguments)
    if given.command is not None and given.initrd:
        parser.error("--exec needs the agent of our own initramfs; leave out --initrd")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        options = options_of(given)
        if given.dry_run:
            return dry_run(options, given)
        return interact(options) if given.command is None else execute(options, given)
    except GuestTimeout as error:
        print(f"scripts/guest: time is over (--timeout {given.timeout:g}): {error}", file=sys.stderr)
        return error.exit_status
    except GuestError as error:
        print(f"scripts/guest: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
