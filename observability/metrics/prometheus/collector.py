"""The collector: reads all figures when Prometheus asks, so no process keeps a counter.

A worker that forks, dies or is killed loses no figure. A source that does not answer is reported
as down, and the other source is still read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from django.db import DatabaseError, InterfaceError
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from observability.metrics.named_limiter import named_limiter
from observability.metrics.prometheus import catalogue
from observability.metrics.prometheus.database import database_metrics
from observability.metrics.prometheus.families import plain
from observability.metrics.prometheus.redis_state import limiter_metrics, worker_metrics
from pipeline.core.redaction import redacted
from pipeline.core.server_faults import ServerFault
from pipeline.operations.server_check import recent_server_faults
from pipeline.ratelimit import RateLimiterState

logger = logging.getLogger(__name__)


class ScrapeCollector(Collector):
    """Reads the database, Redis and the rate limiter once for each scrape."""

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of every source that answers."""
        faults = recent_server_faults()
        workers = worker_metrics()
        limiter = _limiter() if workers is not None else None
        of_database = _of_database(faults, limiter)
        yield from of_database or ()
        if limiter is not None:
            yield from limiter_metrics(limiter)
        yield from workers or ()
        up = {("database",): of_database is not None, ("redis",): limiter is not None}
        yield plain(catalogue.SOURCE_UP, {source: float(is_up) for source, is_up in up.items()})
        yield plain(catalogue.FAULTS, {(fault.value,): 1.0 for fault in faults})


def exposition() -> bytes:
    """Return all metrics in the text format, from a registry of their own."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ScrapeCollector())
    return generate_latest(registry)


def _limiter() -> RateLimiterState | None:
    state = named_limiter().state()
    return None if state.is_local else state


def _of_database(
    faults: tuple[ServerFault, ...], limiter: RateLimiterState | None
) -> list[Metric] | None:
    """Return the metrics of PostgreSQL, or None if it does not answer."""
    if any(fault.is_of_postgres and not fault.answers for fault in faults):
        # The pool would try for seconds, and Prometheus would give up.
        return None
    try:
        return database_metrics(limiter)
    except (DatabaseError, InterfaceError) as error:
        logger.warning("metrics: the database is not read: %s", redacted(error))
        return None
