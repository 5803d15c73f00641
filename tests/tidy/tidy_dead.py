# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules about files that nothing uses, and lists that name files which do not exist."""

import re

from tidy_cpp import includes
from tidy_tree import Finding, kind_of

# Found by their name or place: by tools, by people, by pytest.
KNOWN_PLACES = re.compile(
    r"(^|/)(README\.md|CHANGELOG\.md|CONTRIBUTING\.md|COPYING|conftest\.py|__init__\.py|"
    r"meson\.build|meson_options\.txt|\.gitignore|\.clang-format|\.ci/run|"
    r"test_\w+\.py|pytest\.ini)$")

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)")
SHOWN_PATH = re.compile(r"[`\s](?:\./)?((?:scripts|hw|include|qtest|tests|docs)/[\w./-]+\w)")


def stem(path):
    return path.rsplit("/", 1)[-1].rsplit(".", 1)[0]


def meson_texts(tree, path):
    """The build descriptions that may list a file: of its folder and of those above it."""
    folder = path
    while "/" in folder:
        folder = folder.rsplit("/", 1)[0]
        if text := tree.files.get(f"{folder}/meson.build"):
            yield text
    yield tree.files.get("meson.build", "")


def sources_in_meson(tree):
    """Each source is built, and each test runs: its name or stem stands quoted in meson.build."""
    for path, _ in tree.named(".cc", ".c", under=("hw/", "tests/")):
        name = path.rsplit("/", 1)[-1]
        listed = re.compile(rf"'([\w/.-]*/)?({re.escape(name)}|{re.escape(stem(path))})'")
        short = stem(path).removeprefix("test_").removesuffix("_test")
        by_part = re.compile(rf"'{re.escape(short)}'")
        texts = list(meson_texts(tree, path))
        if not any(listed.search(text) or by_part.search(text) for text in texts):
            yield Finding(path, 1, "no meson.build lists it")


def meson_lists_exist(tree):
    for path, text in tree.named("meson.build"):
        folder = path.removesuffix("meson.build")
        for number, line in enumerate(text.splitlines(), 1):
            for name in re.findall(r"'([\w/.-]+\.(?:cc|c|py|ini))'", line.split("#")[0]):
                output = "output:" in line and name in line.split("output:")[1]
                if not output and folder + name not in tree.files:
                    yield Finding(path, number, f"lists {name}, which does not exist")


def headers_included(tree):
    seen = set()
    for path, text in tree.of_kind("cpp"):
        for _, _, header in includes(text):
            seen.add(header.rsplit("/", 1)[-1])
    for path, _ in tree.named(".h"):
        if path.rsplit("/", 1)[-1] not in seen:
            yield Finding(path, 1, "no file includes it")


def files_mentioned(tree):
    """A script, module, profile or page is named by another file (a page by another page)."""
    for path, text in tree.files.items():
        kind = kind_of(path, text)
        if kind in ("cpp", "") or KNOWN_PLACES.search(path):
            continue
        name = path.rsplit("/", 1)[-1]
        words = [name] if kind != "python" or "." not in name else [name, stem(path)]
        pattern = re.compile("|".join(rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in words))
        pages_only = kind == "markdown"
        others = (t for p, t in tree.files.items()
                  if p != path and (not pages_only or p.endswith(".md")))
        if not any(pattern.search(other) for other in others):
            yield Finding(path, 1, "no other file names it: use it, document it or remove it")


def links_exist(tree):
    """Relative links of the pages lead somewhere, and so do the paths they show as code."""
    known = set(tree.files) | {part for path in tree.files for part in parents(path)}
    for path, text in tree.named(".md"):
        for number, line in enumerate(text.splitlines(), 1):
            targets = [resolve(path, target) for target in LINK.findall(line) if "://" not in target]
            for target in targets + SHOWN_PATH.findall(line):
                if target.rstrip("/") not in known:
                    yield Finding(path, number, f"names {target}, which does not exist")


def parents(path):
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        yield path


def resolve(page, target):
    parts = page.split("/")[:-1]
    for part in target.rstrip("/").split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


RULES = [sources_in_meson, meson_lists_exist, headers_included, files_mentioned, links_exist]
