"""The deletion of rows that are older than their retention, in small transactions.

Each transaction reads and deletes at most `PORTION` rows in the order of an index. A killed run
leaves whole portions; the next run continues. Two runs at once take turns, portion by portion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from pipeline.operations.retention.rules import RetentionRule

PORTION = 500
"""Rows that one transaction reads, and deletes at most."""
_LOCK = int.from_bytes(b"prun", "big")
"""First key of the advisory lock; the second key is the hash of the table's name."""


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """The result of one rule."""

    table: str
    days: int
    removed: int
    """Rows that were deleted, or in a dry run would be deleted."""
    kept: int
    """Rows of this age that stay, for the rule's reason."""
    finished: bool
    """False if the run was stopped before the last row of this age."""


def prune(
    rule: RetentionRule,
    days: int,
    *,
    dry_run: bool = False,
    announce: Callable[[], None] = lambda: None,
    erase: Callable[[UUID], bool] | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> Pruned:
    """Delete the rows of a rule that are older than `days`; a dry run only counts them.

    `announce` runs once, in the transaction of the first deletion. `erase` removes one record, for
    a rule that erases, and returns whether the record is gone. `is_over` ends the run between two
    transactions.
    """
    before = _time_before(days)
    removed = kept = 0
    is_announced = False
    at: tuple[datetime, Any] | None = None
    while True:
        with transaction.atomic():
            if not dry_run:
                _take_turns(rule)
            rows = _portion(rule, before, at)
            old = [key for key, _, stays in rows if not stays]
            if old and not dry_run:
                if not is_announced:
                    announce()
                    is_announced = True
                if not rule.erases:
                    _delete(rule, old)
        gone = len(old)
        if erase is not None and not dry_run:
            gone = sum(erase(key) for key in old)
        removed += gone
        kept += len(rows) - gone
        if len(rows) < PORTION or is_over():
            return Pruned(
                table=rule.table,
                days=days,
                removed=removed,
                kept=kept,
                finished=len(rows) < PORTION,
            )
        at = (rows[-1][1], rows[-1][0])


def stays_now(rule: RetentionRule, key: UUID) -> bool:
    """Return whether the rule keeps a row as it is now."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT ({rule.stays}) FROM {rule.table} r WHERE r.{rule.key} = %s",  # noqa: S608 - names come from the rules
            [key],
        )
        row = cursor.fetchone()
    return row is None or bool(row[0])


def _time_before(days: int) -> datetime:
    """Return the limit of age by the database's clock, which has set the times of the rows."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp() - make_interval(days => %s)", [days])
        (limit,) = cursor.fetchone()
    found: datetime = limit
    return found


def _take_turns(rule: RetentionRule) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, rule.table])


def _portion(
    rule: RetentionRule, before: datetime, at: tuple[datetime, Any] | None
) -> list[tuple[Any, datetime, bool]]:
    """Return the next rows of this age, oldest first: key, time, and whether the row stays."""
    further = f"AND (r.{rule.age}, r.{rule.key}) > (%(time)s, %(key)s)" if at else ""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT r.{rule.key}, r.{rule.age}, ({rule.stays}) FROM {rule.table} r"  # noqa: S608 - names come from the rules
            f" WHERE r.{rule.age} < %(before)s {further}"
            f" ORDER BY r.{rule.age}, r.{rule.key} LIMIT %(limit)s",
            {
                "before": before,
                "limit": PORTION,
                "time": at and at[0],
                "key": at and at[1],
            },
        )
        return list(cursor.fetchall())


def _delete(rule: RetentionRule, keys: list[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {rule.table} WHERE {rule.key} = ANY(%s)",  # noqa: S608 - names come from the rules
            [keys],
        )
