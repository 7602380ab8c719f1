"""What reviews teach: how often each rule, engine, prompt and category was right.

An entity counts once, with its newest verdict. Accepted is right; corrected and rejected is wrong.
A disputed entity does not count yet, and an added entity counts as missed by the engines.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from django.db import connection

# The newest verdict of each entity. The first reviewer's verdict stays where the second agrees.
_NEWEST = """
WITH newest AS (
  SELECT DISTINCT ON (entity_id) entity_id, category, engine, rule, prompt_version, created_at,
    new_value #>> '{}' AS verdict
  FROM review_decisions WHERE field = 'verdict' AND created_at >= %(since)s
  ORDER BY entity_id, created_at DESC, part DESC
)
SELECT category, engine, rule, prompt_version, {week} AS week,
  count(*) FILTER (WHERE verdict = 'accepted'), count(*) FILTER (WHERE verdict = 'corrected'),
  count(*) FILTER (WHERE verdict = 'rejected'), count(*) FILTER (WHERE verdict = 'added')
FROM newest GROUP BY category, engine, rule, prompt_version, week
ORDER BY category, engine, rule, prompt_version, week
"""
_WEEK = "date_trunc('week', created_at AT TIME ZONE 'UTC')::date"


@dataclass(frozen=True, kw_only=True)
class LearnedPrecision:
    """The verdicts about the entities of one rule, engine, prompt and category."""

    category: str
    engine: str
    """The model or the engine that found the entities; `reviewer` for added ones."""
    rule: str
    """The rule of the local engine; empty for a model."""
    prompt_version: str
    week: date | None
    """The Monday of the week (UTC); None for all weeks together."""
    accepted: int
    corrected: int
    rejected: int
    added: int

    @property
    def precision(self) -> float | None:
        """Accepted ÷ (accepted + corrected + rejected); None without such a verdict."""
        judged = self.accepted + self.corrected + self.rejected
        return self.accepted / judged if judged else None


class PrecisionChange(StrEnum):
    """How the newest week compares with the weeks before."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "no clear change"
    UNKNOWN = "no comparison yet"
    """One week alone, or too few verdicts."""


FEWEST = 5
"""Verdicts that the newest week and the weeks before need for a comparison."""
Z = 1.96
"""The 97.5th percentile of the normal distribution: an interval of 95 %."""


@dataclass(frozen=True, kw_only=True)
class PrecisionTrend:
    """The verdicts about the entities of one rule, engine, prompt and category, week by week."""

    weeks: Sequence[LearnedPrecision]
    """Only weeks with verdicts, the oldest first; at least one."""

    @property
    def accepted(self) -> int:
        """The accepted entities of all weeks."""
        return sum(week.accepted for week in self.weeks)

    @property
    def corrected(self) -> int:
        """The corrected entities of all weeks."""
        return sum(week.corrected for week in self.weeks)

    @property
    def rejected(self) -> int:
        """The rejected entities of all weeks."""
        return sum(week.rejected for week in self.weeks)

    @property
    def added(self) -> int:
        """The added entities of all weeks."""
        return sum(week.added for week in self.weeks)

    @property
    def precision(self) -> float | None:
        """Accepted ÷ (accepted + corrected + rejected); None without such a verdict."""
        judged = self.accepted + self.corrected + self.rejected
        return self.accepted / judged if judged else None

    @property
    def change(self) -> PrecisionChange:
        """The newest week against the weeks before.

        A change is clear if the precision before lies outside of the 95 % interval of the newest
        week (Wilson 1927, score interval).
        """
        judged = [week for week in self.weeks if week.precision is not None]
        earlier = sum(_judged(week) for week in judged[:-1])
        if not judged or _judged(judged[-1]) < FEWEST or earlier < FEWEST:
            return PrecisionChange.UNKNOWN
        before = sum(week.accepted for week in judged[:-1]) / earlier
        low, high = wilson_interval(judged[-1].accepted, _judged(judged[-1]))
        if before > high:
            return PrecisionChange.WORSE
        return PrecisionChange.BETTER if before < low else PrecisionChange.SAME


def wilson_interval(right: int, total: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share of `total` > 0 cases (Wilson 1927)."""
    share, z2 = right / total, Z**2
    centre = (share + z2 / (2 * total)) / (1 + z2 / total)
    spread = Z / (1 + z2 / total) * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    return max(0.0, centre - spread), min(1.0, centre + spread)


def precision_trends(since: datetime) -> list[PrecisionTrend]:
    """Return the weeks of each rule, engine, prompt and category.

    What got worse comes first, then the most wrong entities.
    """
    groups: defaultdict[tuple[str, ...], list[LearnedPrecision]] = defaultdict(list)
    for week in precision_by_week(since):
        groups[week.category, week.engine, week.rule, week.prompt_version].append(week)
    trends = [PrecisionTrend(weeks=weeks) for weeks in groups.values()]
    return sorted(
        trends,
        key=lambda each: (
            each.change is not PrecisionChange.WORSE,
            -(each.corrected + each.rejected),
        ),
    )


def precision(since: datetime) -> list[LearnedPrecision]:
    """Return the precision of each rule, engine, prompt and category since a time."""
    return _read("NULL::date", since)


def precision_by_week(since: datetime) -> list[LearnedPrecision]:
    """Return the same figures for each week of the verdicts: a rule that got worse is visible."""
    return _read(_WEEK, since)


def _judged(week: LearnedPrecision) -> int:
    return week.accepted + week.corrected + week.rejected


def _read(week: str, since: datetime) -> list[LearnedPrecision]:
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST.replace("{week}", week), {"since": since})
        return [
            LearnedPrecision(
                category=category or "",
                engine=engine,
                rule=rule,
                prompt_version=prompt,
                week=monday,
                accepted=accepted,
                corrected=corrected,
                rejected=rejected,
                added=added,
            )
            for category, engine, rule, prompt, monday, accepted, corrected, rejected, added in (
                cursor.fetchall()
            )
        ]
