"""Records that were submitted together: the limit of parallel records, and the joint totals."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from pipeline.core.states import RecordBatchStatus
from pipeline.models import fields

MAX_CONCURRENT_TASKS = 10
"""Records of a batch that run at the same time (requirement 42)."""


class RecordBatch(models.Model):
    """One submission of several records; the totals are written when the last record ends."""

    id = fields.uuid_pk()
    status = fields.status(RecordBatchStatus, RecordBatchStatus.PROCESSING)
    max_concurrent_tasks = fields.count(MAX_CONCURRENT_TASKS)
    submitted_at = fields.optional_time()
    """When the last record was submitted; NULL while more records may come."""
    records_total = fields.count()
    records_completed = fields.count()
    records_failed = fields.count()
    """Failed or dead."""
    records_cancelled = fields.count()
    pages_total = fields.count()
    encounters_total = fields.count()
    entities_total = fields.count()
    total_tokens_used = models.BigIntegerField(default=0, db_default=0)
    total_cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0, db_default=0)
    completed_at = fields.optional_time()
    created_at = fields.created_at()

    class Meta:
        db_table = "record_batches"
        db_table_comment = (
            "Records that were submitted together; at most max_concurrent_tasks of them run at "
            "once. The totals are written when all have ended, and again after a retry."
        )
        verbose_name_plural = "record batches"
        indexes = [
            # For the scheduler: batches whose records have ended, but whose totals are missing.
            models.Index(
                fields=["created_at"],
                name="idx_record_batches_open",
                condition=Q(status=RecordBatchStatus.PROCESSING),
            ),
        ]
        constraints = [
            fields.one_of("record_batches_status_check", "status", RecordBatchStatus),
            models.CheckConstraint(
                name="record_batches_tasks_check", condition=Q(max_concurrent_tasks__gte=1)
            ),
            models.CheckConstraint(
                name="record_batches_completed_check",
                condition=Q(status=RecordBatchStatus.PROCESSING, completed_at__isnull=True)
                | (~Q(status=RecordBatchStatus.PROCESSING) & Q(completed_at__isnull=False)),
            ),
        ]

    def __str__(self) -> str:
        return f"record batch {self.id}"
