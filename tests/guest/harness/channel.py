# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's end of the line to the guest's agent. The messages are described in scripts/guest-image/agent.c."""

import select
import socket
import time
from dataclasses import dataclass

from .errors import GuestError, GuestTimeout

ENDED = "the guest ended (a kernel panic, power-off or reboot, or QEMU itself)"


@dataclass
class Result:
    """A command that has ended. Its outputs as text; undecodable bytes are kept as surrogates."""

    command: str
    status: int
    stdout: str
    stderr: str

    def __str__(self):
        return f"$ {self.command}\n{self.stdout}{self.stderr}[status {self.status}]"


class Job:
    """A command that runs in the guest. `sink(which, data)` gets its output as it comes, which is OUT or ERR."""

    def __init__(self, channel, number, command, sink):
        self.channel = channel
        self.number = number
        self.command = command
        self.sink = sink
        self.output = {"OUT": bytearray(), "ERR": bytearray()}
        self.status = None

    @property
    def stdout(self):
        return self.output["OUT"].decode(errors="surrogateescape")

    @property
    def stderr(self):
        return self.output["ERR"].decode(errors="surrogateescape")

    def wait(self, timeout):
        """The Result; GuestTimeout when the command has not ended after `timeout` seconds of the host."""
        self.channel.pump_until(lambda: self.status is not None, timeout, f'the command "{self.command}"')
        return Result(self.command, self.status, self.stdout, self.stderr)

    def kill(self):
        self.channel.send(f"KILL {self.number}\n")


class Channel:
    """`alive()` says whether QEMU still runs: a silent socket of a dead machine must not be waited for."""

    def __init__(self, path, alive):
        self.alive = alive
        self.buffer = bytearray()
        self.jobs = {}
        self.next_number = 1
        self.hellos = 0
        self.pongs = set()
        self.socket = self.connect(path)

    def connect(self, path):
        deadline = time.monotonic() + 60
        while True:
            client = socket.socket(socket.AF_UNIX)
            try:
                client.connect(path)
                return client
            except OSError:
                client.close()
                if not self.alive():
                    raise GuestError("QEMU did not start") from None
                if time.monotonic() > deadline:
                    raise GuestTimeout("QEMU did not open its sockets within 60 s") from None
                time.sleep(0.02)

    def close(self):
        self.socket.close()

    def send(self, text, *payloads):
        try:
            self.socket.sendall(text.encode() + b"".join(payloads))
        except OSError as error:
            raise GuestError(f"the line to the guest is gone: {error}") from None

    def start(self, command, stdin=b"", sink=None):
        number = self.next_number
        self.next_number += 1
        job = self.jobs[number] = Job(self, number, command, sink)
        raw = command.encode(errors="surrogateescape")
        self.send(f"RUN {number} {len(raw)} {len(stdin)}\n", raw, stdin)
        return job

    def expect_hello(self, timeout, what, action=None):
        """Waits for the agent of a new boot, which `action` (sent before) may have brought about."""
        before = self.hellos
        self.jobs.clear()
        if action:
            action()
        self.pump_until(lambda: self.hellos > before, timeout, what, restarts=True)

    def pump_until(self, condition, timeout, what, restarts=False):
        """Handles messages until `condition()`. A restart of the guest that nobody asked for is an error."""
        deadline = time.monotonic() + timeout
        hellos = self.hellos
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                raise GuestTimeout(f"{what} did not come to its end within {timeout:g} s")
            if select.select([self.socket], [], [], min(left, 0.5))[0]:
                self.receive(what)
            elif not self.alive():
                raise GuestError(f"{ENDED} during {what}")
            if self.hellos > hellos and not restarts and not condition():
                raise GuestError(f"the guest restarted during {what} (a kernel panic, or a reboot in the command)")

    def receive(self, what):
        try:
            data = self.socket.recv(65536)
        except OSError:
            data = b""
        if not data:
            raise GuestError(f"{ENDED} during {what}")
        self.buffer += data
        while self.take_message():
            pass

    def take_message(self):
        end = self.buffer.find(b"\n")
        if end < 0:
            return False
        words = self.buffer[:end].decode(errors="replace").split()
        if words[:1] in (["OUT"], ["ERR"]) and len(words) == 3:
            size = int(words[2])
            if len(self.buffer) < end + 1 + size:
                return False
            data = bytes(self.buffer[end + 1 : end + 1 + size])
            del self.buffer[: end + 1 + size]
            self.deliver(words[0], int(words[1]), data)
            return True
        del self.buffer[: end + 1]
        self.note(words)
        return True

    def deliver(self, which, number, data):
        job = self.jobs.get(number)
        if job:
            job.output[which] += data
            if job.sink:
                job.sink(which, data)

    def note(self, words):
        """Firmware and boot loaders may write to the port too: what is not ours is passed over."""
        if words[:1] == ["HELLO"]:
            self.hellos += 1
        elif words[:1] == ["END"] and len(words) == 3:
            job = self.jobs.pop(int(words[1]), None)
            if job:
                job.status = int(words[2])
        elif words[:1] == ["PONG"] and len(words) == 2:
            self.pongs.add(words[1])
        elif words[:1] == ["BAD"]:
            raise GuestError(f"the guest's agent refused a message: {' '.join(words[1:])}")

    def synchronise(self, timeout):
        """After the machine was put back to a saved state: what is left in the line belongs to another time."""
        self.jobs.clear()
        self.buffer.clear()
        mark = str(self.next_number)
        self.next_number += 1
        self.send(f"\nPING {mark}\n")
        self.pump_until(lambda: mark in self.pongs, timeout, "the answer after loading a saved state", restarts=True)
