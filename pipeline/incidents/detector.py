"""The detection of incidents from the calls of the last minute, per provider and model.

A tick reads one window of calls, opens and closes incidents, and releases probe jobs. The detector
changes jobs only by a release. It returns the claimable jobs, and the caller enqueues them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from pipeline import transitions
from pipeline.core.states import HOLDING_KINDS, IncidentKind, IncidentState, JobStatus
from pipeline.core.types import Due, ProviderModel
from pipeline.incidents.call_window import database_now, window
from pipeline.incidents.lifecycle import (
    affected_jobs,
    close_incident,
    codes_of,
    exclude_others,
    last_ends,
    open_incident,
)
from pipeline.incidents.rules import (
    CODES,
    ObservedCall,
    Thresholds,
    judge_end,
    judge_start,
    snapshot,
)
from pipeline.models import Incident, Job, ProviderCall

RESUME_STEP = 4
"""Simultaneous probe jobs after the first answer; the rate limiter's ramp paces their calls."""
PROBES_KEPT = 50
"""Release times of probe jobs that the evidence keeps: the newest ones."""


@dataclass(kw_only=True)
class DetectorTick:
    """The result of one tick."""

    opened: list[UUID] = field(default_factory=list)
    closed: list[UUID] = field(default_factory=list)
    still_open: list[UUID] = field(default_factory=list)
    linked: int = 0
    """Failed jobs that were linked to their incident."""
    due: list[Due] = field(default_factory=list)
    """Jobs that were released as probe jobs."""

    @property
    def changed(self) -> bool:
        """Whether the tick changed anything."""
        return bool(self.opened or self.closed or self.linked or self.due)


def tick() -> DetectorTick:
    """Judge the window of calls once: open, update, link and close incidents; release probe jobs.

    Runs in the caller's transaction. Ticks exclude each other, so the second one sees the result
    of the first one.
    """
    limits = Thresholds.of_settings()
    exclude_others()
    now = database_now()
    calls = window(now, limits)
    done = DetectorTick()
    # Linked after the end too, because the last failure can be written a little later.
    for incident in Incident.objects.filter(closed_at__gt=now - limits.window):
        done.linked += transitions.link_failed_jobs(incident.id, codes_of(incident))
    for of, seen in calls.items():
        for opening in judge_start(seen, now, limits, last_ends(of, now, limits)):
            incident_id, is_new = open_incident(of, opening)
            if is_new:
                done.opened.append(incident_id)
    for incident in Incident.objects.filter(state=IncidentState.OPEN).order_by("opened_at", "id"):
        seen = calls.get(ProviderModel(provider=incident.provider, model=incident.model), [])
        _tend(incident, seen, now, limits, done)
    return done


def _tend(
    incident: Incident,
    seen: Sequence[ObservedCall],
    now: datetime,
    limits: Thresholds,
    done: DetectorTick,
) -> None:
    """Update the evidence of an open incident; close the incident, or release its probe jobs."""
    done.linked += transitions.link_failed_jobs(incident.id, codes_of(incident))
    kind = IncidentKind(incident.kind)
    waiting = Job.objects.filter(incident_id=incident.id, status=JobStatus.PARKED).exists()
    end = judge_end(
        kind,
        seen,
        now,
        limits,
        since=incident.first_failure_at,
        resumes_at=incident.resumes_at,
        has_waiting_jobs=waiting,
        last_failure_at=_last_failure(incident, kind),
    )
    if end.because is not None:
        if close_incident(incident, end.because):
            done.closed.append(incident.id)
        return
    done.still_open.append(incident.id)
    evidence: dict[str, Any] = {
        "latest": {"at": now, **snapshot(seen, kind), "answered_since": end.answered},
        "affected": affected_jobs(incident),
    }
    if waiting and kind in HOLDING_KINDS and kind is not IncidentKind.QUOTA:
        probes = _probe(incident, now, limits, answered=end.answered)
        if probes:
            done.due += probes
            kept = [*incident.evidence.get("probes", []), now.isoformat()]
            evidence["probes"] = kept[-PROBES_KEPT:]
    transitions.note_incident(incident.id, evidence)


def _probe(incident: Incident, now: datetime, limits: Thresholds, *, answered: int) -> list[Due]:
    """Release one probe job every `INCIDENT_PROBE_S`, and several after the first answer."""
    if answered:
        return transitions.release_probes(incident.id, RESUME_STEP)
    last = incident.evidence.get("probes") or [incident.opened_at.isoformat()]
    if now - datetime.fromisoformat(last[-1]) < limits.probe:
        return []
    # A probe job whose worker died, or whose wake-up was lost, must not block the next one.
    on_its_way = Q(status=JobStatus.PENDING, available_at__gt=now - 2 * limits.probe)
    at_work = Q(status=JobStatus.PROCESSING, lease_expires_at__gt=now)
    if Job.objects.filter(on_its_way | at_work, incident_id=incident.id).exists():
        return []
    return transitions.release_probes(incident.id, 1)


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
