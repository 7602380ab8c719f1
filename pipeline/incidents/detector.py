"""The detection of incidents from the calls of the last minute, per provider and model.

A tick reads one window of calls, opens and closes incidents, and starts probes. `opened` serves a
worker that learns of an incident earlier. The detector changes jobs only by a release. It returns
the claimable jobs, and the caller enqueues them.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, Q
from django.utils import timezone

from pipeline import transitions
from pipeline.core.errors import CallDetails, ErrorCode
from pipeline.core.states import HOLDING_KINDS, IncidentKind, IncidentState, JobStatus
from pipeline.core.types import Due, ProviderModel
from pipeline.incidents.rules import (
    CODES,
    ObservedCall,
    Opening,
    Thresholds,
    judge_end,
    judge_start,
    snapshot,
)
from pipeline.models import Incident, IncidentJob, Job, ProviderCall
from pipeline.ratelimit import Standing
from pipeline.ratelimit.quota_reset import resets_at
from pipeline.transitions import Parking
from pipeline.transitions.holds import REASONS

logger = logging.getLogger(__name__)

LOOK_LOCK = int.from_bytes(b"incident", "big")
RESUME_STEP = 4
"""Simultaneous probes after the first answered one; the rate limiter's ramp paces their calls."""
PROBES_KEPT = 50
"""Probe times that the evidence keeps, newest first."""

KINDS: dict[ErrorCode, IncidentKind] = {
    code: kind for kind, codes in CODES.items() for code in codes
}
"""The kind of incident that a call's failure belongs to."""

# `since` is a parameter, because no index can serve an expression of the clock. `failed` is the
# failed calls of the window, from a partial index. `watched` is the providers and models with a
# failure or an open incident. Successful calls, the bulk of the window, are read only if `watched`
# is not empty. MATERIALIZED, so that each CTE is evaluated only once.
_WINDOW = """
WITH failed AS MATERIALIZED (
  SELECT provider, model, outcome, created_at, retry_after_ms, quota_id
  FROM provider_calls WHERE outcome <> 'OK' AND created_at > %(since)s
), watched AS MATERIALIZED (
  SELECT provider, model FROM failed
  UNION SELECT provider, model FROM incidents WHERE state = 'open'
)
SELECT provider, model, outcome, created_at, retry_after_ms, quota_id FROM failed
UNION ALL
SELECT provider, model, outcome, created_at, NULL, NULL FROM provider_calls
WHERE outcome = 'OK' AND created_at > %(since)s AND EXISTS (SELECT 1 FROM watched)
"""


@dataclass(kw_only=True)
class DetectorTick:
    """The result of one tick."""

    opened: list[UUID] = field(default_factory=list)
    closed: list[UUID] = field(default_factory=list)
    still_open: list[UUID] = field(default_factory=list)
    linked: int = 0
    """Failed jobs that were linked to their incident."""
    due: list[Due] = field(default_factory=list)
    """Jobs that were released as probes."""

    @property
    def changed(self) -> bool:
        """Whether the tick changed anything."""
        return bool(self.opened or self.closed or self.linked or self.due)


def tick() -> DetectorTick:
    """Judge the window of calls once: open, update, link, probe and close incidents.

    Runs in the caller's transaction. Ticks exclude each other, so the second one sees the result
    of the first one.
    """
    limits = Thresholds.of_settings()
    _alone()
    now = _database_now()
    calls = window(now, limits)
    done = DetectorTick()
    # Linked after the end too, because the last failure can be written a little later.
    for incident in Incident.objects.filter(closed_at__gt=now - limits.window):
        done.linked += transitions.link_failed_jobs(incident.id, _codes(incident))
    for of, seen in calls.items():
        for opening in judge_start(seen, now, limits, _ended(of, now, limits)):
            incident_id, is_new = _open(of, opening)
            if is_new:
                done.opened.append(incident_id)
    for incident in Incident.objects.filter(state=IncidentState.OPEN).order_by("opened_at", "id"):
        seen = calls.get(ProviderModel(provider=incident.provider, model=incident.model), [])
        _tend(incident, seen, now, limits, done)
    return done


def window(now: datetime, limits: Thresholds) -> dict[ProviderModel, list[ObservedCall]]:
    """Return the calls of the window by provider and model; always one statement."""
    found: dict[ProviderModel, list[ObservedCall]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_WINDOW, {"since": now - limits.window})
        for provider, model, outcome, at, retry_after_ms, quota_id in cursor.fetchall():
            found.setdefault(ProviderModel(provider=provider, model=model), []).append(
                ObservedCall(
                    outcome=outcome,
                    at=at,
                    hint_s=None if retry_after_ms is None else retry_after_ms / 1000,
                    quota_id=quota_id or "",
                )
            )
    return found


def opened(
    kind: IncidentKind,
    of: ProviderModel,
    *,
    first_failure_at: datetime | None = None,
    details: CallDetails | None = None,
) -> UUID:
    """Return the open incident of a kind; open one if there is none.

    For a worker whose call proves an incident by itself (a used-up quota, a refused key), or whose
    rate limiter reports a broken provider. `details` are those of the failed call.
    """
    now = _database_now()
    details = details or CallDetails()
    opening = Opening(
        kind=kind,
        first_failure_at=min([first_failure_at or now, *_failures_before(kind, of, now)]),
        last_failure_at=now,
        hint_s=details.retry_after_s,
        quota_id=details.quota_id,
        evidence={
            "calls": 1,
            "failures": 1,
            "last_hint_s": details.retry_after_s,
            "quota_id": details.quota_id or None,
            "http_status": details.http_status,
            "by": "worker",
        },
    )
    return _open(of, opening)[0]


def _failures_before(kind: IncidentKind, of: ProviderModel, now: datetime) -> list[datetime]:
    """Return the times of failures of this kind in the window; the breaker knows only its own."""
    limits = Thresholds.of_settings()
    after = _ended(of, now, limits).get(kind, now - limits.window)
    seen = window(now, limits).get(of, [])
    return [
        call.at for call in seen if call.counts and call.outcome in CODES[kind] and call.at > after
    ]


def parking(
    code: ErrorCode,
    of: ProviderModel,
    *,
    first_failure_at: datetime | None = None,
    details: CallDetails | None = None,
) -> Parking:
    """Return how to park a step that met `code`: until when, why, and for which incident.

    Raises KeyError for a code that opens no incident.
    """
    kind = KINDS[code]
    incident_id = opened(kind, of, first_failure_at=first_failure_at, details=details)
    until = Incident.objects.values_list("resumes_at", flat=True).get(id=incident_id)
    return Parking(reason=REASONS[kind].format(name=of), until=until, incident_id=incident_id)


def standing(of: ProviderModel) -> Standing:
    """Return the present hold of a provider and model, to restore a rate limiter's state."""
    holding = {
        incident.kind: incident
        for incident in Incident.objects.filter(
            provider=of.provider, model=of.model, state=IncidentState.OPEN
        )
    }
    outage, quota = holding.get(IncidentKind.OUTAGE), holding.get(IncidentKind.QUOTA)
    return Standing(
        failing_since=outage.first_failure_at.timestamp() if outage else None,
        closed_until=quota.resumes_at.timestamp() if quota and quota.resumes_at else None,
        is_paused=transitions.pause_on(of) is not None,
    )


def close_by_hand(provider: str, model: str | None, *, reason: str) -> list[UUID]:
    """Close the open incidents of a provider, or of one of its models, for an operator.

    Runs in the caller's transaction, and waits for a running tick.
    """
    _alone()
    incidents = Incident.objects.filter(provider=provider, state=IncidentState.OPEN)
    if model is not None:
        incidents = incidents.filter(model=model)
    return [i.id for i in incidents if _close(i, f"an operator resumed it: {reason}")]


def _alone() -> None:
    """Wait until no other tick or closing runs, until the end of this transaction.

    Otherwise a tick that read its window before the closing would open the same incident again.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOOK_LOCK])


def _open(of: ProviderModel, opening: Opening) -> tuple[UUID, bool]:
    resumes_at = None
    if opening.kind is IncidentKind.QUOTA:
        resumes_at = resets_at(opening.quota_id, opening.hint_s, opening.last_failure_at)
    incident_id, is_new = transitions.open_incident(
        opening.kind,
        of,
        first_failure_at=opening.first_failure_at,
        resumes_at=resumes_at,
        evidence={"opened_by": opening.evidence, "probes": []},
    )
    if is_new:
        _log("incident_opened", incident_id, opening.kind, of)
    return incident_id, is_new


def _tend(
    incident: Incident,
    seen: Sequence[ObservedCall],
    now: datetime,
    limits: Thresholds,
    done: DetectorTick,
) -> None:
    """Update the evidence of an open incident; close the incident, or start its probes."""
    done.linked += transitions.link_failed_jobs(incident.id, _codes(incident))
    kind = IncidentKind(incident.kind)
    waiting = Job.objects.filter(incident_id=incident.id, status=JobStatus.PARKED).exists()
    end = judge_end(
        kind,
        seen,
        now,
        limits,
        since=incident.first_failure_at,
        resumes_at=incident.resumes_at,
        somebody_waits=waiting,
        last_failure_at=_last_failure(incident, kind),
    )
    if end.because is not None:
        if _close(incident, end.because):
            done.closed.append(incident.id)
        return
    done.still_open.append(incident.id)
    evidence: dict[str, Any] = {
        "latest": {"at": now, **snapshot(seen, kind), "answered_since": end.answered},
        "affected": _affected(incident),
    }
    if waiting and kind in HOLDING_KINDS and kind is not IncidentKind.QUOTA:
        probes = _probe(incident, now, limits, answered=end.answered)
        if probes:
            done.due += probes
            kept = [*incident.evidence.get("probes", []), now.isoformat()]
            evidence["probes"] = kept[-PROBES_KEPT:]
    transitions.note_incident(incident.id, evidence)


def _probe(incident: Incident, now: datetime, limits: Thresholds, *, answered: int) -> list[Due]:
    """Release one job every `INCIDENT_PROBE_S`, and several once a probe was answered."""
    if answered:
        return transitions.release_probes(incident.id, RESUME_STEP)
    last = incident.evidence.get("probes") or [incident.opened_at.isoformat()]
    if now - datetime.fromisoformat(last[-1]) < limits.probe:
        return []
    # A probe whose worker died, or whose wake-up was lost, must not block the next probe.
    on_its_way = Q(status=JobStatus.PENDING, available_at__gt=now - 2 * limits.probe)
    at_work = Q(status=JobStatus.PROCESSING, lease_expires_at__gt=now)
    if Job.objects.filter(on_its_way | at_work, incident_id=incident.id).exists():
        return []
    return transitions.release_probes(incident.id, 1)


def _close(incident: Incident, because: str) -> bool:
    closed = transitions.close_incident(
        incident.id,
        {
            "closed_because": because,
            # Jobs that wait now are released by this very end.
            "affected": {k: n for k, n in _affected(incident).items() if k != "waiting"},
            "total_by_code": _total_by_code(incident),
        },
    )
    if closed:
        of = ProviderModel(provider=incident.provider, model=incident.model)
        _log("incident_closed", incident.id, IncidentKind(incident.kind), of)
    return closed


def _ended(of: ProviderModel, now: datetime, limits: Thresholds) -> dict[IncidentKind, datetime]:
    """Return the last end of each kind; earlier failures do not open an incident again."""
    found: dict[IncidentKind, datetime] = {}
    ended = Incident.objects.filter(
        provider=of.provider, model=of.model, closed_at__gt=now - limits.window
    )
    for kind, closed_at in ended.order_by("closed_at").values_list("kind", "closed_at"):
        found[IncidentKind(kind)] = closed_at
    return found


def _last_failure(incident: Incident, kind: IncidentKind) -> datetime:
    found: datetime | None = (
        ProviderCall.objects.exclude(outcome="OK")
        .filter(
            provider=incident.provider,
            model=incident.model,
            outcome__in=CODES[kind],
            created_at__gte=incident.first_failure_at,
        )
        .order_by("-created_at")
        .values_list("created_at", flat=True)
        .first()
    )
    return found or incident.first_failure_at


def _total_by_code(incident: Incident) -> dict[str, int]:
    return dict(
        ProviderCall.objects.exclude(outcome="OK")
        .filter(
            provider=incident.provider,
            model=incident.model,
            created_at__gte=incident.first_failure_at,
        )
        .order_by()
        .values_list("outcome")
        .annotate(number=Count("id"))
    )


def _affected(incident: Incident) -> Mapping[str, int]:
    """Count the jobs that wait for the incident now, and those that it ever parked or failed."""
    effects: Counter[str] = Counter(
        dict(
            IncidentJob.objects.filter(incident_id=incident.id)
            .order_by()
            .values_list("effect")
            .annotate(number=Count("id"))
        )
    )
    waiting = Job.objects.filter(incident_id=incident.id, status=JobStatus.PARKED).count()
    return {"waiting": waiting, "parked": effects["parked"], "failed": effects["failed"]}


def _codes(incident: Incident) -> list[str]:
    return [code.value for code in CODES[IncidentKind(incident.kind)]]


def _database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    return now if isinstance(now, datetime) else timezone.now()


def _log(action: str, incident_id: UUID, kind: IncidentKind, of: ProviderModel) -> None:
    logger.warning(
        "%s incident=%s kind=%s provider=%s model=%s",
        action,
        incident_id,
        kind,
        of.provider,
        of.model,
        extra={"action": action, "incident": str(incident_id)},
    )
