"""The shapes that passes share: a unit of work that is called for, and the totals of a pass.

Imports `fields`, `states`, `documents`, `sessions`. The columns of a unit are those of
`pass1_batch_results` (`seeds`, section 4.1), so that fan-out, flush and drill-down treat all
passes alike.
"""

from __future__ import annotations

from django.db import models

from pipeline.core.states import WorkStatus
from pipeline.models import fields
from pipeline.models.documents import Patient
from pipeline.models.sessions import Session


class CallWork(models.Model):
    """Status, attempts, timing, tokens, errors and stored output of one unit of work."""

    status = fields.status(WorkStatus, WorkStatus.PENDING)
    attempt_count = fields.count()
    max_attempts = fields.count(3)
    rate_limit_waits = fields.count()
    """Calls that met a rate limit; they spend no attempt."""
    started_at = fields.optional_time()
    completed_at = fields.optional_time()
    duration_ms = fields.optional_count()
    ai_model_used = fields.text(null=True)
    input_tokens = fields.optional_count()
    output_tokens = fields.optional_count()
    error_code = fields.text(null=True)
    error_message = fields.text(null=True)
    error_context = models.JSONField(null=True, blank=True)
    """{final_underlying_error, final_underlying_message, attempt_history}; no PHI."""
    had_transient_failure = fields.flag()
    transient_error_history = models.JSONField(null=True, blank=True)
    """List of {attempt, error_code, error_message, timestamp, retry_delay_ms}."""
    output = models.JSONField(null=True, blank=True)
    """The validated reply, from its success until it is published. PHI."""
    created_at = fields.created_at()

    class Meta:
        abstract = True


class PassMetrics(models.Model):
    """What one pass cost for one record; the columns that every pass has."""

    id = fields.uuid_pk()
    profile = models.ForeignKey(Patient, on_delete=models.PROTECT, related_name="+")
    processing_session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    processing_time_ms = fields.count()
    processing_time_minutes = models.GeneratedField(
        expression=models.F("processing_time_ms") / models.Value(60000.0),
        output_field=models.FloatField(),
        db_persist=True,
    )
    ai_model_used = fields.text(null=True)
    total_retries_used = fields.count()
    input_tokens = fields.count()
    output_tokens = fields.count()
    total_tokens = fields.count()
    error_code = fields.text(null=True)
    error_summary = fields.text(null=True)
    user_agent = fields.text(null=True)
    ip_address = models.GenericIPAddressField(null=True, blank=True)
    created_at = fields.created_at()

    class Meta:
        abstract = True
