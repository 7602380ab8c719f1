"""The counters of the rate limiter, kept in PostgreSQL so that they survive a loss of Redis."""

from __future__ import annotations

from django.db import models

from pipeline.models import fields


class RateLimitCounts(models.Model):
    """The counters of one provider and model in one life of Redis; they only grow.

    A Redis that was emptied begins a new life with new counters, so the total of all rows is the
    total of all time.
    """

    id = fields.uuid_pk()
    provider = models.TextField()
    model = models.TextField()
    born = models.FloatField()
    """Epoch seconds of Redis's clock at the beginning of this life."""
    rate_limited_items_stored = models.BigIntegerField(default=0, db_default=0)
    rate_limited_items_redistributed = models.BigIntegerField(default=0, db_default=0)
    rate_limit_generations = models.BigIntegerField(default=0, db_default=0)
    rate_limit_participants = models.BigIntegerField(default=0, db_default=0)
    breaker_trips = models.BigIntegerField(default=0, db_default=0)
    created_at = fields.created_at()

    class Meta:
        verbose_name = "counts of the rate limiter"
        verbose_name_plural = "counts of the rate limiter"
        db_table = "rate_limit_counts"
        db_table_comment = (
            "Counters of the rate limiter by provider, model and life of Redis; they only grow."
        )
        constraints = [
            models.UniqueConstraint(
                fields=["provider", "model", "born"], name="idx_rate_limit_counts_life"
            ),
        ]

    def __str__(self) -> str:
        return f"counts of {self.provider} {self.model}"
