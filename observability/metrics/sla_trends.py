"""The trends of the service level on the overview: hourly snapshots in bins, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import connection

from observability.metrics.sla_snapshots import HOUR
from pipeline.core.labels import counted
from pipeline.models.sla import targets_s


class TrendPeriod(StrEnum):
    """The period of the trends, as the address of the overview names it."""

    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"

    @property
    def words(self) -> str:
        """The words of the tab."""
        return {"24h": "24 hours", "7d": "7 days", "30d": "30 days"}[self.value]

    @property
    def bin(self) -> timedelta:
        """The time that one point of the chart covers."""
        return {"24h": HOUR, "7d": 6 * HOUR, "30d": 24 * HOUR}[self.value]

    @property
    def step(self) -> str:
        """The words of the bin."""
        return {"24h": "hour", "7d": "6 hours", "30d": "day"}[self.value]

    @property
    def bins(self) -> int:
        """The number of points."""
        return {"24h": 24, "7d": 28, "30d": 30}[self.value]


@dataclass(frozen=True, kw_only=True)
class TrendBin:
    """The service level of one class of priority within one bin."""

    at: datetime
    length: timedelta
    hours: int = 0
    """Hours with a snapshot; 0 where the installation did not exist yet."""
    finished: int = 0
    met: int = 0
    missed: int = 0
    median_s: float | None = None
    """The mean of the hourly medians, weighted by the records of each hour."""
    p95_s: float | None = None
    """The highest 95th percentile of the hours."""
    backlog: int = 0
    """At the end of the last hour of the bin."""
    late: int = 0


@dataclass(frozen=True, kw_only=True)
class Trend:
    """One class of priority over the period."""

    priority: str
    target_s: float
    bins: Sequence[TrendBin]
    until: datetime
    """The end of the newest hour with a snapshot."""

    @property
    def finished(self) -> int:
        """Records that ended within the period."""
        return sum(each.finished for each in self.bins)

    @property
    def met(self) -> int:
        """Records that ended within their target."""
        return sum(each.met for each in self.bins)

    @property
    def share(self) -> float | None:
        """The part that met the target; None without any record."""
        return self.met / self.finished if self.finished else None

    @property
    def words(self) -> str:
        """How many of how many records met the target."""
        return f"{self.met:,} of {counted(self.finished, 'record')}"

    @property
    def newest(self) -> TrendBin | None:
        """The last bin with a snapshot."""
        return next((each for each in reversed(self.bins) if each.hours), None)


_SQL = """
SELECT priority, date_bin(make_interval(secs => %(bin)s), hour, %(since)s), count(*)::int,
  sum(finished)::int, sum(met)::int, sum(missed)::int,
  sum(median_s * finished) / sum(finished) FILTER (WHERE median_s IS NOT NULL),
  max(p95_s),
  (array_agg(backlog ORDER BY hour DESC))[1], (array_agg(late ORDER BY hour DESC))[1],
  max(hour)
FROM sla_snapshots WHERE hour >= %(since)s GROUP BY 1, 2
"""


def trends(period: TrendPeriod, now: datetime) -> list[Trend]:
    """Return the trend of each class of priority; empty while the period has no snapshot."""
    step, seconds = period.bin, period.bin.total_seconds()
    # The present hour has no snapshot yet.
    newest = datetime.fromtimestamp((now - HOUR).timestamp() // seconds * seconds, UTC)
    times = [newest - step * back for back in range(period.bins)][::-1]
    with connection.cursor() as cursor:
        cursor.execute(_SQL, {"bin": seconds, "since": times[0]})
        rows = {(name, at): figures for name, at, *figures in cursor.fetchall()}
    if not rows:
        return []
    until = max(figures[-1] for figures in rows.values()) + HOUR
    return [
        Trend(
            priority=name,
            target_s=target,
            bins=[_bin(at, step, rows.get((name, at))) for at in times],
            until=until,
        )
        for name, target in targets_s().items()
    ]


def _bin(at: datetime, length: timedelta, figures: Sequence[Any] | None) -> TrendBin:
    if figures is None:
        return TrendBin(at=at, length=length)
    hours, finished, met, missed, median_s, p95_s, backlog, late, *_ = figures
    return TrendBin(
        at=at,
        length=length,
        hours=hours,
        finished=finished,
        met=met,
        missed=missed,
        median_s=median_s,
        p95_s=p95_s,
        backlog=backlog,
        late=late,
    )
