"""Incidents of a provider, pauses by an operator, and the last run of each periodic task.

Imports `fields` and `states`. An incident and a pause are rows that the claim reads, so that they
hold for every worker at once, and that people read; neither holds PHI.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from pipeline.core.states import IncidentKind, IncidentState, Step
from pipeline.models import fields


def _state() -> models.TextField[Any, Any]:
    return models.TextField(
        choices=IncidentState.choices,
        default=IncidentState.OPEN,
        db_default=IncidentState.OPEN,
        editable=False,
    )


class Incident(models.Model):
    """Something that the provider does to one of its models, from its first failure to its end."""

    id = fields.uuid_pk()
    kind = models.TextField(choices=IncidentKind.choices)
    provider = models.TextField()
    model = models.TextField()
    state = _state()
    opened_at = models.DateTimeField(db_default=Now(), editable=False)
    first_failure_at = models.DateTimeField()
    resumes_at = fields.optional_time()
    """When it ends by itself: the reset of a quota; NULL where only a success says so."""
    closed_at = fields.optional_time()
    evidence = models.JSONField(default=dict, db_default={})
    """{opened_by, latest, probes, affected, closed_because, total_by_code}; see docs/runbook.md."""
    created_at = fields.created_at()

    class Meta:
        db_table = "incidents"
        db_table_comment = (
            "Outages, throttling, used-up quotas and refused keys, per provider and model; while "
            "one that holds is open, work of that model is parked. No PHI."
        )
        indexes = [models.Index(fields=["-opened_at"], name="idx_incidents_recent")]
        constraints = [
            # Read by the claim as well: what is open for a provider and model.
            models.UniqueConstraint(
                fields=["provider", "model", "kind"],
                name="idx_incidents_open",
                condition=Q(state=IncidentState.OPEN),
            ),
            fields.one_of("incidents_kind_check", "kind", IncidentKind),
            fields.one_of("incidents_state_check", "state", IncidentState),
            models.CheckConstraint(
                name="incidents_closed_check",
                condition=Q(state=IncidentState.OPEN, closed_at__isnull=True)
                | Q(state=IncidentState.CLOSED, closed_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"incident {self.id}"


class Pause(models.Model):
    """An operator's hold on a queue, or on a provider and one or all of its models."""

    id = fields.uuid_pk()
    queue = fields.text(null=True, choices=Step.choices)
    provider = fields.text(null=True)
    model = fields.text(null=True)
    """NULL: every model of the provider."""
    reason = models.TextField()
    paused_by = fields.text(null=True)
    ended_at = fields.optional_time()
    end_reason = fields.text(null=True)
    ended_by = fields.text(null=True)
    created_at = fields.created_at()

    class Meta:
        db_table = "pauses"
        db_table_comment = "Queues and providers that an operator has paused; ended_at ends it."
        constraints = [
            models.UniqueConstraint(
                fields=["queue", "provider", "model"],
                name="idx_pauses_open",
                condition=Q(ended_at__isnull=True),
                nulls_distinct=False,
            ),
            fields.one_of("pauses_queue_check", "queue", Step),
            models.CheckConstraint(
                name="pauses_target_check",
                condition=Q(queue__isnull=False, provider__isnull=True, model__isnull=True)
                | Q(queue__isnull=True, provider__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"pause {self.id}"


class PeriodicTaskRun(models.Model):
    """The last run of one periodic task; an old row means that no scheduler runs."""

    name = models.TextField(primary_key=True)
    started_at = models.DateTimeField()
    finished_at = fields.optional_time()
    """NULL while it runs, and where it was killed."""
    outcome = models.TextField(default="running", db_default="running")
    """`running`, `ok`, or `failed: ` and the type of the error."""
    last_ok_at = fields.optional_time()
    """When it last ended well: a task that is killed at each tick never ends well."""
    created_at = fields.created_at()

    class Meta:
        db_table = "periodic_task_runs"
        db_table_comment = "One row per periodic task: its last run."
        verbose_name = "run of a periodic task"
        verbose_name_plural = "runs of periodic tasks"

    def __str__(self) -> str:
        return f"last run of {self.name}"
