"""The reuse of earlier results: kept replies, what a record reused, and who extracts a file now.

Requirement 39. The conditions of completed passes are in `documents.ProcessedDocument`.
"""

from __future__ import annotations

from django.db import models

from pipeline.core.states import Step
from pipeline.models import fields
from pipeline.models.documents import ShellFile
from pipeline.models.jobs import Job


class KeptReply(models.Model):
    """The accepted reply to one work item, kept for records with the same bytes. PHI.

    The row disappears with its record.
    """

    work_item_id = models.UUIDField(primary_key=True, editable=False)
    """The chunk, batch, zone or narrative that the provider answered."""
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    step = models.TextField(choices=Step.choices)
    lookup = models.CharField(max_length=64)
    """SHA-256 of owner, bytes, conditions and prompt. The prompt counts without its token."""
    model_version = fields.text(null=True)
    """The model that answered."""
    reply = models.BinaryField()
    """zlib-compressed JSON: the reply to each split by its name; the name of a whole item is ""."""
    created_at = fields.created_at()

    class Meta:
        verbose_name = "kept reply"
        verbose_name_plural = "kept replies"
        db_table = "kept_replies"
        db_table_comment = "Accepted replies that later records can reuse, zlib-compressed. PHI."
        indexes = [
            models.Index(fields=["lookup", "-created_at"], name="idx_kept_replies_lookup"),
            models.Index(fields=["shell_file", "step"], name="idx_kept_replies_record"),
            models.Index(fields=["-created_at", "-work_item_id"], name="idx_kept_replies_newest"),
        ]
        constraints = [fields.one_of("kept_replies_step_check", "step", Step)]

    def __str__(self) -> str:
        return f"reply to {self.work_item_id}"


class Reuse(models.Model):
    """What one pass of a record reused from one earlier record."""

    id = fields.uuid_pk()
    shell_file = models.ForeignKey(
        ShellFile, on_delete=models.CASCADE, related_name="reuses", db_index=False
    )
    step = models.TextField(choices=Step.choices)
    source = models.ForeignKey(
        ShellFile, on_delete=models.SET_NULL, null=True, blank=True, related_name="reused_by"
    )
    """The record whose results were reused; empty if it was deleted later."""
    items = fields.count()
    """Reused pages, chunks, batches, zones or narratives."""
    calls_saved = fields.count()
    """The accepted calls that the source needed for these items."""
    tokens_saved = models.BigIntegerField(default=0, db_default=0)
    cost_saved_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0, db_default=0)
    created_at = fields.created_at()

    class Meta:
        verbose_name = "reuse"
        verbose_name_plural = "reuses"
        db_table = "record_reuses"
        db_table_comment = "What each pass of a record reused, and what the reuse saved."
        indexes = [models.Index(fields=["-created_at", "-id"], name="idx_record_reuses_newest")]
        constraints = [
            models.UniqueConstraint(
                fields=["shell_file", "step", "source"], name="idx_record_reuses_once"
            ),
            fields.one_of("record_reuses_step_check", "step", Step),
            fields.not_negative(
                "record_reuses_counts_check",
                "items",
                "calls_saved",
                "tokens_saved",
                "cost_saved_usd",
            ),
        ]

    def __str__(self) -> str:
        return f"reuse of {self.step} by {self.shell_file_id}"


class ExtractionFlight(models.Model):
    """The one job that extracts a file of an owner now; the others wait for its end.

    The row lives from the first step of the job to the end of the job.
    """

    id = fields.uuid_pk()
    owner = fields.text()
    document_hash = models.CharField(max_length=64)
    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="+")
    renewed_at = models.DateTimeField(db_default=models.functions.Now())
    """When the job last began a step. A job that waits for long after this time is overtaken."""

    class Meta:
        verbose_name = "extraction in progress"
        verbose_name_plural = "extractions in progress"
        db_table = "extraction_flights"
        db_table_comment = "The job that extracts a file of an owner now (single flight)."
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "document_hash"], name="idx_extraction_flights_key"
            ),
        ]

    def __str__(self) -> str:
        return f"extraction of {self.document_hash[:12]}"
