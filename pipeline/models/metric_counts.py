"""The counts behind the counters of the metrics: each transaction adds what it recorded."""

from __future__ import annotations

from django.db import models

from pipeline.models import fields


class MetricCount(models.Model):
    """A part of one counter; the counter is the sum of its rows, so it only grows.

    A transaction inserts rows and never updates one, so no two transactions wait for each other.
    A periodic task replaces the rows of each counter by their sum.
    """

    id = fields.uuid_pk()
    name = models.TextField()
    labels = models.JSONField(default=dict, db_default={})
    """Names and values of labels: codes and names of models, no PHI."""
    value = models.DecimalField(max_digits=24, decimal_places=6)
    created_at = fields.created_at()

    class Meta:
        verbose_name = "count of a metric"
        verbose_name_plural = "counts of metrics"
        db_table = "metric_counts"
        db_table_comment = (
            "Parts of the counters of /metrics, inserted by the transaction that recorded the "
            "counted rows; pruning these rows never lowers a counter. No PHI."
        )
        constraints = [fields.not_negative("metric_counts_value_check", "value")]

    def __str__(self) -> str:
        return f"{self.name} {self.value}"
