"""The review queue: its filter, which is in the URL, and its rows by priority.

The priority of an open item grows with time. A place in the list names the time at which the list
was opened, so that the next page continues the same order. Each lane is read from its index.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet

from observability.listing.pagination import ListPage, sifted_page
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.models import ReviewItem, ReviewLane, ReviewReason, ReviewStatus
from pipeline.transitions.reviews import sla_targets

LISTED = 25
READ = 2_000
"""Number of items that are examined for a state or a reason."""
FIELDS = ("is", "reason")
CLOSED = "closed"
_IS_HELD = "(r.claimed_until IS NOT NULL AND r.claimed_until > clock_timestamp())"
STATES: Mapping[str, str] = {
    "free": f"NOT {_IS_HELD} AND NOT (r.round = 2 AND r.first_reviewer = %(reviewer)s)",
    "mine": f"{_IS_HELD} AND r.claimed_by = %(reviewer)s",
    "held": f"{_IS_HELD} AND r.claimed_by <> %(reviewer)s",
    "overdue": "r.due_at <= clock_timestamp()",
    "second": "r.round > 1",
}
"""Each state of an open item, and its condition."""

# `order_key` and the shift of its lane are the priority at the time of the list. The bound on
# `order_key` alone lets the index find the place; the exact comparison decides.
_OPEN = """
SELECT c.id, c.rank, c.is_chosen
FROM unnest(%(lanes)s::text[], %(shifts)s::float8[]) lane(name, shift) CROSS JOIN LATERAL (
  SELECT r.id, r.order_key + lane.shift AS rank, ({chosen}) AS is_chosen
  FROM review_items r
  WHERE r.status = 'open' AND r.lane = lane.name
    AND r.order_key <= %(rank)s::float8 - lane.shift + 0.000001
    AND (r.order_key + lane.shift < %(rank)s::float8
      OR r.order_key + lane.shift = %(rank)s::float8 AND r.id > %(id)s)
  ORDER BY r.order_key DESC, r.id LIMIT %(read)s) c
ORDER BY c.rank DESC, c.id LIMIT %(read)s
"""


@dataclass(frozen=True, kw_only=True)
class ReviewFilter:
    """The filter of the queue."""

    state: str = ""
    """A key of `STATES`, `closed`, or empty for all open items."""
    reason: str = ""

    @property
    def is_sifted(self) -> bool:
        """Whether the filter has a part that no index supports."""
        return bool(self.state or self.reason)

    def page(self, place: str, reviewer: str) -> ListPage[ReviewItem]:
        """Return the items after a place: open ones by priority, closed ones newest first."""
        items = ReviewItem.objects.select_related("shell_file").only(
            "reason", "status", "opened_at", "due_at", "sla", "confidence", "complexity", "value",
            "figures", "lane", "round", "is_double", "claimed_by", "claimed_until",
            "first_reviewer", "closed_by", "closed_at", "created_at", "shell_file_id",
        )  # fmt: skip
        if self.state == CLOSED:
            return sifted_page(items, self._closed, "created_at", place, LISTED, READ)
        return self._open(items, place, reviewer)

    def _closed(self, rows: QuerySet[ReviewItem, ReviewItem]) -> QuerySet[ReviewItem, ReviewItem]:
        asked = {"reason": self.reason} if self.reason else {}
        return rows.filter(status=ReviewStatus.CLOSED, **asked)

    def _open(
        self, items: QuerySet[ReviewItem, ReviewItem], place: str, reviewer: str
    ) -> ListPage[ReviewItem]:
        taken_at, rank, last = _parsed(place)
        read = READ if self.is_sifted else LISTED + 1
        found = self._ranked(taken_at, rank, last, read, reviewer)
        chosen = [(item, at) for item, at, is_chosen in found if is_chosen]
        shown = chosen[:LISTED]
        next_place = ""
        if len(chosen) > LISTED:
            next_place = _place(taken_at, shown[-1])
        elif len(found) == read:
            next_place = _place(taken_at, found[-1][:2])
        rows = items.in_bulk([item for item, _ in shown])
        return ListPage(
            rows=[rows[item] for item, _ in shown if item in rows], next_place=next_place
        )

    def _ranked(
        self, taken_at: float, rank: float, last: UUID, read: int, reviewer: str
    ) -> Sequence[tuple[UUID, float, bool]]:
        conditions = [STATES[self.state]] if self.state else []
        conditions += ["r.reason = %(reason)s"] if self.reason else []
        statement = _OPEN.format(chosen=" AND ".join(conditions) or "true")
        targets = sla_targets()
        lanes = [ReviewLane.OVERDUE.value, *targets]
        parameters: dict[str, Any] = {
            "lanes": lanes,
            "shifts": [0.0, *(settings.REVIEW_WEIGHT_SLA * taken_at / s for s in targets.values())],
            "rank": rank,
            "id": last,
            "read": read,
            "reviewer": reviewer,
            "reason": self.reason,
        }
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            return list(cursor.fetchall())


def chosen_reviews(asked: Mapping[str, str]) -> ReviewFilter:
    """Parse a filter. Raises UserError that names an invalid value and the valid ones."""
    state, reason = asked.get("is", ""), asked.get("reason", "")
    if state and state not in {*STATES, CLOSED}:
        raise UserError(
            f"no review is {state!r}; a review is one of {', '.join([*STATES, CLOSED])}",
            code=UserErrorCode.VALUE_INVALID,
        )
    if reason and reason not in ReviewReason.values:
        raise UserError(
            f"there is no reason {reason!r}; a reason is one of {', '.join(ReviewReason.values)}",
            code=UserErrorCode.VALUE_INVALID,
        )
    return ReviewFilter(state=state, reason=reason)


def _place(taken_at: float, row: tuple[UUID, float]) -> str:
    return f"{taken_at!r}~{row[1]!r}~{row[0]}"


def _parsed(place: str) -> tuple[float, float, UUID]:
    """Return time, rank and id of a place; an invalid place means the top of the list now."""
    try:
        at, rank, item = place.split("~")
        taken_at, ranked, last = float(at), float(rank), UUID(item)
    except ValueError:
        return time.time(), math.inf, UUID(int=0)
    if not (math.isfinite(taken_at) and math.isfinite(ranked) and abs(taken_at) < 1e11):
        return time.time(), math.inf, UUID(int=0)
    return taken_at, ranked, last
