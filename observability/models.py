"""The console's own tables: what people did, and the rights to do it.

Imports `rights` and the column builders of the pipeline. An audit row is written once: the
database refuses to change, delete or truncate it.
"""

from __future__ import annotations

from django.db import models

from observability.rights import RIGHT_NAMES
from pipeline.models import fields


class Console(models.Model):
    """No table: what the console's rights hang on."""

    class Meta:
        managed = False
        default_permissions = ()
        permissions = [(right.value, name) for right, name in RIGHT_NAMES.items()]

    def __str__(self) -> str:
        return "console"


class AuditEvent(models.Model):
    """One verb, or one reading of PHI: who, when, what, why, and what came of it."""

    id = fields.uuid_pk()
    created_at = models.DateTimeField(db_default=fields.ClockTimestamp(), editable=False)
    actor = models.TextField()
    """The user's name at that time; `command line` for a command, `system` for the clock."""
    actor_id = models.BigIntegerField(null=True, blank=True)
    """No foreign key: the row outlives the user."""
    verb = models.TextField()
    target_kind = models.TextField()
    """record, job, encounter, batch, call, queue, provider, …"""
    target_id = models.TextField(blank=True, default="", db_default="")
    reason = models.TextField(blank=True, default="", db_default="")
    """As it was typed."""
    result = models.TextField(default="done", db_default="done")
    """`done`, `refused` or `failed`."""
    facts = models.JSONField(default=dict, db_default={})
    """Counts, codes and ids; no PHI."""

    class Meta:
        db_table = "audit_events"
        db_table_comment = (
            "Every operator's verb and every reading of PHI. Append-only: triggers refuse UPDATE, "
            "DELETE and TRUNCATE. reason is free text."
        )
        default_permissions = ()
        verbose_name = "audit event"
        indexes = [
            models.Index(fields=["-created_at", "-id"], name="idx_audit_events_recent"),
            models.Index(fields=["target_id", "-created_at"], name="idx_audit_events_target"),
            models.Index(fields=["actor", "-created_at"], name="idx_audit_events_actor"),
        ]
        constraints = [
            models.CheckConstraint(
                name="audit_events_result_check",
                condition=models.Q(result__in=["done", "refused", "failed"]),
            ),
            models.CheckConstraint(
                name="audit_events_words_check",
                condition=~models.Q(actor="") & ~models.Q(verb="") & ~models.Q(target_kind=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verb} by {self.actor}"
