# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs every tidy rule over the repository. One test a rule; a failure lists file:line."""

import pytest
import tidy_cpp
import tidy_dead
import tidy_text
from tidy_tree import Tree

RULES = tidy_text.RULES + tidy_cpp.RULES + tidy_dead.RULES


@pytest.fixture(scope="module")
def repository():
    return Tree.of_repository()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_tree(repository, rule):
    findings = [str(finding) for finding in rule(repository)]
    if findings:
        pytest.fail(f"{rule.__name__}: {len(findings)} findings\n" + "\n".join(findings),
                    pytrace=False)


def test_repository_is_seen(repository):
    """Guards against a rule that passes since there was nothing to look at."""
    assert "meson.build" in repository.files
    assert any(path.startswith("hw/bridge/") for path in repository.files)
