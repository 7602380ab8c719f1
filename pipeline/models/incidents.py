"""Holds on work (incidents of the provider, pauses of operators) and the scheduler's ticks.

The claim reads incidents and pauses from these rows, so a hold applies to every worker at once.
No row contains PHI.
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
    """A failure of the provider for one model, from the first failed call to the recovery."""

    id = fields.uuid_pk()
    kind = models.TextField(choices=IncidentKind.choices)
    provider = models.TextField()
    model = models.TextField()
    state = _state()
    opened_at = models.DateTimeField(db_default=Now(), editable=False)
    first_failure_at = models.DateTimeField()
    resumes_at = fields.optional_time()
    """When the incident ends by itself (a quota's reset); NULL if only a success ends it."""
    closed_at = fields.optional_time()
    evidence = models.JSONField(default=dict, db_default={})
    """{opened_by, latest, probes, affected, closed_because, total_by_code}; see docs/runbook.md."""
    created_at = fields.created_at()

    class Meta:
        db_table = "incidents"
        db_table_comment = (
            "Outages, throttling, used-up quotas and refused keys, per provider and model. All but "
            "throttling park the work of that model while they are open. No PHI."
        )
        indexes = [models.Index(fields=["-opened_at"], name="idx_incidents_recent")]
        constraints = [
            # The claim reads this index as well: the open incidents of a provider and model.
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
    """An operator's hold on a queue, or on one or all models of a provider."""

    id = fields.uuid_pk()
    queue = fields.text(null=True, choices=Step.choices)
    provider = fields.text(null=True)
    model = fields.text(null=True)
    """NULL means every model of the provider."""
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
    """NULL while the task runs, and after the task was killed."""
    outcome = models.TextField(default="running", db_default="running")
    """`running`, `ok`, or `failed: ` and the type of the error."""
    last_ok_at = fields.optional_time()
    """The last good end; a task that is killed at each tick has a new start but an old end."""
    created_at = fields.created_at()

    class Meta:
        db_table = "periodic_task_runs"
        db_table_comment = "One row per periodic task: its last run."
        verbose_name = "run of a periodic task"
        verbose_name_plural = "runs of periodic tasks"

    def __str__(self) -> str:
        return f"last run of {self.name}"
