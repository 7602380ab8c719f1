"""The values that callers pass to the rate limiter and get back: frozen, without behaviour.

Durations are seconds. Moments are epoch seconds of Redis's clock. Job and item ids are our own ids
and carry nothing of a document.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from pipeline.core.errors import OUTAGE_CODES, CallError, ErrorCode
from pipeline.ratelimit.past_calls import PastCalls


class Why(StrEnum):
    """Why a call must wait."""

    PAUSED = "paused"
    """An operator or an incident has paused this provider and model."""
    QUOTA = "quota"
    """The provider reports an exhausted day or spend quota, which resets in `seconds`."""
    DAY = "day"
    """Our own count of today has reached GEMINI_RPD; `seconds` until midnight Pacific."""
    BREAKER = "breaker"
    """The circuit breaker is open. The next probe call is due in `seconds`, or is in flight."""
    COOLDOWN = "cooldown"
    """The provider has answered 429; `seconds` is the rest of the cooldown."""
    RAMP = "ramp"
    """After a cooldown, an outage or the loss of Redis, the starts per second grow step by step."""
    REQUESTS = "requests"
    """The requests of the current window are used up."""
    TOKENS = "tokens"
    """The input tokens of the current window are used up."""
    TURN = "turn"
    """A job that was served less is waiting."""
    NEW = "new"
    """Redis was empty, and the holds in the database have not been restored yet."""
    LOCAL = "local"
    """Redis is away, and this process keeps to its small share of the quota."""


class CooldownRole(StrEnum):
    """The part that a limited call plays in its cooldown."""

    NONE = ""
    """The call was not limited."""
    COORDINATOR = "coordinator"
    """The first limited call of its generation; it has set the cooldown."""
    PARTICIPANT = "participant"
    """A limited call that found the cooldown already set."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A request to start one call."""

    job: str
    """The job whose turn counts: jobs share the quota equally."""
    item: str
    """The batch or chunk. The id stays the same when the item asks again after a 429."""
    tokens: int
    """Estimated input tokens. The rate limiter corrects the estimate by past calls."""
    prompt_version: str = ""
    """The rate limiter learns one correction per prompt version."""


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """An admitted call; its caller must report it exactly once."""

    id: str
    item: str
    generation: int
    """The cooldown generation at admission. A 429 of an older generation opens no new cooldown."""
    epoch: int
    """The breaker epoch at admission. The breaker ignores an outcome of an older epoch."""
    bucket: str
    """The bucket of the window in which the call is booked."""
    tokens: int
    """The reserved input tokens."""
    estimate: int
    prompt_version: str
    asked_at: float
    """Seconds of this process's monotonic clock."""
    is_probe: bool = False
    """This call is the probe call of the open circuit breaker: is the provider back?"""
    is_redistributed: bool = False
    """The item had been limited and starts again with this call."""
    is_local: bool = False
    """The call was admitted while Redis was away."""


@dataclass(frozen=True, kw_only=True)
class Go:
    """The call may start now."""

    ticket: Ticket


@dataclass(frozen=True, kw_only=True)
class Later:
    """The call must wait; ask again in `seconds`."""

    seconds: float
    why: Why
    outage_since: float | None = None
    """The first failure of the outage; None while the circuit breaker is closed."""


Admission = Go | Later


class OutcomeKind(StrEnum):
    """How the rate limiter's script treats an outcome."""

    OK = "ok"
    """The provider replied to the request; the content does not matter."""
    FAILED = "failed"
    """The provider is unavailable (5xx, timeout). The circuit breaker counts these outcomes."""
    LIMITED = "limited"
    QUOTA = "quota"
    UNKNOWN = "unknown"
    """The outcome says nothing about the provider."""


OUTCOME_OF_CODE: dict[ErrorCode, OutcomeKind] = {
    **dict.fromkeys(OUTAGE_CODES, OutcomeKind.FAILED),
    ErrorCode.RATE_LIMIT: OutcomeKind.LIMITED,
    ErrorCode.QUOTA_EXHAUSTED: OutcomeKind.QUOTA,
    **dict.fromkeys(
        (
            ErrorCode.API_4XX,
            ErrorCode.API_AUTH,
            ErrorCode.API_BILLING,
            ErrorCode.PARSE_JSON,
            ErrorCode.PARSE_SCHEMA,
            ErrorCode.CONTEXT_TOO_LARGE,
            ErrorCode.OUTPUT_TRUNCATED,
            ErrorCode.EMPTY_RESPONSE,
            ErrorCode.CONTENT_BLOCKED,
            ErrorCode.REPLY_MISMATCH,
            ErrorCode.INPUT_INVALID,
            ErrorCode.ENCOUNTER_NOT_FOUND,
        ),
        OutcomeKind.OK,
    ),
}
"""Codes that say something about the provider; every other code is UNKNOWN."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a call ended."""

    code: ErrorCode | None = None
    """None means success."""
    input_tokens: int | None = None
    """As the provider counted them. None means unknown, so the reservation stays booked."""
    retry_after_s: float | None = None
    quota_id: str = ""
    has_reply: bool = True
    """False if the call failed before the provider replied, for example because its pages are too
    large to be sent."""

    @property
    def kind(self) -> OutcomeKind:
        """How the rate limiter treats the outcome."""
        if self.code is None:
            return OutcomeKind.OK
        kind = OUTCOME_OF_CODE.get(self.code, OutcomeKind.UNKNOWN)
        is_unsent = kind is OutcomeKind.OK and not self.has_reply
        return OutcomeKind.UNKNOWN if is_unsent else kind

    @classmethod
    def success(cls, input_tokens: int | None) -> Self:
        """Return the outcome of an accepted reply."""
        return cls(input_tokens=input_tokens)

    @classmethod
    def failure(cls, error: CallError) -> Self:
        """Return the outcome of a failed call. Tokens count if the provider reported them."""
        return cls(
            code=error.code,
            input_tokens=error.details.input_tokens or None,
            retry_after_s=error.details.retry_after_s,
            quota_id=error.details.quota_id,
            has_reply=error.details.http_status is not None,
        )


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The outage, quota closure, pause and recent calls of a provider and model, as the database
    has them."""

    outage_since: float | None = None
    """The first failure of the open outage."""
    closed_until: float | None = None
    """When the exhausted quota resets."""
    is_paused: bool = False
    past: PastCalls | None = None
    """The calls of the last window; None means unknown, so that the window counts as spent."""

    @property
    def has_hold(self) -> bool:
        """Whether the provider and model are held."""
        return self.is_paused or self.outage_since is not None or self.closed_until is not None


@dataclass(frozen=True, kw_only=True)
class Reported:
    """The rate limiter's reply to a reported outcome."""

    role: CooldownRole = CooldownRole.NONE
    starts_in_s: float = 0.0
    """Seconds until calls may start again; 0 if calls may start now."""
    outage_since: float | None = None
    """The first failure of the outage; None while the circuit breaker is closed."""

    @property
    def is_breaker_open(self) -> bool:
        """Whether the circuit breaker is open, so that only probe calls start."""
        return self.outage_since is not None


class Breaker(StrEnum):
    """The state of the circuit breaker."""

    CLOSED = "closed"
    OPEN = "open"
    """Nothing starts until the next probe call is due."""
    HALF_OPEN = "half_open"
    """A probe call is due or in flight."""


@dataclass(frozen=True, kw_only=True)
class Counters:
    """Counts since Redis was last empty (requirement 50, and the circuit breaker's trips)."""

    rate_limited_items_stored: int = 0
    """Limited items: their calls were refused with 429, and they wait to start again."""
    rate_limited_items_redistributed: int = 0
    """Limited items that started again."""
    rate_limit_generations: int = 0
    """Cooldowns."""
    rate_limit_participants: int = 0
    """Limited calls that found their cooldown already set."""
    breaker_trips: int = 0


@dataclass(frozen=True, kw_only=True)
class RateLimiterState:
    """The rate limiter of one provider and model at one moment, for the console."""

    provider: str
    model: str
    is_local: bool
    """Redis is away: each process keeps to its small share, and the other fields are unknown."""
    now: float = 0.0
    requests_used: int = 0
    """Requests in the current window, including reservations."""
    requests_limit: int | None = None
    tokens_used: int = 0
    tokens_limit: int | None = None
    day_used: int = 0
    day_limit: int | None = None
    guard_s: float = 0.0
    """Seconds by which the guard lengthens the window."""
    in_flight: int = 0
    waiting_jobs: int = 0
    limited_items: int = 0
    generation: int = 0
    consecutive: int = 0
    """Cooldowns in a row."""
    cooldown_until: float | None = None
    closed_until: float | None = None
    """When an exhausted day or spend quota resets."""
    is_paused: bool = False
    is_ramping: bool = False
    ramp_step: int = 0
    breaker: Breaker = Breaker.CLOSED
    outage_since: float | None = None
    probe_at: float | None = None
    last_outage: tuple[float, float] | None = None
    """First failure and end of the most recent outage that is over."""
    born: float = 0.0
    """When this state began in Redis; a Redis that was emptied has a later moment."""
    counters: Counters = Counters()
