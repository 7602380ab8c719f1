"""A class name has one meaning in the whole project."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from medproc.env import PROJECT_ROOT
from tests.support.source_trees import modules_below, tree_of

pytestmark = pytest.mark.xdist_group("code-texts")

ROOTS = (
    "api", "bench", "evaluation", "gemini_emulator", "medproc", "observability", "pipeline",
    "samples", "tests",
)  # fmt: skip
CONVENTIONS = {"Command", "Meta", "Migration"}
"""Names that Django prescribes."""


def _class_names(path: Path) -> list[str]:
    return [node.name for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef)]


def test_a_class_name_is_defined_once() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in modules_below(*ROOTS):
        for name in _class_names(path):
            places[name].append(str(path.relative_to(PROJECT_ROOT)))

    twice = {
        name: sorted(found)
        for name, found in places.items()
        if len(found) > 1 and name not in CONVENTIONS
    }

    assert twice == {}
