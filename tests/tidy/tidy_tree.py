# SPDX-License-Identifier: GPL-2.0-or-later
"""The files that the tidy rules look at, and what the rules share.

A rule is a function that takes a Tree and yields Findings. A Tree comes from git, or from a
dictionary of small samples, so that each rule is shown to fail on a bad one.
"""

import pathlib
import subprocess
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]

CPP_SUFFIXES = (".c", ".cc", ".h")


class Finding(NamedTuple):
    path: str
    line: int
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}"


class Tree:
    """path -> text of every file that belongs to the repository, committed or about to be."""

    def __init__(self, files, executables=()):
        self.files = dict(sorted(files.items()))
        self.executables = set(executables)

    @classmethod
    def of_repository(cls):
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
        files, executables = {}, set()
        for name in filter(None, names.decode().split("\0")):
            path = ROOT / name
            if not path.is_file():  # deleted, not yet committed
                continue
            try:
                files[name] = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # pictures and other binary files
            if path.stat().st_mode & 0o111:
                executables.add(name)
        return cls(files, executables)

    def named(self, *suffixes, under=""):
        """(path, text) of the files with one of the suffixes, below a folder."""
        for path, text in self.files.items():
            if path.endswith(suffixes) and path.startswith(under):
                yield path, text

    def of_kind(self, *kinds):
        for path, text in self.files.items():
            if kind_of(path, text) in kinds:
                yield path, text


def kind_of(path, text):
    """cpp, python, bash, sh, meson, ini, markdown, text, or "" for what has no rules."""
    if path.endswith(CPP_SUFFIXES):
        return "cpp"
    first = text.split("\n", 1)[0]
    if path.endswith(".py") or (first.startswith("#!") and "python" in first):
        return "python"
    if path.endswith(".sh") or (first.startswith("#!") and "bash" in first):
        return "bash"
    if first.startswith("#!") and first.rstrip().endswith("sh"):
        return "sh"
    name = path.rsplit("/", 1)[-1]
    if name in ("meson.build", "meson_options.txt"):
        return "meson"
    suffix = name.rsplit(".", 1)[-1] if "." in name else ""
    known = {"ini": "ini", "md": "markdown", "svg": "markdown", "txt": "text", "fio": "ini"}
    return known.get(suffix, "")


def code_only(text):
    """C or C++ without comments, content of strings and preprocessor lines; line numbers stay."""
    out, i, size = [], 0, len(text)
    while i < size:
        pair = text[i:i + 2]
        if pair == "//":
            i = end_of_line(text, i)
        elif pair == "/*":
            end = text.find("*/", i + 2)
            end = size if end < 0 else end + 2
            out.append("\n" * text.count("\n", i, end))
            i = end
        elif text[i] == '"' or (text[i] == "'" and not (i and text[i - 1].isalnum())):
            end = end_of_literal(text, i)
            out.append(text[i] * 2 + "\n" * text.count("\n", i, end))
            i = end
        elif text[i] == "#" and text[:i].rpartition("\n")[2].strip() == "":
            end = end_of_line(text, i)
            out.append("\n" * text.count("\n", i, end))
            i = end
        else:
            out.append(text[i])
            i += 1
    return "".join(out)


def end_of_line(text, i):
    """Where the line ends that a backslash may continue."""
    while True:
        end = text.find("\n", i)
        if end < 0:
            return len(text)
        if text[end - 1] != "\\":
            return end
        i = end + 1


def end_of_literal(text, i):
    quote = text[i]
    i += 1
    while i < len(text) and text[i] not in (quote, "\n"):
        i += 2 if text[i] == "\\" else 1
    return i + 1
