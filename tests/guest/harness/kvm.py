# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether KVM really works here. A /dev/kvm in which guests hang has been seen: only a guest that ends proves it."""

import os
import platform
import subprocess

from . import paths

PROBE_S = 20


def kvm_works():
    """Asks the cache in .deps/kvm first; it holds for one host kernel and one QEMU."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    cache = os.path.join(paths.DEPS, "kvm")
    key = f"{platform.release()} {os.path.getmtime(paths.QEMU):.0f}"
    try:
        known, _, verdict = open(cache, encoding="ascii").read().strip().rpartition(" ")
    except OSError:
        known = verdict = ""
    if known != key:
        verdict = "works" if probe() else "hangs"
        with open(cache, "w", encoding="ascii") as out:
            out.write(f"{key} {verdict}\n")
    return verdict == "works"


def probe():
    """A guest that has nothing to do but to power off."""
    command = [paths.QEMU, "-accel", "kvm", "-cpu", "host", "-m", "512M", "-nodefaults", "-display", "none"]
    command += ["-no-reboot", "-kernel", os.path.join(paths.GUEST, "vmlinux")]
    command += ["-initrd", os.path.join(paths.GUEST, "initramfs.cpio"), "-append", "panic=-1 guest.off"]
    try:
        done = subprocess.run(command, timeout=PROBE_S, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
