"""The opening and closing of incidents, and the hold that an open incident has on work.

A worker that learns of an incident opens it here; the detector opens and closes incidents of every
tick here; an operator closes them by hand here.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Count

from pipeline import transitions
from pipeline.core.errors import CallDetails, ErrorCode
from pipeline.core.states import IncidentKind, IncidentState, JobStatus
from pipeline.core.types import ProviderModel
from pipeline.incidents.call_window import database_now, window
from pipeline.incidents.rules import CODES, Opening, Thresholds
from pipeline.models import Incident, IncidentJob, Job, ProviderCall
from pipeline.ratelimit import Standing
from pipeline.ratelimit.quota_reset import resets_at
from pipeline.transitions import Parking
from pipeline.transitions.holds import HOLD_REASONS

logger = logging.getLogger(__name__)

TICK_LOCK = int.from_bytes(b"incident", "big")

INCIDENT_OF_CODE: dict[ErrorCode, IncidentKind] = {
    code: kind for kind, codes in CODES.items() for code in codes
}
"""The kind of incident that a call's failure belongs to."""


def ensure_open(
    kind: IncidentKind,
    provider_model: ProviderModel,
    *,
    first_failure_at: datetime | None = None,
    details: CallDetails | None = None,
) -> UUID:
    """Open an incident of a kind unless one is open; return its id.

    For a worker whose call proves an incident by itself (a used-up quota, a refused key), or whose
    rate limiter reports a broken provider. `details` are those of the failed call.
    """
    now = database_now()
    details = details or CallDetails()
    opening = Opening(
        kind=kind,
        first_failure_at=min(
            [first_failure_at or now, *_failures_before(kind, provider_model, now)]
        ),
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
    return open_incident(provider_model, opening)[0]


def _failures_before(
    kind: IncidentKind, provider_model: ProviderModel, now: datetime
) -> list[datetime]:
    """Return the times of failures of this kind in the window; the breaker knows only its own."""
    limits = Thresholds.of_settings()
    after = last_ends(provider_model, now, limits).get(kind, now - limits.window)
    seen = window(now, limits).get(provider_model, [])
    return [
        call.at for call in seen if call.counts and call.outcome in CODES[kind] and call.at > after
    ]


def open_and_park(
    code: ErrorCode,
    provider_model: ProviderModel,
    *,
    first_failure_at: datetime | None = None,
    details: CallDetails | None = None,
) -> Parking:
    """Open the incident of `code` unless it is open; return how a step parks for the incident.

    Raises KeyError for a code that opens no incident.
    """
    kind = INCIDENT_OF_CODE[code]
    incident_id = ensure_open(
        kind, provider_model, first_failure_at=first_failure_at, details=details
    )
    until = Incident.objects.values_list("resumes_at", flat=True).get(id=incident_id)
    return Parking(
        reason=HOLD_REASONS[kind].format(name=provider_model), until=until, incident_id=incident_id
    )


def standing(provider_model: ProviderModel) -> Standing:
    """Return the present hold of a provider and model, to restore a rate limiter's state."""
    holding = {
        incident.kind: incident
        for incident in Incident.objects.filter(
            provider=provider_model.provider, model=provider_model.model, state=IncidentState.OPEN
        )
    }
    outage, quota = holding.get(IncidentKind.OUTAGE), holding.get(IncidentKind.QUOTA)
    return Standing(
        outage_since=outage.first_failure_at.timestamp() if outage else None,
        closed_until=quota.resumes_at.timestamp() if quota and quota.resumes_at else None,
        is_paused=transitions.pause_on(provider_model) is not None,
    )


def close_by_hand(provider: str, model: str | None, *, reason: str) -> list[UUID]:
    """Close the open incidents of a provider, or of one of its models, for an operator.

    Runs in the caller's transaction, and waits for a running tick.
    """
    exclude_others()
    incidents = Incident.objects.filter(provider=provider, state=IncidentState.OPEN)
    if model is not None:
        incidents = incidents.filter(model=model)
    return [i.id for i in incidents if close_incident(i, f"an operator resumed it: {reason}")]


def exclude_others() -> None:
    """Wait until no other tick or closing runs, until the end of this transaction.

    Otherwise a tick that read its window before the closing would open the same incident again.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [TICK_LOCK])


def open_incident(provider_model: ProviderModel, opening: Opening) -> tuple[UUID, bool]:
    """Open an incident unless one of its kind is open; return its id, and whether it is new."""
    resumes_at = None
    if opening.kind is IncidentKind.QUOTA:
        resumes_at = resets_at(opening.quota_id, opening.hint_s, opening.last_failure_at)
    incident_id, is_new = transitions.open_incident(
        opening.kind,
        provider_model,
        first_failure_at=opening.first_failure_at,
        resumes_at=resumes_at,
        evidence={"opened_by": opening.evidence, "probes": []},
    )
    if is_new:
        _log("incident_opened", incident_id, opening.kind, provider_model)
    return incident_id, is_new


def close_incident(incident: Incident, because: str) -> bool:
    """Close an incident with its totals; return whether it was open."""
    closed = transitions.close_incident(
        incident.id,
        {
            "closed_because": because,
            # Jobs that wait now are released by this very end.
            "affected": {k: n for k, n in affected_jobs(incident).items() if k != "waiting"},
            "total_by_code": _total_by_code(incident),
        },
    )
    if closed:
        of = ProviderModel(provider=incident.provider, model=incident.model)
        _log("incident_closed", incident.id, IncidentKind(incident.kind), of)
    return closed


def last_ends(
    provider_model: ProviderModel, now: datetime, limits: Thresholds
) -> dict[IncidentKind, datetime]:
    """Return the last end of each kind; earlier failures do not open an incident again."""
    found: dict[IncidentKind, datetime] = {}
    ended = Incident.objects.filter(
        provider=provider_model.provider,
        model=provider_model.model,
        closed_at__gt=now - limits.window,
    )
    for kind, closed_at in ended.order_by("closed_at").values_list("kind", "closed_at"):
        found[IncidentKind(kind)] = closed_at
    return found


def codes_of(incident: Incident) -> list[str]:
    """Return the error codes that belong to the kind of an incident."""
    return [code.value for code in CODES[IncidentKind(incident.kind)]]


def affected_jobs(incident: Incident) -> Mapping[str, int]:
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


def _log(action: str, incident_id: UUID, kind: IncidentKind, provider_model: ProviderModel) -> None:
    logger.warning(
        "%s incident=%s kind=%s provider=%s model=%s",
        action,
        incident_id,
        kind,
        provider_model.provider,
        provider_model.model,
        extra={"action": action, "incident": str(incident_id)},
    )
