"""The review of a record by a person: one item for each record whose job completed."""

from __future__ import annotations

from django.db import models

from pipeline.models import fields
from pipeline.models.documents import ShellFile


class ReviewStatus(models.TextChoices):
    """The state of a review."""

    OPEN = "open"
    CLOSED = "closed"


class ReviewReason(models.TextChoices):
    """Why a record is reviewed."""

    FLAGGED = "flagged"
    """The record has a warning or a flagged result."""
    COMPLETED = "completed"
    """Each completed record is reviewed once."""


class ReviewItem(models.Model):
    """The review that one record waits for, whether its results are new or reused."""

    id = fields.uuid_pk()
    shell_file = models.OneToOneField(
        ShellFile, on_delete=models.CASCADE, related_name="review_item"
    )
    reason = models.TextField(choices=ReviewReason.choices)
    status = fields.status(ReviewStatus, ReviewStatus.OPEN)
    created_at = fields.created_at()

    class Meta:
        verbose_name = "review item"
        verbose_name_plural = "review items"
        db_table = "review_items"
        db_table_comment = "One review for each completed record, reused results or not."
        indexes = [models.Index(fields=["-created_at", "-id"], name="idx_review_items_newest")]
        constraints = [
            fields.one_of("review_items_status_check", "status", ReviewStatus),
            fields.one_of("review_items_reason_check", "reason", ReviewReason),
        ]

    def __str__(self) -> str:
        return f"review of {self.shell_file_id}"
