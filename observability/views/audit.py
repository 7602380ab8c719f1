"""The audit: users, actions, times, reasons and results. The page needs its own right."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import django_filters
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from observability.audit.log import BULK_OPERATION
from observability.listing.pagination import keyset_page
from observability.models import AuditEvent
from observability.permissions import Right
from observability.views.decorators import page
from observability.views.render import render_page

LISTED = 50
RESULTS = [(each, each) for each in ("done", "refused", "failed")]


class Events(django_filters.FilterSet):  # type: ignore[misc]
    """The filter of the list; the URL carries the whole filter."""

    actor = django_filters.CharFilter(label="Who")
    action = django_filters.CharFilter(label="Action")
    target = django_filters.CharFilter(label="Target", field_name="target_id")
    result = django_filters.ChoiceFilter(label="Result", choices=RESULTS, empty_label="any")

    class Meta:
        model = AuditEvent
        fields: list[str] = []


@page(Right.READ_AUDIT)
def audit(request: HttpRequest) -> HttpResponse:
    """List the events, newest first."""
    asked = request.GET.copy()
    place = asked.pop("after", [""])[-1]
    chosen = Events(asked, queryset=AuditEvent.objects.all())
    listed = keyset_page(chosen.qs, "created_at", place, LISTED)
    return render_page(
        request,
        "console/audit.html",
        "Audit",
        filter=chosen,
        listed=listed,
        rows=[(each, _target_url(each), _facts(each)) for each in listed.rows],
        query=asked.urlencode(),
    )


def _target_url(event: AuditEvent) -> str:
    """Return the page of the target of an action; empty if the target has no page."""
    try:
        target = UUID(event.target_id)
    except ValueError:
        if event.target_kind in {"queue", "provider"}:
            return reverse("admin:queues")
        return ""
    if event.target_kind == BULK_OPERATION:
        return reverse("admin:bulk_operation", args=[target])
    return reverse("admin:search", query={"q": str(target)})


def _facts(event: AuditEvent) -> list[tuple[str, Any]]:
    return [(name.replace("_", " "), of) for name, of in event.facts.items() if of not in ("", {})]
