"""Every call of every pass takes one path: request, rate limiter, call, classify, record."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from medproc.env import PROJECT_ROOT

PATH = "pipeline/execution/executor.py"
"""The module that makes the call of a pass, after the rate limiter and before the call log."""
PROVIDERS = "pipeline/providers/"
"""A provider may call an engine itself, to warm it up in memory, or as the emulator's model."""


def callers_of_a_provider() -> Iterator[str]:
    for folder in ("medproc", "pipeline", "observability", "api"):
        for path in sorted((PROJECT_ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr == "generate"
                ):
                    yield path.relative_to(PROJECT_ROOT).as_posix()


def test_nothing_but_the_step_executor_calls_a_provider() -> None:
    callers = [name for name in callers_of_a_provider() if not name.startswith(PROVIDERS)]

    assert callers == [PATH]
