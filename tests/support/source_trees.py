"""The syntax trees of the project's modules, each parsed once per test process."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from medproc.env import PROJECT_ROOT


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a module. Callers change nothing."""
    return ast.parse(path.read_text(encoding="utf-8"))


def modules_below(*folders: str) -> Iterator[Path]:
    """Yield each module below the folders of the project, in the order of the paths."""
    for folder in folders:
        yield from sorted((PROJECT_ROOT / folder).rglob("*.py"))
