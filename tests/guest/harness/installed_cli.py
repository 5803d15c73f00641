# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/run --installed does once the image is there: one command in the installed system, or its console."""

import argparse
import signal
import sys

from .errors import GuestError
from .installed import FIRMWARES, Installed

WEEK_S = 7 * 24 * 3600


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/run --installed", allow_abbrev=False)
    add = parser.add_argument
    add("--firmware", choices=FIRMWARES, default="bios")
    add("--machine", choices=("q35", "pc"), default="q35")
    add("--exec", dest="command")
    add("--snapshot", action="store_true", help="writes, and new UEFI variables, are thrown away")
    add("--variables", default="", help="file with the UEFI variables; made when it is missing")
    add("image")
    return parser.parse_args(arguments)


def show(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def execute(machine, command):
    with machine:
        machine.login()
        outcome = machine.run(command, timeout=WEEK_S, sink=show)
        machine.power_off()
    return outcome.status


def main(arguments=None):
    given = parse(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        machine = Installed([given.image], firmware=given.firmware, machine=given.machine, keep=given.snapshot,
                            variables="" if given.snapshot else given.variables)
        return machine.interact() if given.command is None else execute(machine, given.command)
    except GuestError as error:
        print(f"scripts/run: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
