"""The writes of a reviewer's decision: first the decision, then the fields that it names.

The triggers of docs/review.md refuse a change of a decided entity in any other transaction. Call
each function inside the transaction that began with `lock_record` and `hold_review`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from pipeline.models import RESULTS, EnrichedEntity, Entity, ReviewRound, ReviewVerdict
from pipeline.transitions.reviews import OPINION, HeldReview, flagged_sql, waiting_sql


@dataclass(frozen=True, kw_only=True, repr=False)
class Change:
    """One field that a decision changes. PHI, so it has no repr of its own."""

    field: str
    """Column of the entity, `attributes.<name>`, `code`, or `opinion…`."""
    old: Any = None
    """Ready for JSON, as is `new`."""
    new: Any = None


@dataclass(frozen=True, kw_only=True)
class EntityPlace:
    """Where an entity is, for an entity that is not stored yet."""

    encounter_id: UUID
    category: str
    page: int
    start: int
    end: int


def entity_state_sql(entity: str) -> str:
    """Return the expression of the state of an entity that a page shows, for a table or an alias.

    The number of decisions comes first: a decision always changes the state, also a decision that
    restores an earlier verdict. A hash of the entity and of its attributes follows.
    """
    return f"""concat(
  (SELECT count(*) FROM review_decisions v WHERE v.entity_id = {entity}.id), '-',
  md5(ROW({entity}.*, (SELECT c::text FROM pass2_enriched_entities c
    WHERE c.entity_id = {entity}.id))::text))"""  # noqa: S608 - callers pass the name of a table


def set_state_sql(ids: str, over: str = "") -> str:
    """Return the expression of the state of a set of ids: the same for each order of the ids."""
    return (
        f"concat(count({ids}) {over}, '-',"
        f" coalesce(sum(hashtextextended({ids}::text, 0)) {over}, 0))"
    )


# The lock of the job comes first in every write of a record, as in a flush.
_LOCK = """
SELECT 1 FROM job_queue WHERE shell_file_id = (
  SELECT shell_file_id FROM review_items WHERE id = %s) ORDER BY id FOR NO KEY UPDATE
"""
# The version of the prompt that found the entities; a reused reply has the version of its source.
_PROMPT = """
(SELECT c.prompt_version FROM provider_calls c
 JOIN ai_processing_sessions s ON s.id = c.processing_session_id
 WHERE s.shell_file_id IN (%(record)s, (SELECT source_id FROM record_reuses
   WHERE shell_file_id = %(record)s AND step = 'pass1' LIMIT 1)) AND c.step = 'pass1' AND c.accepted
 ORDER BY s.shell_file_id = %(record)s DESC, c.created_at DESC LIMIT 1)
"""
_STORE = f"""
INSERT INTO review_decisions (id, token, part, review_item_id, shell_file_id,
  healthcare_encounter_id, entity_id, action, category, page_number, char_start, char_end, field,
  old_value, new_value, reason, decided_by, round, prompt_version)
SELECT gen_random_uuid(), %(token)s, c.ordinality - 1, %(item)s, %(record)s, %(encounter)s,
  %(entity)s, %(action)s, %(category)s, %(page)s, %(start)s, %(end)s, c.change ->> 'field',
  nullif(c.change -> 'old', 'null'), nullif(c.change -> 'new', 'null'), %(reason)s, %(reviewer)s,
  %(round)s, coalesce({_PROMPT}, '')
FROM jsonb_array_elements(%(changes)s::jsonb) WITH ORDINALITY c(change, ordinality)
WHERE %(shown)s::text IS NULL OR %(shown)s = (
  SELECT {entity_state_sql("d")} FROM pass1_entity_detections d WHERE d.id = %(entity)s)
RETURNING id
"""  # noqa: S608 - constants of ours, values are parameters

# Each unflagged entity without a decision. Only `flagged_sql` says what flagged is.
_ACCEPT_ALL = f"""
WITH chosen AS (
  SELECT d.id FROM pass1_entity_detections d
  LEFT JOIN pass2_enriched_entities c ON c.entity_id = d.id
  WHERE d.shell_file_id = %(record)s AND d.verdict IS NULL AND NOT ({{flagged}})
  ORDER BY d.id FOR UPDATE OF d
)
INSERT INTO review_decisions (id, token, part, review_item_id, shell_file_id, entity_id, action,
  field, new_value, reason, decided_by, round, prompt_version)
SELECT gen_random_uuid(), %(token)s, row_number() OVER (ORDER BY chosen.id) - 1, %(item)s,
  %(record)s, chosen.id, 'accept', 'verdict', '"accepted"', %(reason)s, %(reviewer)s, %(round)s,
  coalesce({_PROMPT}, '')
FROM chosen WHERE %(shown)s::text IS NULL
  OR %(shown)s = (SELECT {set_state_sql("chosen.id")} FROM chosen)
"""  # noqa: S608 - constants of ours, values are parameters
_ACCEPTED = """
UPDATE pass1_entity_detections e SET verdict = 'accepted', accepted = true
FROM review_decisions d WHERE d.token = %(token)s AND d.entity_id = e.id
"""

# The second reviewer agrees with each unflagged entity that the first one left as a result.
_AGREE = f"""
WITH chosen AS (
  SELECT d.id, d.verdict FROM pass1_entity_detections d
  LEFT JOIN pass2_enriched_entities c ON c.entity_id = d.id
  WHERE d.shell_file_id = %(record)s AND ({{waiting}}) AND NOT ({{flagged}})
)
INSERT INTO review_decisions (id, token, part, review_item_id, shell_file_id, entity_id, action,
  field, old_value, new_value, reason, decided_by, round, prompt_version)
SELECT gen_random_uuid(), %(token)s, row_number() OVER (ORDER BY chosen.id) - 1, %(item)s,
  %(record)s, chosen.id, 'accept', '{OPINION}', to_jsonb(chosen.verdict),
  to_jsonb(chosen.verdict), %(reason)s, %(reviewer)s, %(round)s,
  coalesce({_PROMPT}, '')
FROM chosen WHERE %(shown)s::text IS NULL
  OR %(shown)s = (SELECT {set_state_sql("chosen.id")} FROM chosen)
"""  # noqa: S608 - constants of ours, values are parameters


def lock_record(item_id: UUID) -> None:
    """Lock the jobs of an item's record, so that no step publishes at the same time."""
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [item_id])


def store_decision(
    held: HeldReview,
    *,
    reviewer: str,
    action: str,
    token: UUID,
    changes: Sequence[Change],
    entity_id: UUID | None = None,
    place: EntityPlace | None = None,
    reason: str = "",
    shown: str | None = None,
) -> tuple[UUID, ...]:
    """Store a decision with one row for each changed field; return the ids.

    A trigger adds the place of a stored entity. `place` is for an entity that follows. With
    `shown`, a state of `entity_state_sql`, nothing is stored if the entity has another state now.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _STORE,
            {
                "token": token,
                "item": held.item_id,
                "record": held.shell_file_id,
                "encounter": place.encounter_id if place else None,
                "entity": entity_id,
                "action": action,
                "category": place.category if place else None,
                "page": place.page if place else None,
                "start": place.start if place else None,
                "end": place.end if place else None,
                "changes": json.dumps(
                    [{"field": c.field, "old": c.old, "new": c.new} for c in changes]
                ),
                "reason": reason,
                "reviewer": reviewer,
                "round": held.round,
                "shown": shown,
            },
        )
        return tuple(row[0] for row in cursor.fetchall())


def store_acceptances(
    held: HeldReview, *, reviewer: str, token: UUID, reason: str = "", shown: str | None = None
) -> int:
    """Accept every unflagged entity without a decision; return how many.

    In the second round, agree with every unflagged result of the first reviewer. With `shown`, a
    state of `set_state_sql`, nothing is stored if other entities wait now.
    """
    parameters: dict[str, Any] = {
        "token": token,
        "item": held.item_id,
        "record": held.shell_file_id,
        "reason": reason,
        "reviewer": reviewer,
        "round": held.round,
        "shown": shown,
    }
    flagged = flagged_sql("d", "c")
    with connection.cursor() as cursor:
        if held.round == ReviewRound.SECOND:
            waiting = waiting_sql(held.round)
            cursor.execute(_AGREE.format(waiting=waiting, flagged=flagged), parameters)
            return int(cursor.rowcount)
        cursor.execute(_ACCEPT_ALL.format(flagged=flagged), parameters)
        stored = int(cursor.rowcount)
        cursor.execute(_ACCEPTED, parameters)
    return stored


def write_entity(entity_id: UUID, columns: Mapping[str, Any]) -> None:
    """Write decided columns of an entity; a new verdict sets `accepted` too."""
    written = dict(columns)
    if "verdict" in written:
        written["accepted"] = written["verdict"] in {each.value for each in RESULTS}
    Entity.objects.filter(id=entity_id).update(**written)


def write_attributes(enriched_id: UUID, columns: Mapping[str, Any]) -> None:
    """Write decided columns of an enriched entity."""
    EnrichedEntity.objects.filter(id=enriched_id).update(**columns)


def add_entity(entity: Entity, enriched: EnrichedEntity | None) -> None:
    """Insert an entity that a reviewer added, behind the others of its encounter."""
    last = Entity.objects.filter(healthcare_encounter_id=entity.healthcare_encounter_id)
    highest = last.order_by("-entity_index").values_list("entity_index", flat=True).first()
    entity.entity_index = max(0, (highest if highest is not None else -1) + 1)
    entity.verdict, entity.accepted = ReviewVerdict.ADDED, True
    entity.save(force_insert=True)
    if enriched is not None:
        enriched.save(force_insert=True)


def move_entity(entity: Entity, encounter_id: UUID) -> None:
    """Move an entity and its attributes behind the others of another encounter."""
    others = Entity.objects.filter(healthcare_encounter_id=encounter_id)
    highest = others.order_by("-entity_index").values_list("entity_index", flat=True).first()
    Entity.objects.filter(id=entity.id).update(
        healthcare_encounter_id=encounter_id,
        entity_index=max(0, (highest if highest is not None else -1) + 1),
        verdict=ReviewVerdict.CORRECTED,
        accepted=True,
    )
    EnrichedEntity.objects.filter(entity_id=entity.id).update(healthcare_encounter_id=encounter_id)
