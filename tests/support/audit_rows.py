"""The rows of the audit that a test is about, without those of its own people's making."""

from __future__ import annotations

from django.db.models import QuerySet

from observability.models import AuditEvent


def audit_events() -> QuerySet[AuditEvent]:
    """Return what was done, refused or read, oldest first; not who was made, or came."""
    return AuditEvent.objects.exclude(target_kind__in=["user", "group"]).order_by("created_at")
