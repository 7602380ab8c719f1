"""Pause and resume every rate limiter of a provider, and forget erased jobs.

Redis may not know a rate limiter yet. Such a limiter needs no message: its first ask arms it from
the database. If Redis is away, pause and resume return False and raise nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

import redis
from django.conf import settings

from pipeline.ratelimit.limiter import RateLimiter, limiter_client
from pipeline.ratelimit.scripts import keys_of


def pause_limiters(provider: str, model: str | None) -> bool:
    """Pause the rate limiters of a provider, or of one of its models.

    Return False if Redis is away.
    """
    return _each(provider, model, lambda limiter: limiter.pause())


def resume_limiters(provider: str, model: str | None) -> bool:
    """End the pauses and quota closures of these rate limiters. Return False if Redis is away."""
    return _each(provider, model, lambda limiter: limiter.resume())


def forget_jobs(job_ids: Sequence[UUID]) -> None:
    """Delete the places of ended jobs in every line. Raises RedisError."""
    members = [str(job_id) for job_id in job_ids]
    if not members:
        return
    with limiter_client(settings.REDIS_URL) as client:
        for key in list(client.scan_iter(match="medproc:gate:*")):
            match key.decode().rpartition(":")[2]:
                case "line" | "served":
                    client.zrem(key, *members)
                case "line-until":
                    client.hdel(key, *members)


def _each(provider: str, model: str | None, act: Callable[[RateLimiter], bool]) -> bool:
    try:
        models = [each for each in _models(provider) if model in {None, each}]
    except redis.RedisError:
        return False
    # Tell all of them, even after one was not reached.
    told = [act(RateLimiter.for_(provider, each)) for each in models]
    return all(told)


def _models(provider: str) -> list[str]:
    """Return the models of a provider whose rate limiters Redis knows. This scans all keys."""
    before, after = keys_of(provider, "\n")[0].split("\n")
    with limiter_client(settings.REDIS_URL) as client:
        keys = {key.decode() for key in client.scan_iter(match=f"medproc:gate:*{after}")}
    return sorted(
        key.removeprefix(before).removesuffix(after) for key in keys if key.startswith(before)
    )
