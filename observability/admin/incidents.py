"""Incidents, pauses, the ticks of the scheduler, and the counts of the metrics."""

from __future__ import annotations

from django.contrib import admin

from observability.admin.base import ReadOnlyAdmin
from observability.models import SlaSnapshot
from pipeline.models import (
    Incident,
    IncidentJob,
    MetricCount,
    Pause,
    PeriodicTaskRun,
    RateLimitCounts,
)


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    """Outages, throttling, used-up quotas and refused keys."""

    heavy = ("evidence",)
    list_display = (
        "id", "kind", "state", "provider", "model", "first_failure_at", "opened_at",
        "resumes_at", "closed_at",
    )  # fmt: skip
    list_filter = ("state", "kind")
    id_fields = ("pk",)
    search_help_text = "The exact id of an incident"
    ordering = ("-opened_at",)


@admin.register(IncidentJob)
class IncidentJobAdmin(ReadOnlyAdmin):
    """The jobs that an incident has parked or failed."""

    list_display = ("incident_id", "job_id", "effect", "created_at")
    list_filter = ("effect",)
    id_fields = ("pk", "incident_id", "job_id")
    search_help_text = "The exact id of an incident or of a job"
    ordering = ("-created_at",)


@admin.register(Pause)
class PauseAdmin(ReadOnlyAdmin):
    """The pauses that operators have set."""

    list_display = (
        "id", "queue", "provider", "model", "paused_by", "created_at", "ended_by", "ended_at",
    )  # fmt: skip
    list_filter = ("queue",)
    ordering = ("-created_at",)


@admin.register(PeriodicTaskRun)
class PeriodicTaskRunAdmin(ReadOnlyAdmin):
    """The last tick of each periodic task."""

    list_display = ("name", "started_at", "finished_at", "outcome")
    ordering = ("name",)


@admin.register(RateLimitCounts)
class RateLimitCountsAdmin(ReadOnlyAdmin):
    """The counters of the rate limiter, by provider, model and life of Redis."""

    list_display = (
        "provider", "model", "rate_limited_items_stored", "rate_limited_items_redistributed",
        "rate_limit_generations", "rate_limit_participants", "breaker_trips", "created_at",
    )  # fmt: skip
    ordering = ("-created_at",)


@admin.register(MetricCount)
class MetricCountAdmin(ReadOnlyAdmin):
    """The parts of the counters of `/metrics`."""

    list_display = ("name", "labels", "value", "created_at")
    ordering = ("-created_at",)


@admin.register(SlaSnapshot)
class SlaSnapshotAdmin(ReadOnlyAdmin):
    """The service level by hour and priority."""

    list_display = (
        "hour", "priority", "finished", "met", "missed", "median_s", "p95_s", "backlog", "late",
        "backlog_ends_at",
    )  # fmt: skip
    ordering = ("-hour", "priority")
