#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns profile files into one C++ source: embed.py FILE.ini... OUTPUT.cc"""

import pathlib
import sys


def literal(text):
    lines = text.splitlines()
    return "\n".join('    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"' for line in lines)


def main():
    *inputs, output = map(pathlib.Path, sys.argv[1:])
    entries = ",\n".join(f'    {{"{path.stem}",\n{literal(path.read_text())}}}' for path in inputs)
    output.write_text(
        '#include "card/builtin_profiles.h"\n\nnamespace revodrive {\n\n'
        f"const BuiltinProfile kBuiltinProfiles[] = {{\n{entries}}};\n"
        f"const size_t kBuiltinProfileCount = {len(inputs)};\n\n}}  // namespace revodrive\n")


main()
