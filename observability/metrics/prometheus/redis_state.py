"""The metrics that Redis knows: the rate limiter, the workers, and the memory of their hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client.metrics_core import Metric

from observability.metrics.prometheus import catalogue
from observability.metrics.prometheus.families import plain
from observability.metrics.worker_memory import hosts
from observability.metrics.workers import WorkerView, known_workers
from pipeline.ratelimit import Breaker, RateLimiterState

KIB = 1024


def limiter_metrics(limiter: RateLimiterState) -> Iterator[Metric]:
    """Return the quota and the state of a rate limiter that Redis holds."""
    served = (limiter.provider, limiter.model)
    limits = {
        "rpm": (limiter.requests_used, limiter.requests_limit),
        "tpm": (limiter.tokens_used, limiter.tokens_limit),
        "rpd": (limiter.day_used, limiter.day_limit),
    }
    stated = {name: (used, limit) for name, (used, limit) in limits.items() if limit}
    yield plain(catalogue.QUOTA, {(*served, name): limit for name, (_, limit) in stated.items()})
    yield plain(catalogue.QUOTA_USED, {(*served, name): used for name, (used, _) in stated.items()})
    yield plain(catalogue.IN_FLIGHT, {served: limiter.in_flight})
    left = max(0.0, (limiter.cooldown_until or 0.0) - limiter.now)
    yield plain(catalogue.COOLDOWN, {served: left})
    yield plain(catalogue.BREAKER, {served: float(limiter.breaker is not Breaker.CLOSED)})


def worker_metrics() -> list[Metric] | None:
    """Return the metrics of the workers; None if Redis does not answer."""
    workers, is_suspended = known_workers()
    if workers is None:
        return None
    states = Counter((worker.state,) for worker in workers)
    return [
        plain(catalogue.WORKERS, {labels: float(number) for labels, number in states.items()}),
        plain(catalogue.SUSPENDED, {(): float(is_suspended)}),
        *_memory(workers),
    ]


def _memory(workers: Sequence[WorkerView]) -> Iterator[Metric]:
    """Return the memory by host, because a worker has a new name at each start."""
    found = hosts(
        (each.host, each.memory) for each in workers if each.is_alive and each.memory is not None
    )
    yield plain(catalogue.WORKER_RSS, {(each.host,): each.used_kib * KIB for each in found})
    yield plain(
        catalogue.HOST_MEMORY,
        {
            (each.host, kind): kib * KIB
            for each in found
            for kind, kib in (("total", each.total_kib), ("free", each.free_kib))
        },
    )
    yield plain(catalogue.MEMORY_SHORT, {(each.host,): float(each.is_short) for each in found})
