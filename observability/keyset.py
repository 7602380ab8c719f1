"""Paging by key: the next rows after one, at the same cost on every page.

Imports Django alone. The place is `(time, id)`, so that rows of one second are neither skipped nor
shown twice; it travels in the URL as text that a person can read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, kw_only=True)
class Page(Generic[M]):
    """Some rows, newest first, and where the next ones begin."""

    rows: Sequence[M]
    next_place: str
    """Empty on the last page."""


def keyset_page(rows: QuerySet[M, M], column: str, place: str, size: int) -> Page[M]:
    """Return `size` rows after a place, by `column` and id; a place that is none is the top."""
    ordered = rows.order_by(f"-{column}", "-id")
    if (after := _parsed(place)) is not None:
        at, row_id = after
        # The first condition is what the index is searched by.
        ordered = ordered.filter(Q(**{f"{column}__lte": at})).filter(
            Q(**{f"{column}__lt": at}) | Q(id__lt=row_id)
        )
    found = list(ordered[: size + 1])
    more = len(found) > size
    found = found[:size]
    return Page(rows=found, next_place=_place(found[-1], column) if more else "")


def _place(row: Any, column: str) -> str:
    at: datetime = getattr(row, column)
    return f"{at.isoformat()}~{row.pk}"


def _parsed(place: str) -> tuple[datetime, UUID] | None:
    at, _, row_id = place.partition("~")
    try:
        moment = datetime.fromisoformat(at)
        # In UTC: near the ends of the calendar another zone's moment has no year that is one.
        return (moment.astimezone(UTC), UUID(row_id)) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
