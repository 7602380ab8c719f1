"""The rounds of a review: what waits for a decision, and the opinion of a second reviewer.

An opinion never changes a value. An opinion that differs makes the entity disputed: it counts as no
result until a person settles it in the third round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

from pipeline.models import RESULTS, Entity, ReviewDecision, ReviewRound, ReviewVerdict
from pipeline.operations.review.fields import Correction
from pipeline.transitions import HeldReview
from pipeline.transitions.review_decisions import Change, set_state_sql
from pipeline.transitions.reviews import OPINION, asks_first_sql, flagged_sql, waiting_sql

NONE_WAITS = "0-0"
"""The state of no unflagged entity."""
OTHER_VALUES = "corrected otherwise"
"""The opinion that an entity, which the first reviewer corrected, has yet other values."""

_WAITING = """
SELECT d.id, {flagged} AS is_flagged
FROM pass1_entity_detections d LEFT JOIN pass2_enriched_entities c ON c.entity_id = d.id
JOIN healthcare_encounters h ON h.id = d.healthcare_encounter_id
WHERE d.shell_file_id = %(record)s AND ({waiting})
ORDER BY is_flagged DESC, h.encounter_index, d.entity_index, d.id LIMIT %(most)s
"""
_COUNT = """
SELECT count(*), count(*) FILTER (WHERE {flagged})
FROM pass1_entity_detections d LEFT JOIN pass2_enriched_entities c ON c.entity_id = d.id
WHERE d.shell_file_id = %(record)s AND ({waiting})
"""
_ORDER = """
SELECT d.id, d.page_number, {first} AS is_first, {flagged} AS is_flagged,
  coalesce({waiting}, false) AS is_waiting, {unflagged} AS unflagged
FROM pass1_entity_detections d LEFT JOIN pass2_enriched_entities c ON c.entity_id = d.id
JOIN healthcare_encounters h ON h.id = d.healthcare_encounter_id
WHERE d.shell_file_id = %(record)s
ORDER BY is_first DESC, h.encounter_index, d.page_number, d.entity_index, d.id LIMIT %(most)s
"""
_COUNT_EACH = """
SELECT r.id, count(d.id), count(d.id) FILTER (WHERE w.is_waiting),
  count(d.id) FILTER (WHERE w.is_waiting AND {flagged})
FROM review_items r JOIN pass1_entity_detections d ON d.shell_file_id = r.shell_file_id
LEFT JOIN pass2_enriched_entities c ON c.entity_id = d.id
CROSS JOIN LATERAL (SELECT CASE WHEN r.round = 2 THEN {second} ELSE {first} END AS is_waiting) w
WHERE r.id = ANY(%(items)s) GROUP BY r.id
"""


@dataclass(frozen=True, kw_only=True)
class DecisionWrites:
    """The changes of a decision, and the columns to write."""

    changes: tuple[Change, ...]
    entity: Mapping[str, Any] = field(default_factory=dict, repr=False)
    enriched: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, kw_only=True)
class WaitingEntity:
    """An entity that waits for a decision in the present round."""

    entity_id: UUID
    is_flagged: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderedEntity:
    """An entity of a record in the order of its review."""

    entity_id: UUID
    page: int
    """1-based."""
    is_first: bool
    """Flagged or disputed, so listed before all others, also after its decision."""
    is_flagged: bool
    """Needs a decision of its own: "accept all" is refused while such an entity waits."""
    is_waiting: bool
    unflagged: str
    """The state of all unflagged entities of the record that wait; each row has the same."""


@dataclass(frozen=True, kw_only=True)
class ReviewCounts:
    """How many entities a review has, and how many of them wait in its round."""

    entities: int = 0
    waiting: int = 0
    flagged: int = 0
    """Waiting entities that are flagged."""


def in_order(
    item_id: UUID, shell_file_id: UUID, review_round: int, most: int = 10_000
) -> list[OrderedEntity]:
    """Return the entities of a record, flagged ones first, then by their place.

    A decision never moves an entity in this order.
    """
    waiting, is_flagged = waiting_sql(review_round), flagged_sql("d", "c")
    statement = _ORDER.format(
        first=asks_first_sql("d", "c"),
        flagged=is_flagged,
        waiting=waiting,
        unflagged=set_state_sql("d.id", f"FILTER (WHERE ({waiting}) AND NOT {is_flagged}) OVER ()"),
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, {"record": shell_file_id, "item": item_id, "most": most})
        return [
            OrderedEntity(
                entity_id=entity,
                page=page,
                is_first=first,
                is_flagged=flagged,
                is_waiting=waits,
                unflagged=unflagged,
            )
            for entity, page, first, flagged, waits, unflagged in cursor.fetchall()
        ]


def counts_of(items: Collection[UUID]) -> dict[UUID, ReviewCounts]:
    """Return the counts of reviews in one statement; a review without entities is left out."""
    statement = _COUNT_EACH.format(
        flagged=flagged_sql("d", "c"),
        first=waiting_sql(1),
        second=waiting_sql(2).replace("%(item)s", "r.id"),
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, {"items": list(items)})
        return {
            item: ReviewCounts(entities=entities, waiting=waits, flagged=flagged)
            for item, entities, waits, flagged in cursor.fetchall()
        }


def waiting(
    item_id: UUID, shell_file_id: UUID, review_round: int, most: int = 1_000
) -> list[WaitingEntity]:
    """Return the entities that wait for a decision, flagged ones first, then by their place."""
    with connection.cursor() as cursor:
        cursor.execute(
            _sql(_WAITING, review_round),
            {"record": shell_file_id, "item": item_id, "most": most},
        )
        return [
            WaitingEntity(entity_id=entity, is_flagged=flagged)
            for entity, flagged in cursor.fetchall()
        ]


def unflagged_state(item_id: UUID, shell_file_id: UUID, review_round: int) -> str:
    """Return the state of the unflagged entities that wait, for `accept_all_unflagged`."""
    first = in_order(item_id, shell_file_id, review_round, most=1)
    return first[0].unflagged if first else NONE_WAITS


def waiting_counts(held: HeldReview) -> tuple[int, int]:
    """Return how many entities wait for a decision, and how many of these are flagged."""
    with connection.cursor() as cursor:
        cursor.execute(
            _sql(_COUNT, held.round), {"record": held.shell_file_id, "item": held.item_id}
        )
        row = cursor.fetchone()
    return int(row[0]), int(row[1])


def flagged_waiting(held: HeldReview) -> int:
    """Return how many flagged entities wait for a decision of their own."""
    return waiting_counts(held)[1]


def opinion(
    held: HeldReview, entity: Entity, verdict: ReviewVerdict, corrected: Correction
) -> DecisionWrites:
    """Return what a second reviewer's decision writes: an opinion, and a dispute if it differs.

    The second reviewer sees the entity as the first one left it. So acceptance agrees with a
    correction and with an added entity.
    """
    first = _first_verdict(held, entity)
    agrees = verdict is first or (verdict is ReviewVerdict.ACCEPTED and first in RESULTS)
    agrees = agrees and verdict is not ReviewVerdict.CORRECTED
    said = first.value if agrees else verdict.value
    if verdict is ReviewVerdict.CORRECTED and first is ReviewVerdict.CORRECTED:
        said = OTHER_VALUES
    changes = [Change(field=OPINION, old=first.value, new=said)]
    changes += [
        Change(field=f"{OPINION}.{each.field}", old=each.old, new=each.new)
        for each in corrected.changes
    ]
    wanted = first if agrees else ReviewVerdict.DISPUTED
    if entity.verdict == wanted:
        return DecisionWrites(changes=tuple(changes))
    changes.append(Change(field="verdict", old=entity.verdict, new=wanted.value))
    return DecisionWrites(changes=tuple(changes), entity={"verdict": wanted.value})


def _first_verdict(held: HeldReview, entity: Entity) -> ReviewVerdict:
    """Return what the entity was before the second round."""
    if entity.verdict and entity.verdict != ReviewVerdict.DISPUTED:
        return ReviewVerdict(entity.verdict)
    said = ReviewDecision.objects.filter(
        review_item_id=held.item_id, entity_id=entity.id, field="verdict"
    ).exclude(round=ReviewRound.SECOND)
    return ReviewVerdict(str(said.order_by("-created_at").values_list("new_value", flat=True)[0]))


def _sql(statement: str, review_round: int) -> str:
    return statement.format(flagged=flagged_sql("d", "c"), waiting=waiting_sql(review_round))
