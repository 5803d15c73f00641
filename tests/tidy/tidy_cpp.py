# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules for C and C++: layout, function length, layers, calls the core must not make."""

import pathlib
import re
import shutil
import subprocess
import tempfile

from tidy_text import too_long
from tidy_tree import ROOT, Finding, code_only

# Lowest first. A layer includes its own headers and public ones of the layers below it.
LAYERS = ["timing", "pcie", "sf2281", "sata", "volume", "bridge", "card"]
HOSTS = ["qemu", "sim"]

# Public headers (include/revodrive) that no layer owns: the seams. The others belong to the layer
# that has a source of the same name, or to the one named here.
SEAMS = {"host", "error", "stream", "profile", "media", "drive_store", "memory_hint"}
OWNERS = {"ata": "sata", "ata_command": "sata", "memo": "timing", "observer": "timing", "scsi_command": "volume"}

# Private headers that the layer above may include, to put the parts together.
COMPOSITION = {"bridge/bridge.h": {"card"}, "volume/volume.h": {"card"}, "card/card.h": set()}

C_HEADERS_IN_CORE = {("hw/card/profile_file.h", "glib.h"), ("hw/sf2281/content_hash.h", "xxhash.h"),
                     ("hw/volume/map_area.cc", "xxhash.h"),
                     ("hw/sf2281/content_hash.h", "xxh_x86dispatch.h")}
# Clocks, threads, chance and the terminal belong to the host; floating files too.
BANNED_HEADERS = {"chrono", "ctime", "thread", "mutex", "condition_variable", "future", "atomic",
                  "random", "iostream", "fstream", "filesystem"}
BANNED_CALLS = re.compile(
    r"(?<![\w.>:])(?:std::|::)?(time|gettimeofday|clock_gettime|clock|rand|srand|random|sleep|"
    r"usleep|nanosleep|printf|puts|putchar|abort|exit|getenv)\s*\(|"
    r"\bstd::(chrono|this_thread|random_device|cout|cerr)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def layer_of(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "hw" else None


def includes(text):
    for number, line in enumerate(text.splitlines(), 1):
        if found := INCLUDE.match(line):
            yield number, found[1] == "<", found[2]


def owner_of(tree, header):
    """The layer of a public header, "" for a seam, None if nobody said."""
    stem = header.rsplit("/", 1)[-1].removesuffix(".h")
    if stem in SEAMS:
        return ""
    if stem in OWNERS:
        return OWNERS[stem]
    for layer in LAYERS:
        if f"hw/{layer}/{stem}.cc" in tree.files:
            return layer
    return None


def layering(tree):
    for path, text in tree.of_kind("cpp"):
        layer = layer_of(path)
        for number, angle, header in includes(text):
            if path.startswith("include/revodrive/"):
                problem = public_header_problem(tree, path, angle, header)
            elif layer in LAYERS:
                problem = core_problem(tree, path, layer, angle, header)
            elif layer in HOSTS:
                problem = host_problem(tree, layer, header)
            else:
                problem = None
            if problem:
                yield Finding(path, number, f"includes {header}: {problem}")


def system_problem(path, header):
    if (path, header) in C_HEADERS_IN_CORE:
        return None
    if header in BANNED_HEADERS:
        return "the core has no clock, thread, random source, terminal or file of its own"
    if header.endswith(".h") and header not in ("zstd.h", "stdbool.h", "stddef.h", "stdint.h"):
        return "the core is standard C++: no system, GLib or QEMU header"
    return None


def public_problem(tree, layer, header):
    owner = owner_of(tree, header)
    if owner is None:
        return "tests/tidy/tidy_cpp.py does not know its layer: add it to SEAMS or OWNERS"
    if owner and (not layer or LAYERS.index(owner) > LAYERS.index(layer)):
        return f"{layer or 'a seam'} is below {owner}"
    return None


def public_header_problem(tree, path, angle, header):
    if angle:
        return system_problem(path, header)
    if not header.startswith("revodrive/"):
        return "a public header includes public headers only"
    own = owner_of(tree, path)
    return public_problem(tree, own, header) if own is not None else None


def core_problem(tree, path, layer, angle, header):
    if angle:
        return system_problem(path, header)
    folder = header.split("/")[0]
    if folder == "revodrive":
        return public_problem(tree, layer, header)
    if folder == layer or (header in COMPOSITION and layer in COMPOSITION[header]):
        return None
    if folder in LAYERS + HOSTS:
        return f"a private header of another folder ({layer} may not look into {folder})"
    return "the core is standard C++: no system, GLib or QEMU header"


def host_problem(tree, layer, header):
    """QEMU's headers are named like folders of ours (hw/...), so only our own names are checked."""
    folder = header.split("/")[0]
    if folder == "revodrive" and header != "revodrive/host.h":
        return "a host knows the card through revodrive/host.h alone"
    if folder in LAYERS and "hw/" + header in tree.files:
        return f"a private header of another folder ({layer} may not look into {folder})"
    return None


def banned_calls(tree):
    for path, text in tree.of_kind("cpp"):
        if layer_of(path) not in LAYERS and not path.startswith("include/revodrive/"):
            continue
        for number, line in enumerate(code_only(text).splitlines(), 1):
            if found := BANNED_CALLS.search(line):
                yield Finding(path, number, f"{found[0].strip()}: time, chance and output come "
                                            "from the host (revodrive/host_port.h)")


def cpp_functions(tree):
    for path, text in tree.of_kind("cpp"):
        for name, first, last, rows in functions(code_only(text)):
            yield from too_long(path, name, first, last, rows)


SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")
SIGNATURE_END = re.compile(r"\)\s*((const|noexcept|override|final|try|&)\s*|->\s*[\w:<> *&]+)*$")

MEMBER_INITIALISER = re.compile(r"\)[^:]*:(?!:)[^{}]*[\w>]$")
ACCESS = re.compile(r"\s*(public|private|protected)\s*:$")


def brace_kind(header):
    """What a brace opens, told by the text before it: scope, function or other."""
    flat = re.sub(r"\boperator\s*\S+?\s*(?=\()", "operator", header)
    while "(" in flat and (less := re.sub(r"\([^()]*\)", "()", flat.replace("()", "\1"))) != flat:
        flat = less
    flat = re.sub(r"template\s*<[^{}]*?>", "", flat.replace("\1", "()")).strip()
    if SCOPE.search(flat) and not SIGNATURE_END.search(flat):
        return "scope"
    if re.search(r"(?<![=!<>])=(?!=)", flat) or MEMBER_INITIALISER.search(flat):
        return "other"
    return "function" if ")" in flat else "other"


def functions(code):
    """(name, first line, last line, lines in tables) of each function outside other functions."""
    stack, header, line, start, rows = [], "", 1, 1, 0
    for char in code:
        if char == "\n":
            line += 1
        if char == "{":
            inside = all(kind == "scope" for kind, *_ in stack)
            kind = brace_kind(header) if inside else "other"
            rows = 0 if kind == "function" else rows
            stack.append((kind, header, start, line))
        elif char == "}" and stack:
            kind, opened, first, brace_line = stack.pop()
            if kind == "function":
                found = re.search(r"([~\w]+)\s*\(", opened)
                yield (found[1] if found else "?"), first, line, rows
            elif opened.rstrip().endswith("="):
                rows += line - brace_line
            # A brace inside an initialiser list or an array goes on with what was before it.
            header = opened + "()" if kind == "other" else ""
            continue
        if char in ";{":
            header = ""
        elif header or not char.isspace():
            start = start if header else line
            header = "" if ACCESS.match(header + char) else header + char


def clang_format(tree):
    """The layout is what clang-format makes of it, with the tree's .clang-format."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / ".clang-format", folder)
        paths = [path for path, _ in tree.of_kind("cpp")]
        for path in paths:
            copy = pathlib.Path(folder, path)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(tree.files[path], encoding="utf-8")
        done = subprocess.run(["clang-format-14", "--dry-run", *paths], cwd=folder, text=True,
                              capture_output=True, check=True)
    seen = set()
    for path, line in re.findall(r"^([^:\n]+):(\d+):\d+: warning: code", done.stderr, re.M):
        if path not in seen:
            yield Finding(path, int(line), f"layout; run: clang-format-14 -i {path}")
        seen.add(path)


DANGLING = re.compile(r"ck_assert_p?str_\w+\(.*\)\.c_str\(\)")


def dangling_text(tree):
    """libcheck's macros keep the pointer while they compare: a temporary string is gone by then."""
    for path, text in tree.of_kind("cpp"):
        for number, line in enumerate(text.splitlines(), 1):
            if DANGLING.search(line):
                yield Finding(path, number, "the string is gone when it is compared: use check_text()")


RULES = [dangling_text, layering, banned_calls, cpp_functions, clang_format]
