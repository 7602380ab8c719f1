"""What a step waited for, and for how long: the answer to "why did this step run out of time".

Waits for the rate limiter are told apart by their reason. The seconds in which calls were in flight
are the step's work. Both can overlap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pipeline.core.labels import duration
from pipeline.ratelimit import Why

REASONS: Mapping[Why, str] = {
    Why.REQUESTS: "requests per minute (GEMINI_RPM)",
    Why.TOKENS: "input tokens per minute (GEMINI_TPM)",
    Why.DAY: "requests per day (GEMINI_RPD)",
    Why.TURN: "its turn among the jobs that share the quota",
    Why.RAMP: "the ramp after a cooldown, an outage or the loss of Redis",
    Why.COOLDOWN: "the cooldown after a 429",
    Why.QUOTA: "the reset of the provider's quota",
    Why.PAUSED: "the end of a pause",
    Why.BREAKER: "the end of an outage",
    Why.NEW: "the holds in the database, after Redis was emptied",
    Why.LOCAL: "its small share of the quota while Redis is away",
}
"""Each reason as it follows the words "waited for"."""

WORTH_SAYING_S = 0.1


class StepWaits:
    """The waits of one step, in seconds of the monotonic clock; only the executor thread asks."""

    def __init__(self) -> None:
        self._seconds: defaultdict[Why, float] = defaultdict(float)
        self._refused: tuple[Why, float] | None = None
        self._held: tuple[Why, float] | None = None
        """The hold that began with a failed call of this step, and its end."""
        self._calls = 0
        self._calls_since = 0.0
        self._in_flight_s = 0.0

    @property
    def is_refused(self) -> bool:
        """Whether the rate limiter refused the step's last ask."""
        return self._refused is not None

    def ask(self, refusal: Why | None, now: float) -> None:
        """Note the answer to an ask: the reason of the refusal, or None for a start."""
        self._close(now)
        self._refused = None if refusal is None else (refusal, now)

    def hold(self, why: Why, seconds: float, now: float) -> None:
        """Note that a failed call of this step stops all starts for so many seconds from now."""
        self._close(now)
        until = now + seconds
        begins = now if self._held is None else max(now, self._held[1])
        if until > begins:
            self._seconds[why] += until - begins
            self._held = (why, until)

    def begin_call(self, now: float) -> None:
        """Note that a call begins."""
        if self._calls == 0:
            self._calls_since = now
        self._calls += 1

    def end_call(self, now: float) -> None:
        """Note that a call has ended, or is not waited for any more."""
        self._calls -= 1
        if self._calls == 0:
            self._in_flight_s += now - self._calls_since

    def in_words(self, now: float) -> str:
        """Return all waits, the longest first: "waited 5 min for …; calls in flight for 40 s"."""
        self._close(now)
        if self._held is not None and self._held[1] > now:
            why, until = self._held
            self._seconds[why] -= until - now
            self._held = (why, now)
        in_flight_s = self._in_flight_s + (now - self._calls_since if self._calls else 0.0)
        longest = sorted(self._seconds.items(), key=lambda each: -each[1])
        waits = [
            f"{duration(seconds)} for {REASONS[why]}"
            for why, seconds in longest
            if seconds >= WORTH_SAYING_S
        ]
        waited = f"waited {', '.join(waits) or 'for no quota'}"
        return f"{waited}; calls in flight for {duration(in_flight_s)}"

    def _close(self, now: float) -> None:
        if self._refused is not None:
            why, since = self._refused
            # A wait during a hold is counted with the hold.
            since = since if self._held is None else max(since, self._held[1])
            self._seconds[why] += max(0.0, now - since)
            self._refused = (why, now)
