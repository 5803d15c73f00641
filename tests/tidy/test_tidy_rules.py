# SPDX-License-Identifier: GPL-2.0-or-later
"""Every tidy rule on small samples: each must fail on the bad ones and pass the good ones."""

import pytest
import tidy_cpp
import tidy_dead
import tidy_text
from test_tidy import RULES
from tidy_tree import Tree, code_only

SPDX = "SPDX-License-Identifier: GPL-2.0-or-later"
C = f"// {SPDX}\n"
SH = f"#!/bin/bash\n# {SPDX}\nset -euo pipefail\n"

LONG_BODY = "".join(f"  f({i});\n" for i in range(60))
NESTED = C + "namespace a {\nclass B {\n public:\n  void g(int x = 1) const {\n" + LONG_BODY + "  }\n};\n}\n"
INITIALISED = C + "A::A(int b) : b_{b}, c_{1} {\n" + LONG_BODY + "}\n"
TABLE = C + "static const int t[] = {\n" + "  1,\n" * 80 + "};\nenum E {\n" + "  k,\n" * 80 + "};\n"
TABLE_INSIDE = (C + "int f() {\n  static const E t[] = {\n" + "      {1, {2, 3}},\n" * 80 + "  };\n"
                + "  f();\n" * 50 + "}\n")
PYTHON_LONG = f"# {SPDX}\ndef f():\n" + "    pass\n" * 60
SHELL_LONG = SH + "f() {\n" + "    true\n" * 60 + "}\n"


def findings(rule, files, executables=()):
    return [(f.path, f.line) for f in rule(Tree(files, executables))]


BAD = [
    (tidy_text.line_length, {"a.cc": C + "//" + "x" * 99 + "\n"}, ("a.cc", 2)),
    (tidy_text.line_length, {"a.py": "x" * 121 + "\n"}, ("a.py", 1)),
    (tidy_text.white_space, {"a.py": "x = 1 \n"}, ("a.py", 1)),
    (tidy_text.white_space, {"a.cc": "\tint x;\n"}, ("a.cc", 1)),
    (tidy_text.white_space, {"a.md": "no end"}, ("a.md", 1)),
    (tidy_text.file_length, {"a.h": "\n" * 601}, ("a.h", 601)),
    (tidy_text.license_line, {"a.h": "int x;\n"}, ("a.h", 1)),
    (tidy_text.license_line, {"docs/a.md": "# Title\n"}, ("docs/a.md", 1)),
    (tidy_text.license_line, {"a/meson.build": "x = 1\n"}, ("a/meson.build", 1)),
    (tidy_text.leftovers, {"a.c": C + "// TO" + "DO: later\n"}, ("a.c", 2)),
    (tidy_text.leftovers, {"a.md": "see /wo" + "rk/x\n"}, ("a.md", 1)),
    (tidy_text.host_names, {"scripts/a": "curl http" + "s://example.org\n"}, ("scripts/a", 1)),
    (tidy_text.host_names, {"x.list": "deb http://deb.debian" + ".org x\n"}, ("x.list", 1)),
    (tidy_text.interpreters, {"scripts/a": "#!/usr/bin/env python3\n"}, ("scripts/a", 1)),
    (tidy_text.interpreters, {"scripts/a": "#!/bin/bash\necho\n"}, ("scripts/a", 1)),
    (tidy_text.shell_syntax, {"scripts/a": SH + "if true; then\n"}, ("scripts/a", 5)),
    (tidy_text.shell_syntax, {"scripts/a": "#!/bin/sh\necho ((1))\n"}, ("scripts/a", 2)),
    (tidy_text.python_functions, {"a.py": PYTHON_LONG}, ("a.py", 2)),
    (tidy_text.python_functions, {"a.py": "def f(:\n"}, ("a.py", 1)),
    (tidy_text.shell_functions, {"scripts/a": SHELL_LONG}, ("scripts/a", 4)),
    (tidy_cpp.cpp_functions, {"a.cc": C + "int f()\n{\n" + LONG_BODY + "}\n"}, ("a.cc", 2)),
    (tidy_cpp.cpp_functions, {"a.cc": NESTED}, ("a.cc", 5)),
    (tidy_cpp.cpp_functions, {"a.cc": INITIALISED}, ("a.cc", 2)),
    (tidy_cpp.cpp_functions, {"a.cc": TABLE_INSIDE.replace("  f();", "  f();\n  g();")}, ("a.cc", 2)),
    (tidy_cpp.banned_calls, {"hw/sata/a.cc": C + "int f() { return time(0); }\n"},
     ("hw/sata/a.cc", 2)),
    (tidy_cpp.banned_calls, {"hw/card/a.cc": C + "auto t = std::chrono::seconds(1);\n"},
     ("hw/card/a.cc", 2)),
    (tidy_cpp.banned_calls, {"include/revodrive/a.h": C + 'void f() { printf(""); }\n'},
     ("include/revodrive/a.h", 2)),
    (tidy_cpp.clang_format, {"a.cc": C + "int  x ;\n"}, ("a.cc", 2)),
    (tidy_cpp.dangling_text, {"a.cc": C + 'ck_assert_str_eq(f(1).c_str(), "a");\n'}, ("a.cc", 2)),
    (tidy_dead.sources_in_meson, {"hw/sata/a.cc": C, "meson.build": "files('hw/sata/b.cc')\n"},
     ("hw/sata/a.cc", 1)),
    (tidy_dead.sources_in_meson, {"tests/test_a.cc": C, "tests/meson.build": "['b']\n"},
     ("tests/test_a.cc", 1)),
    (tidy_dead.meson_lists_exist, {"meson.build": "files('hw/sata/b.cc')\n"}, ("meson.build", 1)),
    (tidy_dead.headers_included, {"hw/sata/a.h": C, "hw/sata/a.cc": C}, ("hw/sata/a.h", 1)),
    (tidy_dead.files_mentioned, {"scripts/a": SH, "README.md": "scripts/ab\n"}, ("scripts/a", 1)),
    (tidy_dead.files_mentioned, {"docs/a.md": "x\n", "b.py": "a.md\n"}, ("docs/a.md", 1)),
    (tidy_dead.links_exist, {"docs/a.md": "[b](../b.md)\n"}, ("docs/a.md", 1)),
    (tidy_dead.links_exist, {"a.md": "run `./scripts/none -x`\n"}, ("a.md", 1)),
]


@pytest.mark.parametrize("rule, files, where", BAD,
                         ids=[f"{rule.__name__}-{i}" for i, (rule, *_) in enumerate(BAD)])
def test_rule_finds_bad_sample(rule, files, where):
    assert where in findings(rule, files)


GOOD = [
    (tidy_text.line_length, {"a.cc": "x" * 100 + "\n", "a.md": "x" * 200 + "\n"}),
    (tidy_text.license_line, {"a.cc": C, "s": SH, "COPYING": "GPL\n"}),
    (tidy_text.leftovers, {"a.sh": "mktemp /tmp/x." + "X" * 6 + "\n"}),
    (tidy_text.host_names, {"docs/a.md": "see http" + "s://example.org\n"}),
    (tidy_text.shell_syntax, {"scripts/a": SH + "echo $((1))\n"}),
    (tidy_cpp.cpp_functions, {"a.cc": TABLE}),
    (tidy_cpp.cpp_functions, {"a.cc": TABLE_INSIDE}),
    (tidy_cpp.banned_calls, {"hw/sata/a.cc": C + "// time(0)\nint x = clock_.time(0);\n",
                             "hw/qemu/a.c": "int f() { return time(0); }\n"}),
    (tidy_cpp.clang_format, {"a.cc": C + "int x;\n"}),
    (tidy_dead.sources_in_meson, {"tests/test_a.cc": C, "tests/meson.build": "['a']\n"}),
    (tidy_dead.headers_included, {"hw/sata/a.h": C, "a.cc": '#include "sata/a.h"\n'}),
    (tidy_dead.files_mentioned, {"scripts/a": SH, "README.md": "run `scripts/a`\n"}),
    (tidy_dead.links_exist, {"docs/a.md": "[b](../b.md) `docs/` http" + "s://x\n", "b.md": ""}),
]


@pytest.mark.parametrize("rule, files", GOOD,
                         ids=[f"{rule.__name__}-{i}" for i, (rule, _) in enumerate(GOOD)])
def test_rule_passes_good_sample(rule, files):
    assert findings(rule, files) == []


LAYER_FILES = {"hw/bridge/bridge.h": "", "hw/bridge/phy.h": "", "hw/card/card.h": "",
               "hw/timing/timeline.cc": "", "hw/sata/ata_drive.cc": "", "hw/sf2281/ftl.h": ""}


@pytest.mark.parametrize("path, include, allowed", [
    ("hw/timing/a.cc", '"revodrive/timeline.h"', True),
    ("hw/timing/a.cc", '"revodrive/ata_drive.h"', False),
    ("hw/bridge/a.cc", '"revodrive/ata_drive.h"', True),
    ("hw/bridge/a.cc", '"bridge/phy.h"', True),
    ("hw/bridge/a.cc", '"card/card.h"', False),
    ("hw/bridge/a.cc", '"sf2281/ftl.h"', False),
    ("hw/card/a.cc", '"bridge/bridge.h"', True),
    ("hw/card/a.cc", '"bridge/phy.h"', False),
    ("hw/card/profile_file.h", "<glib.h>", True),
    ("hw/sata/a.cc", "<glib.h>", False),
    ("hw/sata/a.cc", "<chrono>", False),
    ("hw/sata/a.cc", "<vector>", True),
    ("hw/sata/a.cc", '"qemu/osdep.h"', False),
    ("hw/sata/a.cc", "<unistd.h>", False),
    ("hw/sata/a.cc", '"revodrive/nobody_knows.h"', False),
    ("hw/qemu/a.c", '"revodrive/host.h"', True),
    ("hw/qemu/a.c", '"revodrive/timeline.h"', False),
    ("hw/qemu/a.c", '"hw/pci/pci.h"', True),
    ("hw/qemu/a.c", '"card/card.h"', False),
    ("include/revodrive/ata_drive.h", '"revodrive/timeline.h"', True),
    ("include/revodrive/timeline.h", '"revodrive/ata_drive.h"', False),
    ("include/revodrive/host.h", '"revodrive/timeline.h"', False),
    ("include/revodrive/timeline.h", '"bridge/phy.h"', False),
])
def test_layering(path, include, allowed):
    found = findings(tidy_cpp.layering, LAYER_FILES | {path: f"#include {include}\n"})
    assert found == ([] if allowed else [(path, 1)])


def test_every_rule_has_a_bad_sample():
    assert {rule for rule, *_ in BAD} | {tidy_cpp.layering} == set(RULES)


def test_code_only_keeps_line_numbers():
    code = code_only('a /* x\n y */ "s\\"t" // z\n#define Q \\\n  {\n\'{\' 1\'000;\n')
    assert code.count("\n") == 5
    assert "{" not in code and "z" not in code and "1'000" in code


def test_functions_are_found():
    code = """
namespace n {
int plain(int a) {
  if (a) { return 1; }
  return [](int b) { return b; }(a);
}
bool operator==(const A &a, const B &b) {
  return true;
}
template <typename T = int>
T generic() try {
  return T{};
} catch (...) {
  return 0;
}
struct S : Base<int> {
  S() : a_{1}, b_(2) {
    f();
  }
  ~S() = default;
  int in_line() const { return 1; }
};
}
"""
    found = {name: last - first + 1 for name, first, last, _ in tidy_cpp.functions(code_only(code))}
    assert found["plain"] == 4
    assert found["generic"] == 4
    assert found["in_line"] == 1
    assert found["S"] == 3
    assert "==" in code and len(found) >= 5
