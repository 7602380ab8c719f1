"""The job of a record: what is due, who has it, until when, and what went wrong.

Imports `documents`, `incidents`, `record_batches`. This row is the truth; Redis only carries
wake-ups.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import Q

from pipeline.core.states import JOB_TERMINAL, JobStatus, Step
from pipeline.models import fields
from pipeline.models.documents import ShellFile
from pipeline.models.incidents import Incident, Pause
from pipeline.models.record_batches import RecordBatch


class Job(models.Model):
    """One job per processing of a record; `current_step` walks through the passes."""

    id = fields.uuid_pk()
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="jobs", db_index=False
    )
    status = fields.status(JobStatus, JobStatus.PENDING)
    current_step = models.TextField(choices=Step.choices, default=Step.PAGES, db_default=Step.PAGES)
    priority = models.SmallIntegerField(default=0, db_default=0)
    """Higher goes first."""
    size_class = models.SmallIntegerField(default=0, db_default=0)
    """0 small, 1 medium, 2 large; smaller goes first until the wait raises it."""
    record_batch = models.ForeignKey(
        RecordBatch,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="jobs",
        db_index=False,
    )
    """What it was submitted with; no more of them run at once than the batch allows."""
    preempted_at = fields.optional_time()
    """When the step was preempted for smaller work; not claimed before that work is taken."""
    dispatch_no = fields.count()
    """Bumped whenever the row becomes due; makes the id of its wake-up unique."""
    available_at = models.DateTimeField(db_default=models.functions.Now())
    """Not claimed before this time."""
    lease_gen = fields.count()
    """Bumped at each claim; every write of a step carries it."""
    lease_expires_at = fields.optional_time()
    heartbeat_at = fields.optional_time()
    worker_id = fields.text(null=True)
    parked_until = fields.optional_time()
    park_reason = fields.text(null=True)
    incident = models.ForeignKey(
        Incident,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="waiting",
        db_index=False,
    )
    """What a parked job waits for; on one that is not parked: it is the incident's probe."""
    pause = models.ForeignKey(
        Pause,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="waiting",
        db_index=False,
    )
    step_started_at = fields.optional_time()
    step_deadline_at = fields.optional_time()
    retry_count = fields.count()
    max_retries = fields.count(3)
    retry_delay = models.DurationField(
        default=timedelta(minutes=5), db_default=timedelta(minutes=5)
    )
    crash_count = fields.count()
    cancel_requested_at = fields.optional_time()
    """Since when an operator wants it cancelled; a running step reads it with its heartbeat."""
    last_error = fields.text(null=True)
    error_code = fields.text(null=True)
    error_details = models.JSONField(null=True, blank=True)
    """{stage, error_code, failure_encounter_id, failure_batch_index, underlying_error, ...}.

    `history` lists what befell the job: {at, event, by, reason, step, error_code, ...}.
    """
    dead_letter_at = fields.optional_time()
    created_at = fields.created_at()
    started_at = fields.optional_time()
    completed_at = fields.optional_time()
    updated_at = models.DateTimeField(auto_now=True, db_default=models.functions.Now())

    class Meta:
        db_table = "job_queue"
        db_table_comment = (
            "One row per processing job; the truth about what is due. status moves by conditional "
            "UPDATE only, and every write of a step carries lease_gen."
        )
        indexes = [
            # Read by the claim: the first waiting rows of each size class of a pass.
            models.Index(
                fields=["current_step", "size_class", "-priority", "available_at"],
                name="idx_job_queue_waiting",
                condition=Q(status=JobStatus.PENDING),
            ),
            # Read by the reconciler; holds no lease column, so a heartbeat stays a HOT update.
            models.Index(
                fields=["id"],
                name="idx_job_queue_running",
                condition=Q(status=JobStatus.PROCESSING),
            ),
            models.Index(
                fields=["parked_until"],
                name="idx_job_queue_parked",
                condition=Q(status=JobStatus.PARKED),
            ),
            # Read by the release of what an incident has parked, and by the look for its probe.
            models.Index(
                fields=["incident", "created_at"],
                name="idx_job_queue_incident",
                condition=Q(incident__isnull=False),
            ),
            models.Index(fields=["shell_file"], name="idx_job_queue_shell"),
            # Read by the claim: which batches run as many records as they may.
            models.Index(
                fields=["record_batch"],
                name="idx_job_queue_batch_running",
                condition=Q(status=JobStatus.PROCESSING, record_batch__isnull=False),
            ),
            # Read when a record of a batch ends: its totals, and which of it is next.
            models.Index(
                fields=["record_batch", "status"],
                name="idx_job_queue_record_batch",
                condition=Q(record_batch__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["shell_file"],
                name="idx_job_queue_current",
                condition=~Q(status__in=sorted(JOB_TERMINAL)),
            ),
            fields.one_of("job_queue_status_check", "status", JobStatus),
            fields.one_of("job_queue_step_check", "current_step", Step),
            models.CheckConstraint(
                name="job_queue_size_check", condition=Q(size_class__gte=0, size_class__lte=2)
            ),
            fields.not_negative(
                "job_queue_counts_check",
                "retry_count",
                "max_retries",
                "crash_count",
                "dispatch_no",
                "lease_gen",
            ),
            models.CheckConstraint(
                name="job_queue_lease_check",
                condition=~Q(status=JobStatus.PROCESSING)
                | Q(lease_expires_at__isnull=False, worker_id__isnull=False),
            ),
            models.CheckConstraint(
                name="job_queue_parked_check",
                condition=~Q(status=JobStatus.PARKED)
                | (
                    Q(park_reason__isnull=False)
                    & (
                        Q(parked_until__isnull=False)
                        | Q(incident__isnull=False)
                        | Q(pause__isnull=False)
                    )
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"job {self.id}"


class IncidentJob(models.Model):
    """A job that an incident has parked or failed; what has failed is offered for retry."""

    PARKED = "parked"
    FAILED = "failed"

    id = fields.uuid_pk()
    incident = models.ForeignKey(
        Incident, on_delete=models.CASCADE, related_name="effects", db_index=False
    )
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="effects")
    effect = models.TextField(choices=[(PARKED, "parked"), (FAILED, "failed")])
    created_at = fields.created_at()

    class Meta:
        db_table = "incident_jobs"
        db_table_comment = "Jobs that an incident has parked or failed, once for each effect."
        verbose_name = "job of an incident"
        verbose_name_plural = "jobs of incidents"
        constraints = [
            models.UniqueConstraint(
                fields=["incident", "effect", "job"], name="idx_incident_jobs_once"
            ),
            models.CheckConstraint(
                name="incident_jobs_effect_check", condition=Q(effect__in=["parked", "failed"])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.effect} by incident {self.incident_id}"
