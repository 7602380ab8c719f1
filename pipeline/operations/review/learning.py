"""What reviews teach: how often each rule, engine, prompt and category was right.

An entity counts once, with its newest verdict. Accepted is right; corrected and rejected is wrong.
A disputed entity does not count yet, and an added entity counts as missed by the engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

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


def precision(since: datetime) -> list[LearnedPrecision]:
    """Return the precision of each rule, engine, prompt and category since a time."""
    return _read("NULL::date", since)


def precision_by_week(since: datetime) -> list[LearnedPrecision]:
    """Return the same figures for each week of the verdicts: a rule that got worse is visible."""
    return _read(_WEEK, since)


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
