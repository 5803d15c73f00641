# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU under test: its process, QMP, the qtest line protocol, the virtual clock, guest memory.

The machine has no running processor: every access comes from this side, and virtual time (ns)
moves only when clock_step() is called. Errors: Refused when QEMU ends before it is ready, Hang when
it stops answering; both carry what QEMU printed.
"""
import base64
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
_QEMU_PYTHON = ROOT / ".deps/qemu-src/python"
if str(_QEMU_PYTHON) not in sys.path:
    sys.path.append(str(_QEMU_PYTHON))

try:
    from qemu.machine.machine import AbnormalShutdown, QEMUMachine, VMLaunchFailure
    from qemu.machine.qtest import QEMUQtestProtocol
except ImportError as error:
    raise ImportError(f"QEMU's Python packages are not in {_QEMU_PYTHON}: run scripts/setup") from error

from .memory import GuestMemory, write_command  # noqa: E402

HANG_S = 60  # wall clock; only to turn a hang into a failure, never a measure of speed
BATCH = 256


class Refused(Exception):
    """QEMU did not start; str() is what it printed."""


class Hang(Exception):
    """QEMU did not answer."""


class Protocol(QEMUQtestProtocol):
    """The qtest line protocol. Interrupt lines announce themselves between the answers."""

    def __init__(self, address, server=True):
        super().__init__(address, server)
        self.irq_levels = {}
        self.irq_raises = {}
        self.hung = False

    def accept(self):
        self._sock.settimeout(HANG_S)
        super().accept()
        self._sock.settimeout(HANG_S)

    def _answer(self, asked):
        while True:
            try:
                line = self._sockfile.readline()
            except TimeoutError as error:
                self.hung = True
                raise Hang(f"QEMU gave no answer within {HANG_S} s to: {asked}") from error
            if not line:
                raise Hang(f"QEMU has gone away; last request: {asked}")
            words = line.split()
            if words[0] == "IRQ":
                self._note_irq(words[1] == "raise", int(words[2]))
                continue
            if words[0] != "OK":
                raise ValueError(f"qtest: {asked!r} was answered {line.strip()!r}")
            return words[1] if len(words) > 1 else ""

    def _note_irq(self, level, number):
        self.irq_levels[number] = level
        if level:
            self.irq_raises[number] = self.irq_raises.get(number, 0) + 1

    def cmd(self, qtest_cmd):
        return self.batch([qtest_cmd])[0]

    def batch(self, commands):
        """Sends many commands before it collects their answers: one trip instead of many."""
        answers = []
        for first in range(0, len(commands), BATCH):  # more answers would not fit into the socket
            part = commands[first:first + BATCH]
            try:
                self._sock.sendall("".join(c + "\n" for c in part).encode())
            except TimeoutError as error:
                self.hung = True
                raise Hang(f"QEMU does not read its requests: {part[0][:60]}") from error
            answers += [self._answer(c[:60]) for c in part]
        return answers


class _Process(QEMUMachine):
    """QEMUMachine plus a qtest socket that understands interrupt messages."""

    protocol = None

    @property
    def _base_args(self):
        return [*super()._base_args, "-qtest", f"unix:path={self._socket_path}", "-qtest-log", "none",
                "-accel", "qtest"]

    @property
    def _socket_path(self):
        return os.path.join(self.sock_dir, self._name + ".qtest")

    def _pre_launch(self):
        super()._pre_launch()
        self._remove_files.append(self._socket_path)
        self.protocol = Protocol(self._socket_path)

    def _post_launch(self):
        super()._post_launch()
        self.protocol.accept()

    def _post_shutdown(self):
        if self.protocol is not None:
            self.protocol.close()
            self.protocol = None
        super()._post_shutdown()

    def _load_io_log(self):
        if self._qemu_log_path is not None:  # a message may quote bytes of a damaged stream
            self._iolog = pathlib.Path(self._qemu_log_path).read_text(errors="replace")

    def wait_end(self):
        """Waits for a QEMU that ends by itself; returns its status."""
        return self._subp.wait(HANG_S)

    def running_log(self):
        self._load_io_log()
        return self._iolog or ""


def plugin_path():
    path = pathlib.Path(os.environ.get("REVODRIVE_PLUGIN") or ROOT / "build/revodrive.so").absolute()
    if not path.is_file():
        raise FileNotFoundError(f"no plugin at {path}: build it (meson compile -C build) or name one "
                                "with --plugin or REVODRIVE_PLUGIN")
    return path


def _environment():
    modules = ROOT / ".deps/modules"
    if not (modules / "accel-qtest-x86_64.so").is_file():
        raise FileNotFoundError(f"no accel-qtest-x86_64.so in {modules}: run scripts/setup")
    words = ["/usr/bin/env", f"QEMU_MODULE_DIR={modules}"]
    preload = os.environ.get("REVODRIVE_PRELOAD")
    if preload:
        options = os.environ.get("ASAN_OPTIONS", "detect_leaks=0")
        words += [f"LD_PRELOAD={preload}", f"ASAN_OPTIONS={options}"]
    return words


class Machine:
    """A started QEMU with the card's plugin. Use it as a context manager, or call close()."""

    def __init__(self, *args, machine="q35", memory="256M", plugin=True):
        words = ["-machine", f"{machine},hpet=off" + ("" if "pit=" in machine else ",pit=off"),
                 "-nodefaults", "-m", memory]
        if plugin:
            words += ["-plugin", str(plugin_path())]
        self._dir = tempfile.TemporaryDirectory(prefix="revodrive-qtest-")
        binary = os.environ.get("QEMU_BINARY", "/usr/bin/qemu-system-x86_64")
        self.process = _Process(binary, [*words, *map(str, args)], wrapper=_environment(), name="qemu",
                                base_temp_dir=self._dir.name, qmp_timer=HANG_S)
        self.machine = machine
        self._closed = self._expected_end = False
        self._events = []
        try:
            self.process.launch()
        except VMLaunchFailure as error:
            self._dir.cleanup()
            raise Refused(error.output or str(error)) from None
        self.memory = GuestMemory(self, memory)
        self._qtest.cmd("irq_intercept_in ioapic")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    @property
    def _qtest(self):
        if self.process.protocol is None:
            raise Hang("this QEMU was closed")
        return self.process.protocol

    def close(self, kill=False):
        """Ends QEMU and returns what it printed. Raises when it had crashed, or ends with an error."""
        if self._closed:
            return self.log()
        self._closed = True
        ended = not self.process.is_running()
        kill = kill or bool(self.process.protocol and self.process.protocol.hung)
        try:
            self.process.shutdown(hard=kill or ended, timeout=HANG_S)
        except AbnormalShutdown as error:
            raise Hang(f"QEMU does not end when asked to:\n{self.log()}") from error
        finally:
            self._dir.cleanup()
        code = self.process.exitcode()
        if not kill and not self._expected_end and (ended or code != 0):
            raise Hang(f"QEMU ended with status {code}:\n{self.log()}")
        return self.log()

    def wait_end(self):
        """For a QEMU that is about to end by itself: (status, what it printed)."""
        code = self.process.wait_end()
        self._expected_end = True
        return code, self.close()

    def log(self):
        return self.process.running_log()

    # Monitor

    def qmp(self, command, **arguments):
        """Runs a QMP command; `_` in argument names means `-`. Raises on an error answer."""
        return self.process.command(command, **arguments)

    def hmp(self, line):
        return self.process.command("human-monitor-command", command_line=line)

    def wait_event(self, name, **match):
        return self.process.event_wait(name, timeout=HANG_S, match={"data": match} if match else None)

    def events(self, name):
        """The events of that name that have come so far and were not asked for before."""
        self.qmp("query-status")  # its answer comes after all events that were sent before
        self._events += self.process.get_qmp_events()
        found = [e for e in self._events if e["event"] == name]
        self._events = [e for e in self._events if e["event"] != name]
        return found

    # Time

    def clock_step(self, ns=None):
        """Moves virtual time by ns, or to the next timer of the machine; returns the time in ns."""
        return int(self._qtest.cmd("clock_step" if ns is None else f"clock_step {ns}"))

    @property
    def now_ns(self):
        return int(self._qtest.cmd("clock_step 0"))

    # Interrupt lines of the IO-APIC

    def irq_level(self, gsi):
        self._qtest.cmd("endianness")  # collects what was announced so far
        return self._qtest.irq_levels.get(gsi, False)

    def irq_raises(self, gsi):
        """How often the line has risen since the start."""
        self._qtest.cmd("endianness")
        return self._qtest.irq_raises.get(gsi, 0)

    # Ports, registers, memory

    def batch(self, commands):
        return self._qtest.batch(commands)

    def inl(self, port, size=4):
        return int(self._qtest.cmd(f"in{'bwxl'[size - 1]} {port:#x}"), 16)

    def outl(self, port, value, size=4):
        self._qtest.cmd(f"out{'bwxl'[size - 1]} {port:#x} {value:#x}")

    def readl(self, address):
        return int(self._qtest.cmd(f"readl {address:#x}"), 16)

    def writel(self, address, value):
        self._qtest.cmd(f"writel {address:#x} {value & 0xffffffff:#x}")

    def read(self, address, length):
        if length == 0:
            return b""
        return base64.b64decode(self._qtest.cmd(f"b64read {address:#x} {length:#x}"))

    def write(self, address, data):
        if data:
            self._qtest.cmd(write_command(address, data))


def refused(*args, **options):
    """Starts a QEMU that must not start; returns what it printed."""
    try:
        machine = Machine(*args, **options)
    except Refused as error:
        return str(error)
    machine.close()
    raise AssertionError(f"QEMU started, but had to refuse: {' '.join(map(str, args))}")
