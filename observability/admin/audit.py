"""The tables of the audit, and who logs in through the identity provider."""

from __future__ import annotations

from django.contrib import admin

from observability.admin.base import ReadOnlyAdmin
from observability.models import AuditCheck, AuditEvent, AuditLink, FederatedIdentity
from observability.permissions import Right


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    """Each operator action and each reading of PHI; needs the right to read the audit."""

    right = Right.READ_AUDIT
    heavy = ("facts",)
    list_display = (
        "created_at", "actor", "action", "target_kind", "target_id", "reason", "result",
    )  # fmt: skip
    list_filter = ("result",)
    id_fields = ("pk", "target_id")
    search_help_text = "The exact id of an event or of its target"
    ordering = ("-created_at", "-id")


@admin.register(AuditLink)
class AuditLinkAdmin(ReadOnlyAdmin):
    """The hash chain of the events."""

    right = Right.READ_AUDIT
    list_display = ("seq", "event_id", "hash")
    id_fields = ("event_id",)
    search_help_text = "The exact id of an event"
    ordering = ("-seq",)


@admin.register(AuditCheck)
class AuditCheckAdmin(ReadOnlyAdmin):
    """How far the audit has been verified, and the alarm."""

    right = Right.READ_AUDIT
    list_display = ("fresh_seq", "checked_at", "full_seq", "full_finished_at", "problem")
    ordering = ("-checked_at",)


@admin.register(FederatedIdentity)
class FederatedIdentityAdmin(ReadOnlyAdmin):
    """Which user a person at the identity provider is."""

    right = Right.READ_AUDIT
    list_display = ("subject", "user", "issuer", "created_at")
    list_select_related = ("user",)
    id_fields = ("pk", "user_id")
    search_help_text = "The exact id of a row or of a user"
    ordering = ("-created_at", "-id")
