# SPDX-License-Identifier: GPL-2.0-or-later
"""The documentation against the code: every property, counter, profile key, ATA opcode and case that
the code has is in the docs, and the docs name none that the code does not have."""

import re

import pytest
from tidy_tree import Tree

INHERITED = {"addr", "multifunction"}  # of every PCI device; QEMU describes them


@pytest.fixture(scope="module")
def repository():
    return Tree.of_repository()


def joined(tree, *suffixes, under):
    return "\n".join(text for _, text in tree.named(*suffixes, under=under))


def code_properties(text):
    """Names of the properties that the glue defines or describes."""
    names = set(re.findall(r'\bDEFINE_PROP_\w+\(\s*"([\w-]+)"', text))
    names |= set(re.findall(r'\bID_PROPERTY\(\s*"([\w-]+)"', text))
    names |= {f"drive{n}" for n in re.findall(r"\bDRIVE_PROPERTY\((\d)\)", text)}
    names |= set(re.findall(r'\bdevice_add_bootindex_property\([^"]*"([\w-]+)"', text))
    for table in re.findall(r"\bRevoHelp \w+\[\] = \{(.*?)\n\};", text, re.S):
        names |= set(re.findall(r'\{\s*"([\w-]+)",', table))
    return names


def table_names(text, heading):
    """Names in backquotes in the first column of the tables below a heading; "a to d" is a range."""
    names = set()
    section = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.S | re.M)
    assert section, f'no heading "{heading}"'
    for cell in re.findall(r"^\| ([^|]*`[^|]*) \|", section[1], re.M):
        words = re.findall(r"`([\w-]+)`", cell)
        if " to " in cell:
            stem, first, last = words[0][:-1], int(words[0][-1]), int(words[1][-1])
            words = [f"{stem}{n}" for n in range(first, last + 1)]
        names |= set(words)
    return names


def test_properties(repository):
    code = code_properties(joined(repository, ".c", under="hw/qemu/"))
    page = repository.files["docs/device.md"]
    documented = table_names(page, "Properties of a card") \
        | table_names(page, "Properties of an SSD (`sf2281`)")
    assert code, "no property found in hw/qemu"
    assert code - documented == set(), "not in docs/device.md"
    assert documented - code - INHERITED == set(), "in docs/device.md, but not in hw/qemu"


def test_device_types(repository):
    code = set(re.findall(r'^\s*\{"([\w-]+)", TYPE_REVO', repository.files["hw/qemu/card.c"], re.M))
    documented = table_names(repository.files["docs/device.md"], "Device types")
    assert len(code) >= 3
    assert documented == code | {"sf2281"}


def code_counters(text):
    names = set(re.findall(r'\bvisit\("(\w+)"(?!, ")', text))
    for table in re.findall(r"string_view, kCounters> kNames = \{(.*?)\}", text, re.S):
        names |= set(re.findall(r'"(\w+)"', table))
    return names


def test_counters(repository):
    code = code_counters(joined(repository, ".cc", under="hw/"))
    page = repository.files["docs/counters.md"]
    documented = table_names(page, "Card") | table_names(page, "Member")
    assert {"late_ios", "reads"} <= code
    assert code - documented == set(), "not in docs/counters.md"
    assert documented - code == set(), "in docs/counters.md, but not in hw"


def test_latency_names(repository):
    """Kinds, stages and percentiles are composed to names; docs/counters.md has each part."""
    page = repository.files["docs/counters.md"]
    section = re.search(r"^## Latency\n(.*?)(?=^## )", page, re.S | re.M)[1]
    documented = set(re.findall(r"`(\w+)`", section))
    journey = repository.files["hw/timing/journey.cc"]
    stats = repository.files["hw/timing/latency_stats.cc"]
    code = set()
    for table in re.findall(r"kNames\[\] = \{(.*?)\};", journey, re.S):
        code |= set(re.findall(r'"(\w+)"', table))
    percentiles = re.findall(r'\{"(p[\d_]+)", ', stats)
    code |= {f"{name}_ns" for name in percentiles}
    code |= set(re.findall(r'"latency_(\w+)"', stats))
    assert len(percentiles) == 6
    assert {"read", "die", "count", "p99_999_ns"} <= code
    assert code - documented == set(), "not in docs/counters.md"


def test_profile_keys(repository):
    code = {(*number, bool(power)) for *number, power in
            re.findall(r'\{"(\w+)", "(\w+)", &out->[\w.]+, (\d+), (\d+)(, true)?\}',
                       repository.files["hw/card/profile.cc"])}
    row = r"^\| (\w+) \| `(\w+)` \| (\d+) to (\d+)(, a power of two)?(?:, a divisor of `\w+`)? \|"
    documented = {(*number, bool(power)) for *number, power in
                  re.findall(row, repository.files["docs/device.md"], re.M)}
    assert code
    assert code == documented


def test_ata_commands(repository):
    opcodes = dict(re.findall(r"\b(k\w+) = (0x[0-9A-F]{2}),", repository.files["include/revodrive/ata.h"]))
    table = repository.files["hw/sata/command_table.cc"]
    code = {opcodes[name] for name in re.findall(r"\{ata::(k\w+), \{", table)}
    page = repository.files["docs/registers.md"]
    section = re.search(r"^## ATA commands\n(.*?)(?=^## )", page, re.S | re.M)[1]
    documented = set()
    for cell in re.findall(r"^\| ([0-9A-F, ]+) \|", section, re.M):
        documented |= {f"0x{opcode}" for opcode in cell.split(", ")}
    assert len(code) > 20
    assert code == documented


def test_cases(repository):
    """docs/testing.md names for each case the tests that cover it; those exist and name the case."""
    page = repository.files["docs/testing.md"]
    rows = re.findall(r"^\| (C\d{3}) \|(.*)\|$", page, re.M)
    assert rows
    for case, rest in rows:
        places = re.findall(r"`((?:qtest|tests)/[\w/]+\.(?:py|cc))(?:::(\w+))?`", rest)
        assert places, f"{case}: no test named"
        for path, test in places:
            assert path in repository.files, f"{case}: {path} does not exist"
            assert not test or test in repository.files[path], f"{case}: {path} has no {test}"
    listed = {case for case, _ in rows}
    tests = "\n".join(text for path, text in repository.named(".py", ".cc")
                      if path.startswith(("qtest/", "tests/")) and "tidy" not in path)
    assert set(re.findall(r"\bC\d{3}\b", tests)) - listed == set(), "cases of tests, not in the table"


def test_every_script_is_explained(repository):
    """Each script a user can call is in README or docs/testing.md or docs/device.md."""
    pages = joined(repository, ".md", under="")
    for path in repository.executables:
        if path.startswith("scripts/") and path.count("/") == 1:
            assert f"./{path}" in pages, f"no page shows ./{path}"


def test_parsers_find_what_they_look_for():
    glue = ('DEFINE_PROP_BOOL("timing", X), ID_PROPERTY("vendor-id", y),\nDRIVE_PROPERTY(2),\n'
            'static const RevoHelp h[] = {\n    {"rerror", "x"},\n    {\n     "werror", "y"},\n};\n')
    assert code_properties(glue) == {"timing", "vendor-id", "drive2", "rerror", "werror"}
    page = "## T\n\n| name |\n|---|\n| `a`, `b-c` | x |\n| `d0` to `d2` | `no` |\n\n## U\n| `z` |\n"
    assert table_names(page, "T") == {"a", "b-c", "d0", "d1", "d2"}
    counters = 'visit("one", 1); std::array<std::string_view, kCounters> kNames = {"two", "three"};'
    assert code_counters(counters) == {"one", "two", "three"}
