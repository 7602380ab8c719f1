"""The calls of the last window, from which an emptied Redis gets its window back.

The functions are pure. What is not known counts as spent, so that the provider never refuses a call
of ours.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.ratelimit.config import Quota

BOOKING_S = 0.05
"""Calls that started within so many seconds are booked together, like in a bucket."""


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call that counts against the quota."""

    age_s: float
    """Seconds since its start, or less."""
    tokens: int | None
    """Input tokens; None means unknown."""


@dataclass(frozen=True, kw_only=True)
class PastCalls:
    """The calls of one window of a provider and model, known and possible."""

    known: tuple[PastCall, ...] = ()
    possible: int = 0
    """Calls that other processes may have started, and of which there is no row yet."""
    has_failures: bool = False
    """Whether a known call failed, so that the limiter begins with a ramp."""

    @property
    def is_calm(self) -> bool:
        """Whether calls may start without a ramp."""
        return not self.possible and not self.has_failures


def bookings(past: PastCalls, quota: Quota, asked_tokens: int) -> list[tuple[float, int, int]]:
    """Return (age in seconds, requests, tokens) per booking, oldest first.

    A possible call counts as started now, but all calls together never count more than the quota
    because of possible calls: the limiter admitted no more. A call of unknown size counts as large
    as the largest known call, or as the call that is asked for.
    """
    largest = max([asked_tokens, *(call.tokens or 0 for call in past.known)])
    booked: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for call in past.known:
        booking = booked[max(math.floor(call.age_s / BOOKING_S), 0)]
        booking[0] += 1
        booking[1] += largest if call.tokens is None else call.tokens
    if past.possible:
        now = booked[0]
        now[0] += _room(past.possible, quota.requests, (n for n, _ in booked.values()))
        now[1] += _room(past.possible * largest, quota.tokens, (n for _, n in booked.values()))
    return [
        (age * BOOKING_S, requests, tokens)
        for age, (requests, tokens) in sorted(booked.items(), reverse=True)
    ]


def _room(wanted: int, limit: int | None, used: Iterable[int]) -> int:
    """Return as much of `wanted` as the limit leaves."""
    return wanted if limit is None else max(min(wanted, limit - sum(used)), 0)
