# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest machine is made of, and QEMU's command line for it."""

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field

from . import paths
from .errors import GuestError

MEMBERS = {"revodrive3-x2": 4, "revodrive3": 2, "marvell-88se9485": 0}
DEFAULT_CARD = "revodrive3-x2"
OVMF_CODE, OVMF_VARS = "/usr/share/OVMF/OVMF_CODE.fd", "/usr/share/OVMF/OVMF_VARS.fd"


@dataclass
class Options:
    """All times are seconds of the host's clock; they only bound a hang, nothing is measured with them."""

    card: str = ""  # "[TYPE,]PROP=VALUE,…" or "none"
    cards: int = 1
    images: list = field(default_factory=list)  # files for drive0, drive1, … of the first card
    volume: str = ""  # one file for drive=, cut into equal members
    image_format: str = "raw"  # of the temporary images: raw, or qcow2 (savevm needs it)
    image_size: str = "1G"  # of each temporary image
    machine: str = "q35"  # q35 or pc
    smp: int = 0  # 0: two; one with icount, under which a second processor does not start
    memory: str = "1G"
    kernel: str = ""
    initrd: str = ""
    append: str = ""
    icount: str = ""  # "" or the argument of -icount
    accel: str = "tcg"  # tcg, kvm, or auto: kvm where it was proved to work
    uefi: bool = False
    root_bus: bool = False  # q35: the card on the root bus instead of a root port
    kexec_disks: bool = False  # the guest's own kernel and initramfs as read-only disks, for Guest.kexec
    disks: object = None  # how many disks to wait for; None: what the card has; 0: none, do not judge the card
    qemu: list = field(default_factory=list)  # further arguments
    boot_timeout: float = 240
    run_timeout: float = 600  # of one command, unless it says otherwise

    def __post_init__(self):
        if isinstance(self.qemu, str):
            self.qemu = shlex.split(self.qemu)
        if self.machine not in ("q35", "pc"):
            raise GuestError(f'machine "{self.machine}": allowed are q35 and pc')
        if self.image_format not in ("raw", "qcow2"):
            raise GuestError(f'image format "{self.image_format}": allowed are raw and qcow2')
        if not 1 <= self.cards <= 8:
            raise GuestError(f"{self.cards} cards: allowed are 1 to 8")
        if self.images and self.volume:
            raise GuestError("images for single members and one for all of them exclude each other")
        if len(self.images) > self.members:
            raise GuestError(f"{len(self.images)} images: the card {self.card_type} takes {self.members}")
        for name in [*self.images, self.volume, self.kernel, self.initrd]:
            if name and not os.path.exists(name):
                raise GuestError(f"{name}: no such file")

    @property
    def has_card(self):
        return self.card != "none"

    @property
    def card_type(self):
        first = self.card.split(",")[0]
        return first if first and "=" not in first else DEFAULT_CARD

    @property
    def card_props(self):
        """The properties of the card as the user wrote them, without the type."""
        words = [word for word in self.card.split(",") if word]
        return words[1:] if words and "=" not in words[0] else words

    @property
    def members(self):
        return MEMBERS.get(self.card_type, 0) if self.has_card else 0

    @property
    def expected_disks(self):
        """How many disks have to come up; None when only the guest can tell."""
        if self.disks is not None:
            return int(self.disks)
        if not self.has_card:
            return 0
        if "mode=vca" in self.card_props:
            return self.cards
        return self.members * self.cards or None

    @property
    def kernel_file(self):
        # OVMF starts a kernel as an EFI program, which the unpacked one is not.
        return self.kernel or os.path.join(paths.GUEST, "vmlinuz" if self.uefi else "vmlinux")

    @property
    def initrd_file(self):
        return self.initrd or os.path.join(paths.GUEST, "initramfs.cpio")


def image_format_of(path):
    """What qemu-img finds the file to be; anything but raw and qcow2 is refused, as a guess could lose data."""
    found = subprocess.run(["qemu-img", "info", "-U", "--output=json", path], capture_output=True, text=True)
    if found.returncode:
        raise GuestError(f"{path}: {found.stderr.strip()}")
    kind = json.loads(found.stdout)["format"]
    if kind not in ("raw", "qcow2"):
        raise GuestError(f"{path}: its format is {kind}; allowed are raw and qcow2 (qemu-img convert makes them)")
    return kind


def create_image(path, kind, size):
    done = subprocess.run(["qemu-img", "create", "-q", "-f", kind, path, size], capture_output=True, text=True)
    if done.returncode:
        raise GuestError(f"{path}: {done.stderr.strip()}")


def block_node(name, path, kind, read_only=False):
    node = {
        "node-name": name,
        "driver": kind,
        "read-only": read_only,
        "discard": "unmap",
        "file": {"driver": "file", "filename": os.path.abspath(path), "discard": "unmap"},
    }
    return ["-blockdev", json.dumps(node)]


class CommandLine:
    """Builds QEMU's arguments; makes the temporary images on the way, in `folder`. `images` are all host files."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.images = []
        self.arguments = []

    def build(self, console):
        options = self.options
        self.add(paths.QEMU, "-name", "revodrive-guest", "-nodefaults", "-no-user-config", "-display", "none")
        self.add_machine()
        # A panic restarts the guest, which ends QEMU: its words are then the last ones on the console.
        smp = options.smp or (1 if options.icount else 2)
        self.add("-no-reboot", "-m", options.memory, "-smp", str(smp))
        self.add("-kernel", options.kernel_file, "-initrd", options.initrd_file, "-append", self.kernel_line(console))
        self.add_channels(console)
        if options.has_card:
            self.add("-plugin", paths.plugin())
            for number in range(options.cards):
                self.add_card(number)
        if options.kexec_disks:
            self.add_kexec_disks()
        return self.arguments + list(options.qemu)

    def add(self, *words):
        self.arguments.extend(words)

    def add_machine(self):
        options = self.options
        machine = options.machine
        if any(re.match(r"intel-iommu", word) for word in options.qemu) and machine == "q35":
            machine += ",kernel-irqchip=split"
        accel = options.accel
        if accel == "auto":
            from .kvm import kvm_works  # only asked for on request: a probe boots a guest

            accel = "kvm" if kvm_works() and not options.icount else "tcg"
        self.add("-machine", machine, "-accel", accel)
        if accel == "kvm":
            self.add("-cpu", "host")
        if options.icount:
            self.add("-icount", options.icount)
        if options.uefi:
            variables = os.path.join(self.folder, "OVMF_VARS.fd")
            shutil.copy(OVMF_VARS, variables)
            self.add("-drive", f"if=pflash,format=raw,readonly=on,file={OVMF_CODE}")
            self.add("-drive", f"if=pflash,format=raw,file={variables}")

    def kernel_line(self, console):
        # QEMU keeps translated code by its virtual address: where each program has addresses of chance, all of it is
        # translated afresh each time.
        words = ["console=ttyS0", "panic=-1", "oops=panic", "net.ifnames=0", "norandmaps"]
        # Probes come one after the other, some ten seconds each.
        words.append(f"guest.settle={30 + 30 * self.options.cards}")
        if console == "stdio":
            words += ["quiet", "guest.shell"]
        expected = self.options.expected_disks
        if expected is not None:
            words.append(f"guest.disks={expected}")
        return " ".join([*words, self.options.append]).strip()

    def add_channels(self, console):
        """The console is ttyS0: a file, or the user's terminal. Commands and QMP have a socket each."""
        if console == "stdio":
            self.add("-chardev", "stdio,id=console,mux=on,signal=off", "-serial", "chardev:console")
            self.add("-mon", "chardev=console,mode=readline")
        else:
            self.add("-chardev", f"file,id=console,path={console}", "-serial", "chardev:console")
            # In this order: who sees the socket for commands finds the one for QMP, too.
            for name, use in (("qmp", "-mon"), ("commands", "-serial")):
                path = os.path.join(self.folder, name)
                self.add("-chardev", f"socket,id={name},path={path},server=on,wait=off")
                self.add(use, f"chardev:{name}" if use == "-serial" else f"chardev={name},mode=control")

    def add_card(self, number):
        options = self.options
        words = [options.card_type, *options.card_props]
        given = {word.split("=")[0] for word in options.card_props}
        if "id" not in given:
            words.append(f"id=card{number}")
        if options.machine == "q35" and not options.root_bus and "bus" not in given:
            self.add("-device", f"pcie-root-port,id=port{number},chassis={number + 1},slot={number + 1}")
            words.append(f"bus=port{number}")
        if "drive" not in given:
            words += self.add_drives(number, given)
        self.add("-device", ",".join(words))

    def add_drives(self, number, given):
        """The card's drive properties, their nodes added before."""
        options = self.options
        if options.volume and number == 0:
            self.add_image("card0-drive", options.volume)
            return ["drive=card0-drive"]
        words = []
        for member in range(options.members):
            if f"drive{member}" in given:
                continue
            name = f"card{number}-drive{member}"
            if number == 0 and member < len(options.images):
                self.add_image(name, options.images[member])
            else:
                path = os.path.join(self.folder, name + ".img")
                create_image(path, options.image_format, options.image_size)
                self.add_image(name, path)
            words.append(f"drive{member}={name}")
        return words

    def add_image(self, name, path):
        self.images.append(os.path.abspath(path))
        temporary = os.path.dirname(os.path.abspath(path)) == self.folder
        self.add(*block_node(name, path, self.options.image_format if temporary else image_format_of(path)))

    def add_kexec_disks(self):
        bus = {"q35": "pcie.0", "pc": "pci.0"}[self.options.machine]
        for name, path in (("kexec-kernel", "vmlinuz"), ("kexec-initrd", "initramfs.cpio")):
            # raw nodes round the size down to whole sectors: the copies are padded
            copy = os.path.join(self.folder, name)
            shutil.copy(os.path.join(paths.GUEST, path), copy)
            with open(copy, "ab") as out:
                out.write(b"\0" * (-os.path.getsize(copy) % 512))
            self.add(*block_node(name, copy, "raw", read_only=True))
            self.add("-device", f"virtio-blk-pci,bus={bus},drive={name},serial={name}")
