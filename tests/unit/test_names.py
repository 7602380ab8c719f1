"""A class name has one meaning in the whole project."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from medproc.env import PROJECT_ROOT

ROOTS = (
    "api", "bench", "evaluation", "gemini_emulator", "medproc", "observability", "pipeline",
    "samples", "tests",
)  # fmt: skip
CONVENTIONS = {"Command", "Meta", "Migration"}
"""Names that Django prescribes."""


def _class_names(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def test_a_class_name_is_defined_once() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for root in ROOTS:
        for path in (PROJECT_ROOT / root).rglob("*.py"):
            for name in _class_names(path):
                places[name].append(str(path.relative_to(PROJECT_ROOT)))

    twice = {
        name: sorted(found)
        for name, found in places.items()
        if len(found) > 1 and name not in CONVENTIONS
    }

    assert twice == {}
