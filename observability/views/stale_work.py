"""Stale and dead work: the evidence, and the effect of a reset."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from observability.diagnostics.stale_work import deaths, evidence
from observability.listing.pagination import keyset_page
from observability.metrics.workers import worker_fleet
from observability.views.decorators import page
from observability.views.render import render_page
from pipeline.core.states import JobStatus
from pipeline.models import Job
from pipeline.transitions.stale import STALE_S

LISTED = 50
AGES = [(60.0, "1 min"), (STALE_S, "10 min"), (3600.0, "1 h")]


@page()
def stale(request: HttpRequest) -> HttpResponse:
    """Show stale jobs (`?older=` seconds), jobs with an expired lease, and dead jobs."""
    asked = request.GET.get("older", "")
    older = next((age for age, _ in AGES if f"{age:g}" == asked), STALE_S)
    known = worker_fleet()
    found = evidence(older, known)
    dead = keyset_page(
        Job.objects.filter(status=JobStatus.DEAD),
        "completed_at",
        request.GET.get("after", ""),
        LISTED,
    )
    died = deaths(dead.rows, known)
    return render_page(
        request,
        "console/stale.html",
        "Stale and dead",
        found=found,
        older=f"{older:g}",
        words=dict(AGES)[older],
        ages=[(f"{age:g}", word) for age, word in AGES],
        dead=[(job, died[job.id]) for job in dead.rows],
        next_place=dead.next_place,
    )
