"""The moves of review items: opening, place in the queue, claims, rounds, closing and reopening.

Each move is one conditional UPDATE. The database's clock decides about claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from medproc.timing import scaled

RISKS = ("medication", "allergy")
"""Categories in which a wrong fact can harm at once: a drug, a dose, or a missed allergy."""
FULL_PAGES, FULL_ENCOUNTERS, FULL_ENTITIES = 100, 10, 500
"""The size at which a record has the greatest complexity. The samples of this project have 5 to 72
pages, 3 to 12 encounters and 76 to 3,591 entities; half of their pages lie below a tenth."""
FULL_RISKS = 10
"""Flagged medications and allergies, and encounters held back, that make the greatest value."""

OPINION = "opinion"
"""The field of a second reviewer's verdict; `opinion.<field>` is the value."""
_SLAS = ("urgent", "normal", "low")


def flagged_sql(entity: str, enriched: str) -> str:
    """Return the condition that an entity asks for a look of its own."""
    return (
        f"(NOT {entity}.accepted OR {entity}.review_flags <> '[]'"
        f" OR coalesce({enriched}.flags, '[]') <> '[]')"
    )


def asks_first_sql(entity: str, enriched: str) -> str:
    """Return the condition that a review lists an entity first; a rejection does not move it."""
    return (
        f"(({entity}.verdict IS NULL AND NOT {entity}.accepted)"
        f" OR {entity}.verdict IS NOT DISTINCT FROM 'disputed'"
        f" OR {entity}.review_flags <> '[]' OR coalesce({enriched}.flags, '[]') <> '[]')"
    )


def waiting_sql(review_round: int) -> str:
    """Return the condition that an entity `d` with the attributes `c` waits for a decision.

    In the second round it reads the parameter `item`.
    """
    if review_round == 2:
        return (
            "NOT EXISTS (SELECT FROM review_decisions v WHERE v.entity_id = d.id"
            " AND v.review_item_id = %(item)s AND v.round = 2"
            " AND v.created_at >= (SELECT round_at FROM review_items WHERE id = %(item)s))"
        )
    # Pass 2 can flag an entity after a person decided about it.
    return (
        "(d.verdict IS NULL OR d.verdict = 'disputed' OR d.verdict <> 'rejected'"
        " AND c.flags <> '[]' AND c.created_at > (SELECT max(v.created_at)"
        " FROM review_decisions v WHERE v.entity_id = d.id))"
    )


# What a record offers a reviewer. An entity is flagged by Pass 1 or Pass 2, or is not accepted. A
# decided entity needs no second look. `weighed` makes the parts; `placed` makes the place.
_FIGURES = f"""
facts AS (
  SELECT s.shell_file_id, f.page_count, m.confidence,
    CASE WHEN j.priority > 0 THEN 'urgent' WHEN j.priority < 0 THEN 'low' ELSE 'normal' END AS sla,
    (SELECT count(*) FROM healthcare_encounters h WHERE h.shell_file_id = f.id) AS encounters,
    (SELECT count(*) FROM pass05_pending_encounters p
      JOIN pass05_progressive_sessions d ON d.id = p.discovery_session_id
      WHERE d.shell_file_id = f.id AND p.status = 'held') AS held,
    e.entities, e.flagged, e.flagged_risks,
    EXISTS (SELECT FROM record_reuses r WHERE r.shell_file_id = f.id AND r.step <> 'pages')
      AS is_reused,
    CASE
      WHEN f.warnings @> '[{{"code": "PATIENT_MISMATCH"}}]' THEN 'mismatch'
      WHEN j.status IN ('failed', 'dead', 'cancelled') THEN 'failed'
      WHEN s.requires_human_review OR e.flagged > 0 THEN 'flagged'
      ELSE 'completed' END AS reason
  FROM ai_processing_sessions s
  JOIN shell_files f ON f.id = s.shell_file_id
  LEFT JOIN pass1_entity_metrics m ON m.shell_file_id = f.id
  LEFT JOIN LATERAL (SELECT status, priority FROM job_queue WHERE shell_file_id = f.id
    ORDER BY created_at DESC LIMIT 1) j ON true
  CROSS JOIN LATERAL (
    SELECT count(*) AS entities, count(*) FILTER (WHERE is_flagged) AS flagged,
      count(*) FILTER (WHERE is_flagged AND category = ANY(%(risks)s)) AS flagged_risks
    FROM (SELECT d.category, {waiting_sql(1)} AND {flagged_sql("d", "c")} AS is_flagged
      FROM pass1_entity_detections d LEFT JOIN pass2_enriched_entities c ON c.entity_id = d.id
      WHERE d.shell_file_id = f.id) each) e
  WHERE s.shell_file_id = %(record)s
), weighed AS (
  SELECT *, (least(1.0, coalesce(page_count, 0) / %(full_pages)s::float8)
      + least(1.0, encounters / %(full_encounters)s::float8)
      + least(1.0, entities / %(full_entities)s::float8)
      + flagged / greatest(1, entities)::float8) / 4 AS complexity,
    least(1.0, (flagged_risks + held) / %(full_risks)s::float8) AS value,
    jsonb_build_object('pages', coalesce(page_count, 0), 'encounters', encounters,
      'entities', entities, 'flagged', flagged, 'flagged_risks', flagged_risks, 'held', held,
      'reused', is_reused) AS figures
  FROM facts
)
"""  # noqa: S608 - constants of ours, values are parameters
# The priority grows by weight × age ÷ target until the target, and then stays. Within a lane all
# items grow equally, so `order_key` leaves the time out: the priority at the epoch 1970.
_BASE = (
    "%(w_confidence)s * (1 - coalesce({r}.confidence, 0))"
    " + %(w_complexity)s * {r}.complexity + %(w_value)s * {r}.value"
)
_TARGET = (
    "CASE {r}.sla WHEN 'urgent' THEN %(urgent)s WHEN 'low' THEN %(low)s ELSE %(normal)s END::float8"
)
# A hash of the id chooses the items that two people review, so the choice never changes.
_DOUBLE = (
    "(get_byte(sha256(convert_to({id}::text, 'UTF8')), 0) * 256"
    " + get_byte(sha256(convert_to({id}::text, 'UTF8')), 1)) / 65536.0 * 100 < %(double)s"
)
_OPEN = f"""
WITH {_FIGURES}
INSERT INTO review_items AS r (id, shell_file_id, reason, status, sla, confidence, complexity,
  value, figures, weighed_by, is_double, opened_at, due_at, base, lane, order_key)
SELECT gen_random_uuid(), shell_file_id, reason, 'open', sla, confidence, complexity, value,
  figures, %(weighed_by)s, {_DOUBLE.format(id="shell_file_id")}, now(),
  now() + make_interval(secs => {_TARGET.format(r="weighed")}),
  {_BASE.format(r="weighed")}, sla,
  {_BASE.format(r="weighed")}
    - %(w_sla)s * extract(epoch FROM now()) / {_TARGET.format(r="weighed")}
FROM weighed
ON CONFLICT (shell_file_id) DO UPDATE SET reason = EXCLUDED.reason, status = 'open',
  confidence = EXCLUDED.confidence, complexity = EXCLUDED.complexity, value = EXCLUDED.value,
  figures = EXCLUDED.figures, weighed_by = EXCLUDED.weighed_by, sla = EXCLUDED.sla,
  opened_at = EXCLUDED.opened_at, due_at = EXCLUDED.due_at, base = EXCLUDED.base,
  lane = EXCLUDED.lane, order_key = EXCLUDED.order_key, skipped_by = '{{}}', closed_at = NULL,
  closed_by = NULL, round = 1, round_at = clock_timestamp(), first_reviewer = NULL
"""  # noqa: S608 - constants of ours, values are parameters

# The columns of a place, for an item `r`.
_PLACE = f"""
base = {_BASE.format(r="r")},
due_at = r.opened_at + make_interval(secs => {_TARGET.format(r="r")}),
lane = CASE WHEN r.opened_at + make_interval(secs => {_TARGET.format(r="r")}) <= clock_timestamp()
  THEN 'overdue' ELSE r.sla END,
order_key = {_BASE.format(r="r")}
  + CASE WHEN r.opened_at + make_interval(secs => {_TARGET.format(r="r")}) <= clock_timestamp()
  THEN %(w_sla)s::float8
  ELSE - %(w_sla)s * extract(epoch FROM r.opened_at) / {_TARGET.format(r="r")} END,
weighed_by = %(weighed_by)s
"""
# An overdue item changes its lane once. An item of other settings is weighed once.
_PLACE_DUE = f"""
UPDATE review_items r SET {_PLACE}
WHERE r.id IN (
  (SELECT id FROM review_items WHERE status = 'open' AND lane <> 'overdue'
    AND due_at <= clock_timestamp() ORDER BY due_at LIMIT %(most)s FOR UPDATE SKIP LOCKED))
"""  # noqa: S608 - constants of ours, values are parameters
_PLACE_OTHERS = f"""
UPDATE review_items r SET {_PLACE}
WHERE r.id IN (
  (SELECT id FROM review_items WHERE status = 'open'
    AND (weighed_by < %(weighed_by)s OR weighed_by > %(weighed_by)s)
    LIMIT %(most)s FOR UPDATE SKIP LOCKED))
"""  # noqa: S608 - constants of ours, values are parameters

_IS_FREE = (
    "r.status = 'open'"
    " AND (r.claimed_until IS NULL OR r.claimed_until <= clock_timestamp()"
    " OR r.claimed_by = %(reviewer)s)"
    " AND NOT (r.round = 2 AND r.first_reviewer = %(reviewer)s)"
)
_HOLDS = "r.status = 'open' AND r.claimed_by = %(reviewer)s AND r.claimed_until > clock_timestamp()"
_UNTIL = "clock_timestamp() + make_interval(secs => %(claim_s)s)"
_CLAIM = f"""
UPDATE review_items r SET claimed_by = %(reviewer)s, claimed_until = {_UNTIL}
WHERE r.id = %(item)s AND {_IS_FREE}
"""  # noqa: S608 - constants of ours, values are parameters
# One index scan per lane finds the best free item; the four are compared by their priority now.
_BEST = f"""
  SELECT c.* FROM unnest(%(lanes)s::text[]) lane(name) CROSS JOIN LATERAL (
    SELECT r.id, r.shell_file_id, r.base
      + %(w_sla)s * least(1.0, extract(epoch FROM clock_timestamp() - r.opened_at)
      / nullif(extract(epoch FROM r.due_at - r.opened_at), 0)) AS priority
    FROM review_items r
    WHERE r.lane = lane.name AND {_IS_FREE} AND NOT (%(reviewer)s = ANY(r.skipped_by))
      AND r.id <> ALL(%(but)s::uuid[])
    ORDER BY r.order_key DESC, r.id LIMIT 1 {{lock}}) c
"""  # noqa: S608 - constants of ours, values are parameters
_PEEK = f"""
SELECT best.id, best.shell_file_id FROM ({_BEST.format(lock="")}) best
ORDER BY priority DESC, id LIMIT 1
"""  # noqa: S608 - constants of ours, values are parameters
_NEXT = f"""
WITH best AS ({_BEST.format(lock="FOR UPDATE SKIP LOCKED")})
UPDATE review_items r SET claimed_by = %(reviewer)s, claimed_until = {_UNTIL}
WHERE r.id = (SELECT id FROM best ORDER BY priority DESC, id LIMIT 1)
RETURNING r.id
"""  # noqa: S608 - constants of ours, values are parameters
_HOLD = f"""
UPDATE review_items r SET claimed_until = {_UNTIL}
WHERE r.id = %(item)s AND {_HOLDS} RETURNING r.shell_file_id, r.round
"""  # noqa: S608 - constants of ours, values are parameters
_RELEASE = f"""
UPDATE review_items r SET claimed_until = NULL, skipped_by = CASE
  WHEN %(skips)s AND NOT (%(reviewer)s = ANY(r.skipped_by)) THEN r.skipped_by || %(reviewer)s::text
  ELSE r.skipped_by END
WHERE r.id = %(item)s AND {_HOLDS}
"""  # noqa: S608 - constants of ours, values are parameters
_END_ROUND = f"""
UPDATE review_items r SET claimed_until = NULL, round = %(next_round)s,
  round_at = clock_timestamp(), skipped_by = '{{}}',
  first_reviewer = CASE WHEN r.round = 1 THEN %(reviewer)s::text ELSE r.first_reviewer END
WHERE r.id = %(item)s AND {_HOLDS}
"""  # noqa: S608 - constants of ours, values are parameters
_CLOSE = f"""
UPDATE review_items r SET status = 'closed', claimed_until = NULL, closed_by = %(reviewer)s,
  closed_at = clock_timestamp(),
  first_reviewer = CASE WHEN r.round = 1 THEN %(reviewer)s::text ELSE r.first_reviewer END
WHERE r.id = %(item)s AND {_HOLDS}
"""  # noqa: S608 - constants of ours, values are parameters
_REOPEN = f"""
UPDATE review_items r SET status = 'open', round = 1, round_at = clock_timestamp(),
  first_reviewer = NULL, closed_at = NULL,
  closed_by = NULL, skipped_by = '{{}}', opened_at = clock_timestamp(),
  claimed_by = %(reviewer)s, claimed_until = {_UNTIL},
  due_at = clock_timestamp() + make_interval(secs => {_TARGET.format(r="r")}),
  lane = r.sla,
  order_key = r.base
    - %(w_sla)s * extract(epoch FROM clock_timestamp()) / {_TARGET.format(r="r")}
WHERE r.id = %(item)s AND r.status = 'closed'
"""  # noqa: S608 - constants of ours, values are parameters


@dataclass(frozen=True, kw_only=True)
class HeldReview:
    """A review item that a reviewer holds in this transaction."""

    item_id: UUID
    shell_file_id: UUID
    round: int


def open_review(shell_file_id: UUID) -> None:
    """Open the review of a record whose job has ended, or open the review again.

    A record has one item. A retry that brings new results opens a closed review again and keeps
    its decisions. Runs one statement.
    """
    _run(
        _OPEN,
        record=shell_file_id,
        risks=list(RISKS),
        full_pages=FULL_PAGES,
        full_encounters=FULL_ENCOUNTERS,
        full_entities=FULL_ENTITIES,
        full_risks=FULL_RISKS,
        double=settings.REVIEW_DOUBLE_PERCENT,
    )


def place_review_items(most: int) -> int:
    """Move overdue items into their lane, and weigh items of other settings; return how many.

    Changes at most `most` items of each kind.
    """
    return _run(_PLACE_DUE, most=most) + _run(_PLACE_OTHERS, most=most)


def claim_review(item_id: UUID, reviewer: str) -> bool:
    """Claim an item, or renew the own claim; return False if the reviewer cannot have the item."""
    return _run(_CLAIM, item=item_id, reviewer=reviewer) == 1


def claim_next_review(reviewer: str, but: list[UUID]) -> UUID | None:
    """Claim the free item with the highest priority; `but` names items to leave out."""
    row = _best(_NEXT, reviewer, but)
    return row[0] if row else None


def peek_next_review(reviewer: str, but: list[UUID]) -> tuple[UUID, UUID] | None:
    """Return item and record that `claim_next_review` would choose now; claims nothing."""
    row = _best(_PEEK, reviewer, but)
    return (row[0], row[1]) if row else None


def hold_review(item_id: UUID, reviewer: str) -> HeldReview | None:
    """Lock an item that the reviewer holds, and renew the claim; None if another may hold it.

    The first statement of every decision: the lock lasts until the commit.
    """
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, _parameters(item=item_id, reviewer=reviewer))
        row = cursor.fetchone()
    return HeldReview(item_id=item_id, shell_file_id=row[0], round=row[1]) if row else None


def release_review(item_id: UUID, reviewer: str, *, skips: bool) -> bool:
    """Give a held item back; with `skips` the queue does not offer it to the reviewer again."""
    return _run(_RELEASE, item=item_id, reviewer=reviewer, skips=skips) == 1


def end_review_round(item_id: UUID, reviewer: str, next_round: int) -> bool:
    """End a round of a held item; the item waits for the next round."""
    return _run(_END_ROUND, item=item_id, reviewer=reviewer, next_round=next_round) == 1


def close_review(item_id: UUID, reviewer: str) -> bool:
    """Close a held item."""
    return _run(_CLOSE, item=item_id, reviewer=reviewer) == 1


def reopen_review(item_id: UUID, reviewer: str) -> bool:
    """Open a closed item again, held by the reviewer; its decisions stay."""
    return _run(_REOPEN, item=item_id, reviewer=reviewer) == 1


def sla_targets() -> dict[str, float]:
    """Return the target of each priority in seconds of this process's clock."""
    return {
        "urgent": scaled(settings.REVIEW_SLA_URGENT_S),
        "normal": scaled(settings.REVIEW_SLA_NORMAL_S),
        "low": scaled(settings.REVIEW_SLA_LOW_S),
    }


def _best(statement: str, reviewer: str, but: list[UUID]) -> Any:
    with connection.cursor() as cursor:
        parameters = _parameters(reviewer=reviewer, but=but)
        parameters["lanes"] = ["overdue", *_SLAS]
        cursor.execute(statement, parameters)
        return cursor.fetchone()


def _parameters(**own: Any) -> dict[str, Any]:
    weights = {
        "w_confidence": settings.REVIEW_WEIGHT_CONFIDENCE,
        "w_sla": settings.REVIEW_WEIGHT_SLA,
        "w_complexity": settings.REVIEW_WEIGHT_COMPLEXITY,
        "w_value": settings.REVIEW_WEIGHT_VALUE,
    }
    used = {**weights, **sla_targets()}
    return {
        **used,
        "weighed_by": " ".join(f"{value:g}" for value in used.values()),
        "claim_s": scaled(settings.REVIEW_CLAIM_S),
        **own,
    }


def _run(statement: str, **own: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, _parameters(**own))
        return int(cursor.rowcount)
