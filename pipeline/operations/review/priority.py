"""The priority of a review item, part by part and in words (docs/review.md)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from pipeline.core.labels import counted
from pipeline.models import ReviewItem


@dataclass(frozen=True, kw_only=True)
class PriorityPart:
    """One part of a priority."""

    name: str
    share: float
    """0 to 1: how far this part asks for a review."""
    weight: float
    words: str

    @property
    def points(self) -> float:
        """What the part adds to the priority."""
        return self.share * self.weight


def explained(item: ReviewItem, now: datetime) -> tuple[PriorityPart, ...]:
    """Return the four parts of an item's priority at a time; their points add up to it."""
    figures = item.figures
    target_s = (item.due_at - item.opened_at).total_seconds()
    age_s = max(0.0, (now - item.opened_at).total_seconds())
    used = min(1.0, age_s / target_s) if target_s > 0 else 1.0
    doubt = 1 - (item.confidence or 0.0)
    return (
        _part(
            "confidence",
            doubt,
            settings.REVIEW_WEIGHT_CONFIDENCE,
            f"confidence {item.confidence:.2f}" if item.confidence is not None else "no result",
        ),
        _part(
            "SLA",
            used,
            settings.REVIEW_WEIGHT_SLA,
            f"{used:.0%} of the {item.sla} target of {target_s / 60:.0f} min used",
        ),
        _part(
            "complexity",
            item.complexity,
            settings.REVIEW_WEIGHT_COMPLEXITY,
            f"{counted(figures.get('pages', 0), 'page')},"
            f" {counted(figures.get('encounters', 0), 'encounter')},"
            f" {counted(figures.get('entities', 0), 'entity')},"
            f" {figures.get('flagged', 0)} flagged",
        ),
        _part(
            "value",
            item.value,
            settings.REVIEW_WEIGHT_VALUE,
            f"{figures.get('flagged_risks', 0)} flagged medications and allergies,"
            f" {figures.get('held', 0)} held back",
        ),
    )


def priority_of(item: ReviewItem, now: datetime) -> float:
    """Return an item's priority at a time, 0 to 1."""
    return sum(part.points for part in explained(item, now))


def _part(name: str, share: float, weight: float, words: str) -> PriorityPart:
    points = share * weight
    return PriorityPart(
        name=name, share=share, weight=weight, words=f"{words} → {points:.2f} of {weight:.2f}"
    )
