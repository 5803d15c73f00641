# SPDX-License-Identifier: GPL-2.0-or-later
"""Where things are, and the environment QEMU runs in."""

import os
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
DEPS = os.path.join(ROOT, ".deps")
GUEST = os.path.join(DEPS, "guest")
QEMU = "/usr/bin/qemu-system-x86_64"
QEMU_PYTHON = os.path.join(DEPS, "qemu-src", "python")

# QEMU's own Python packages (qemu.qmp) come with its source package, which scripts/setup unpacks.
if QEMU_PYTHON not in sys.path:
    sys.path.append(QEMU_PYTHON)


def plugin():
    """The plugin under test; REVODRIVE_PLUGIN names another one, as the sanitizer run does."""
    return os.path.abspath(os.environ.get("REVODRIVE_PLUGIN") or os.path.join(ROOT, "build", "revodrive.so"))


def qemu_environment():
    """The environment for QEMU: what REVODRIVE_PRELOAD names (the sanitizer's run-time) is loaded first."""
    environment = dict(os.environ)
    preload = environment.pop("REVODRIVE_PRELOAD", "")
    if preload:
        environment["LD_PRELOAD"] = preload
    return environment
