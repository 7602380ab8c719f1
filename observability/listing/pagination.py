"""Keyset pagination: the rows after a given row, at the same cost on every page.

The place is `(time, id)`, so that rows with the same time are neither skipped nor repeated. The
place is in the URL as readable text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet

M = TypeVar("M", bound=Model)
Sieve = Callable[[QuerySet[M, M]], QuerySet[M, M]]


@dataclass(frozen=True, kw_only=True)
class ListPage(Generic[M]):
    """A page of rows, newest first, and the place at which the next page begins."""

    rows: Sequence[M]
    next_place: str
    """Empty on the last page."""


def keyset_page(rows: QuerySet[M, M], column: str, place: str, size: int) -> ListPage[M]:
    """Return `size` rows after a place, by `column` and id; an invalid place means the top."""
    found = list(_after(rows, column, place)[: size + 1])
    more = len(found) > size
    found = found[:size]
    return ListPage(rows=found, next_place=place_of(found[-1], column) if more else "")


def sifted_page(
    rows: QuerySet[M, M], sieve: Sieve[M], column: str, place: str, size: int, read: int
) -> ListPage[M]:
    """Return the next rows that pass a sieve that no index supports.

    At most `read` rows are examined. If they do not fill the page, the next page begins after them.
    """
    looked_at = _after(rows, column, place)
    kept = rows.filter(id__in=looked_at.values("id")[:read])
    page = keyset_page(sieve(kept), column, "", size)
    if page.next_place:
        return page
    last = list(looked_at[read - 1 : read])
    return ListPage(rows=page.rows, next_place=place_of(last[0], column) if last else "")


def neighbours(rows: QuerySet[M, M], column: str, place: str) -> tuple[M | None, M | None]:
    """Return the row before a place and the row after; two Nones for an invalid place."""
    if (parsed := _parsed(place)) is None:
        return None, None
    at, row_id = parsed
    newer = rows.filter(Q(**{f"{column}__gte": at})).filter(
        Q(**{f"{column}__gt": at}) | Q(id__gt=row_id)
    )
    return newer.order_by(column, "id").first(), _after(rows, column, place).first()


def _after(rows: QuerySet[M, M], column: str, place: str) -> QuerySet[M, M]:
    ordered = rows.order_by(f"-{column}", "-id")
    if (after := _parsed(place)) is None:
        return ordered
    at, row_id = after
    # The index is searched by the first condition; the second one handles equal times.
    return ordered.filter(Q(**{f"{column}__lte": at})).filter(
        Q(**{f"{column}__lt": at}) | Q(id__lt=row_id)
    )


def place_of(row: Any, column: str) -> str:
    """Return the place of a row; the next page begins after this place."""
    at: datetime = getattr(row, column)
    return f"{at.isoformat()}~{row.pk}"


def is_place(text: str) -> bool:
    """Return whether a text is a place in a list."""
    return _parsed(text) is not None


def _parsed(place: str) -> tuple[datetime, UUID] | None:
    at, _, row_id = place.partition("~")
    try:
        moment = datetime.fromisoformat(at)
        # In UTC, because near the ends of the calendar another zone's time has an invalid year.
        return (moment.astimezone(UTC), UUID(row_id)) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
