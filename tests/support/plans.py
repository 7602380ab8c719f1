"""How many rows a statement reads from each table, by PostgreSQL's own count."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db import connection

from tests.support.databases import as_owner


def analyzed(*tables: str) -> None:
    """Refresh the statistics of tables."""
    with as_owner(), connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"ANALYZE {table}")


def plan_of(statement: str, parameters: Any = None) -> list[dict[str, Any]]:
    """Run a statement, and return the nodes of its plan with what each did."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
        (found,) = cursor.fetchone() or ("[]",)
    return list(_nodes([(found if isinstance(found, list) else json.loads(found))[0]["Plan"]]))


def rows_read(statement: str, parameters: Any = None) -> Counter[str]:
    """Run a statement, and return the rows that its scans read, by table; removed rows too."""
    read: Counter[str] = Counter()
    for node in plan_of(statement, parameters):
        if table := node.get("Relation Name"):
            removed = node.get("Rows Removed by Filter", 0)
            read[table] += round((node["Actual Rows"] + removed) * node["Actual Loops"])
    return read


def _nodes(plans: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for plan in plans:
        yield plan
        below: Sequence[dict[str, Any]] = plan.get("Plans", ())
        yield from _nodes(below)
