"""The job of a record: its state, its lease, and its errors.

This row is the truth about the job. Redis carries wake-ups only.
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
    """One job per processing of a record; `current_step` moves from pass to pass."""

    id = fields.uuid_pk()
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="jobs", db_index=False
    )
    status = fields.status(JobStatus, JobStatus.PENDING)
    current_step = models.TextField(choices=Step.choices, default=Step.PAGES, db_default=Step.PAGES)
    priority = models.SmallIntegerField(default=0, db_default=0)
    """Jobs with a higher priority are claimed first."""
    size_class = models.SmallIntegerField(default=0, db_default=0)
    """0 small, 1 medium, 2 large; small jobs go first, until waiting time promotes a large job."""
    record_batch = models.ForeignKey(
        RecordBatch,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="jobs",
        db_index=False,
    )
    """The batch of records that this record was submitted with; the batch limits parallel jobs."""
    preempted_at = fields.optional_time()
    """When the job was preempted by a smaller job; it is not claimed before the smaller job is."""
    hung_at = fields.optional_time()
    """When a run of the current step last hung; a completed step clears the time. `claim_order`
    says when such a job is claimed."""
    dispatch_no = fields.count()
    """Increased whenever the job becomes claimable; makes the id of each wake-up unique."""
    available_at = models.DateTimeField(db_default=models.functions.Now())
    """The earliest time at which the job can be claimed."""
    lease_gen = fields.count()
    """Increased at each claim; every write of a step carries this number (the fence)."""
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
    """The incident that a parked job waits for; on any other job, the incident that it probes."""
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
    step_run_ms = models.JSONField(default=dict, db_default={})
    """Milliseconds for which workers ran each step, by the step's name; waiting never counts."""
    retry_count = fields.count()
    max_retries = fields.count(3)
    retry_delay = models.DurationField(
        default=timedelta(minutes=5), db_default=timedelta(minutes=5)
    )
    crash_count = fields.count()
    cancel_requested_at = fields.optional_time()
    """When an operator asked to cancel; a running step reads this column with its heartbeat."""
    last_error = fields.text(null=True)
    error_code = fields.text(null=True)
    error_details = models.JSONField(null=True, blank=True)
    """{stage, error_code, failure_encounter_id, failure_batch_index, underlying_error, ...}.

    `history` lists the events of the job: {at, event, by, reason, step, error_code, ...}.
    """
    dead_letter_at = fields.optional_time()
    created_at = fields.created_at()
    started_at = fields.optional_time()
    completed_at = fields.optional_time()
    updated_at = models.DateTimeField(auto_now=True, db_default=models.functions.Now())

    class Meta:
        db_table = "job_queue"
        db_table_comment = (
            "One row per processing job; the truth about the job's state. status changes by "
            "conditional UPDATE only, and every write of a step carries lease_gen."
        )
        indexes = [
            # For the claim: the first waiting jobs of each size class of a pass.
            models.Index(
                fields=["current_step", "size_class", "-priority", "available_at"],
                name="idx_job_queue_waiting",
                condition=Q(status=JobStatus.PENDING),
            ),
            # For the reconciler. Without a lease column, so that a heartbeat stays a HOT update.
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
            # For the release of jobs that an incident parked, and for the choice of its probe job.
            models.Index(
                fields=["incident", "created_at"],
                name="idx_job_queue_incident",
                condition=Q(incident__isnull=False),
            ),
            # For the release of jobs whose pause has ended.
            models.Index(
                fields=["pause", "created_at"],
                name="idx_job_queue_pause",
                condition=Q(pause__isnull=False),
            ),
            # For the claim: jobs that hung, which run one at a time.
            models.Index(
                fields=["current_step"],
                name="idx_job_queue_hung",
                condition=Q(hung_at__isnull=False),
            ),
            models.Index(fields=["shell_file"], name="idx_job_queue_shell"),
            # For the claim: batches of records that already run as many records as allowed.
            models.Index(
                fields=["record_batch"],
                name="idx_job_queue_batch_running",
                condition=Q(status=JobStatus.PROCESSING, record_batch__isnull=False),
            ),
            # For the end of a record: the totals of its batch, and the next record of the batch.
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
    """A job that an incident has parked or failed; a failed job is offered for a retry."""

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
