"""Only a package `transitions` writes a status, as the syntax tree of all other code shows.

An INSERT may name a status (factories). The step executor may set a status on a row in memory,
because a flush of `transitions` writes that row.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from medproc.env import PROJECT_ROOT

PACKAGES = ("pipeline", "observability", "api", "medproc")
WRITERS = {PROJECT_ROOT / "pipeline" / "transitions", PROJECT_ROOT / "api" / "transitions"}
STATUS = re.compile(r"(?:\w+_)?status")
UPDATES = {"update", "aupdate", "update_or_create", "aupdate_or_create"}
SAVES = {"save", "asave", "bulk_update", "abulk_update"}
SQL = re.compile(r"\bSET\b(?:(?!\bWHERE\b).)*?\b(?:\w+_)?status\s*=", re.IGNORECASE | re.DOTALL)
DO_UPDATE = re.compile(r"\bUPDATE\b", re.IGNORECASE)
NOT_OURS = {"http_status"}
"""Columns with `status` in their name that hold no state of a row."""


def _sources() -> list[Path]:
    return [
        path
        for package in PACKAGES
        for path in sorted((PROJECT_ROOT / package).rglob("*.py"))
        if not WRITERS & set(path.parents) and "migrations" not in path.parts
    ]


def _writes(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            yield from _of_call(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if DO_UPDATE.search(node.value) and SQL.search(node.value):
                yield f"line {node.lineno}: SQL that sets a status"
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(p.value) for p in node.values if isinstance(p, ast.Constant))
            if DO_UPDATE.search(text) and SQL.search(text):
                yield f"line {node.lineno}: SQL that sets a status"


def _of_call(call: ast.Call) -> Iterator[str]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name in UPDATES:
        for keyword in call.keywords:
            # `**changes`, `defaults=` and a plain keyword can carry a status.
            named = [keyword.arg] if keyword.arg else []
            yield from _named(call, name, [*named, *_keys(keyword.value)])
    elif name in SAVES:
        words = [
            node.value
            for part in (*call.args, *call.keywords)
            for node in ast.walk(part)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        yield from _named(call, name, words)
        if name in {"save", "asave"} and not any(k.arg == "update_fields" for k in call.keywords):
            yield from _bare_save(call)


def _keys(value: ast.expr) -> list[str]:
    return [
        key.value
        for node in ast.walk(value)
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    ]


def _named(call: ast.Call, name: str, words: list[str]) -> Iterator[str]:
    for word in words:
        if STATUS.fullmatch(word) and word not in NOT_OURS:
            yield f"line {call.lineno}: {name}(… {word} …)"


def _bare_save(call: ast.Call) -> Iterator[str]:
    # A save without arguments writes every column of a model, with the status. The save of a
    # file storage has a name and a file.
    if not call.args and not call.keywords:
        yield f"line {call.lineno}: save() of every column"


def test_no_status_is_written_outside_transitions() -> None:
    found = {
        str(path.relative_to(PROJECT_ROOT)): writes
        for path in _sources()
        if (writes := list(_writes(path.read_text(encoding="utf-8"))))
    }

    assert found == {}
    assert len(_sources()) > 100


@pytest.mark.parametrize(
    "source",
    [
        "Job.objects.filter(id=1).update(status='failed')",
        "Session.objects.update(pass1_status='failed')",
        "Session.objects.update(**{'session_status': 'failed'})",
        "Summary.objects.update_or_create(id=1, defaults={'processing_status': 'failed'})",
        "Batch.objects.bulk_update(rows, ['status'])",
        "row.save(update_fields=['status', 'error_code'])",
        "row.save()",
        "cursor.execute('UPDATE job_queue SET lease_gen = 1, status = %s WHERE id = 1')",
        "cursor.execute(f'UPDATE {table} SET status = 1')",
    ],
)
def test_the_walk_finds_each_way_to_write_one(source: str) -> None:
    assert len(list(_writes(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "Job.objects.create(status='pending')",
        "row.status = WorkStatus.PROCESSING",
        "Job.objects.filter(status='pending').update(priority=1)",
        "cursor.execute('UPDATE t SET page = 1 WHERE status = 1')",
        "default_storage.save(name, file)",
        "calls.update(http_status=500)",
    ],
)
def test_the_walk_leaves_the_rest_alone(source: str) -> None:
    assert list(_writes(source)) == []
