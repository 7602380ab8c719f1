"""Failures in groups of cause, pass and model, and the members of a group.

There are two sources: failed calls, and jobs that failed without a failed call. Each is read newest
first up to a limit, and the page says if the limit was reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import connection

from observability.listing.time_window import Period
from pipeline.core.errors import ERRORS, ErrorCode
from pipeline.core.labels import PASS_TITLES, counted
from pipeline.core.states import Step
from pipeline.incidents.assessment import Assessment, assess
from pipeline.models import OUTCOME_LATE
from pipeline.models.work_tables import WorkTable, composed, states_sql

READ = 10_000
BARS = 24


class FailureSource(StrEnum):
    """Whether a group counts calls, or jobs that failed without a failed call."""

    CALL = "call"
    JOB = "job"


@dataclass(frozen=True, kw_only=True)
class FailureGroup:
    """Failures with the same cause, pass and model."""

    source: FailureSource
    cause: str
    step: Step
    model: str
    records: int
    works: int
    """Number of work items; 0 for jobs."""
    calls: int
    absorbed: int
    """Work items that have succeeded since then."""
    failed: int
    """Batches and chunks that have failed for good; for jobs, all of them."""
    first: datetime
    last: datetime
    trend: Sequence[int]
    """Failures in each of `BARS` equal parts of the time span, oldest first."""

    @property
    def pass_title(self) -> str:
        """The name of the pass for people."""
        return PASS_TITLES[self.step]

    @property
    def in_number(self) -> str:
        """The number of calls or jobs, with the noun."""
        return counted(self.calls, self.source)

    @property
    def advice(self) -> str:
        """The advice for this group."""
        if self.works and self.absorbed == self.works:
            return "Nothing to do: all of them have succeeded since."
        try:
            advice = ERRORS[ErrorCode(self.cause)].advice
        except ValueError:
            return ""
        if assess(self.cause, self.failed) is Assessment.LIKELY_OUTAGE:
            return f"Likely an outage of the provider: {self.failed} failed because of it. {advice}"
        return advice


@dataclass(frozen=True, kw_only=True)
class Groups:
    """The groups of a time span, the most harmful group first."""

    groups: Sequence[FailureGroup]
    cap: int
    is_capped: bool
    """Whether only the newest `cap` failures were counted."""


@composed
def _calls_sql(tables: Sequence[WorkTable]) -> str:
    return f"""
-- newest: the newest failed calls, up to the limit. width_bucket gives each its bar of the trend.
WITH newest AS (
  SELECT outcome, step, model, work_item_id, processing_session_id, created_at,
    width_bucket(extract(epoch FROM created_at), %(low)s, %(high)s, %(bars)s) AS bar
  FROM provider_calls
  WHERE outcome <> 'OK' AND created_at >= %(since)s AND created_at < %(until)s
  ORDER BY created_at DESC LIMIT %(cap)s
), w AS MATERIALIZED (
  -- w: one row per work item, so that its state is looked up once, in the order of the index.
  SELECT work_item_id AS item, processing_session_id AS session, outcome, step, model,
    count(*) AS calls, min(created_at) AS first, max(created_at) AS last
  FROM newest WHERE outcome <> %(late)s GROUP BY 1, 2, 3, 4, 5 ORDER BY 1
)
-- Calls and items, records, and states are counted apart: each then needs one pass over w, and only
-- the records need different rows.
SELECT outcome, step, model, NULL::integer, sum(calls)::integer, sum(records)::integer,
  sum(works)::integer, sum(absorbed)::integer, sum(failed)::integer, min(first), max(last)
FROM (
  SELECT outcome, step, model, sum(calls) AS calls, 0 AS records, count(item) AS works,
    0 AS absorbed, 0 AS failed, min(first) AS first, max(last) AS last
  FROM w GROUP BY 1, 2, 3
  UNION ALL
  SELECT outcome, step, model, 0, count(*), 0, 0, 0, NULL, NULL
  FROM (SELECT DISTINCT session, outcome, step, model FROM w) records GROUP BY 1, 2, 3
  UNION ALL
  SELECT outcome, step, model, 0, 0, 0, count(*) FILTER (WHERE status = 'succeeded'),
    count(*) FILTER (WHERE status = 'failed'), NULL, NULL
  FROM ({states_sql(tables, "w", "outcome", "step", "model")}) states
  GROUP BY 1, 2, 3
) counts GROUP BY 1, 2, 3
-- The trend: calls per bar.
UNION ALL
SELECT outcome, step, model, bar, count(*), 0, 0, 0, 0, NULL, NULL
FROM newest WHERE outcome <> %(late)s GROUP BY 1, 2, 3, 4
-- The number of rows that were read, to detect the limit.
UNION ALL
SELECT NULL, NULL, NULL, NULL, count(*), 0, 0, 0, 0, NULL, NULL FROM newest
"""  # noqa: S608 - names come from the models, values are parameters


_JOBS = """
-- newest: the newest failed jobs without a failed call, up to the limit. The grouping sets give the
-- groups, the bars of each group, and the number of rows that were read.
WITH newest AS (
  SELECT error_code, current_step, shell_file_id, completed_at,
    width_bucket(extract(epoch FROM completed_at), %(low)s, %(high)s, %(bars)s) AS bar
  FROM job_queue
  WHERE status IN ('failed', 'dead') AND completed_at >= %(since)s AND completed_at < %(until)s
    AND error_code <> ALL (%(of_calls)s)
  ORDER BY completed_at DESC LIMIT %(cap)s
)
SELECT error_code, current_step, '', bar,
  count(*), count(DISTINCT shell_file_id), 0, 0, count(*), min(completed_at), max(completed_at)
FROM newest
GROUP BY GROUPING SETS ((error_code, current_step), (error_code, current_step, bar), ())
"""

OF_CALLS = [
    code.value
    for code in ErrorCode
    if code is ErrorCode.MAX_RETRIES_EXCEEDED or code.value.startswith(("API_", "PARSE_", "RATE_"))
] + [
    ErrorCode.QUOTA_EXHAUSTED.value, ErrorCode.CONTEXT_TOO_LARGE.value,
    ErrorCode.OUTPUT_TRUNCATED.value, ErrorCode.EMPTY_RESPONSE.value,
    ErrorCode.CONTENT_BLOCKED.value, ErrorCode.REPLY_MISMATCH.value,
]  # fmt: skip
"""Codes of jobs that failed through their calls; these failures are counted as calls."""


def groups(period: Period, *, cap: int = READ) -> Groups:
    """Group the newest `cap` failures of a period; two statements."""
    parameters: dict[str, Any] = {
        "since": period.since,
        "until": period.until,
        "cap": cap,
        "low": period.since.timestamp(),
        "high": period.until.timestamp(),
        "bars": BARS,
        "late": OUTCOME_LATE,
        "of_calls": OF_CALLS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_calls_sql(), parameters)
        of_calls = cursor.fetchall()
        cursor.execute(_JOBS, parameters)
        of_jobs = cursor.fetchall()
    # The row without a cause counts all rows that were read, late replies too.
    read = max(row[4] for row in [*of_calls, *of_jobs] if row[0] is None)
    found = [
        *_grouped(FailureSource.CALL, [row for row in of_calls if row[0] is not None]),
        *_grouped(FailureSource.JOB, [row for row in of_jobs if row[0] is not None]),
    ]
    found.sort(key=lambda group: (-group.failed, -(group.works - group.absorbed), -group.calls))
    return Groups(groups=found, cap=cap, is_capped=read >= cap)


def _grouped(source: FailureSource, rows: Sequence[tuple[Any, ...]]) -> list[FailureGroup]:
    trends: dict[tuple[str, str, str], list[int]] = {}
    for cause, step, model, bar, number, *_ in rows:
        trend = trends.setdefault((cause, step, model), [0] * BARS)
        if bar is not None:
            trend[min(bar, BARS) - 1] = number
    return [
        FailureGroup(
            source=source,
            cause=cause,
            step=Step(step),
            model=model,
            records=records,
            works=works,
            calls=number,
            absorbed=absorbed,
            failed=failed,
            first=first,
            last=last,
            trend=trends[cause, step, model],
        )
        for cause, step, model, bar, number, records, works, absorbed, failed, first, last in rows
        if bar is None
    ]
