"""The service level: late records by priority, compliance, and the forecast of the backlog's end.

The periodic task `check_sla` and the command of the same name report it; `/metrics` serves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.utils import timezone

from observability.metrics.forecast import Forecast, forecast, outstanding
from observability.metrics.named_limiter import named_limiter
from observability.metrics.throughput import rates
from pipeline.core.labels import counted
from pipeline.models.sla import class_sql, target_sql, targets_s
from pipeline.transitions.metric_counts import counted_totals

READ = 10_000
"""Waiting, running and parked jobs that are read of each status."""

# Each branch reads its own partial index.
_LATE = f"""
SELECT {class_sql("j.priority")}, count(*), min(j.created_at) FROM (
  (SELECT priority, created_at FROM job_queue WHERE status = 'pending' LIMIT %(cap)s)
  UNION ALL
  (SELECT priority, created_at FROM job_queue WHERE status = 'processing' LIMIT %(cap)s)
  UNION ALL
  (SELECT priority, created_at FROM job_queue WHERE status = 'parked' LIMIT %(cap)s)
) j
WHERE clock_timestamp() - j.created_at
  > make_interval(secs => {target_sql(class_sql("j.priority"))})
GROUP BY 1
"""  # noqa: S608 - constants of ours, values are parameters


@dataclass(frozen=True, kw_only=True)
class ServiceLevel:
    """The records of one class of priority."""

    priority: str
    target_s: float
    late: int
    """Records that have not ended and are past the target."""
    oldest: datetime | None
    """The submission of the oldest late record."""
    met: int
    """Records of all time that ended within the target."""
    missed: int

    @property
    def compliance(self) -> float | None:
        """The share of ended records that met the target; None before the first."""
        ended = self.met + self.missed
        return self.met / ended if ended else None


def service_levels() -> list[ServiceLevel]:
    """Return the service level of each class of priority, in two statements."""
    late = late_records()
    ended = {
        (each.labels["priority"], each.labels["result"]): int(each.value)
        for each in counted_totals()
        if each.name == "sla_records"
    }
    return [
        ServiceLevel(
            priority=name,
            target_s=target,
            late=late.get(name, (0, None))[0],
            oldest=late.get(name, (0, None))[1],
            met=ended.get((name, "met"), 0),
            missed=ended.get((name, "missed"), 0),
        )
        for name, target in targets_s().items()
    ]


def late_records() -> dict[str, tuple[int, datetime]]:
    """Return the number of late records and the oldest submission by class of priority."""
    with connection.cursor() as cursor:
        cursor.execute(_LATE, {"cap": READ, **targets_s()})
        return {name: (number, oldest) for name, number, oldest in cursor.fetchall()}


def backlog_forecast() -> Forecast:
    """Forecast the end of the outstanding work from quota and backlog."""
    now = timezone.now()
    of_calls = rates(now)
    left = outstanding(of_calls.input_tokens / of_calls.pages if of_calls.pages else None)
    return forecast(left, named_limiter().state(), of_calls.calls_a_minute, now)


def check() -> str:
    """Return a line for the log if records are late, as the periodic task `check_sla`."""
    levels = service_levels()
    return in_words(levels, backlog_forecast()) if any(each.late for each in levels) else ""


def in_words(levels: Sequence[ServiceLevel], expected: Forecast) -> str:
    """Return the late records and the forecast in one line without PHI."""
    late = [f"{each.late} {each.priority}" for each in levels if each.late]
    number = sum(each.late for each in levels)
    words = f"{counted(number, 'record')} late ({', '.join(late)})" if number else "no record late"
    end = f"{expected.at:%Y-%m-%d %H:%M} UTC" if expected.at else "unknown"
    return f"{words}; expected end of the backlog: {end} ({expected.words})"
