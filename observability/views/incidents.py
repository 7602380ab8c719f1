"""Incidents: the error of the provider, its start, the affected jobs and their current state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, F
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone

from observability.diagnostics.incidents import (
    IncidentJobCounts,
    IncidentReport,
    incident_answer,
    incident_report,
    next_probe,
    standings,
)
from observability.diagnostics.overview import outlook
from observability.listing.pagination import keyset_page
from observability.metrics.forecast import Outstanding
from observability.views.decorators import page
from observability.views.render import render_page
from pipeline.core.labels import StatusWord, counted, duration
from pipeline.core.states import HOLDING_KINDS, IncidentKind, IncidentState
from pipeline.models import Incident, IncidentJob, Pause

LISTED = 50
PROBES_SHOWN = 10
WAITS_FOR_PEOPLE = frozenset({IncidentKind.CREDENTIALS, IncidentKind.BILLING, IncidentKind.PROXY})
"""Incidents whose cause only a person can remove."""
COUNTED = 10_000
"""The limit of a count; the newest rows are counted."""


@page()
def incidents(request: HttpRequest) -> HttpResponse:
    """List all incidents or only the open ones (`?is=open`), newest first."""
    is_open = request.GET.get("is") == "open"
    rows = Incident.objects.filter(state=IncidentState.OPEN) if is_open else Incident.objects.all()
    listed = keyset_page(rows, "opened_at", request.GET.get("after", ""), LISTED)
    standing = standings([each.id for each in listed.rows])
    return render_page(
        request,
        "console/incidents.html",
        "Incidents",
        listed=listed,
        rows=[
            (each, incident_answer(each), standing[each.id], _lasted(each)) for each in listed.rows
        ],
        is_open=is_open,
    )


@page()
def incident(request: HttpRequest, incident_id: UUID) -> HttpResponse:
    """Show an incident: the answer, the evidence, and the current state of the affected jobs."""
    try:
        report = incident_report(incident_id)
    except Incident.DoesNotExist:
        raise Http404 from None
    found = Incident.objects.get(id=incident_id)
    standing = standings([incident_id])[incident_id]
    by_status = _by_status(incident_id)
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
    holds = IncidentKind(found.kind) in HOLDING_KINDS
    return render_page(
        request,
        "console/incident.html",
        f"Incident {str(incident_id)[:8]}",
        incident=found,
        report=report,
        is_open=is_open,
        holds=holds,
        tone=(StatusWord.FAILED if holds else StatusWord.WAITING) if is_open else StatusWord.DONE,
        lasted=_lasted(found),
        target=f"{found.provider}:{found.model}",
        is_paused=Pause.objects.filter(
            provider=found.provider, model=found.model, ended_at=None
        ).exists(),
        next_probe_at=next_probe(found),
        is_probe_due=(at := next_probe(found)) is not None and at <= timezone.now(),
        probes=_probes(report),
        standing=standing,
        by_status=by_status,
        is_capped=sum(by_status.values()) >= COUNTED,
        forecast=_forecast(found, standing) if is_open else "",
        listed=keyset_page(effects, "created_at", request.GET.get("after", ""), LISTED),
    )


def _by_status(incident_id: UUID) -> Mapping[str, int]:
    """Count the jobs of the newest effects by their current status."""
    effects = IncidentJob.objects.filter(incident_id=incident_id)
    newest = effects.order_by("-created_at", "-id").values("id")[:COUNTED]
    rows = IncidentJob.objects.filter(id__in=newest).values_list("job__status")
    return dict(rows.annotate(number=Count("job_id", distinct=True)).order_by("job__status"))


def _forecast(incident: Incident, standing: IncidentJobCounts) -> str:
    """Return what happens next without an operator, and how long the remaining work takes."""
    waits = counted(standing.parked_now, "parked job")
    left: Outstanding
    left, minutes = outlook()
    then = f"In total, ≈ {left.calls} calls are outstanding"
    if minutes:
        then += f", ≈ {duration(minutes * 60)} of quota"
    back = f"Then {waits} go back to the queue"
    if incident.resumes_at is not None:
        return f"The incident ends at the reset of the quota. {back}. {then}."
    if IncidentKind(incident.kind) in WAITS_FOR_PEOPLE:
        return f"The incident ends when a user resumes the provider. {back}. {then}."
    return f"The incident ends when the provider answers again. {back} step by step. {then}."


def _probes(report: IncidentReport) -> list[datetime]:
    kept: list[Any] = list(report.evidence.get("probes") or ())
    return [datetime.fromisoformat(each) for each in kept[-PROBES_SHOWN:]][::-1]


def _lasted(incident: Incident) -> str:
    until = incident.closed_at or timezone.now()
    return duration((until - incident.first_failure_at).total_seconds())
