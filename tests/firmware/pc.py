# SPDX-License-Identifier: GPL-2.0-or-later
"""A PC with the card, seen from its firmware: starts QEMU, reads and writes the first serial port, waits for words.

The serial port is the firmware's console too (SeaBIOS: machine option graphics=off). Nothing here knows a firmware.
"""

import json
import os
import pathlib
import re
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("REVODRIVE_PLUGIN") or ROOT / "build" / "revodrive.so").resolve().parent
POLL_S = 0.02
HANG_S = 240  # only ends a hang


class PcError(AssertionError):
    """Words that did not come, or a QEMU that ended; the message has the console."""


class Pc:
    """start() it, wait_for() words on its console, stop() it. `arguments` are QEMU's own."""

    def __init__(self, folder, *arguments, machine="q35", memory=256, options=("graphics=off",), typed=""):
        """`typed` is on the serial line before the machine starts; send() comes when it comes."""
        self.console_file = pathlib.Path(folder) / "console.log"
        self.error_file = pathlib.Path(folder) / "qemu.log"
        self.qmp_socket = pathlib.Path(folder) / "qmp"
        kind = ",".join([machine, "accel=tcg", *options])
        self.command = [str(ROOT / "scripts" / "qemu"), "-machine", kind, "-m", str(memory), "-nodefaults",
                        "-display", "none", "-vga", "none", "-no-reboot", "-serial", "stdio",
                        "-qmp", f"unix:{self.qmp_socket},server=on,wait=off",
                        "-device", "isa-debug-exit,iobase=0xf4", *arguments]
        self.typed = typed
        self.process = None
        self.seen = 0

    def start(self):
        keys, typist = os.pipe()
        os.write(typist, self.typed.encode())
        with open(self.console_file, "wb") as console, open(self.error_file, "wb") as errors:
            self.process = subprocess.Popen(self.command, stdin=keys, stdout=console, stderr=errors)
        os.close(keys)
        self.keyboard = open(typist, "wb", buffering=0)
        return self

    def console(self):
        """All that the serial port has said, without carriage returns and escape sequences."""
        text = self.console_file.read_bytes().decode(errors="replace").replace("\r", "")
        return re.sub(r"\x1b(c|\[[0-9;?]*[A-Za-z])", "", text)

    def send(self, text):
        try:
            self.keyboard.write(text.encode())
        except BrokenPipeError:
            pass  # QEMU has ended; wait_for() tells

    def wait_for(self, pattern, timeout=HANG_S, each=None):
        """The match of `pattern` behind the last one. `each` is called at every look, to press a key for instance."""
        deadline = time.monotonic() + timeout
        while True:
            ended = self.process.poll() is not None
            text = self.console()
            match = re.compile(pattern, re.M).search(text, self.seen)
            if match:
                self.seen = match.end()
                return match
            if ended:
                raise PcError(f'QEMU ended (status {self.process.returncode}) without "{pattern}"\n{self.report()}')
            if time.monotonic() > deadline:
                raise PcError(f'no "{pattern}" within {timeout} s\n{self.report()}')
            if each:
                each()
            time.sleep(POLL_S)

    def wait_end(self, timeout=HANG_S):
        """QEMU's status once it has ended by itself."""
        try:
            return self.process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise PcError(f"QEMU did not end within {timeout} s\n{self.report()}") from None

    def qmp(self, *commands):
        """Runs QMP commands, each a name or (name, arguments); the answer of the last one."""
        deadline = time.monotonic() + HANG_S
        while not self.qmp_socket.exists() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(self.qmp_socket))
            stream = line.makefile("rw")
            stream.readline()  # greeting
            answer = None
            for command in ("qmp_capabilities", *commands):
                name, arguments = command if isinstance(command, tuple) else (command, {})
                stream.write(json.dumps({"execute": name, "arguments": arguments}))
                stream.flush()
                while "event" in (answer := json.loads(stream.readline())):
                    pass
                if "error" in answer:
                    raise PcError(f"QMP {name}: {answer['error']['desc']}")
        return answer["return"]

    def wait_status(self, query, wanted, timeout=HANG_S):
        """Until a QMP query has this status; "failed" ends it, too."""
        deadline = time.monotonic() + timeout
        while (status := self.qmp(query).get("status")) != wanted:
            if status == "failed" or time.monotonic() > deadline:
                raise PcError(f"{query} says {status}, not {wanted}\n{self.report()}")
            time.sleep(POLL_S)

    def save(self, path):
        """Stops the machine and writes its state to a file, for another Pc with -incoming "exec:cat FILE"."""
        self.qmp("stop", ("migrate", {"uri": f"exec:cat > {path}"}))
        self.wait_status("query-migrate", "completed")

    def go_on(self):
        """Continues a machine that has come from a saved state."""
        self.wait_status("query-status", "paused")
        self.qmp("cont")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
            self.keyboard.close()

    def report(self):
        words = self.error_file.read_text(errors="replace").strip()
        return "\n".join(["--- console", *self.console().splitlines()[-60:], *(["--- QEMU", words] if words else [])])


def block_node(name, path):
    return ["-blockdev", f"driver=raw,node-name={name},file.driver=file,file.filename={path}"]


CHUNK = 64 << 10  # of a volume, by default


def chunks(path):
    """Numbers of the chunks of a file that may hold data."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        at = 0
        while at < end:
            try:
                at = file.seek(at, os.SEEK_DATA)
            except OSError:  # none behind here
                return
            hole = file.seek(at, os.SEEK_HOLE)
            yield from range(at // CHUNK, -(-hole // CHUNK))
            at = -(-hole // CHUNK) * CHUNK


def striped(path, folder, members=4):
    """Files for the members of a card with mode=vca, which hold the file chunk by chunk in turn."""
    paths = [pathlib.Path(folder) / f"member{number}.img" for number in range(members)]
    files = [open(one, "wb") for one in paths]  # noqa: SIM115  # closed below
    with open(path, "rb") as source:
        for file in files:
            file.truncate(os.path.getsize(path) // members)
        for number in chunks(path):
            source.seek(number * CHUNK)
            files[number % members].seek(number // members * CHUNK)
            files[number % members].write(source.read(CHUNK))
    for file in files:
        file.close()
    return paths


def volume(path, folder, more=""):
    """QEMU's arguments for a card with mode=vca that holds the file."""
    arguments, drives = [], []
    for number, member in enumerate(striped(path, folder)):
        arguments += block_node(f"d{number}", member)
        drives.append(f"drive{number}=d{number}")
    return [*arguments, "-device", ",".join(["revodrive3-x2,mode=vca", *drives, *([more] if more else [])])]


def boot_sector(text):
    """Says the text on the serial port and ends QEMU with status 1."""
    code = bytes([
        0xFA, 0x31, 0xC0, 0x8E, 0xD8, 0xBE, 0x1C, 0x7C,  # cli; ds = 0; si = text
        0xAC, 0x84, 0xC0, 0x74, 0x06, 0xBA, 0xF8, 0x03, 0xEE, 0xEB, 0xF5,  # lodsb; out to 3F8h; until 0
        0xBA, 0xF4, 0x00, 0xB0, 0x00, 0xEE, 0xF4, 0xEB, 0xFD,  # out to F4h; hlt
    ])
    return (code + text.encode() + b"\r\n\0").ljust(510, b"\0") + b"\x55\xAA"
