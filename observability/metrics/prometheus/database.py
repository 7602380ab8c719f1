"""The metrics that PostgreSQL knows. Any number of records needs the same number of statements.

Each statement reads roll-ups, rows of a partial index up to a limit, or a table of a few rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from django.db import connection
from django.utils import timezone
from prometheus_client.metrics_core import Metric

from medproc.reading import reading
from observability.audit import watch
from observability.metrics.prometheus import catalogue
from observability.metrics.prometheus.families import (
    MetricDeclaration,
    MetricKind,
    Values,
    histogram,
    plain,
)
from observability.metrics.queue_depths import queue
from observability.metrics.sla import late_records
from pipeline.core.labels import StatusWord
from pipeline.models import RateLimitCounts, ReviewLane
from pipeline.models.sla import targets_s
from pipeline.operations.liveness import last_task_runs
from pipeline.ratelimit import Counters, RateLimiterState
from pipeline.transitions.metric_counts import CounterPart, counted_totals

LIVES_READ = 1_000
"""Lives of Redis that are read, the newest first; each is a row per provider and model."""
AGING = frozenset({StatusWord.WAITING, StatusWord.RUNNING, StatusWord.PARKED})
"""The states whose oldest record is reported: such a record must go on by itself."""

# One statement for the small figures; each branch reads a partial index.
_SMALL = """
SELECT 'leases', CASE WHEN is_live THEN 'live' ELSE 'expired' END, count(*)
FROM (SELECT lease_expires_at > clock_timestamp() AS is_live FROM job_queue
  WHERE status = 'processing' LIMIT %(cap)s) held GROUP BY 1, 2
UNION ALL
SELECT 'incidents', kind, count(*) FROM incidents WHERE state = 'open' GROUP BY 1, 2
UNION ALL
SELECT 'pauses', '', count(*) FROM pauses WHERE ended_at IS NULL
UNION ALL
SELECT 'reviews', lane, (SELECT count(*) FROM (
    SELECT FROM review_items WHERE status = 'open' AND lane = l.lane LIMIT %(cap)s) open)
FROM unnest(%(lanes)s::text[]) AS l (lane)
"""


def database_metrics(limiter: RateLimiterState | None) -> list[Metric]:
    """Read all figures in one read-only transaction with a limit of time.

    Counters of the rate limiter in Redis that are newer than their copy count too. Raises the
    error of PostgreSQL.
    """
    with reading():
        return [
            *_counted(),
            *_limited(limiter),
            *_records(),
            *_small(),
            *_tasks(),
            *_sla(),
            plain(catalogue.AUDIT_ALARM, {(): float(bool(watch.alarms()))}),
        ]


def _counted() -> Iterator[Metric]:
    """Return the counters and histograms of `metric_counts`."""
    totals: defaultdict[str, list[CounterPart]] = defaultdict(list)
    for each in counted_totals():
        totals[each.name].append(each)
    for family in catalogue.COUNTED:
        name = family.counted
        if family.kind is not MetricKind.HISTOGRAM:
            yield plain(family, _values(family, totals[name]))
            continue
        buckets = [
            (_key(family, each), each.labels["le"], float(each.value))
            for each in totals[f"{name}_bucket"]
        ]
        yield histogram(family, buckets, _values(family, totals[f"{name}_sum"]))


def _values(family: MetricDeclaration, counted: Iterable[CounterPart]) -> Values:
    return {_key(family, each): float(each.value) for each in counted}


def _key(family: MetricDeclaration, counted: CounterPart) -> tuple[str, ...]:
    return tuple(counted.labels[label] for label in family.labels)


def _limited(limiter: RateLimiterState | None) -> Iterator[Metric]:
    """Return the counters of every provider and model, over all lives of Redis."""
    lives: dict[tuple[str, str, float], Counters] = {
        (row.provider, row.model, row.born): Counters(
            **{name: getattr(row, name) for name in catalogue.LIMITED}
        )
        for row in RateLimitCounts.objects.order_by("-created_at")[:LIVES_READ]
    }
    if limiter is not None:
        # The live counters are never behind their copy.
        lives[limiter.provider, limiter.model, limiter.born] = limiter.counters
    for family, name in zip(catalogue.LIMITER_COUNTS, catalogue.LIMITED, strict=True):
        values: defaultdict[tuple[str, ...], float] = defaultdict(float)
        for (provider, model, _), counters in lives.items():
            values[provider, model] += getattr(counters, name)
        yield plain(family, values)


def _records() -> Iterator[Metric]:
    by_pass = queue().by_pass
    numbers: dict[tuple[str, ...], float] = {}
    ages: dict[tuple[str, ...], float] = {}
    now = timezone.now()
    for step, depths in by_pass.items():
        for state, depth in depths.items():
            numbers[step.value, state.value] = depth.number
            if depth.oldest is not None and state in AGING:
                ages[step.value, state.value] = max(0.0, (now - depth.oldest).total_seconds())
    yield plain(catalogue.RECORDS, numbers)
    yield plain(catalogue.OLDEST, ages)


def _small() -> Iterator[Metric]:
    of: dict[str, dict[tuple[str, ...], float]] = {
        "leases": {}, "incidents": {}, "pauses": {}, "reviews": {},
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(
            _SMALL, {"cap": catalogue.COUNTED_UP_TO, "lanes": [lane.value for lane in ReviewLane]}
        )
        for kind, label, number in cursor.fetchall():
            of[kind][(label,) if label else ()] = float(number)
    yield plain(catalogue.LEASES, of["leases"])
    yield plain(catalogue.INCIDENTS_OPEN, of["incidents"])
    yield plain(catalogue.PAUSES_OPEN, of["pauses"])
    yield plain(catalogue.REVIEWS, of["reviews"])


def _tasks() -> Iterator[Metric]:
    runs = last_task_runs()
    ages: Values = {(run.task,): run.age_s for run in runs if run.age_s is not None}
    yield plain(catalogue.TASK_AGE, ages)
    yield plain(catalogue.TASK_WELL, {(run.task,): float(run.is_well) for run in runs})


def _sla() -> Iterator[Metric]:
    late: Values = {(name,): float(number) for name, (number, _) in late_records().items()}
    yield plain(catalogue.SLA_TARGET, {(name,): each for name, each in targets_s().items()})
    yield plain(catalogue.SLA_LATE, late)
