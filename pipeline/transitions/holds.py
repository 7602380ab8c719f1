"""Holds on waiting work (pauses, incidents, times), and their release.

A worker that is woken for a held queue or provider parks the job that it would have claimed. So
each wake-up is spent on one job, and each parked job gets a new wake-up at its release. A release
is a conditional UPDATE, so two schedulers release a job once. The caller enqueues what is `Due`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Q

from pipeline.core.errors import UserError, UserErrorCode
from pipeline.core.states import CALLING_STEPS, HOLDING_KINDS, IncidentKind, Step
from pipeline.core.types import Due, ProviderModel
from pipeline.models import Pause
from pipeline.models.fields import ClockTimestamp
from pipeline.transitions.claim_order import BEST_TO_PARK, parameters

RELEASE_LIMIT = 500
"""Jobs per release; the next release takes the rest."""

HOLD_REASONS: dict[IncidentKind, str] = {
    IncidentKind.OUTAGE: "the provider {name} is down",
    IncidentKind.THROTTLING: "the provider {name} limits its calls",
    IncidentKind.QUOTA: "a quota of {name} is used up",
    IncidentKind.CREDENTIALS: "the provider {name} refuses the key",
    IncidentKind.BILLING: "the provider {name} asks for a payment; check the billing",
    IncidentKind.PROXY: "a proxy or a wrong address answers in place of the provider {name}",
}


@dataclass(frozen=True, kw_only=True)
class Hold:
    """The reason why a worker must not claim: a pause, or an incident of its provider and model."""

    reason: str
    until: datetime | None = None
    incident_id: UUID | None = None
    pause_id: UUID | None = None


# The open holds on a step: pauses of its queue or provider, then incidents of provider and model.
# A step that makes no calls passes NULL as provider, which matches no row. The casts are necessary,
# because PostgreSQL cannot infer the type of a NULL parameter.
_HOLDS = """
SELECT NULL::uuid, id, NULL::timestamptz, NULL::text,
  CASE WHEN queue IS NULL THEN 'provider ' || provider || coalesce(' ' || model, '')
    ELSE 'queue ' || queue END
FROM pauses
WHERE ended_at IS NULL AND (queue = %(step)s
  OR (provider = %(provider)s::text AND coalesce(model, %(model)s::text) = %(model)s::text))
UNION ALL
SELECT id, NULL, resumes_at, kind, provider || ' ' || model
FROM incidents
WHERE state = 'open' AND provider = %(provider)s::text AND model = %(model)s::text
  AND kind = ANY(%(kinds)s)
"""

# `parked` is the job that a claim would have taken; BEST_TO_PARK locks the row, so that two woken
# workers park two jobs. The INSERT notes the effect on the incident, once per job.
_PARK_WAITING = f"""
WITH parked AS (
  UPDATE job_queue SET status = 'parked', parked_until = %(until)s, park_reason = %(reason)s,
    incident_id = %(incident)s, pause_id = %(pause)s, updated_at = clock_timestamp()
  WHERE status = 'pending' AND id = ({BEST_TO_PARK})
  RETURNING id
)
INSERT INTO incident_jobs (id, incident_id, job_id, effect)
SELECT gen_random_uuid(), %(incident)s, id, 'parked' FROM parked
WHERE %(incident)s::uuid IS NOT NULL
ON CONFLICT DO NOTHING
"""  # noqa: S608 - a constant of ours, values are parameters

# `due` locks the jobs, oldest first. MATERIALIZED evaluates LIMIT and locks exactly once; inlined
# into the UPDATE, the subquery could be evaluated again and lock other rows. SKIP LOCKED passes
# over jobs that another release or a cancellation holds; they are no longer parked afterwards.
_RELEASE = """
WITH due AS MATERIALIZED (
  SELECT p.id FROM job_queue p
  WHERE p.status = 'parked' AND {condition}
  ORDER BY p.created_at, p.id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE job_queue j SET status = 'pending', dispatch_no = j.dispatch_no + 1,
  available_at = clock_timestamp(), parked_until = NULL, park_reason = NULL,
  {incident} pause_id = NULL, updated_at = clock_timestamp()
FROM due WHERE j.id = due.id AND j.status = 'parked'
RETURNING j.id, j.current_step, j.dispatch_no
"""
# The conditions on incidents and pauses also release jobs that a worker parked just after their
# incident or pause had ended; no later event would release these jobs.
_HOLD_IS_OVER = """(
  p.parked_until <= clock_timestamp()
  OR (p.incident_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM incidents i WHERE i.id = p.incident_id AND i.state = 'open'))
  OR (p.pause_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM pauses h WHERE h.id = p.pause_id AND h.ended_at IS NULL)))"""


# The incidents, or the pauses, that jobs name: each is found by one step in the index, however many
# jobs name it. So the jobs of a hold that lasts are not read.
def _named(column: str) -> str:
    return f"""named_{column} AS (
      (SELECT {column} AS id FROM job_queue WHERE {column} IS NOT NULL ORDER BY {column} LIMIT 1)
      UNION ALL
      SELECT (SELECT j.{column} FROM job_queue j WHERE j.{column} > n.id ORDER BY 1 LIMIT 1)
      FROM named_{column} n WHERE n.id IS NOT NULL
    )"""  # noqa: S608 - constants of ours


def _of_ended(column: str, is_open: str) -> str:
    return f"""SELECT j.id FROM named_{column} n, LATERAL (
      SELECT id FROM job_queue
      WHERE {column} = n.id AND status = 'parked' ORDER BY created_at LIMIT %(limit)s
    ) j WHERE NOT EXISTS ({is_open})"""  # noqa: S608 - constants of ours


# A subquery for the time, because an index can serve its value, but not a call of the clock.
_IS_DUE = f"""p.id = ANY(ARRAY(
    WITH RECURSIVE {_named("incident_id")}, {_named("pause_id")}
    SELECT id FROM job_queue WHERE status = 'parked' AND parked_until <= (SELECT clock_timestamp())
    UNION ALL
    {_of_ended("incident_id", "SELECT 1 FROM incidents WHERE id = n.id AND state = 'open'")}
    UNION ALL
    {_of_ended("pause_id", "SELECT 1 FROM pauses WHERE id = n.id AND ended_at IS NULL")}
  )) AND {_HOLD_IS_OVER}"""  # noqa: S608 - constants of ours


def hold_on(cursor: CursorWrapper, step: Step, serving: ProviderModel | None) -> Hold | None:
    """Return the hold that keeps a worker from claiming a step; pauses come before incidents."""
    asked = serving if step in CALLING_STEPS else None
    cursor.execute(
        _HOLDS,
        {
            "step": step.value,
            "provider": asked.provider if asked else None,
            "model": asked.model if asked else None,
            "kinds": list(HOLDING_KINDS),
        },
    )
    holds = sorted(cursor.fetchall(), key=lambda row: _rank(row[3]))
    if not holds:
        return None
    incident_id, pause_id, until, kind, name = holds[0]
    return Hold(
        reason=HOLD_REASONS[IncidentKind(kind)].format(name=name) if kind else f"{name} is paused",
        until=until,
        incident_id=incident_id,
        pause_id=pause_id,
    )


def pause_on(provider_model: ProviderModel) -> Hold | None:
    """Return the pause of a provider and model, or None."""
    pause = (
        Pause.objects.filter(Q(model=provider_model.model) | Q(model__isnull=True))
        .filter(ended_at__isnull=True, provider=provider_model.provider)
        .order_by("created_at", "id")
        .first()
    )
    if pause is None:
        return None
    name = f"{provider_model.provider} {pause.model}" if pause.model else provider_model.provider
    return Hold(reason=f"provider {name} is paused", pause_id=pause.id)


def _rank(kind: str | None) -> int:
    return 0 if kind is None else 1 + HOLDING_KINDS.index(IncidentKind(kind))


def park_waiting(cursor: CursorWrapper, step: Step, hold: Hold) -> None:
    """Park the job that a claim would have taken; the job gets no lease."""
    cursor.execute(
        _PARK_WAITING,
        {
            **parameters(step),
            "until": hold.until,
            "reason": hold.reason,
            "incident": hold.incident_id,
            "pause": hold.pause_id,
        },
    )


def release_due(limit: int = RELEASE_LIMIT) -> list[Due]:
    """Release parked jobs whose time has come, or whose hold has ended; oldest first."""
    return _release(_IS_DUE, {"limit": limit})


def release(job_ids: Sequence[UUID]) -> list[Due]:
    """Release these jobs if they are parked, whatever they wait for."""
    return _release("p.id = ANY(%(ids)s)", {"ids": list(job_ids), "limit": len(job_ids)})


def release_probes(incident_id: UUID, limit: int) -> list[Due]:
    """Release a few jobs of an incident as its probe jobs; they stay linked to the incident."""
    return _release(
        "p.incident_id = %(incident)s",
        {"incident": incident_id, "limit": limit},
        stay_linked=True,
    )


def release_behind(reason: str, owner: str, document_hash: str) -> list[Due]:
    """Release the jobs of an owner's file that are parked with exactly this reason."""
    # The records come first: their index finds the few jobs of one file.
    return _release(
        "p.park_reason = %(reason)s AND p.shell_file_id IN (SELECT f.id FROM shell_files f"
        " WHERE f.sha256 = %(hash)s AND f.owner = %(owner)s)",
        {"reason": reason, "owner": owner, "hash": document_hash, "limit": RELEASE_LIMIT},
    )


def _release(condition: str, parameters: dict[str, Any], *, stay_linked: bool = False) -> list[Due]:
    incident = "" if stay_linked else "incident_id = NULL,"
    with connection.cursor() as cursor:
        cursor.execute(_RELEASE.format(condition=condition, incident=incident), parameters)
        return [
            Due(job_id=job_id, step=Step(step), dispatch_no=dispatch_no)
            for job_id, step, dispatch_no in cursor.fetchall()
        ]


def pause_queue(queue: Step, *, reason: str, by: str | None = None) -> UUID:
    """Pause a queue. Raises UserError if the queue is paused already."""
    return _pause(queue=queue, reason=reason, paused_by=by)


def pause_provider(
    provider: str, model: str | None = None, *, reason: str, by: str | None = None
) -> UUID:
    """Pause a provider, or one of its models. Raises UserError if it is paused already."""
    return _pause(provider=provider, model=model, reason=reason, paused_by=by)


def _pause(**columns: Any) -> UUID:
    try:
        with transaction.atomic():
            pause_id: UUID = Pause.objects.create(**columns).id
    except IntegrityError:
        raise UserError("already paused", code=UserErrorCode.STATE_CONFLICT) from None
    return pause_id


def end_pauses(
    *,
    queue: Step | None = None,
    provider: str | None = None,
    model: str | None = None,
    reason: str,
    by: str | None = None,
) -> int:
    """End the pauses of a queue, or of a provider and model (None: all models); count them."""
    pauses = Pause.objects.filter(ended_at__isnull=True)
    if queue is not None:
        pauses = pauses.filter(queue=queue)
    else:
        pauses = pauses.filter(provider=provider)
        if model is not None:
            pauses = pauses.filter(model=model)
    return pauses.update(ended_at=ClockTimestamp(), end_reason=reason, ended_by=by)
