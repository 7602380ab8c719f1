"""Calls to the provider, and their raw replies.

Both tables are append-only. They are the fourth level of the drill-down and the source of every
rate, cost and latency figure.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from pipeline.core.states import Step
from pipeline.models import fields
from pipeline.models.sessions import Session

OUTCOME_OK = "OK"
OUTCOME_LATE = "LATE"
"""A reply that arrived after its call was written off: its tokens count, its content does not."""


class ProviderCall(models.Model):
    """One call of any pass, with any outcome."""

    id = fields.uuid_pk()
    processing_session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="calls", db_index=False
    )
    step = models.TextField(choices=Step.choices)
    work_item_id = models.UUIDField(null=True, blank=True)
    """The item that the call asks about; `step` tells its table (`work_tables`). Empty for a call
    about a whole record. No foreign key, so that a new pass needs no new column; the foreign key
    of the session deletes the calls."""
    split = models.TextField(default="", db_default="", blank=True)
    """The split of a work item that the call was about: "0", "01" …; empty for the whole."""
    page_range_start = models.IntegerField(null=True, blank=True)
    """First page that the call asked about; empty if the call was not about pages."""
    page_range_end = models.IntegerField(null=True, blank=True)
    attempt = models.IntegerField()
    """1-based number of the call for its work item; limited calls count too."""
    outcome = models.TextField()
    """OK, LATE, or an error code."""
    accepted = fields.flag()
    """True for the one reply from which the work item, or the split of it, was built."""
    message = fields.text(null=True)
    provider = models.TextField()
    model = models.TextField()
    model_version = fields.text(null=True)
    response_id = fields.text(null=True)
    prompt_version = models.TextField()
    schema_version = models.TextField()
    http_status = models.SmallIntegerField(null=True, blank=True)
    finish_reason = fields.text(null=True)
    quota_id = fields.text(null=True)
    retry_after_ms = fields.optional_count()
    queue_wait_ms = fields.count()
    duration_ms = fields.count()
    input_tokens = fields.count()
    output_tokens = fields.count()
    thinking_tokens = fields.count()
    cached_tokens = fields.count()
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0, db_default=0)
    lease_gen = models.IntegerField()
    started_at = models.DateTimeField()
    created_at = fields.created_at()

    class Meta:
        verbose_name = "call"
        verbose_name_plural = "calls"
        db_table = "provider_calls"
        db_table_comment = "One row per call to the AI provider. Append-only; no PHI."
        indexes = [
            models.Index(fields=["created_at", "id"], name="idx_provider_calls_recent"),
            models.Index(fields=["work_item_id"], name="idx_provider_calls_work_item"),
            models.Index(fields=["processing_session"], name="idx_provider_calls_session"),
            # Covers what the lists of failures read of each failed call: they group up to 10,000.
            models.Index(
                fields=["created_at"],
                include=["outcome", "step", "model", "work_item_id", "processing_session"],
                name="idx_provider_calls_failed",
                condition=~Q(outcome=OUTCOME_OK),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["work_item_id", "split"],
                name="idx_provider_calls_one_reply",
                condition=Q(accepted=True),
            ),
            fields.one_of("provider_calls_step_check", "step", Step),
            models.CheckConstraint(
                name="provider_calls_accepted_check",
                condition=Q(accepted=False) | Q(outcome=OUTCOME_OK),
            ),
        ]

    def __str__(self) -> str:
        return f"call {self.id}"


class ProviderPayload(models.Model):
    """The raw reply of a call, compressed. PHI: reading needs its own permission; pruned later."""

    call = models.OneToOneField(
        ProviderCall, on_delete=models.CASCADE, primary_key=True, related_name="payload"
    )
    page_range_start = models.IntegerField()
    page_range_end = models.IntegerField()
    prompt_sha256 = models.CharField(max_length=64)
    """Hash of the prompt; a prompt rendered again from the pages is compared with this hash."""
    reply = models.BinaryField()
    """zlib-compressed UTF-8."""
    created_at = fields.created_at()

    class Meta:
        verbose_name = "payload"
        verbose_name_plural = "payloads"
        db_table = "provider_payloads"
        db_table_comment = "Raw replies, zlib-compressed. PHI; pruned after PAYLOAD_RETENTION_DAYS."
        indexes = [models.Index(fields=["created_at"], name="idx_provider_payloads_age")]
        constraints = [
            fields.page_range("provider_payloads_pages_check", "page_range_start", "page_range_end")
        ]

    def __str__(self) -> str:
        return f"payload of call {self.call_id}"
