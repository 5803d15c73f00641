# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine that boots from the card by its firmware, seen from its serial console.

    with Installed(["system.img"], firmware="uefi") as machine:
        machine.login()
        print(machine.run("findmnt -no SOURCE /").output)

The first serial port is the console of firmware, boot loader and system. Images can be kept as they are: with
keep=True writes go to temporary files over them.
"""

import base64
import dataclasses
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile

import pexpect

from . import paths
from .errors import GuestError, GuestTimeout
from .options import block_node, create_image, image_format_of

# The 4 MB build, whose variables hold boot entries of any length.
CODE, VARS = "/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"
FIRMWARES = ("bios", "uefi")
MEMBERS = 4
# With a source of chance, without which start-up waits for a minute; without what makes udev load KVM's modules.
PROCESSOR = "qemu64,+rdrand,-svm"
USER, PASSWORD = "root", "revodrive"
PROMPT = "card-shell# "
ESCAPES = re.compile(rb"\x1b(c|[()][0-9A-B]|\[[0-9;?=]*[A-Za-z])")
LINE_BYTES = 512  # of one line on a terminal that edits lines; the limit is 4095
TAIL_LINES = 60
SHORT_S = 180  # for what takes no time: it only bounds a hang


@dataclasses.dataclass
class Outcome:
    status: int
    output: str


def overlay(path, folder, number):
    """A file over the image that takes the writes."""
    kind = image_format_of(path)
    top = os.path.join(folder, f"overlay{number}.qcow2")
    done = subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", kind, "-b", os.path.abspath(path), top],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise GuestError(f"{top}: {done.stderr.strip()}")
    return top


class Clean:
    """A log that gets the console without escape sequences."""

    def __init__(self, path):
        self.file = open(path, "wb")  # noqa: SIM115  # closed by close()
        self.also = None

    def write(self, data):
        data = ESCAPES.sub(b"", data)
        self.file.write(data)
        if self.also:
            self.also.write(data)

    def flush(self):
        self.file.flush()
        if self.also:
            self.also.flush()

    def close(self):
        self.file.close()


class Installed:
    """images: files for the first members; None, and what is missing of four, becomes an empty temporary one. With
    boot_member the members are devices of their own on a bare bridge, and that one has bootindex=0. bus: where the
    card is, when qemu (QEMU's further arguments, which come before the card) made one for it."""

    def __init__(self, images, firmware="bios", machine="q35", keep=True, variables="", card="", boot_member=None,
                 bus="", memory="1G", qemu=(), timeout=600):
        if firmware not in FIRMWARES:
            raise GuestError(f'firmware "{firmware}": allowed are {" and ".join(FIRMWARES)}')
        if len(images) > MEMBERS:
            raise GuestError(f"{len(images)} images: the card takes {MEMBERS}")
        self.images = [*images, *[None] * (MEMBERS - len(images))]
        self.firmware = firmware
        for name in images:
            if name and not os.path.exists(name):
                raise GuestError(f"{name}: no such file")
        self.machine = machine
        self.keep = keep
        self.variables = variables
        self.card = card
        self.boot_member = boot_member
        self.bus = bus
        self.memory = memory
        self.qemu = list(qemu)
        self.timeout = timeout
        self.folder = ""
        self.child = None
        self.log = None
        self.monitor = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # ------------------------------------------------------------------------------------ command line

    def command(self, console="stdio"):
        options = "graphics=off" if self.firmware == "bios" else "graphics=on"
        words = [paths.QEMU, "-name", "revodrive-installed", "-nodefaults", "-no-user-config", "-display", "none"]
        words += ["-vga", "none", "-machine", f"{self.machine},accel=tcg,{options}", "-cpu", PROCESSOR,
                  "-m", self.memory]
        words += ["-serial", console, "-qmp", f"unix:{self.folder}/qmp,server=on,wait=off"]
        if self.firmware == "uefi":
            words += self.flash()
        return [*words, "-plugin", paths.plugin(), *self.qemu, *self.members()]

    def flash(self):
        """The variables are a file of their own: the user's, which is made when missing, or a fresh one."""
        variables = self.variables or os.path.join(self.folder, "vars.fd")
        if not os.path.exists(variables):
            shutil.copy(VARS, variables)
        return ["-drive", f"if=pflash,format=raw,readonly=on,file={CODE}",
                "-drive", f"if=pflash,format=raw,file={variables}"]

    def members(self):
        words = []
        for number, image in enumerate(self.images):
            name = f"member{number}"
            if image is None:
                path = os.path.join(self.folder, name + ".img")
                create_image(path, "raw", "1G")
            else:
                path = overlay(image, self.folder, number) if self.keep else image
            words += block_node(name, path, "qcow2" if image and self.keep else image_format_of(path))
        return words + self.devices()

    def devices(self):
        more = ["id=card0", *([f"bus={self.bus}"] if self.bus else []), *([self.card] if self.card else [])]
        if self.boot_member is None:
            drives = [f"drive{number}=member{number}" for number in range(MEMBERS)]
            return ["-device", ",".join(["revodrive3-x2", *more, *drives])]
        words = ["-device", ",".join(["marvell-88se9485", *more])]
        for number in range(MEMBERS):
            first = ",bootindex=0" if number == self.boot_member else ""
            words += ["-device", f"sf2281,id=ssd{number},bus=card0.0,port={number},drive=member{number}{first}"]
        return words

    # -------------------------------------------------------------------------------------------- life

    def prepare(self):
        if not os.path.exists(paths.plugin()):
            raise GuestError(f"{paths.plugin()} is missing; scripts/build makes it")
        self.folder = self.folder or tempfile.mkdtemp(prefix="revodrive-installed-")

    def start(self):
        self.prepare()
        command = self.command()
        self.log = Clean(os.path.join(self.folder, "console.log"))
        self.child = pexpect.spawn(command[0], command[1:], timeout=self.timeout, env=paths.qemu_environment(),
                                   echo=False, dimensions=(24, 200), maxread=65536)
        self.child.logfile_read = self.log
        self.child.delaybeforesend = None
        return self

    def stop(self):
        if self.monitor:
            self.monitor.close()
            self.monitor = None
        if self.child:
            if self.child.isalive():
                self.child.kill(signal.SIGKILL)
                self.child.wait()
            self.child.close()
            self.child = None
        if self.log:
            self.log.close()
            self.log = None
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = ""

    def counter(self, name, member=None):
        """A counter of the card, or of a member of it (docs/counters.md)."""
        from qemu.qmp.legacy import QEMUMonitorProtocol  # found by paths

        if not self.monitor:
            self.monitor = QEMUMonitorProtocol(os.path.join(self.folder, "qmp"))
            self.monitor.connect()
        path = "/machine/peripheral/card0"
        if member is not None:
            path = f"{path}/port{member}" if self.boot_member is None else f"/machine/peripheral/ssd{member}"
        answer = self.monitor.cmd("qom-get", {"path": path, "property": name})
        if "error" in answer:
            raise GuestError(f"{path} {name}: {answer['error']['desc']}")
        return answer["return"]

    # ------------------------------------------------------------------------------------------ console

    def expect(self, pattern, timeout=None, what=""):
        """Waits for the pattern on the console, behind what was seen before; the index, when it is a list."""
        patterns = pattern if isinstance(pattern, list) else [pattern]
        index = self.child.expect([*patterns, pexpect.EOF, pexpect.TIMEOUT],
                                  timeout=self.timeout if timeout is None else timeout)
        if index < len(patterns):
            return index
        what = what or f'"{pattern}"'
        if index == len(patterns):
            raise GuestError(f"QEMU ended before {what}\n{self.report()}")
        raise GuestTimeout(f"no {what} within {timeout or self.timeout:g} s\n{self.report()}")

    def send_line(self, line):
        self.child.send(line + "\r")

    def report(self):
        lines = self.console().splitlines()[-TAIL_LINES:]
        return "\n".join(["--- the end of the console", *lines, "--- end of console"])

    def console(self):
        if not self.log:
            return ""
        self.log.flush()
        with open(self.log.file.name, "rb") as file:
            return file.read().decode(errors="replace").replace("\r", "")

    def login(self):
        """From power-on, or a restart, to a shell of root that does not echo."""
        self.expect("login: ", what="the login prompt")
        self.send_line(USER)
        self.expect("Password: ", SHORT_S)
        self.send_line(PASSWORD)
        self.expect(r"# $", SHORT_S, "the shell of root")
        self.take_shell()
        self.send_line("dmesg -n 1")
        self.expect(PROMPT, SHORT_S)

    def take_shell(self):
        """A shell without line editing. Its prompt is put together by the guest: what is echoed is not it."""
        self.send_line("PS1=card-'shell# ' exec sh")
        self.expect(PROMPT, SHORT_S)
        self.send_line("stty -echo -onlcr")
        self.expect(PROMPT, SHORT_S)

    def run(self, command, timeout=None, sink=None, check=False):
        """Runs a shell command; lines of output go to sink() as they come. There is no stdin."""
        text = base64.b64encode(command.encode()).decode()
        self.send_line("c=")
        self.expect(PROMPT, SHORT_S)
        for at in range(0, len(text), LINE_BYTES):
            self.send_line(f"c=${{c}}{text[at:at + LINE_BYTES]}")
            self.expect(PROMPT, SHORT_S)
        mark = secrets.token_hex(4)
        self.send_line("echo begin; sh -c \"$(printf %s $c | base64 -d)\" </dev/null 2>&1; "
                       f"printf '\\n{mark} %d\\n' $?")
        self.expect("begin\r?\n", SHORT_S)
        status, output = self.collect(mark, timeout, sink or (lambda text: None))
        self.expect(PROMPT, SHORT_S)
        if check and status:
            raise GuestError(f"a command failed in the guest, status {status}: {command}\n{output}")
        return Outcome(status, output)

    def collect(self, mark, timeout, sink):
        """Status and output. The end of line before the mark is ours, so each one waits for what follows it."""
        lines = []
        while True:
            self.expect("\r?\n", timeout, "the end of a command")
            line = self.child.before.decode(errors="replace")
            end = re.fullmatch(f"{mark} ([0-9]+)", line)
            if end:
                return int(end.group(1)), "\n".join(lines)
            sink(line if not lines else "\n" + line)
            lines.append(line)

    def reboot(self):
        """Restarts from inside; the next thing to expect is the firmware."""
        self.send_line("reboot")
        self.expect("reboot: Restarting system", 120, "the restart")

    def power_off(self):
        self.send_line("poweroff")
        index = self.child.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=120)
        if index:
            raise GuestTimeout(f"the machine did not power off\n{self.report()}")
        self.child.close()

    def interact(self):
        """The console on the user's terminal. QEMU has the terminal; we only clean up after it."""
        self.prepare()
        try:
            return subprocess.run(self.command("mon:stdio"), env=paths.qemu_environment(), check=False).returncode
        finally:
            self.stop()

