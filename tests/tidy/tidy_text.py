# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules that read a file as lines: lengths, license, scripts, words that must not stay."""

import ast
import re
import subprocess

from tidy_tree import Finding, kind_of

# clang-format breaks C and C++ at 100. Scripts have long messages and shell pipelines.
MAX_COLUMNS = {"cpp": 100, "meson": 100, "python": 120, "bash": 120, "sh": 120}
MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 600
CODE = ("cpp", "python", "bash", "sh", "meson")

SPDX = "SPDX-License-Identifier: GPL-2.0-or-later"
SPDX_LINES = 3  # a script's first line is its interpreter

# Written in two parts, so that this file does not find itself.
LEFTOVER = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
PRIVATE = re.compile("/wo" + r"rk/|/tmp/br" + "ief|design" + r"\.md")
ADDRESS = re.compile(r"\b(https?|ftp)://")
MIRROR = re.compile(r"\b[\w.-]*(debian|ubuntu|kernel)" + r"\.(org|net|com)\b|\bpypi" + r"\.org\b")


def line_length(tree):
    for path, text in tree.of_kind(*CODE):
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > (limit := MAX_COLUMNS[kind_of(path, text)]):
                yield Finding(path, number, f"{len(line)} columns, at most {limit}")


def white_space(tree):
    for path, text in tree.of_kind(*CODE, "ini", "markdown", "text"):
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                yield Finding(path, number, "white space at the end of the line")
            if "\t" in line:
                yield Finding(path, number, "a tab; indent with spaces")
        if text and not text.endswith("\n"):
            yield Finding(path, text.count("\n") + 1, "no newline at the end of the file")


def file_length(tree):
    for path, text in tree.of_kind(*CODE):
        lines = text.count("\n")
        if lines > MAX_FILE_LINES:
            yield Finding(path, lines, f"{lines} lines, at most {MAX_FILE_LINES}: split the file")


def license_line(tree):
    for path, text in tree.files.items():
        name = path.rsplit("/", 1)[-1]
        commented = any(True for _ in _kinds(tree, path)) or name in (".gitignore", ".clang-format")
        if commented and SPDX not in "\n".join(text.splitlines()[:SPDX_LINES]):
            yield Finding(path, 1, f'the first lines must hold "{SPDX}"')


def _kinds(tree, path):
    return (p for p, _ in tree.of_kind(*CODE, "ini", "markdown", "text") if p == path)


def leftovers(tree):
    for path, text in tree.files.items():
        for number, line in enumerate(text.splitlines(), 1):
            if found := LEFTOVER.search(line):
                yield Finding(path, number, f"{found[0]}: do it, or open an issue")
            if found := PRIVATE.search(line):
                yield Finding(path, number, f"{found[0]}: names something outside the repository")


def host_names(tree):
    """Package sources are those of the machine: no script and no package list names one."""
    for path, text in tree.files.items():
        in_docs = path.startswith("docs/") or path.endswith(".md")
        is_script = path.startswith(("scripts/", ".ci/"))
        for number, line in enumerate(text.splitlines(), 1):
            if is_script and (found := ADDRESS.search(line)):
                yield Finding(path, number, f"{found[0]}: a script fetches through apt only")
            elif not in_docs and path != "COPYING" and (found := MIRROR.search(line)):
                yield Finding(path, number, f"{found[0]}: names a package mirror")


def interpreters(tree):
    for path, text in tree.files.items():
        first = text.split("\n", 1)[0]
        if not first.startswith("#!"):
            if path in tree.executables:
                yield Finding(path, 1, "executable, but its first line names no interpreter")
            continue
        if first not in ("#!/usr/bin/python3", "#!/bin/bash", "#!/bin/sh"):
            yield Finding(path, 1, f"{first}: use #!/usr/bin/python3, #!/bin/bash or #!/bin/sh")
        if first == "#!/bin/bash" and "\nset -euo pipefail\n" not in text:
            yield Finding(path, 1, 'a bash script starts with "set -euo pipefail"')
        if path.startswith("scripts/") and path not in tree.executables:
            yield Finding(path, 1, "has an interpreter line but is not executable (chmod +x)")


def shell_syntax(tree):
    for shell in ("bash", "sh"):
        for path, text in tree.of_kind(shell):
            done = subprocess.run([shell, "-n"], input=text, text=True, capture_output=True)
            for line in done.stderr.splitlines():
                found = re.search(r"(?:line )?(\d+): (.*)", line)
                yield Finding(path, int(found[1]) if found else 1, found[2] if found else line)


def python_functions(tree):
    """Length of functions, and whether it parses at all."""
    for path, text in tree.of_kind("python"):
        try:
            root = ast.parse(text)
        except SyntaxError as error:
            yield Finding(path, error.lineno or 1, f"does not parse: {error.msg}")
            continue
        for node in ast.walk(root):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from too_long(path, node.name, node.lineno, node.end_lineno)


def shell_functions(tree):
    for path, text in tree.of_kind("bash", "sh"):
        name, start = None, 0
        for number, line in enumerate(text.splitlines(), 1):
            if found := re.match(r"(\w+)\(\) \{(?!.*\}$)", line):
                name, start = found[1], number
            elif line == "}" and name:
                yield from too_long(path, name, start, number)
                name = None


def too_long(path, name, first, last, rows=0):
    """`rows`: lines of tables inside the function, which do not count."""
    lines = last - first + 1 - rows
    if lines > MAX_FUNCTION_LINES:
        yield Finding(path, first, f"{name}(): {lines} lines, at most {MAX_FUNCTION_LINES}")


RULES = [line_length, white_space, file_length, license_line, leftovers, host_names, interpreters,
         shell_syntax, python_functions, shell_functions]
