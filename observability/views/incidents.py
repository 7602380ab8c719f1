"""Incidents: what does the provider do, since when, what does it hold up, what is left of it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Q
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone

from observability.forecast import Outstanding
from observability.incidents import IncidentReport, incident_answer, incident_report, next_probe
from observability.keyset import keyset_page
from observability.overview import outlook
from observability.views.guard import page
from observability.views.shown import shown
from pipeline.models import Incident, IncidentJob, Job, Pause
from pipeline.states import HOLDING_KINDS, IncidentKind, IncidentState, JobStatus
from pipeline.words import counted, duration

LISTED = 50
PROBES_SHOWN = 10
COUNTED = 10_000
"""A count goes no further; the newest are counted."""


@page()
def incidents(request: HttpRequest) -> HttpResponse:
    """List incidents, newest first, or the open ones alone (`?is=open`)."""
    is_open = request.GET.get("is") == "open"
    rows = Incident.objects.filter(state=IncidentState.OPEN) if is_open else Incident.objects.all()
    listed = keyset_page(rows, "opened_at", request.GET.get("after", ""), LISTED)
    return shown(
        request,
        "console/incidents.html",
        "Incidents",
        listed=listed,
        rows=[
            (each, incident_answer(each), each.evidence.get("affected", {}), _lasted(each))
            for each in listed.rows
        ],
        is_open=is_open,
    )


@page()
def incident(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """Show one: the answer, its evidence, what it held up and how that stands now."""
    try:
        report = incident_report(incident_id)
    except Incident.DoesNotExist:
        raise Http404 from None
    found = Incident.objects.get(id=incident_id)
    now_of = _standing(incident_id)
    effects = (
        IncidentJob.objects.filter(incident_id=incident_id)
        .annotate(
            record_id=F("job__shell_file_id"),
            step=F("job__current_step"),
            status=F("job__status"),
            why=F("job__last_error"),
            cause=Coalesce(
                KeyTextTransform("underlying_error", "job__error_details"), "job__error_code"
            ),
        )
        .order_by()
    )
    is_open = found.state == IncidentState.OPEN
    return shown(
        request,
        "console/incident.html",
        f"Incident {str(incident_id)[:8]}",
        incident=found,
        report=report,
        is_open=is_open,
        holds=IncidentKind(found.kind) in HOLDING_KINDS,
        lasted=_lasted(found),
        target=f"{found.provider}:{found.model}",
        is_paused=Pause.objects.filter(
            provider=found.provider, model=found.model, ended_at=None
        ).exists(),
        next_probe_at=next_probe(found),
        is_probe_due=(at := next_probe(found)) is not None and at <= timezone.now(),
        probes=_probes(report),
        figures=now_of,
        forecast=_forecast(found, now_of) if is_open else "",
        listed=keyset_page(effects, "created_at", request.GET.get("after", ""), LISTED),
    )


@dataclass(frozen=True, kw_only=True)
class _Standing:
    """How the jobs of an incident stand now."""

    parked_by_it: int
    """Still parked for it."""
    failed_by_it: int
    """Failed because of it, and not retried since."""
    by_status: Mapping[str, int]
    is_capped: bool
    """Whether there may be more."""


def _standing(incident_id: UUID) -> _Standing:
    effects = IncidentJob.objects.filter(incident_id=incident_id)
    newest = effects.order_by("-created_at", "-id").values("id")[:COUNTED]
    rows = list(
        IncidentJob.objects.filter(id__in=newest)
        .values_list("job__status")
        .annotate(
            number=Count("job_id", distinct=True),
            failed=Count("job_id", distinct=True, filter=Q(effect=IncidentJob.FAILED)),
        )
        .order_by("job__status")
    )
    parked = Job.objects.filter(incident_id=incident_id, status=JobStatus.PARKED)
    parked_by_it = parked.order_by()[:COUNTED].count()
    return _Standing(
        parked_by_it=parked_by_it,
        failed_by_it=sum(failed for status, _, failed in rows if status == JobStatus.FAILED),
        by_status={status: number for status, number, _ in rows},
        is_capped=max(parked_by_it, sum(number for _, number, _ in rows)) >= COUNTED,
    )


def _forecast(found: Incident, standing: _Standing) -> str:
    """Say what happens next by itself, and how long the rest takes then."""
    waits = counted(standing.parked_by_it, "parked job")
    left: Outstanding
    left, minutes = outlook()
    then = f"≈ {left.calls} calls are outstanding in all"
    if minutes:
        then += f", ≈ {duration(minutes * 60)} of quota"
    if found.resumes_at is not None:
        return f"It ends at its reset; {waits} then go back in line. {then}."
    if IncidentKind(found.kind) is IncidentKind.CREDENTIALS:
        return f"It ends when somebody resumes the provider; {waits} then go back in line. {then}."
    return f"It ends when the provider answers again; {waits} then go back in line, ramped. {then}."


def _probes(report: IncidentReport) -> list[datetime]:
    kept: list[Any] = list(report.evidence.get("probes") or ())
    return [datetime.fromisoformat(each) for each in kept[-PROBES_SHOWN:]][::-1]


def _lasted(found: Incident) -> str:
    until = found.closed_at or timezone.now()
    return duration((until - found.first_failure_at).total_seconds())
