"""Audit rows without the rows that the creation of the test's own users leaves."""

from __future__ import annotations

from django.db.models import QuerySet

from observability.models import AuditEvent


def audit_events() -> QuerySet[AuditEvent]:
    """Return the rows of actions, refusals and reads, oldest first; no row of a user or log-in."""
    return AuditEvent.objects.exclude(target_kind__in=["user", "group"]).order_by("created_at")
