# SPDX-License-Identifier: GPL-2.0-or-later
"""A Debian that is installed on the card: firmware, GRUB, kernel and root file system all come from it.

scripts/mkguest makes the system (once; the tree is kept). Each machine writes to a file over the image.
"""

import pathlib
import re
import subprocess
import sys

import pexpect
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "guest"))

from harness.installed import Clean, Installed  # noqa: E402  # found by the line above

# What the kernel must not have said on the way: a fight over the card, lost commands, resets of links.
TROUBLE = re.compile(r"hard resetting link|SError|failed command|exception Emask|timed out|I/O error|nobody cared"
                     r"|lost interrupt|mvsas.*(fail|error)", re.I)


@pytest.fixture(scope="session")
def system():
    image = ROOT / ".deps" / "system" / "test.img"
    subprocess.run([ROOT / "scripts" / "mkguest", "--if-changed", image], check=True)
    return image


@pytest.fixture
def machine(request, system):
    """machine(**options): a running Installed with the system on the first SSD; the console is shown on failure."""
    request.node.machines = machines = []

    def start(**options):
        machines.append(Installed([str(system)], **options))
        return machines[-1].start()

    yield start
    for one in machines:
        one.stop()


@pytest.mark.parametrize("command, status, output", [
    ("echo hi; exit 3", 3, "hi\n"),
    ("printf 'a\\nb'", 0, "a\nb"),
    ("true", 0, ""),
    ("printf '\\n\\n'; false", 1, "\n\n"),
    ("echo " + "x" * 3000, 0, "x" * 3000 + "\n"),
    ("kill -9 $$", 137, "Killed\n"),
    ("read x; echo got $x", 0, "got\n")], ids=["status", "no-end", "nothing", "blank", "long", "killed", "no-stdin"])
def test_commands_on_a_console(tmp_path, command, status, output):
    """Status and output come through a terminal unharmed: here one with a shell of this machine behind it."""
    console = Installed([])
    console.log = Clean(tmp_path / "console.log")
    console.child = pexpect.spawn("/bin/bash", ["--norc", "-i"], timeout=60,
                                  env={"PS1": "root# ", "PATH": "/usr/bin:/bin"})
    console.child.logfile_read, console.child.delaybeforesend = console.log, None
    console.expect("# $")
    console.take_shell()
    heard = []
    done = console.run(command, sink=heard.append)
    console.stop()
    assert (done.status, done.output, "".join(heard)) == (status, output, output)


def check_takeover(machine, firmware):
    """The root file system is on the card, the driver found all SSDs, and had no trouble with what firmware left."""
    assert machine.run("findmnt -no SOURCE /").output.startswith("/dev/sd")
    assert machine.run("ls /sys/class/block | grep -c '^sd[a-d]$'").output == "4\n"
    disk = machine.run("readlink -f /sys/class/block/$(basename $(findmnt -no SOURCE /))", check=True).output
    card = machine.run("cd /sys/bus/pci/drivers/mvsas && ls -d 0000:*", check=True).output.strip()
    assert f"/{card}/host" in disk
    assert machine.run("test -d /sys/firmware/efi").status == (0 if firmware == "uefi" else 1)
    log = machine.run("dmesg").output
    assert "mvsas" in log and [line for line in log.splitlines() if TROUBLE.search(line)] == []


def test_uefi_boots_bootx64_then_the_entry_of_grub_install(machine):
    """Fresh variables: the firmware finds EFI/BOOT/BOOTX64.EFI on the card. grub-install writes an entry; a restart
    from inside goes through it, so the device path of the card is the same again."""
    guest = machine(firmware="uefi")
    guest.expect(r'starting Boot[0-9A-F]{4} "UEFI OCZ-REVODRIVE3 X2 ')
    guest.login()
    check_takeover(guest, "uefi")
    guest.run("mount /sys/firmware/efi/efivars && grub-install --target=x86_64-efi", check=True)
    entry = re.search(r"Boot([0-9A-F]{4})\* debian", guest.run("efibootmgr", check=True).output).group(1)
    guest.reboot()
    guest.expect(f'starting Boot{entry} "debian" from HD\\(2,GPT,')
    guest.login()
    current = guest.run("mount /sys/firmware/efi/efivars && efibootmgr", check=True).output
    assert f"BootCurrent: {entry}" in current
    check_takeover(guest, "uefi")
    guest.power_off()


@pytest.mark.parametrize("kind", ["pc"])
def test_bios_boots_and_restarts(machine, kind):
    """SeaBIOS, GRUB from the MBR, twice."""
    guest = machine(firmware="bios", machine=kind)
    for restart in (False, True):
        if restart:
            guest.reboot()
        guest.expect("Booting from Hard Disk")
        guest.login()
    check_takeover(guest, "bios")
    guest.power_off()


def test_run_installed_executes_a_command(system):
    """scripts/run --installed --exec: output and status of the command, and nothing else on stdout."""
    command = "printf 'root: '; findmnt -no SOURCE / >/dev/null && echo there; printf 'no end of line'; exit 3"
    done = subprocess.run([ROOT / "scripts" / "run", "--installed", "--image", system, "--snapshot", "--exec", command],
                          capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("root: there\nno end of line", 3), done.stderr
