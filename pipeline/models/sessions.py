"""The AI session of a record and the summary of the record.

A record has one session in all its life; a retry reuses the session.
"""

from __future__ import annotations

from django.db import models

from pipeline.core.states import PassStatus, SessionStatus, Step, SummaryStatus, WorkflowStep
from pipeline.models import fields
from pipeline.models.documents import Patient, ShellFile
from pipeline.models.encounters import Encounter


def _pass_status() -> models.TextField[str, str]:
    return fields.status(PassStatus, PassStatus.PENDING)


class Session(models.Model):
    """The root of all AI work for one record."""

    id = fields.uuid_pk()
    patient = models.ForeignKey(Patient, on_delete=models.PROTECT, related_name="sessions")
    shell_file = models.OneToOneField(ShellFile, on_delete=models.CASCADE, related_name="session")
    session_type = fields.text(default="shell_file_processing", db_default="shell_file_processing")
    session_status = fields.status(SessionStatus, SessionStatus.INITIATED)
    ai_model_name = fields.text(default="v3", db_default="v3")
    model_config = models.JSONField(default=dict, db_default={})
    processing_mode = fields.text(null=True)
    workflow_step = models.TextField(
        choices=WorkflowStep.choices,
        default=WorkflowStep.PAGE_EXTRACTION,
        db_default=WorkflowStep.ENTITY_DETECTION,
    )
    total_steps = fields.count(5)
    completed_steps = fields.count()
    pass05_status = _pass_status()
    pass1_status = _pass_status()
    pass1_5_status = _pass_status()
    pass2_status = _pass_status()
    pass3_status = _pass_status()
    failure_pass = fields.text(null=True)
    failure_encounter = models.ForeignKey(
        Encounter, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    error_code = fields.text(null=True)
    error_message = fields.text(null=True)
    error_context = models.JSONField(null=True, blank=True)
    requires_human_review = fields.flag()
    processing_started_at = models.DateTimeField(db_default=models.functions.Now())
    processing_completed_at = fields.optional_time()
    total_processing_time = models.DurationField(null=True, blank=True)
    retry_count = fields.count()
    max_retries = fields.count(3)
    created_at = fields.created_at()
    updated_at = models.DateTimeField(auto_now=True, db_default=models.functions.Now())

    class Meta:
        verbose_name = "session"
        verbose_name_plural = "sessions"
        db_table = "ai_processing_sessions"
        db_table_comment = "One AI session per record, with the status of each pass."
        constraints = [
            fields.one_of("sessions_status_check", "session_status", SessionStatus),
            fields.one_of("sessions_step_check", "workflow_step", WorkflowStep),
            fields.one_of("sessions_pass05_check", "pass05_status", PassStatus),
            fields.one_of("sessions_pass1_check", "pass1_status", PassStatus),
            fields.one_of("sessions_pass1_5_check", "pass1_5_status", PassStatus),
            fields.one_of("sessions_pass2_check", "pass2_status", PassStatus),
            fields.one_of("sessions_pass3_check", "pass3_status", PassStatus),
            fields.one_of("sessions_failure_check", "failure_pass", Step),
            fields.not_negative(
                "sessions_counts_check", "total_steps", "completed_steps", "retry_count"
            ),
        ]

    def __str__(self) -> str:
        return f"session of {self.shell_file_id}"


class Summary(models.Model):
    """The report card of a record: how far the record got, its cost, and why it failed."""

    id = fields.uuid_pk()
    profile = models.ForeignKey(Patient, on_delete=models.PROTECT, related_name="+")
    shell_file = models.OneToOneField(ShellFile, on_delete=models.CASCADE, related_name="summary")
    processing_status = fields.status(SummaryStatus, SummaryStatus.INITIALIZED)
    overall_success = fields.flag()
    failure_stage = fields.text(null=True)
    failure_encounter = models.ForeignKey(
        Encounter, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    failure_batch_index = models.IntegerField(null=True, blank=True)
    error_code = fields.text(null=True)
    error_drill_down = models.JSONField(null=True, blank=True)
    total_processing_time_ms = fields.count()
    total_tokens_used = fields.count()
    total_cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0, db_default=0)
    entities_extracted_total = fields.count()
    manual_review_required = fields.flag()
    pass05_metrics = models.ForeignKey(
        "pipeline.DiscoveryMetrics",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    pass1_metrics = models.ForeignKey(
        "pipeline.EntityMetrics", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    pass2_metrics = models.ForeignKey(
        "pipeline.ClinicalMetrics",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    pass3_metrics = models.ForeignKey(
        "pipeline.NarrativeMetrics",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )
    business_events = models.JSONField(default=list, db_default=[])
    """Milestones as {event, at}; no PHI."""
    user_agent = fields.text(null=True)
    ip_address = models.GenericIPAddressField(null=True, blank=True)
    processing_started_at = fields.optional_time()
    processing_completed_at = fields.optional_time()
    created_at = fields.created_at()

    class Meta:
        verbose_name = "report card"
        verbose_name_plural = "report cards"
        db_table = "ai_processing_summary"
        db_table_comment = "Report card of a record: what failed and why, times, tokens, cost."
        constraints = [
            fields.one_of("summary_status_check", "processing_status", SummaryStatus),
            fields.one_of("summary_stage_check", "failure_stage", Step),
            fields.not_negative(
                "summary_counts_check",
                "total_processing_time_ms",
                "total_tokens_used",
                "total_cost_usd",
                "entities_extracted_total",
                "failure_batch_index",
            ),
        ]

    def __str__(self) -> str:
        return f"summary of {self.shell_file_id}"
