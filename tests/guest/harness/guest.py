# SPDX-License-Identifier: GPL-2.0-or-later
"""A running guest machine: starts QEMU, runs commands in the guest, talks QMP, ends it and cleans up."""

import os
import shutil
import subprocess
import tempfile
import weakref

from . import cardstate, paths
from .channel import Channel
from .errors import CommandFailed, GuestError
from .options import CommandLine, Options

CONSOLE_TAIL_LINES = 60

#: Guests that run now, for a test report to show their consoles.
running = weakref.WeakSet()


class Guest:
    """Use it as a context manager, or call start() and stop().

    start() returns when the guest has booted, its card is driven and its disks are there; DriverMissing and
    DeviceBroken tell which of these it was that failed. With `judge=False` it returns once the guest has booted.
    """

    def __init__(self, options=None, judge=True, **changes):
        self.options = options or Options(**changes)
        self.judge = judge
        self.folder = ""
        self.images = []
        self.command = []
        self.process = None
        self.channel = None
        self.monitor = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # ------------------------------------------------------------------------------------------ life

    def prepare(self):
        """Makes the machine's folder, so that its files have names before it starts. start() does it otherwise."""
        check_products(self.options)
        self.folder = self.folder or tempfile.mkdtemp(prefix="revodrive-guest-")

    def start(self):
        self.prepare()
        running.add(self)
        try:
            line = CommandLine(self.options, self.folder)
            self.command = line.build(self.console_file)
            self.images = line.images
            self.launch()
            self.connect()
            if self.judge and self.options.has_card and self.options.expected_disks != 0:
                self.judge_card()
        except GuestError as error:
            raise self.explained(error) from None
        except BaseException:
            self.stop(orderly=False)
            raise
        return self

    def launch(self):
        with open(self.qemu_log, "wb") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=paths.qemu_environment()
            )

    def connect(self):
        self.channel = Channel(os.path.join(self.folder, "commands"), self.alive)
        from qemu.qmp import QMPError
        from qemu.qmp.legacy import QEMUMonitorProtocol  # found by paths

        self.monitor = QEMUMonitorProtocol(os.path.join(self.folder, "qmp"))
        try:
            self.monitor.connect()
        except (QMPError, OSError):
            raise GuestError("QEMU did not start") from None
        self.channel.expect_hello(self.options.boot_timeout, "the boot of the guest")

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, orderly=True):
        """Powers the guest off (when `orderly`), ends QEMU in any case, removes the temporary files."""
        try:
            if orderly and self.channel and self.alive():
                self.channel.send("BYE\n")
                self.process.wait(timeout=60)
        except (GuestError, subprocess.TimeoutExpired):
            pass
        finally:
            self.end_qemu()
            if self.folder:
                shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = ""
            running.discard(self)

    def end_qemu(self):
        if self.monitor:
            close_monitor(self.monitor)
            self.monitor = None
        if self.channel:
            self.channel.close()
            self.channel = None
        if self.process and self.alive():
            self.process.kill()
        if self.process:
            self.process.wait()

    # -------------------------------------------------------------------------------------- commands

    def run(self, command, stdin=b"", timeout=None, check=True, sink=None):
        """Runs a shell command to its end. With `check`, a status other than 0 raises CommandFailed."""
        result = self.wait(self.start_command(command, stdin, sink), timeout)
        if check and result.status:
            raise self.explained(CommandFailed(f"a command failed in the guest:\n{result}"), stop=False)
        return result

    def start_command(self, command, stdin=b"", sink=None):
        """Starts a command and returns its Job; several may run at once."""
        try:
            return self.channel.start(command, stdin, sink)
        except GuestError as error:
            raise self.explained(error) from None

    def wait(self, job, timeout=None):
        try:
            return job.wait(self.options.run_timeout if timeout is None else timeout)
        except GuestError as error:
            raise self.explained(error) from None

    def put(self, path, data):
        """Writes bytes to a file of the guest."""
        self.run(f"cat > '{path}'", stdin=data)

    def kernel_log(self, level="debug"):
        """The kernel's messages of at least this level (emerg … debug), each with its time stamp."""
        names = ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"]
        lines = []
        for line in self.run("dmesg -r").stdout.splitlines():
            priority, _, text = line.partition(">")
            if priority[1:].isdigit() and int(priority[1:]) & 7 <= names.index(level):
                lines.append(text)
        return lines

    # ------------------------------------------------------------------------------------- the card

    def card_state(self):
        return cardstate.parse(self.run("card-state").stdout)

    def judge_card(self):
        cardstate.judge(self.card_state(), self.options.cards, self.options.expected_disks)

    # --------------------------------------------------------------------------------- the machine

    def qmp(self, command, **arguments):
        """The answer of a QMP command; an error of QEMU raises GuestError with QEMU's words."""
        answer = self.monitor.cmd(command, {name.replace("_", "-"): value for name, value in arguments.items()})
        if "error" in answer:
            raise GuestError(f"QMP {command}: {answer['error']['desc']}")
        return answer["return"]

    def hmp(self, line):
        """The output of a command of the human monitor."""
        return self.qmp("human-monitor-command", command_line=line)

    def wait_event(self, name, timeout=60, match=None):
        """Waits for a QMP event (and drops earlier ones of other names). `match(data)` may narrow it down."""
        from qemu.qmp import QMPError

        try:
            while True:
                event = self.monitor.pull_event(wait=float(timeout))
                if event["event"] == name and (match is None or match(event.get("data", {}))):
                    return event
        except (QMPError, TimeoutError) as error:
            raise self.explained(GuestError(f"no {name} event within {timeout} s: {error!r}"), stop=False) from None

    def save(self, name):
        self.checked_hmp(f"savevm {name}")

    def load(self, name):
        """Puts the machine back to a saved state; commands that ran are forgotten."""
        self.checked_hmp(f"loadvm {name}")
        self.channel.synchronise(60)

    def checked_hmp(self, line):
        words = self.hmp(line).strip()
        if words:
            raise GuestError(f"{line}: {words}")

    def reboot(self, command="reboot -f"):
        """Restarts the guest's kernel by a command of the guest; returns when it is up and its card judged."""
        self.expect_boot(lambda: self.channel.start(command), f'the restart by "{command}"')

    def reset(self):
        """The same by the machine's reset button."""
        self.expect_boot(lambda: self.qmp("system_reset"), "the boot after a reset")

    def kexec(self):
        """Starts a second kernel from the first, without firmware. Needs Options(kexec_disks=True)."""
        self.run("modprobe virtio_pci; modprobe virtio_blk; cat /dev/vda > /tmp/vmlinuz; cat /dev/vdb > /tmp/initrd")
        self.run("kexec -s -l /tmp/vmlinuz --initrd=/tmp/initrd --reuse-cmdline")
        self.reboot("kexec -e")

    def expect_boot(self, action, what):
        try:
            self.qmp("set-action", reboot="reset")
            self.channel.expect_hello(self.options.boot_timeout, what, action)
            self.qmp("set-action", reboot="shutdown")
            if self.judge and self.options.has_card and self.options.expected_disks != 0:
                self.judge_card()
        except GuestError as error:
            raise self.explained(error) from None

    # --------------------------------------------------------------------------------------- failing

    @property
    def console_file(self):
        return os.path.join(self.folder, "console.log")

    @property
    def qemu_log(self):
        return os.path.join(self.folder, "qemu.log")

    def console(self):
        return read_text(self.console_file)

    def explained(self, error, stop=True):
        """The same error with QEMU's words and the end of the console; the logs are kept. By default ends the guest."""
        if getattr(error, "explained", False):
            return error
        kept = self.keep_logs()
        parts = [str(error)]
        words = read_text(self.qemu_log).strip()
        if words:
            parts.append(f"--- QEMU says ({kept}/qemu.log)\n{words}")
        if self.process and not self.alive():
            parts.append(f"--- QEMU has ended with status {self.process.returncode}")
        lines = self.console().splitlines()
        if lines:
            parts.append(f"--- the end of the guest's console (all of it: {kept}/console.log)")
            parts += [*lines[-CONSOLE_TAIL_LINES:], "--- end of console"]
        full = type(error)("\n".join(parts))
        full.explained = True
        full.summary = str(error).splitlines()[0]
        if stop:
            self.stop(orderly=False)
        return full

    def keep_logs(self):
        """Copies console and QEMU's output to .deps/log/guest/; only the newest few are kept."""
        base = os.path.join(paths.DEPS, "log", "guest")
        kept = os.path.join(base, os.path.basename(self.folder))
        os.makedirs(kept, exist_ok=True)
        for path in (self.console_file, self.qemu_log):
            if os.path.exists(path):
                shutil.copy(path, kept)
        older = sorted((os.path.join(base, name) for name in os.listdir(base)), key=os.path.getmtime)
        for folder in older[:-20]:
            shutil.rmtree(folder, ignore_errors=True)
        return kept


def read_text(path):
    try:
        with open(path, "rb") as log:
            return log.read().decode(errors="replace").replace("\r", "")
    except OSError:
        return ""


def close_monitor(monitor):
    """QEMU may be gone already, which the library reports in several ways."""
    try:
        monitor.close()
    except Exception:  # noqa: the connection is given up whatever it says
        pass


def check_products(options):
    """One clear line for what is not there yet, instead of QEMU's."""
    needed = [(options.kernel_file, "scripts/setup"), (options.initrd_file, "scripts/setup")]
    if options.has_card:
        needed.append((paths.plugin(), "scripts/build"))
    for path, maker in needed:
        if not os.path.exists(path):
            raise GuestError(f"{path} is missing; {maker} makes it")
