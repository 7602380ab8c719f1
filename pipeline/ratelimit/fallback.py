"""The behaviour of one process while Redis is away.

The process starts calls at a small share of the quota and logs this once a minute. It asks Redis
again every `AWAY_FOR_S`. Afterwards it tells Redis which items have started.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable

import redis

from pipeline.core.server_faults import explain
from pipeline.ratelimit.config import Quota, Tuning
from pipeline.ratelimit.local_limiter import LocalLimit
from pipeline.ratelimit.types import Ask, Outcome

logger = logging.getLogger(__name__)

AWAY_FOR_S = 1.0
"""Seconds before Redis is asked again after it did not answer."""
LOG_EVERY_S = 60.0


class Fallback:
    """The local limit of one process, and when to ask Redis again. Any thread may call."""

    def __init__(
        self, provider: str, quota: Quota, tuning: Tuning, clock: Callable[[], float]
    ) -> None:
        self._provider = provider
        self._quota = quota
        self._tuning = tuning
        self._clock = clock
        # Call threads report outcomes while the asking thread counts starts.
        self._lock = threading.Lock()
        self._limit: LocalLimit | None = None
        """None while Redis answers."""
        self.retry_at = -math.inf
        """Redis is not asked before this moment of the clock."""
        self._logged_at = -math.inf

    @property
    def holds_redis_back(self) -> bool:
        """Return whether Redis has just failed, so that asking again would only cost a timeout."""
        return self._clock() < self.retry_at

    def lose(self, error: redis.RedisError) -> None:
        """Note that Redis did not answer."""
        now = self._clock()
        with self._lock:
            self.retry_at = now + AWAY_FOR_S
            self._limit_from(now)
            if now - self._logged_at < LOG_EVERY_S:
                return
            self._logged_at = now
        logger.warning(
            "%s This process starts at most %s of the quota of %s",
            explain(error),
            f"{self._tuning.local_share:.1%}",
            self._provider,
            extra={"action": "limiter_local"},
        )

    def recover(self) -> None:
        """Note that Redis has answered an ask, and has thereby booked the owed starts."""
        if self._limit is None:
            return
        with self._lock:
            self._limit = None
            self._logged_at = -math.inf
        logger.warning(
            "Redis is back; the rate limiter holds again", extra={"action": "limiter_back"}
        )

    def wait_s(self, ask: Ask) -> float:
        """Take a start and return 0, or return the seconds until the next start."""
        now = self._clock()
        with self._lock:
            limit = self._limit_from(now)
            wait = limit.wait_s(now, ask.tokens)
            if wait <= 0:
                limit.items.append(ask.item)
        return wait

    def heed(self, outcome: Outcome) -> float:
        """Hold back after a failure; return the seconds until the next start."""
        with self._lock:
            return self._limit.heed(outcome, self._clock()) if self._limit else 0.0

    def owed(self) -> tuple[int, int]:
        """Return the requests and input tokens that Redis has not booked yet."""
        limit = self._limit
        return (limit.requests, limit.tokens) if limit else (0, 0)

    def has_started(self) -> bool:
        """Return whether items have started that Redis does not know about."""
        with self._lock:
            return bool(self._limit and self._limit.items)

    def take_started(self) -> list[str]:
        """Return the items that started without Redis, and forget them."""
        # Each script comes here first, and mostly there is no limit: look before taking the lock.
        limit = self._limit
        if limit is None:
            return []
        with self._lock:
            items, limit.items = limit.items, []
        return items

    def keep_started(self, items: list[str]) -> None:
        """Put `take_started`'s items back: Redis could not be told."""
        with self._lock:
            if self._limit is not None:
                self._limit.items[:0] = items

    def _limit_from(self, now: float) -> LocalLimit:
        if self._limit is None:
            self._limit = LocalLimit(self._quota, self._tuning, now)
        return self._limit
